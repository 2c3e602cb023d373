//! Lanes of the page: one for each thread, and for each device those of its AICPU.

use super::choice::{Choice, Interval};
use super::names::Names;
use crate::calls::Call;
use crate::decode::aicpu::{Aicpu, Span};
use crate::source::Source;
use crate::statistics::Captured;
use msprof_agent_core::profdir::reader::ReadError;
use msprof_agent_core::records::level;
use std::collections::BTreeMap;

/// Lanes of a page. Further threads share one, what further devices did is not drawn.
const LANES_MAX: usize = 1024;
/// How far a time of a device may lie outside of the capture, ns, and still be one of the host's clock.
const NEAR_NS: u64 = 1_000_000_000;

/// Whose lane, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// The first thread of the process.
    Main(u32),
    Thread(u32),
    /// Those beyond the bound.
    Threads,
    Operators(u32),
    Data(u32),
}

/// A lane with the intervals that are shown.
#[derive(Debug)]
pub struct Lane {
    key: Key,
    /// Intervals in the directory.
    pub total: u64,
    pub(super) intervals: Vec<Interval>,
}

impl Lane {
    /// Whose it is.
    pub fn label(&self) -> String {
        match self.key {
            Key::Main(thread) | Key::Thread(thread) => format!("thread {thread}"),
            Key::Threads => "further threads".to_owned(),
            Key::Operators(device) => format!("device {device}: AICPU operators"),
            Key::Data(device) => format!("device {device}: AICPU data queue"),
        }
    }

    /// Whether it is a device's.
    pub fn is_device(&self) -> bool {
        matches!(self.key, Key::Operators(_) | Key::Data(_))
    }

    /// Intervals in the page.
    pub fn shown(&self) -> usize {
        self.intervals.len()
    }
}

/// How many intervals a lane has, and when the first and the last one begin.
#[derive(Clone, Copy, Debug)]
struct Extent {
    count: u64,
    from: u64,
    to: u64,
}

/// What is in a directory.
#[derive(Debug)]
pub(super) struct Counted {
    lanes: BTreeMap<Key, Extent>,
    main: u32,
    /// Records of devices whose time is of another clock than the host's.
    pub unplaced: u64,
}

impl Counted {
    pub(super) fn new(source: &Source) -> Counted {
        Counted {
            lanes: BTreeMap::new(),
            main: source.process().pid,
            unplaced: 0,
        }
    }

    pub(super) fn call(&mut self, source: &Source, call: &Call) {
        self.on_thread(call.thread, source.clock().monotonic_ns(call.begin));
    }

    pub(super) fn marks(&mut self, source: &Source) -> Result<(), ReadError> {
        for mark in source.first_pieces() {
            let mark = mark?;
            self.on_thread(mark.thread, source.clock().monotonic_ns(mark.begin));
        }
        Ok(())
    }

    fn on_thread(&mut self, thread: u32, begin: u64) {
        let mut key = self.thread(thread);
        if !self.has_room(key) {
            key = Key::Threads;
        }
        self.add(key, begin);
    }

    pub(super) fn devices(
        &mut self,
        source: &Source,
        captured: Option<Captured>,
    ) -> Result<(), ReadError> {
        each_of_devices(source, captured, |key, placed| match placed {
            Some((begin, ..)) if self.has_room(key) => self.add(key, begin),
            _ => self.unplaced += 1,
        })
    }

    pub(super) fn total(&self) -> u64 {
        self.lanes.values().map(|extent| extent.count).sum()
    }

    fn thread(&self, thread: u32) -> Key {
        match thread == self.main {
            true => Key::Main(thread),
            false => Key::Thread(thread),
        }
    }

    fn has_room(&self, key: Key) -> bool {
        self.lanes.len() < LANES_MAX || self.lanes.contains_key(&key)
    }

    fn add(&mut self, key: Key, begin: u64) {
        let extent = self.lanes.entry(key).or_insert(Extent {
            count: 0,
            from: begin,
            to: begin,
        });
        extent.count += 1;
        extent.from = extent.from.min(begin);
        extent.to = extent.to.max(begin);
    }
}

/// What is shown of it.
pub(super) struct Lanes {
    lanes: BTreeMap<Key, (u64, Choice)>,
    main: u32,
}

impl Lanes {
    /// Each lane has a share of the limit by its number of intervals, and one where there is room for that.
    pub(super) fn new(counted: &Counted, captured: Option<Captured>, limit: u64) -> Lanes {
        let total = counted.total();
        let lanes = counted.lanes.len() as u64;
        let reserved = if limit / 2 > lanes { lanes } else { 0 };
        let choice = |extent: &Extent| {
            if total <= limit {
                return Choice::All(Vec::new());
            }
            let share = u128::from(limit - reserved) * u128::from(extent.count) / u128::from(total);
            let share = share as u64 + u64::from(reserved > 0);
            // Absurd times must not leave one piece for all that is sound.
            let (from, to) = match captured {
                Some(captured) => {
                    let stop = captured.start_ns.saturating_add(captured.ns);
                    (extent.from.max(captured.start_ns), extent.to.min(stop))
                }
                None => (extent.from, extent.to),
            };
            Choice::of(share, from, to)
        };
        let lanes = counted.lanes.iter();
        Lanes {
            lanes: lanes
                .map(|(key, extent)| (*key, (extent.count, choice(extent))))
                .collect(),
            main: counted.main,
        }
    }

