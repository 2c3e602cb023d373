//! What is known of the losses of a process that was killed, in the words of `recover`, `summary` and a rescue: its
//! last account says what was lost until then, and of what came after that nobody has kept count.

use crate::report::by_trace;
use msprof_agent_core::ledger::Ledger;
use msprof_agent_core::records::TraceCounts;

/// An account and what is known of its time.
#[derive(Clone, Copy, Debug)]
pub struct Losses<'a> {
    /// Records lost until the account.
    pub lost: &'a TraceCounts,
    /// When it was made, ns after the start; `None` where there was none to be read.
    pub account_ns: Option<u64>,
    /// Time of the last record, ns after the start.
    pub last_record_ns: Option<u64>,
}

impl Losses<'_> {
    /// Of a process that was killed; `None` where the losses are known to the end.
    pub fn of(ledger: &Ledger) -> Option<Losses<'_>> {
        let end = ledger.recovered.as_ref()?;
        Some(Losses {
            lost: &ledger.lost,
            account_ns: end.account_ns,
            last_record_ns: end.last_record_ns,
        })
    }

    /// The sentences, one a line.
    pub fn lines(&self) -> Vec<String> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let Some(account) = self.account_ns else {
            return vec!["lost: not known, there was no account to be read".to_owned()];
        };
        let made = match self.last_record_ns {
            Some(last) if last >= account => {
                format!("{:.6} s before the last record", seconds(last - account))
            }
            Some(last) => format!("{:.6} s after the last record", seconds(account - last)),
            None => format!("{:.6} s after the start", seconds(account)),
        };
        let mut until = format!("lost until the last account: {} records", self.lost.total());
        by_trace(&mut until, self.lost);
        vec![until, format!("lost after it (made {made}): not known")]
    }
}
