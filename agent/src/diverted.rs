//! Reports that another tool of the program has asked for: it gets them instead of the capture.

#![forbid(unsafe_code)]

use crate::gate;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What a tool can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// Calls with their begin and end.
    Api,
    /// Points in time.
    Event,
    /// Records of 64 bytes.
    Compact,
    /// Records of 256 bytes and more, but not batches of them.
    Additional,
}

impl ReportKind {
    /// All, in the order of their numbers.
    pub const ALL: [ReportKind; 4] = [
        ReportKind::Api,
        ReportKind::Event,
        ReportKind::Compact,
        ReportKind::Additional,
    ];

    fn name(self) -> &'static str {
        match self {
            ReportKind::Api => "api",
            ReportKind::Event => "event",
            ReportKind::Compact => "compact",
            ReportKind::Additional => "additional",
        }
    }
}

/// Which kinds other tools get, and how many of them since the capture began.
#[derive(Debug, Default)]
pub struct Diverted {
    /// A bit per [`ReportKind`].
    kinds: AtomicU8,
    counts: [AtomicU64; ReportKind::ALL.len()],
}

impl Diverted {
    /// From here on another tool gets the reports of a kind, or does not any more.
    pub fn set(&self, kind: ReportKind, diverted: bool) {
        let bit = 1 << kind as u8;
        if diverted {
            self.kinds.fetch_or(bit, Ordering::SeqCst);
        } else {
            self.kinds.fetch_and(!bit, Ordering::SeqCst);
        }
        loop {
            let any = self.kinds.load(Ordering::SeqCst) != 0;
            gate::share(any);
            // Another thread may have changed them, and told the gate before.
            if any == (self.kinds.load(Ordering::SeqCst) != 0) {
                return;
            }
        }
    }

    /// Counts a report that the capture does not have.
    pub fn count(&self, kind: ReportKind) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A capture begins.
    pub fn begin(&self) {
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// What is to be said when a capture begins.
    pub fn note_at_start(&self) -> Option<String> {
        let kinds = self.kinds.load(Ordering::Relaxed);
        let mut names = ReportKind::ALL
            .into_iter()
            .filter(|&kind| kinds >> kind as u8 & 1 != 0)
            .map(|kind| kind.name().to_owned());
        let names = list(&mut names)?;
        Some(format!(
            "another tool in the program has asked for {names} reports, which are not captured"
        ))
    }

    /// What is to be said of the reports that a capture does not have.
    pub fn note(&self) -> Option<String> {
        let mut counts = ReportKind::ALL.into_iter().filter_map(|kind| {
            let count = self.counts[kind as usize].load(Ordering::Relaxed);
            (count != 0).then(|| format!("{count} {}", kind.name()))
        });
        let counts = list(&mut counts)?;
        Some(format!(
            "{counts} reports went to another tool in the program that had asked for them, and are not in this capture"
        ))
    }

    /// A copy for a forked child, in which the other tool is as well.
    pub fn copy_in_child(&self) -> Diverted {
        Diverted {
            kinds: AtomicU8::new(self.kinds.load(Ordering::Relaxed)),
            ..Diverted::default()
        }
    }
}

/// "a, b and c"; `None` of nothing.
fn list(words: &mut dyn Iterator<Item = String>) -> Option<String> {
    let mut words: Vec<String> = words.collect();
    let last = words.pop()?;
    if words.is_empty() {
        return Some(last);
    }
    Some(format!("{} and {last}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_what_another_tool_gets_and_has_got() {
        let diverted = Diverted::default();
        assert_eq!(diverted.note_at_start(), None);
        assert_eq!(diverted.note(), None);
        diverted.kinds.store(0b1101, Ordering::Relaxed);
        let note = diverted.note_at_start().expect("kinds");
        assert!(note.contains("api, compact and additional"), "{note}");
        diverted.count(ReportKind::Event);
        diverted.count(ReportKind::Event);
        let note = diverted.note().expect("counts");
        assert!(note.starts_with("2 event reports went"), "{note}");
        let child = diverted.copy_in_child();
        assert_eq!(child.note(), None);
        assert_eq!(child.note_at_start(), diverted.note_at_start());
        diverted.begin();
        assert_eq!(diverted.note(), None);
    }
}
