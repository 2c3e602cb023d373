//! The running account of one thread: what its records became.

#![forbid(unsafe_code)]

use crate::ledger::{Ledger, ThreadLedger};
use crate::records::TraceCounts;

/// What the drain knows of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Kernel thread id.
    pub tid: u32,
    /// Records handed to the PROF directory.
    pub written: TraceCounts,
    /// Records taken from the rings that could not be written.
    pub unwritten: TraceCounts,
    /// Records dropped by the thread itself because a ring was full.
    pub dropped: TraceCounts,
}

impl Account {
    /// Records taken from the rings.
    pub fn taken(&self) -> u64 {
        self.written.total() + self.unwritten.total()
    }

    fn row(&self) -> ThreadLedger {
        let mut lost = self.dropped;
        lost.merge(&self.unwritten);
        let mut reported = self.written;
        reported.merge(&lost);
        ThreadLedger {
            tid: self.tid,
            reported,
            written: self.written,
            lost,
        }
    }
}

/// Adds a thread's row, or to the row of the rest, and to the sums.
pub fn add(ledger: &mut Ledger, account: &Account) {
    let row = account.row();
    ledger.reported.merge(&row.reported);
    ledger.written.merge(&row.written);
    ledger.lost.merge(&row.lost);
    if row.reported.total() != 0 {
        ledger.add_thread(row);
    }
}

/// Why records were lost that no error on writing has cost, and the way out: those for which there was no room
/// in the rings, those that signal handlers reported, and those beside the rings.
pub fn loss_notes(dropped: u64, nested: u64, beside: u64) -> impl Iterator<Item = String> {
    let note = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let notes = [
        note(
            dropped,
            "records were lost because the buffers were full; raise MSPROF_AGENT_BUFFER_MB",
        ),
        note(
            nested,
            "records were not taken: signal handlers reported them in the midst of a report of their thread",
        ),
        note(
            beside,
            "records of more than 256 bytes, or of threads at their end, were lost because too many waited",
        ),
    ];
    notes.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_loss_has_its_note() {
        assert_eq!(loss_notes(0, 0, 0).count(), 0);
        let notes: Vec<String> = loss_notes(7, 5, 3).collect();
        assert!(notes[0].starts_with("7 ") && notes[0].contains("MSPROF_AGENT_BUFFER_MB"));
        assert!(notes[1].starts_with("5 ") && notes[1].contains("signal handlers"));
        assert!(notes[2].starts_with("3 ") && notes[2].contains("256 bytes"));
    }
    use crate::ledger::THREADS_MAX;
    use crate::records::Trace;

    #[test]
    fn rows_beyond_the_bound_are_summed_and_the_sums_are_exact() {
        let mut ledger = Ledger::default();
        for tid in 1..=THREADS_MAX as u32 + 10 {
            let mut account = Account {
                tid,
                ..Account::default()
            };
            account.written.add(Trace::Acl, 3);
            account.dropped.add(Trace::Acl, 1);
            account.unwritten.add(Trace::Task, 1);
            add(&mut ledger, &account);
        }
        let threads = THREADS_MAX as u64 + 10;
        assert_eq!(ledger.reported.total(), 5 * threads);
        assert_eq!(ledger.written.total(), 3 * threads);
        assert_eq!(ledger.lost.total(), 2 * threads);
        let rest = ledger.threads.last().expect("rows");
        assert_eq!((rest.tid, rest.reported.total()), (0, 50));
        let rows: u64 = ledger.threads.iter().map(|row| row.reported.total()).sum();
        assert_eq!(rows, 5 * threads);
    }
}
