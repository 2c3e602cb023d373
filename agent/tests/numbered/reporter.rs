//! Threads that report when they are told to, and remember what.

use super::CLASSES;
use super::stamp::Stamp;
use msprof_agent_core::gate::{self, Word};
use msprof_agent_core::lanes::{Dropped, Lanes, RINGS, RingKey};
use msprof_agent_core::long::{LongKind, LongQueue, LongReport};
use msprof_agent_core::process::current_tid;
use msprof_agent_core::records::{HEAD_SIZE, Trace, level};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use zerocopy::IntoBytes;

/// Records of one class, reported one right after the other.
#[derive(Clone, Debug)]
pub struct Burst {
    /// Index in [`CLASSES`].
    pub class: usize,
    pub aging: bool,
    pub count: u32,
    /// Before the first of them.
    pub pause: Duration,
}

/// Where a report finds out whether it is wanted.
#[derive(Clone, Copy, Debug)]
pub enum Door {
    /// In the gate, as the ABI's functions do.
    Gate,
    /// It is told: also what a thread does that was preempted behind the gate.
    Open(Word),
}

/// One report that returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) capture: u64,
    pub(super) ring: u32,
    pub(super) number: u64,
    pub(super) trace: Trace,
    /// In a ring, and not dropped.
    pub(super) kept: bool,
}

/// What one thread reported in its life.
#[derive(Debug)]
pub struct Log {
    pub(super) thread: u32,
    pub(super) tid: u32,
    pub(super) reports: Vec<Report>,
}

type Job = (Door, Vec<Burst>);

/// A thread that reports when it is told to.
#[derive(Debug)]
pub struct Reporter {
    jobs: Sender<Job>,
    done: Receiver<()>,
    waiting: usize,
    returned: Arc<AtomicUsize>,
    thread: JoinHandle<Log>,
}

impl Reporter {
    /// Starts it; each has another number.
    pub fn start(thread: u32, lanes: Arc<Lanes>) -> Reporter {
        let (jobs, received) = channel::<Job>();
        let (tell, done) = channel();
        let returned = Arc::new(AtomicUsize::new(0));
        let count = returned.clone();
        let body = move || {
            let mut log = Log {
                thread,
                tid: current_tid(),
                reports: Vec::new(),
            };
            let mut next = [0; RINGS];
            for (door, bursts) in received {
                for burst in bursts {
                    std::thread::sleep(burst.pause);
                    burst_of(&burst, door, &lanes, &mut log, &mut next, &count);
                }
                let _ = tell.send(());
            }
            log
        };
        Reporter {
            jobs,
            done,
            waiting: 0,
            returned,
            thread: std::thread::spawn(body),
        }
    }

    /// Tells it to report; returns at once.
    pub fn report(&mut self, door: Door, bursts: Vec<Burst>) {
        self.jobs.send((door, bursts)).expect("reporter");
        self.waiting += 1;
    }

    /// Waits until it has done what it was told.
    pub fn wait(&mut self) {
        for _ in 0..std::mem::take(&mut self.waiting) {
            self.done.recv().expect("reporter");
        }
    }

    /// How many reports have returned.
    pub fn returned(&self) -> usize {
        self.returned.load(Ordering::Acquire)
    }

    /// Lets it do what it was told and ends it.
    pub fn end(self) -> Log {
        drop(self.jobs);
        self.thread.join().expect("reporter")
    }
}

fn burst_of(
    burst: &Burst,
    door: Door,
    lanes: &Lanes,
    log: &mut Log,
    next: &mut [u64; RINGS],
    count: &AtomicUsize,
) {
    let (size, level, kind) = CLASSES[burst.class];
    let ring = RingKey {
        size,
        aging: burst.aging,
    };
    for _ in 0..burst.count {
        let word = match door {
            Door::Open(word) => word,
            Door::Gate => gate::load(),
        };
        if !word.is_capture() {
            continue;
        }
        let stamp = Stamp {
            thread: log.thread,
            ring: ring.index() as u32,
            capture: word.number(),
            number: next[ring.index()],
            level,
            kind,
        };
        if !word.takes(stamp.trace()) {
            continue;
        }
        next[ring.index()] += 1;
        let kept = match stamp.push(lanes, word) {
            Ok(()) => true,
            Err(Dropped::Counted) => false,
            Err(Dropped::NoLane | Dropped::Nested) => panic!("a thread that lives has a lane"),
        };
        log.reports.push(Report {
            capture: stamp.capture,
            ring: stamp.ring,
            number: stamp.number,
            trace: stamp.trace(),
            kept,
        });
        count.store(log.reports.len(), Ordering::Release);
    }
}

/// Long reports, which go through no ring; made by one thread, which also starts and stops.
#[derive(Debug, Default)]
pub struct LongReports {
    pub(super) reports: Vec<Report>,
}

impl LongReports {
    /// Makes `count` of them, as `report::additional` does.
    pub fn report(&mut self, capture: u64, count: u32, queue: &LongQueue, lanes: &Lanes) {
        for _ in 0..count {
            let number = self.reports.len() as u64;
            let kept = queue.push(long_report(capture, number));
            if !kept {
                lanes.lose_homeless(Trace::Task, 1);
            }
            self.reports.push(Report {
                capture,
                ring: 0,
                number,
                trace: Trace::Task,
                kept,
            });
        }
    }

    /// Makes one for a capture whose stop has overtaken it: it is to be found nowhere.
    pub fn report_late(&self, capture: u64, queue: &LongQueue) {
        queue.push(long_report(capture, u64::MAX));
    }
}

fn long_report(capture: u64, number: u64) -> LongReport {
    const PAYLOAD: usize = 600;
    let stamp = Stamp {
        thread: u32::MAX,
        ring: 0,
        capture,
        number,
        level: level::NODE,
        kind: 1,
    };
    let mut bytes = vec![0; HEAD_SIZE + PAYLOAD];
    bytes[..HEAD_SIZE].copy_from_slice(stamp.head(PAYLOAD).as_bytes());
    stamp.fill(&mut bytes[HEAD_SIZE..]);
    LongReport {
        capture,
        trace: Trace::Task,
        kind: LongKind::Variable,
        bytes: bytes.into(),
    }
}
