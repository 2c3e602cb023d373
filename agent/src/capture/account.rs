//! The running account of one thread: what its records became.

use crate::ledger::{Ledger, ThreadLedger};
use crate::records::TraceCounts;

/// Threads with a row of their own in the ledger; the rest is summed under tid 0.
const THREADS_MAX: usize = 512;

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
    if row.reported.total() == 0 {
        return;
    }
    if ledger.threads.len() < THREADS_MAX {
        ledger.threads.push(row);
        return;
    }
    if ledger.threads.last().is_none_or(|last| last.tid != 0) {
        ledger.threads.push(ThreadLedger::default());
    }
    if let Some(rest) = ledger.threads.last_mut() {
        rest.reported.merge(&row.reported);
        rest.written.merge(&row.written);
        rest.lost.merge(&row.lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
