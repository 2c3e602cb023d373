//! The ledger of a recovered capture: its counts are those of the records that are there.

use super::framing::Found;
use crate::ledger::{Anchor, CaptureState, Ledger, NOTES_MAX, Recovered, ThreadLedger};
use crate::records::{Trace, TraceCounts};
use std::collections::BTreeMap;

/// What the ledger says of records that came out of a killed process's memory.
pub fn rescued_note(count: u64) -> String {
    format!(
        "the process was killed: {count} records that were still in its memory were written by the controller"
    )
}

/// Turns the last account of a killed process into that of its directory.
pub(super) fn settle(
    ledger: &mut Ledger,
    found: &Found,
    stop: Anchor,
    recovered: Recovered,
    bytes: u64,
) {
    let mut written = found.counts;
    if found.uncounted {
        // Text that came as reports of this trace: the account is all that is known of it.
        let accounted = ledger.written.get(Trace::Aicpu);
        let missing = accounted.saturating_sub(written.get(Trace::Aicpu));
        written.add(Trace::Aicpu, missing);
    }
    let rows = threads(ledger, found);
    ledger.threads.clear();
    for row in rows {
        ledger.add_thread(row);
    }
    ledger.written = written;
    ledger.reported = written;
    ledger.reported.merge(&ledger.lost);
    ledger.reported.merge(&ledger.aged_out);
    ledger.state = CaptureState::Recovered;
    ledger.stop = Some(stop);
    ledger.accounted = None;
    ledger.recovered = Some(recovered);
    ledger.bytes = bytes;
    let note = match recovered.rescued {
        0 => "the process was killed: what it reported after the last account is counted as far as it was \
              written; what waited in memory is in no count"
            .to_owned(),
        count => rescued_note(count),
    };
    if ledger.notes.len() < NOTES_MAX {
        ledger.notes.push(note);
    }
}

/// Rows by the threads that the records name, with what each had lost until the last account.
fn threads(ledger: &Ledger, found: &Found) -> Vec<ThreadLedger> {
    let mut rows: BTreeMap<u32, ThreadLedger> = BTreeMap::new();
    let mut row_of = |tid: u32, written: &TraceCounts, lost: &TraceCounts, may_be_gone: bool| {
        let row = rows.entry(tid).or_default();
        row.tid = tid;
        if may_be_gone {
            for (mine, theirs) in row.written.0.iter_mut().zip(written.0) {
                *mine = theirs.max(*mine);
            }
        } else {
            row.written.merge(written);
        }
        row.lost.merge(lost);
    };
    let nothing = TraceCounts::default();
    for (tid, counts) in &found.threads {
        row_of(*tid, counts, &nothing, false);
    }
    // Of what the storage limit has deleted, only the account tells whose it was.
    let aged = ledger.aged_out.total() > 0;
    for old in &ledger.threads {
        row_of(
            old.tid,
            if aged { &old.written } else { &nothing },
            &old.lost,
            true,
        );
    }
    let mut rows: Vec<ThreadLedger> = rows.into_values().collect();
    rows.sort_by_key(|row| {
        (
            row.tid == 0,
            std::cmp::Reverse(row.written.total()),
            row.tid,
        )
    });
    for row in &mut rows {
        row.reported = row.written;
        row.reported.merge(&row.lost);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(n: u64) -> TraceCounts {
        let mut counts = TraceCounts::default();
        counts.add(Trace::RuntimeApi, n);
        counts
    }

    #[test]
    fn the_law_holds_for_traces_and_threads_with_losses_of_the_last_account() {
        let row = |tid, written, lost| ThreadLedger {
            tid,
            reported: counts(written + lost),
            written: counts(written),
            lost: counts(lost),
        };
        let mut ledger = Ledger {
            lost: counts(3),
            threads: vec![row(1, 5, 1), row(2, 0, 2)],
            ..Ledger::default()
        };
        let mut found = Found {
            counts: counts(9),
            ..Found::default()
        };
        found.threads.insert(1, counts(7));
        found.threads.insert(9, counts(2));
        settle(
            &mut ledger,
            &found,
            Anchor::default(),
            Recovered::default(),
            360,
        );
        assert_eq!(ledger.threads, [row(1, 7, 1), row(9, 2, 0), row(2, 0, 2)]);
        assert_eq!((ledger.reported, ledger.written), (counts(12), counts(9)));
        assert_eq!((ledger.state, ledger.bytes), (CaptureState::Recovered, 360));
    }

    #[test]
    fn counts_of_a_hostile_ledger_do_not_overflow() {
        let most = TraceCounts([u64::MAX; Trace::ALL.len()]);
        let mut ledger = Ledger {
            lost: most,
            aged_out: most,
            written: most,
            ..Ledger::default()
        };
        let found = Found {
            counts: counts(1),
            uncounted: true,
            ..Found::default()
        };
        settle(
            &mut ledger,
            &found,
            Anchor::default(),
            Recovered::default(),
            0,
        );
        assert_eq!(ledger.reported.total(), u64::MAX);
    }
}
