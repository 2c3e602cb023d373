//! The account of a capture while it is drained: summed up, shown, and written into the directory.

#![forbid(unsafe_code)]

use super::{Drain, account};
use crate::clock;
use crate::ledger::Ledger;
use std::sync::atomic::Ordering;

impl Drain {
    /// The account so far.
    pub(super) fn sum_up(&self) -> Ledger {
        let mut ledger = self.ledger.clone();
        let mut dropped = self.dropped;
        for lane in &self.lanes {
            let mut account = lane.account;
            account.dropped = lane.lane.lost(self.number);
            dropped += account.dropped.total();
            account::add(&mut ledger, &account);
        }
        let mut long = self.long;
        long.dropped = self.parts.lanes.homeless();
        account::add(&mut ledger, &long);
        let nested = self.parts.lanes.nested();
        let late = long.dropped.total().saturating_sub(nested);
        ledger
            .notes
            .extend(account::loss_notes(dropped, nested, late));
        ledger.notes.extend(self.parts.diverted.note());
        ledger.notes.extend(self.fetcher.notes());
        if let Some(reading) = &self.reading {
            ledger.channels = reading.channels();
            for note in reading.notes() {
                if !ledger.notes.contains(&note) {
                    ledger.notes.push(note);
                }
            }
        }
        ledger.unreadable = self.parts.unreadable.load(Ordering::Relaxed);
        ledger
            .model_devices
            .clone_from(&self.parts.model_devices.lock());
        self.output.complete(&mut ledger);
        ledger
    }

    /// Notes where time stamps come from by now.
    pub(super) fn note_clock(&mut self) {
        let source = clock::source().to_string();
        if !self.ledger.clocks.contains(&source) {
            tracing::info!("capture {}: time from {source}", self.ledger.capture);
            self.ledger.clocks.push(source);
        }
    }

    pub(super) fn publish_snapshot(&self) {
        *self.progress.ledger.lock() = self.sum_up();
    }

    /// Writes the account so far into the directory: what a killed process leaves behind.
    pub(super) fn publish_ledger(&mut self) {
        let ledger = self.account_so_far();
        self.output.renew_ledger(&ledger);
        *self.progress.ledger.lock() = ledger;
    }

    pub(super) fn account_so_far(&self) -> Ledger {
        Ledger {
            accounted: Some(clock::anchor()),
            ..self.sum_up()
        }
    }
}
