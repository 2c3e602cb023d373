//! Captures that the agent's own writer has made, where a lab has its output.

#[path = "../../export/tests/support/made.rs"]
mod made;

pub use made::{START_NS, anchor};

use super::Lab;
use made::Made;
use msprof_agent_core::records::{ApiRecord, MAGIC};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

/// A capture in the making.
pub struct Capture(Made);

impl Capture {
    pub fn new(lab: &Lab) -> Capture {
        Capture(Made::within(lab.path("out")))
    }

    /// A call by its ticks.
    pub fn record(&mut self, lvl: u16, kind: u32, begin: u64, end: u64) {
        self.0.record(ApiRecord {
            magic: MAGIC,
            level: lvl,
            kind,
            thread_id: 4321,
            request_id: 0,
            begin,
            end,
            item_id: 0,
        });
    }

    /// A line of the type dictionary, as it is: a hostile directory keeps no rules.
    pub fn name(&mut self, lvl: u16, kind: u32, name: &str) {
        self.0.line(&format!("{lvl}_{kind}:{name}\n"));
    }

    /// Ends it after two and a half seconds, with a ledger.
    pub fn finish(mut self) -> PathBuf {
        self.0.finish()
    }

    pub fn finish_without_ledger(mut self) -> PathBuf {
        self.0.finish_without_ledger()
    }
}

impl Deref for Capture {
    type Target = Made;

    fn deref(&self) -> &Made {
        &self.0
    }
}

impl DerefMut for Capture {
    fn deref_mut(&mut self) -> &mut Made {
        &mut self.0
    }
}
