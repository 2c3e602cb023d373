//! A capture that goes on at a high rate, to a disk: memory of the process, and what the kernel holds of
//! the slices, second by second.

use super::pace::Pace;
use crate::support::contestants::{Burst, Contest, Who};
use crate::support::cores;
use crate::support::files::{self, Cached, FileSystem};
use crate::support::proc;
use crate::support::table::{Row, Table};
use std::path::Path;

/// Records per second.
const RATE: u64 = 1_000_000;
/// Bytes of one.
const RECORD: f64 = 40.0;
/// The memory that a capture needs is there by then, s.
const SETTLED_S: u64 = 5;
/// What the allocator, the ledger's text and this bench may still add after that, MB.
const GROWTH_MB: f64 = 1.0;
/// Two seconds of records: no more may wait for a disk that takes more than comes.
const UNWRITTEN_MB: f64 = 80.0;
const MB: f64 = 1e6;

/// What one look found, MB.
#[derive(Clone, Copy)]
struct Look {
    resident: f64,
    machine_unwritten: f64,
    slices: f64,
    cached: f64,
    unwritten: Option<f64>,
}

impl Look {
    fn at(dir: &Path) -> Look {
        // A slice that is made while the directory is read is seen the next time.
        let Cached { all, unwritten } = files::cached_below(dir).unwrap_or_default();
        Look {
            resident: proc::resident_kb() * 1024.0 / MB,
            machine_unwritten: proc::dirty_kb() * 1024.0 / MB,
            slices: files::bytes_below(dir).unwrap_or(0) as f64 / MB,
            cached: all as f64 / MB,
            unwritten: unwritten.map(|bytes| bytes as f64 / MB),
        }
    }
}

/// All looks of a run.
struct Seen {
    /// Before the capture.
    before: Look,
    /// Each second.
    looks: Vec<Look>,
    /// When all records were written, before the stop.
    last: Look,
}

impl Seen {
    /// Index of the look by which the capture has settled.
    fn settled(&self) -> usize {
        (SETTLED_S as usize).min(self.looks.len()) - 1
    }

    /// Largest of all looks from the one with that index on, and of the last.
    fn most_from(&self, index: usize, value: impl Fn(&Look) -> f64) -> f64 {
        let looks = self.looks[index..].iter().chain([&self.last]);
        looks.map(value).fold(0.0, f64::max)
    }

    fn row(&self, name: &str, value: impl Fn(&Look) -> f64) -> Row {
        let (settled, middle) = (self.settled(), self.looks.len() / 2);
        let columns = [
            "before",
            "each second",
            "at 5 s",
            "half way",
            "at the end",
            "most after 5 s",
        ];
        let mut row = Row::new(name, &columns);
        row.add("before", value(&self.before));
        for look in &self.looks {
            row.add("each second", value(look));
        }
        row.add("at 5 s", value(&self.looks[settled]));
        row.add("half way", value(&self.looks[middle]));
        row.add("at the end", value(&self.last));
        row.add("most after 5 s", self.most_from(settled, value));
        row
    }
}

/// Measures it for `seconds`, in a directory below `dir`.
pub fn add(contest: &Contest, seconds: u64, dir: &Path, table: &mut Table) {
    let system = FileSystem::of(dir);
    let kind = system
        .as_ref()
        .map_or("an unknown file system".to_owned(), FileSystem::text);
    table.section(&format!(
        "1 M api records/s for {seconds} s to {}, {kind}; MB = 1,000,000 bytes",
        dir.display()
    ));
    let dir = tempfile::Builder::new()
        .prefix("msprof-bench-")
        .tempdir_in(dir)
        .expect("a temporary directory");
    if let Err(error) = files::sync(dir.path()) {
        eprintln!("  what others wrote before may show: {error}");
    }
    let before = Look::at(dir.path());
    let mut capture = contest.agent.capture_below(dir.path());
    let drain = cores::thread_named("msprof-drain");
    let drain_ns = cores::cpu_ns_of(drain);
    let (burst, looks) = watch(contest, seconds, dir.path());
    capture.settle(burst.calls);
    let drain_ns = (cores::cpu_ns_of(drain) - drain_ns) as f64 / burst.calls as f64;
    let last = Look::at(dir.path());
    let calls = capture.calls;
    let account = capture.stop();
    let seen = Seen {
        before,
        looks,
        last,
    };

    let mut cost = Row::new("drain, CPU ns per record", &["agent"]);
    cost.add("agent", drain_ns);
    let taken_s = (burst.interval.1 - burst.interval.0) as f64 / 1e9;
    cost.notes.push(format!(
        "{} at {:.2} M/s, {:.1} MB/s; stop took {:.0} ms",
        account.note(calls),
        calls as f64 / taken_s / 1e6,
        calls as f64 / taken_s * RECORD / MB,
        account.stop_ms
    ));
    table.row(cost);
    table.at_most("sustained: records lost", account.lost as f64, 0.0);
    add_memory(&seen, table);
    let no_disk = system.is_some_and(|system| system.is_memory());
    add_unwritten(&seen, no_disk, table);
}

fn add_memory(seen: &Seen, table: &mut Table) {
    let resident = |look: &Look| look.resident - seen.before.resident;
    let mut row = seen.row("resident memory of the process, added, MB", resident);
    row.notes.push(format!(
        "{:.0} MB before: the buffers of what the table compares with",
        seen.before.resident
    ));
    table.row(row);
    let settled = seen.settled();
    table.at_most(
        "sustained: resident memory, MB above that at 5 s",
        seen.most_from(settled, resident) - resident(&seen.looks[settled]),
        GROWTH_MB,
    );
}

fn add_unwritten(seen: &Seen, no_disk: bool, table: &mut Table) {
    let of_slices = |look: &Look| look.unwritten.unwrap_or(f64::NAN);
    let of_machine = |look: &Look| look.machine_unwritten - seen.before.machine_unwritten;
    table.row(seen.row("slices, MB", |look| look.slices));
    table.row(seen.row("slices in the page cache, MB", |look| look.cached));
    let mut row = seen.row("of it dirty or being written back, MB", of_slices);
    let is_known = seen.before.unwritten.is_some();
    if !is_known {
        row.notes
            .push("this kernel cannot tell: cachestat is new in Linux 6.5".to_owned());
    }
    if no_disk {
        row.notes.push(
            "NO DISK here: nothing is written back; name another place with --dir".to_owned(),
        );
    }
    table.row(row);
    table.row(seen.row("the same of the whole machine, added, MB", of_machine));
    if no_disk {
        return;
    }
    if is_known {
        table.at_most(
            "sustained: MB of the slices dirty or being written back",
            seen.most_from(0, of_slices),
            UNWRITTEN_MB,
        );
    } else {
        table.at_most(
            "sustained: MB dirty or being written back, machine's growth",
            seen.most_from(0, of_machine),
            UNWRITTEN_MB,
        );
    }
}

/// Reports for `seconds`, looking each second.
fn watch(contest: &Contest, seconds: u64, dir: &Path) -> (Burst, Vec<Look>) {
    let pace = Pace {
        threads: 1,
        each: RATE,
        ms: seconds * 1000,
    };
    // All of its memory now: none of it is to show later.
    let mut looks = vec![Look::at(dir); seconds as usize];
    std::thread::scope(|scope| {
        let begin = cores::wall_ns();
        let producer = scope.spawn(move || pace.run(contest, Who::Agent));
        for (second, look) in (1..).zip(&mut looks) {
            cores::sleep_until(begin + second * 1_000_000_000);
            *look = Look::at(dir);
        }
        (producer.join().expect("a producer"), looks)
    })
}
