//! The full probe of a component: a time stamp before, a time stamp after, an api record.

use super::stamp::{FOUND, counter, kernel_time};
use crate::support::contestants::{self, API, Caller, Contest, Who};
use crate::support::cores;
use crate::support::table::{Row, Table};
use std::hint::black_box;

/// Probes per repetition.
const PROBES: u64 = 40_000;
/// What the probed call costs, ns.
const WORK_NS: f64 = 200.0;
const PLAIN: &str = "call alone";

/// What a runtime call does: packs its arguments into a command and hashes them on the way. Each call goes
/// on from the last one's hash, so that calls cannot run into each other where no probe keeps them apart.
struct Work {
    hash: u64,
    arguments: Vec<u64>,
    command: Vec<u64>,
    words: usize,
}

impl Work {
    /// As many words as take [`WORK_NS`] here.
    fn calibrated() -> Work {
        const MOST: usize = 1024;
        let mut work = Work {
            hash: 0xcbf2_9ce4_8422_2325,
            arguments: (0..MOST as u64).collect(),
            command: vec![0; MOST],
            words: MOST,
        };
        let call_ns = (0..20)
            .map(|_| {
                cores::cpu_of(|| {
                    for _ in 0..1000 {
                        work.call();
                    }
                })
            })
            .min();
        let per_word = call_ns.unwrap_or(1) as f64 / 1000.0 / MOST as f64;
        work.words = ((WORK_NS / per_word) as usize).clamp(1, MOST);
        work
    }

    #[inline(never)]
    fn call(&mut self) {
        let mut hash = self.hash;
        let pairs = self.arguments.iter().zip(&mut self.command);
        for (argument, word) in pairs.take(self.words) {
            hash = (hash ^ argument).wrapping_mul(0x100_0000_01b3);
            *word = argument ^ hash;
        }
        self.hash = hash;
        black_box(&mut self.command);
    }
}

/// A loop of probes, with the work inside if there is any; returns CPU ns per round.
struct Probes<'a, T> {
    time: T,
    work: Option<&'a mut Work>,
}

impl<T: Fn() -> u64> Caller for Probes<'_, T> {
    type Output = f64;

    #[inline(never)]
    fn run<const W: usize>(self, call: impl Fn(*const u64) -> i32) -> f64 {
        let mut record = contestants::record::<W>();
        let cpu_ns = match self.work {
            None => cores::cpu_of(|| {
                for _ in 0..PROBES {
                    record[2] = (self.time)();
                    record[3] = (self.time)();
                    black_box(call(record.as_ptr()));
                }
            }),
            Some(work) => cores::cpu_of(|| {
                for _ in 0..PROBES {
                    record[2] = (self.time)();
                    work.call();
                    record[3] = (self.time)();
                    black_box(call(record.as_ptr()));
                }
            }),
        };
        cpu_ns as f64 / PROBES as f64
    }
}

/// A clock and a place for the record.
#[derive(Clone, Copy)]
enum Pair {
    Agent,
    KernelAndStock,
    CounterAndRtrb,
    /// What two reads of the counter cost whatever becomes of them: nobody can be below.
    CounterAlone,
    Empty,
}

impl Pair {
    const ALL: [Pair; 5] = [
        Pair::Agent,
        Pair::KernelAndStock,
        Pair::CounterAndRtrb,
        Pair::CounterAlone,
        Pair::Empty,
    ];

    fn name(self) -> &'static str {
        match self {
            Pair::Agent => "agent",
            Pair::KernelAndStock => "kernel clock + stock",
            Pair::CounterAndRtrb => "cpu counter + rtrb",
            Pair::CounterAlone => "cpu counter + empty",
            Pair::Empty => "3 empty calls",
        }
    }

    fn who(self) -> Who {
        match self {
            Pair::Agent => Who::Agent,
            Pair::KernelAndStock => Who::Stock,
            Pair::CounterAndRtrb => Who::Rtrb,
            Pair::CounterAlone | Pair::Empty => Who::Empty,
        }
    }

    fn round(self, contest: &Contest, work: Option<&mut Work>) -> f64 {
        fn with<T: Fn() -> u64>(
            contest: &Contest,
            who: Who,
            time: T,
            work: Option<&mut Work>,
        ) -> f64 {
            contest.with_call::<API, _>(who, 0, Probes { time, work })
        }
        let (agent, empty) = (contest.agent.time, contest.doors.empty_time);
        let who = self.who();
        match self {
            Pair::Agent => with(contest, who, || agent(), work),
            Pair::KernelAndStock => with(contest, who, kernel_time, work),
            Pair::CounterAndRtrb | Pair::CounterAlone => with(contest, who, counter, work),
            Pair::Empty => with(contest, who, || empty(), work),
        }
    }
}

/// Measures them.
pub fn add(contest: &Contest, table: &mut Table) {
    table.section("Full probe: 2 time stamps and an api record, live drain, CPU ns per probe");
    let agent = Pair::Agent.name();
    let in_loop = row(contest, "probes in a loop", None);
    table.at_most("probe in a loop", in_loop.samples(agent).median(), 45.0);
    table.row(in_loop);
    let mut work = Work::calibrated();
    let added = row(
        contest,
        "added to a call of about 200 ns of work",
        Some(&mut work),
    );
    table.at_most(
        "probe added to a 200 ns call",
        added.samples(agent).median(),
        20.0,
    );
    table.row(added);
}

fn row(contest: &Contest, name: &str, mut work: Option<&mut Work>) -> Row {
    let mut columns: Vec<&str> = Pair::ALL.map(Pair::name).to_vec();
    if work.is_some() {
        columns.push(PLAIN);
    }
    let mut row = Row::new(name, &columns);
    let mut capture = contest.agent.capture();
    std::thread::sleep(FOUND);
    for rep in 0..contest.reps {
        let plain = work.as_mut().map_or(0.0, |work| plain(work));
        if work.is_some() {
            row.add(PLAIN, plain);
        }
        for turn in 0..Pair::ALL.len() {
            let pair = Pair::ALL[(turn + rep) % Pair::ALL.len()];
            let who = pair.who();
            let before = who.drained().map(|drain| contest.doors.written(drain));
            let with = cores::undisturbed(|| pair.round(contest, work.as_deref_mut()));
            row.add(pair.name(), with - plain);
            match who.drained() {
                Some(drain) => contest
                    .doors
                    .settle(drain, before.unwrap_or_default() + PROBES),
                None if who == Who::Agent => capture.settle(PROBES),
                None => {}
            }
        }
    }
    let calls = capture.calls;
    row.notes.push(capture.stop().note(calls));
    row
}

/// The work alone.
fn plain(work: &mut Work) -> f64 {
    let calls = || {
        for _ in 0..PROBES {
            work.call();
        }
    };
    let cpu_ns = cores::undisturbed(|| cores::cpu_of(calls));
    cpu_ns as f64 / PROBES as f64
}
