//! Events whose partners are not in the capture, and names of models that nobody reports in it.

use super::{
    Account, AdditionalRecord, Output, RecordSize, Repeat, RingKey, RouteKey, TraceCounts, runs,
};
use zerocopy::IntoBytes;

impl Output {
    /// Writes what models that were reported to earlier captures are called.
    pub fn name_known_models(&mut self) {
        let copies = self.runs.known_models(self.start.monotonic_raw_ns);
        self.write_copies(&copies);
    }

    /// Names models whose runs the parser would leave without a name; to be called now and then, and at the end.
    pub fn name_models(&mut self, is_end: bool) {
        let copies = self.runs.due_names(is_end);
        self.write_copies(&copies);
    }

    fn write_copies(&mut self, copies: &[Repeat]) {
        let records: Vec<AdditionalRecord> = copies.iter().map(Repeat::record).collect();
        let bytes = records.as_bytes();
        if bytes.is_empty() || self.error.is_some() {
            return;
        }
        let ring = RingKey {
            size: RecordSize::Additional,
            aging: false,
        };
        let key = RouteKey::of(ring, bytes, None);
        let family = self.router.family(key, &self.dictionary, &mut self.dir);
        let mut account = Account::default();
        let none = TraceCounts::default();
        if let Some(written) = self.write(family, bytes, &none, &mut account, None) {
            self.runs.count_repeated(written.bytes / ring.size.bytes());
        }
    }

    /// When everything is written: deals with events whose partners are not in the capture.
    pub fn settle_events(&mut self, has_losses: bool) {
        let alone = self.runs.left_over(&self.dictionary, has_losses, &self.dir);
        if alone.is_empty() {
            return;
        }
        let mut done = match &self.error {
            Some(failure) => Err(failure.reason.clone()),
            // First of all: nothing is changed that was not kept.
            None => self
                .with_patience(|dir| runs::keep_aside(&alone, dir))
                .map_err(|error| error.to_string()),
        };
        if done.is_ok() {
            done = self
                .with_patience(|dir| runs::make_neutral(&alone, dir))
                .map_err(|error| format!("not all could be taken out, {error}"));
        }
        if let Err(reason) = done {
            self.runs.leave(reason);
        }
    }
}
