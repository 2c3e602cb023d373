//! Captures that the agent's own writer has made.

use super::Lab;
use msprof_agent_core::ledger::{Anchor, CaptureState, Ledger};
use msprof_agent_core::profdir::{Place, ProfDir, Setup};
use msprof_agent_core::records::{ApiRecord, MAGIC, Trace, TraceCounts};
use std::path::PathBuf;
use zerocopy::IntoBytes;

/// CLOCK_MONOTONIC_RAW at the start of every capture made here, ns.
pub const START_NS: u64 = 1_000_000_000_000;

pub fn anchor(after: u64) -> Anchor {
    Anchor {
        ticks: START_NS + after,
        monotonic_raw_ns: START_NS + after,
        realtime_ns: 1_700_000_000_000_000_000 + after,
        cpu_counter: 7,
    }
}

/// A capture in the making.
pub struct Capture {
    pub dir: ProfDir,
    pub ledger: Ledger,
}

impl Capture {
    pub fn new(lab: &Lab) -> Capture {
        let setup = Setup {
            parent: lab.path("out"),
            pid: 4321,
            start: anchor(0),
            ..Setup::default()
        };
        Capture {
            dir: ProfDir::create(setup).expect("made"),
            ledger: Ledger {
                pid: 4321,
                capture: 1,
                start: anchor(0),
                ..Ledger::default()
            },
        }
    }

    /// A call that begins and ends so many ns after the start.
    pub fn call(&mut self, lvl: u16, kind: u32, begin: u64, end: u64) {
        self.record(lvl, kind, START_NS + begin, START_NS + end);
    }

    /// One half of a pair of events.
    pub fn event(&mut self, lvl: u16, kind: u32, at: u64) {
        self.record(lvl, kind, START_NS + at, ApiRecord::EVENT_END);
    }

    pub fn record(&mut self, lvl: u16, kind: u32, begin: u64, end: u64) {
        let record = ApiRecord {
            magic: MAGIC,
            level: lvl,
            kind,
            thread_id: 4321,
            request_id: 0,
            begin,
            end,
            item_id: 0,
        };
        let trace = Trace::of(lvl, true).expect("readable");
        let mut counts = TraceCounts::default();
        counts.add(trace, 1);
        self.ledger.written.add(trace, 1);
        let name = "unaging.api_event.data";
        let family = self.dir.family(Place::Host, name, Some(40));
        let appended = self.dir.append(family, record.as_bytes(), &counts);
        appended.expect("appended");
    }

    /// A line of the type dictionary, as it is: a hostile directory keeps no rules.
    pub fn name(&mut self, lvl: u16, kind: u32, name: &str) {
        let dictionary = "unaging.additional.type_info_dic";
        let family = self.dir.family(Place::Host, dictionary, None);
        let line = format!("{lvl}_{kind}:{name}\n");
        let appended = self
            .dir
            .append(family, line.as_bytes(), &TraceCounts::default());
        appended.expect("appended");
    }

    /// Ends it after two and a half seconds, with a ledger.
    pub fn finish(mut self) -> PathBuf {
        let stop = anchor(2_500_000_000);
        self.ledger.stop = Some(stop);
        self.ledger.state = CaptureState::Complete;
        self.ledger.bytes = self.dir.bytes();
        self.dir.write_ledger(&self.ledger).expect("written");
        self.finish_without_ledger()
    }

    pub fn finish_without_ledger(mut self) -> PathBuf {
        self.dir.finish(anchor(2_500_000_000)).expect("finished");
        self.dir.path().to_owned()
    }
}
