//! When models were loaded. What lies in a load is exported, however long before the capture it was.

use crate::calls::{Call, NameKey};
use crate::source::Source;
use std::collections::HashMap;

/// Loads that are remembered; what lies in later ones of an absurd number is not known to.
const LOADS_MAX: usize = 1 << 20;
/// Names of which it is remembered whether they are such; of an absurd number, some are looked up again.
const NAMES_MAX: usize = 1 << 16;
/// The call in which a model is loaded, whatever its level.
const MODEL_LOAD: &str = "ModelLoad";
/// Loads within each other that are looked at.
const NESTED: usize = 64;

/// Loads of models, by thread.
#[derive(Debug, Default)]
pub struct Loads {
    by_thread: HashMap<u32, Vec<Load>>,
    count: usize,
    overflow: bool,
}

/// One of them, in ticks.
#[derive(Clone, Copy, Debug)]
struct Load {
    begin: u64,
    end: u64,
    /// The latest end of this and all before it.
    reach: u64,
    model: u64,
}

impl Loads {
    fn add(&mut self, call: &Call) {
        if self.count == LOADS_MAX {
            self.overflow = true;
            return;
        }
        self.count += 1;
        self.by_thread.entry(call.thread).or_default().push(Load {
            begin: call.begin,
            end: call.end,
            reach: call.end,
            model: call.item,
        });
    }

    fn sort(&mut self) {
        for loads in self.by_thread.values_mut() {
            loads.sort_by_key(|load| load.begin);
            let mut reach = 0;
            for load in loads {
                reach = load.end.max(reach);
                load.reach = reach;
            }
        }
    }

    fn of_thread(&self, thread: u32) -> &[Load] {
        self.by_thread.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Whether there were more than are remembered.
    pub fn overflow(&self) -> bool {
        self.overflow
    }

    /// Whether a call begins in a load of its thread, by what a clock makes of their ticks: one that does not run backwards.
    pub fn hold(&self, call: &Call, clock: impl Fn(u64) -> i128) -> bool {
        let loads = self.of_thread(call.thread);
        if loads.is_empty() {
            return false;
        }
        let at = clock(call.begin);
        let begun = loads.partition_point(|load| clock(load.begin) <= at);
        begun > 0 && clock(loads[begun - 1].reach) >= at
    }

    /// Whether a call lies in a load of its thread from its begin to its end.
    pub fn enclose(&self, call: &Call) -> bool {
        let loads = self.of_thread(call.thread);
        let begun = loads.partition_point(|load| load.begin <= call.begin);
        begun > 0 && loads[begun - 1].reach >= call.end
    }

    /// The model that a thread was loading at a tick: of loads within each other, the inner one.
    pub fn model(&self, thread: u32, tick: u64) -> Option<u64> {
        let loads = self.of_thread(thread);
        let begun = loads.partition_point(|load| load.begin <= tick);
        let mut open = loads[..begun].iter().rev().take(NESTED);
        let inner = open.find(|load| tick <= load.end);
        inner.map(|load| load.model)
    }
}

/// Finds the loads among calls, for those who walk through them.
#[derive(Debug)]
pub struct LoadFinder<'a> {
    source: &'a Source,
    known: HashMap<NameKey, bool>,
    found: Loads,
}

impl LoadFinder<'_> {
    /// Names are those of a directory.
    pub fn new(source: &Source) -> LoadFinder<'_> {
        LoadFinder {
            source,
            known: HashMap::new(),
            found: Loads::default(),
        }
    }

    /// To be told every call.
    pub fn see(&mut self, call: &Call) {
        if self.known.len() == NAMES_MAX {
            self.known.clear();
        }
        let key = call.name_key();
        let is_load = self.known.entry(key);
        if *is_load.or_insert_with(|| self.source.name(key) == MODEL_LOAD) {
            self.found.add(call);
        }
    }

    /// What there was among them.
    pub fn found(mut self) -> Loads {
        self.found.sort();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use msprof_agent_core::records::level;

    fn call(thread: u32, begin: u64, end: u64, item: u64) -> Call {
        Call {
            level: level::MODEL,
            kind: 2,
            thread,
            request: 0,
            item,
            begin,
            end,
            connection: 1,
            paired: false,
        }
    }

    fn loads(calls: &[Call]) -> Loads {
        let mut loads = Loads::default();
        calls.iter().for_each(|call| loads.add(call));
        loads.sort();
        loads
    }

    #[test]
    fn a_call_is_in_a_load_of_its_thread_alone() {
        // The second one lies in the first.
        let loads = loads(&[
            call(1, 500, 600, 9),
            call(1, 100, 400, 7),
            call(1, 200, 250, 8),
        ]);
        let held = |thread, begin, end| {
            let call = call(thread, begin, end, 0);
            (loads.hold(&call, i128::from), loads.enclose(&call))
        };
        assert_eq!(held(1, 99, 120), (false, false));
        assert_eq!(held(1, 100, 400), (true, true));
        assert_eq!(held(1, 300, 400), (true, true));
        assert_eq!(held(1, 300, 401), (true, false));
        assert_eq!(held(1, 401, 402), (false, false));
        assert_eq!(held(2, 300, 310), (false, false));
        let models = [99, 100, 225, 300, 401, 600].map(|tick| loads.model(1, tick));
        assert_eq!(models, [None, Some(7), Some(8), Some(7), None, Some(9)]);
        assert_eq!(loads.model(2, 300), None);
    }

    #[test]
    fn where_a_load_begins_and_ends_goes_by_the_clock_that_is_shown() {
        let loads = loads(&[call(1, 103, 205, 7)]);
        let tens = |tick| i128::from(tick / 10);
        assert!(loads.hold(&call(1, 100, 100, 0), tens));
        assert!(loads.hold(&call(1, 209, 209, 0), tens));
        assert!(!loads.hold(&call(1, 99, 99, 0), tens));
        assert!(!loads.hold(&call(1, 210, 210, 0), tens));
    }

    #[test]
    fn an_absurd_number_of_loads_is_bounded_and_told() {
        let mut loads = Loads::default();
        for n in 0..LOADS_MAX as u64 {
            loads.add(&call(1, 2 * n, 2 * n, n));
        }
        assert!(!loads.overflow());
        loads.add(&call(1, u64::MAX, u64::MAX, 0));
        assert!(loads.overflow());
        loads.sort();
        assert_eq!(loads.of_thread(1).len(), LOADS_MAX);
        assert_eq!(loads.model(1, u64::MAX), None);
    }
}
