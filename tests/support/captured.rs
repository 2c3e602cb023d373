//! A capture of the demo as a stock client makes it, with the demo's own counts.

use super::client::{ByteClient, params};
use super::counting::Window;
use super::home::{Home, only_prof_dir};
use super::prof::Prof;
use super::rules::open_complete;
use super::task::{Task, Way, wait_runs};
use std::collections::BTreeMap;

/// Enough records of every kind; exporting them takes the parser seconds.
pub const RUNS: u64 = 40;

/// A capture of the demo with the three traces.
pub struct Capture {
    home: Home,
    pub window: Window,
}

impl Capture {
    pub fn make(options: &str) -> Capture {
        let home = Home::new();
        let mut task = Task::start(&home, Way::Preload, options);
        let mut client = ByteClient::open(task.socket(), &params(&home.output()));
        client.start();
        wait_runs(&home.output(), RUNS);
        client.stop();
        client.quit();
        let window = task.window(1);
        task.terminate();
        Capture { home, window }
    }

    pub fn open(&self) -> Prof {
        open_complete(&only_prof_dir(&self.home.output()))
    }
}

/// Pairs of events by (type, thread, request, item).
pub fn event_pairs(prof: &Prof, wanted: &str) -> u64 {
    let mut open: BTreeMap<_, u64> = BTreeMap::new();
    for record in prof.api().iter().filter(|record| record.is_event()) {
        if prof.name_of(record) == wanted {
            *open
                .entry((record.thread, record.request, record.item))
                .or_default() += 1;
        }
    }
    open.values().map(|events| events / 2).sum()
}
