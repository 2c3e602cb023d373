//! Calls around tasks: which operator and communication a task belongs to.

use crate::calls::Call;
use crate::db::Export;
use msprof_agent_core::records::level;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Spans around a point that are told apart; the parser does not look at more either.
const DEPTH_MAX: usize = 20;

/// Points in time per thread at which something happened that belongs to calls.
#[derive(Default)]
pub(super) struct Points(HashMap<u32, Vec<u64>>);

impl Points {
    pub(super) fn add(&mut self, thread: u32, time: u64) {
        self.0.entry(thread).or_default().push(time);
    }

    /// Adds one to a thread that has some; false where it has none.
    pub(super) fn add_more(&mut self, thread: u32, time: u64) -> bool {
        let times = self.0.get_mut(&thread);
        times.map(|times| times.push(time)).is_some()
    }

    pub(super) fn sort(&mut self) {
        for times in self.0.values_mut() {
            times.sort_unstable();
            times.dedup();
        }
    }

    /// Whether there is one behind a begin and not behind an end.
    fn any(&self, thread: u32, begin: u64, end: u64) -> bool {
        let times = self.0.get(&thread).map_or(&[][..], Vec::as_slice);
        let after = times.partition_point(|time| *time <= begin);
        times.get(after).is_some_and(|time| *time <= end)
    }
}

/// A call that has something in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) level: u16,
    pub(super) kind: u32,
    pub(super) item: u64,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Number of the call in CANN_API.
    pub(super) connection: u64,
}

impl Span {
    fn of(call: &Call) -> Span {
        Span {
            level: call.level,
            kind: call.kind,
            item: call.item,
            begin: call.begin,
            end: call.end,
            connection: call.connection,
        }
    }
}

/// Spans of all threads.
pub(super) struct Spans(HashMap<u32, Vec<Span>>);

impl Spans {
    /// Reads the calls in which one of the points is: those that make operators, or all that tasks may be sent in.
    pub(super) fn read(export: &mut Export<'_>, points: &Points, all: bool) -> Spans {
        let mut threads: HashMap<u32, Vec<Span>> = HashMap::new();
        for call in export.source.calls() {
            // What cannot be read has been told with the calls themselves.
            let Ok(call) = call else { continue };
            let counts = match call.level {
                level::NODE | level::HCCL => true,
                level::ACL | level::MODEL => all,
                _ => false,
            };
            if counts && points.any(call.thread, call.begin, call.end) {
                let spans = threads.entry(call.thread).or_default();
                spans.push(Span::of(&call));
            }
        }
        for spans in threads.values_mut() {
            // The outer one first, where two begin at the same time.
            spans.sort_by_key(|span| (span.begin, Reverse(span.level), Reverse(span.end)));
            drop_crossing(spans);
        }
        Spans(threads)
    }

    /// Those of a thread by their begin, the outer one first.
    pub(super) fn of(&self, thread: u32) -> &[Span] {
        self.0.get(&thread).map_or(&[], Vec::as_slice)
    }
}

/// Leaves of calls of one level that overlap the first one, but for operators, which may hold others.
fn drop_crossing(spans: &mut Vec<Span>) {
    let mut last: HashMap<u16, (u64, u64)> = HashMap::new();
    spans.retain(|span| {
        if span.level == level::NODE {
            return true;
        }
        let before = last.entry(span.level).or_insert((0, 0));
        if before.1 < span.begin || span.end < before.0 {
            *before = (span.begin, span.end);
            return true;
        }
        false
    });
}

/// Walks over a thread's spans as time goes on, with those that are open.
pub(super) struct Walk<'a> {
    spans: &'a [Span],
    next: usize,
    open: Vec<usize>,
}

/// The spans around a point in time: numbers of them among the thread's, the innermost of each level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    pub(super) model: Option<usize>,
    pub(super) node: Option<usize>,
    pub(super) communication: Option<usize>,
    /// The innermost of all.
    pub(super) inner: Option<usize>,
    /// The outermost operator, and the one right in it.
    pub(super) outer_nodes: [Option<usize>; 2],
}

impl<'a> Walk<'a> {
    pub(super) fn new(spans: &'a [Span]) -> Walk<'a> {
        Walk {
            spans,
            next: 0,
            open: Vec::new(),
        }
    }

    /// The spans around a point in time; points have to come in their order.
    pub(super) fn path(&mut self, time: u64) -> Path {
        while self
            .spans
            .get(self.next)
            .is_some_and(|span| span.begin < time)
        {
            // What ends before its inner one does is not around it.
            while self
                .top()
                .is_some_and(|top| top.end < self.spans[self.next].end)
            {
                self.open.pop();
            }
            if self.open.len() < DEPTH_MAX {
                self.open.push(self.next);
            }
            self.next += 1;
        }
        while self.top().is_some_and(|top| top.end < time) {
            self.open.pop();
        }
        let innermost = |wanted: u16| {
            let mut open = self.open.iter().rev();
            open.find(|at| self.spans[**at].level == wanted).copied()
        };
        let open = self.open.iter().copied();
        let mut nodes = open.filter(|at| self.spans[*at].level == level::NODE);
        Path {
            model: innermost(level::MODEL),
            inner: self.open.last().copied(),
            node: innermost(level::NODE),
            communication: innermost(level::HCCL),
            outer_nodes: [nodes.next(), nodes.next()],
        }
    }

    fn top(&self) -> Option<&Span> {
        self.open.last().map(|at| &self.spans[*at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lvl: u16, begin: u64, end: u64) -> Span {
        Span {
            level: lvl,
            kind: 0,
            item: 0,
            begin,
            end,
            connection: begin,
        }
    }

    #[test]
    fn the_innermost_span_of_each_level_is_around_a_task_up_to_its_end() {
        let spans = [
            span(level::NODE, 0, 9),
            span(level::NODE, 10, 90),
            span(level::NODE, 20, 40),
            span(level::HCCL, 50, 60),
        ];
        let mut walk = Walk::new(&spans);
        let mut at = |time| {
            let path = walk.path(time);
            (path.node, path.communication)
        };
        assert_eq!(at(10), (None, None));
        assert_eq!(at(11), (Some(1), None));
        assert_eq!(at(40), (Some(2), None));
        assert_eq!(at(41), (Some(1), None));
        assert_eq!(at(55), (Some(1), Some(3)));
        assert_eq!(at(101), (None, None));
    }

    #[test]
    fn of_two_calls_of_one_level_that_overlap_the_first_counts() {
        let mut spans = vec![
            span(level::HCCL, 10, 50),
            span(level::HCCL, 20, 30),
            span(level::NODE, 22, 28),
            span(level::NODE, 23, 27),
            span(level::HCCL, 51, 60),
        ];
        drop_crossing(&mut spans);
        let begins: Vec<u64> = spans.iter().map(|span| span.begin).collect();
        assert_eq!(begins, [10, 22, 23, 51]);
    }
}
