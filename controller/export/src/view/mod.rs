//! A capture as one HTML file: timeline, table of calls, and what was lost. It needs no network and no other file.
//!
//! Two passes: the first one counts, the second one keeps the intervals that are shown. Memory is bounded by their number
//! and by that of names, whatever the directory holds.

mod banner;
mod choice;
mod file;
mod lanes;
mod names;
mod pack;
mod page;

pub use file::PageFile;
pub use lanes::Lane;

use crate::source::Source;
use crate::statistics::Statistics;
use lanes::{Counted, Lanes};
use msprof_agent_core::profdir::reader::ReadError;
use names::Names;
use std::collections::HashMap;
use std::io::{self, Write};

/// Intervals that a page shows when nobody says otherwise.
pub const LIMIT: u64 = 1_000_000;
/// Intervals that may be asked for.
pub const LIMIT_MAX: u64 = 10_000_000;

/// What a page shows of a capture.
pub struct View<'a> {
    source: &'a Source,
    statistics: Statistics,
    lanes: Vec<Lane>,
    names: Names,
    total: u64,
    unplaced: u64,
}

impl View<'_> {
    /// Reads a directory. Of more intervals than `limit` the longest ones of each lane and piece of time are kept.
    pub fn of(source: &Source, limit: u64) -> Result<View<'_>, ReadError> {
        let mut counted = Counted::new(source);
        let statistics = Statistics::of_while(
            source,
            |call| {
                counted.call(source, call);
                true
            },
            || true,
        )?
        .unwrap_or_default();
        counted.marks(source)?;
        counted.devices(source, statistics.captured)?;

        let models = statistics.models.iter();
        let models = models.filter_map(|row| Some((row.model?, row.name.clone()?)));
        let mut names = Names::new(models.collect::<HashMap<_, _>>());
        let mut lanes = Lanes::new(&counted, statistics.captured, limit);
        for call in source.calls() {
            lanes.call(source, &call?, &mut names);
        }
        lanes.marks(source, &mut names)?;
        lanes.devices(source, statistics.captured, &mut names)?;
        Ok(View {
            source,
            statistics,
            lanes: lanes.sorted(),
            names,
            total: counted.total(),
            unplaced: counted.unplaced,
        })
    }

    /// Intervals in the directory. One that is still written to may have more of them behind the first pass.
    pub fn total(&self) -> u64 {
        self.total.max(self.shown())
    }

    /// Intervals in the page.
    pub fn shown(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.shown() as u64).sum()
    }

    /// Threads, and lanes of devices.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Writes the page.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        page::write(self, out)
    }
}

#[cfg(test)]
mod tests;