    pub(super) fn call(&mut self, source: &Source, call: &Call, names: &mut Names) {
        let clock = source.clock();
        let begin = clock.monotonic_ns(call.begin);
        let duration = clock.monotonic_ns(call.end).saturating_sub(begin);
        let key = self.of_thread(call.thread);
        self.add(key, begin, duration, |name, item| {
            (*name, *item) = (names.call(source, call), names.item(source, call));
        });
    }

    pub(super) fn marks(&mut self, source: &Source, names: &mut Names) -> Result<(), ReadError> {
        let clock = source.clock();
        for mark in source.first_pieces() {
            let mark = mark?;
            let begin = clock.monotonic_ns(mark.begin);
            let duration = clock.monotonic_ns(mark.end).saturating_sub(begin);
            let key = self.of_thread(mark.thread);
            self.add(key, begin, duration, |name, _| {
                *name = names.text(level::TX, &mark.message);
            });
        }
        Ok(())
    }

    fn of_thread(&self, thread: u32) -> Key {
        let key = match thread == self.main {
            true => Key::Main(thread),
            false => Key::Thread(thread),
        };
        match self.lanes.contains_key(&key) {
            true => key,
            false => Key::Threads,
        }
    }

    pub(super) fn devices(
        &mut self,
        source: &Source,
        captured: Option<Captured>,
        names: &mut Names,
    ) -> Result<(), ReadError> {
        each_of_devices(source, captured, |key, placed| {
            let Some((begin, duration, record)) = placed else {
                return;
            };
            self.add(key, begin, duration, |name, item| {
                (*name, *item) = describe(record, names);
            });
        })
    }

    /// The numbers of name and item are asked for only where it is kept.
    fn add(&mut self, key: Key, begin: u64, duration: u64, named: impl FnOnce(&mut u32, &mut u32)) {
        let Some((_, choice)) = self.lanes.get_mut(&key) else {
            return;
        };
        if choice.wants(begin, duration) {
            let (mut name, mut item) = (0, 0);
            named(&mut name, &mut item);
            choice.add(Interval {
                duration,
                begin,
                name,
                item,
            });
        }
    }

    /// The lanes in the order of the page, each as it lies in time.
    pub(super) fn sorted(self) -> Vec<Lane> {
        let lanes = self.lanes.into_iter();
        lanes
            .map(|(key, (total, choice))| {
                let intervals = choice.sorted();
                Lane {
                    key,
                    total: total.max(intervals.len() as u64),
                    intervals,
                }
            })
            .collect()
    }
}

/// Begin and duration, ns of the host, of a record.
type Placed<'a> = (u64, u64, &'a Aicpu);

/// Gives every record of a device that tells of a time, `None` for one whose time is of a clock that nobody knows.
fn each_of_devices(
    source: &Source,
    captured: Option<Captured>,
    mut each: impl FnMut(Key, Option<Placed>),
) -> Result<(), ReadError> {
    for device in source.profile().devices() {
        let clock = source.device_clock(device);
        for record in source.aicpu(device) {
            let record = record?;
            let span = record.span();
            let duration = span.map_or(0, |span| span.duration_ns(&clock));
            match (span, &record) {
                (Some(Span::Node(begin, _)), _) => {
                    let placed = (clock.monotonic_ns(begin), duration, &record);
                    each(Key::Operators(device), Some(placed));
                }
                (Some(Span::Wait(begin, _)), _) => {
                    let begin = begin.saturating_mul(1000);
                    let near = captured.is_some_and(|captured| is_near(captured, begin));
                    let placed = near.then_some((begin, duration, &record));
                    each(Key::Data(device), placed);
                }
                // A point in time; of all times in this file this one alone is the host's.
                (None, Aicpu::Data(taken)) => {
                    each(Key::Data(device), Some((taken.time_ns, 0, &record)));
                }
                (None, _) => {}
            }
        }
    }
    Ok(())
}

fn is_near(captured: Captured, ns: u64) -> bool {
    let from = captured.start_ns.saturating_sub(NEAR_NS);
    let to = captured
        .start_ns
        .saturating_add(captured.ns)
        .saturating_add(NEAR_NS);
    (from..=to).contains(&ns)
}

/// The numbers of the name and the item of a device's record.
fn describe(record: &Aicpu, names: &mut Names) -> (u32, u32) {
    match record {
        Aicpu::Node(node) => {
            let (stream, task) = (node.stream, node.task);
            let id = u64::from(stream) << 16 | u64::from(task);
            let item = names.item_text(level::AICPU, id, || format!("stream {stream} task {task}"));
            (names.text(level::AICPU, "AICPU operator"), item)
        }
        Aicpu::Data(taken) => (names.text(level::AICPU, &taken.action), 0),
        _ => (names.text(level::AICPU, "wait for data"), 0),
    }
}
