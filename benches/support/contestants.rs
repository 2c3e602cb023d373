//! Who is measured, and the one loop that calls them.

use super::agent::Agent;
use super::cores;
use super::doors::{Doors, Drained, OwnPush, Report, SizedReport};
use std::ffi::c_void;

/// Words of 8 bytes of an api, compact and additional record.
pub const API: usize = 5;
pub const COMPACT: usize = 8;
pub const ADDITIONAL: usize = 32;

/// Who.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Agent,
    Stock,
    Rtrb,
    Empty,
}

impl Who {
    pub const ALL: [Who; 4] = [Who::Agent, Who::Stock, Who::Rtrb, Who::Empty];

    /// Heading of its column.
    pub fn name(self) -> &'static str {
        match self {
            Who::Agent => "agent",
            Who::Stock => "stock shape",
            Who::Rtrb => "rtrb",
            Who::Empty => "empty call",
        }
    }

    /// The drain that must have come to rest before it is measured again.
    pub fn drained(self) -> Option<Drained> {
        match self {
            Who::Stock => Some(Drained::Stock),
            Who::Rtrb => Some(Drained::Rtrb),
            Who::Agent | Who::Empty => None,
        }
    }
}

/// Everything that the rows work with.
pub struct Contest {
    pub agent: Agent,
    pub doors: Doors,
    /// Repetitions of a row.
    pub reps: usize,
    /// Cores that this process may use.
    pub cores: Vec<usize>,
}

/// One burst of calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    pub calls: u64,
    /// CPU time of the calls, ns.
    pub cpu_ns: u64,
    /// Calls that said that the ring was full; the agent tells by its ledger.
    pub refused: u64,
    /// Begin and end by a clock that all threads share.
    pub interval: (u64, u64),
}

impl Burst {
    pub fn ns_per_call(&self) -> f64 {
        self.cpu_ns as f64 / self.calls as f64
    }

    /// Of several threads.
    pub fn sum(bursts: &[Burst]) -> Burst {
        bursts.iter().fold(Burst::default(), |sum, burst| Burst {
            calls: sum.calls + burst.calls,
            cpu_ns: sum.cpu_ns + burst.cpu_ns,
            refused: sum.refused + burst.refused,
            ..sum
        })
    }
}

/// A record of level runtime, as its reporter fills it in.
pub fn record<const W: usize>() -> [u64; W] {
    const MAGIC: u64 = 0x5A5A;
    const RUNTIME: u64 = 5000;
    const KIND: u64 = 1;
    let mut words = [0; W];
    words[0] = MAGIC | RUNTIME << 16 | KIND << 32;
    // SAFETY: gettid has no preconditions.
    words[1] = unsafe { libc::syscall(libc::SYS_gettid) } as u64;
    words
}

/// Calls `count` times with a record whose two times (begin and end; time and first payload word) were
/// just stored, as every reporter does. Returns the number of calls that failed.
#[inline(never)]
fn fresh<const W: usize>(count: u64, call: impl Fn(*const u64) -> i32) -> u64 {
    let mut record = record::<W>();
    let mut refused = 0;
    for i in 0..count {
        record[2] = i;
        record[3] = i + 1;
        refused += u64::from(call(record.as_ptr()) != 0);
    }
    refused
}

/// The same with a record that stays as it is.
#[inline(never)]
fn constant<const W: usize>(count: u64, call: impl Fn(*const u64) -> i32) -> u64 {
    let record = record::<W>();
    (0..count).fold(0, |refused, _| {
        refused + u64::from(call(record.as_ptr()) != 0)
    })
}

fn timed(calls: u64, run: impl FnOnce() -> u64) -> Burst {
    let begin = cores::wall_ns();
    let mut refused = 0;
    let cpu_ns = cores::cpu_of(|| refused = run());
    Burst {
        calls,
        cpu_ns,
        refused,
        interval: (begin, cores::wall_ns()),
    }
}

impl Contest {
    /// `count` calls on the calling thread, which is producer number `thread`.
    pub fn burst<const W: usize>(&self, who: Who, thread: usize, count: u64) -> Burst {
        self.with_call::<W, _>(who, thread, Loop { count, fresh: true })
    }

    /// The same with a record that nobody writes between the calls.
    pub fn burst_constant<const W: usize>(&self, who: Who, thread: usize, count: u64) -> Burst {
        self.with_call::<W, _>(
            who,
            thread,
            Loop {
                count,
                fresh: false,
            },
        )
    }

    /// Hands the call of `who` for records of `W` words to `run`, once for every kind of call, so that
    /// the loop in it holds nothing but the indirect call.
    pub fn with_call<const W: usize, R: Caller>(
        &self,
        who: Who,
        thread: usize,
        run: R,
    ) -> R::Output {
        let (agent, doors, own) = (&self.agent, &self.doors, &self.doors.rtrb);
        let len = (W * 8) as u32;
        match (who, W) {
            (Who::Agent, API) => run.run::<W>(plain(agent.api)),
            (Who::Agent, COMPACT) => run.run::<W>(sized(agent.compact, len)),
            (Who::Agent, _) => run.run::<W>(sized(agent.additional, len)),
            (Who::Stock, API) => run.run::<W>(plain(doors.stock[0])),
            (Who::Stock, COMPACT) => run.run::<W>(plain(doors.stock[1])),
            (Who::Stock, _) => run.run::<W>(plain(doors.stock[2])),
            (Who::Rtrb, API) => run.run::<W>(into(own.push_40, own.of_40[thread])),
            (Who::Rtrb, COMPACT) => run.run::<W>(into(own.push_64, own.of_64)),
            (Who::Rtrb, _) => run.run::<W>(into(own.push_256, own.of_256)),
            (Who::Empty, API) => run.run::<W>(plain(doors.empty)),
            (Who::Empty, _) => run.run::<W>(sized(doors.empty_sized, len)),
        }
    }
}

fn plain(report: Report) -> impl Fn(*const u64) -> i32 {
    // SAFETY: `with_call` pairs each function with records of its size.
    move |record| unsafe { report(1, record) }
}

fn sized(report: SizedReport, len: u32) -> impl Fn(*const u64) -> i32 {
    // SAFETY: as above; `len` is what the records have.
    move |record| unsafe { report(1, record, len) }
}

fn into(push: OwnPush, ring: *mut c_void) -> impl Fn(*const u64) -> i32 {
    // SAFETY: as above; a ring is that of the calling thread's number.
    move |record| unsafe { push(ring, record) }
}

/// Something that calls a report function; generic, so that it is compiled for each.
pub trait Caller {
    type Output;
    fn run<const W: usize>(self, call: impl Fn(*const u64) -> i32) -> Self::Output;
}

struct Loop {
    count: u64,
    fresh: bool,
}

impl Caller for Loop {
    type Output = Burst;

    fn run<const W: usize>(self, call: impl Fn(*const u64) -> i32) -> Burst {
        let count = self.count;
        if self.fresh {
            timed(count, || fresh::<W>(count, call))
        } else {
            timed(count, || constant::<W>(count, call))
        }
    }
}
