//! The export as text: timelines in JSON, tables in csv or JSON, in the form of the stock parser (spec 3 section 10).
//!
//! Memory grows with the number of names, threads and open pieces, not with that of records: what has to be sorted and does
//! not fit is sorted in a file. Nothing is written but new files in `mindstudio_profiler_output`, and its README.txt anew.

mod aicpu;
mod api_statistic;
mod fusion;
mod layers;
mod marks;
mod memory;
mod output;
mod readme;
mod sorted;
mod survey;
mod table;
mod timeline;
mod trace;
mod wall;

pub use layers::{Layers, LayersError};
pub use output::{OUTPUT, OutputError};
pub use table::{Format, Made};

use crate::calls::{Call, Skipped};
use crate::newfile::{Stamp, way_out};
use crate::notes;
use crate::source::Source;
use crate::unread::Unread;
use msprof_agent_core::profdir::reader::ReadError;
use output::OutputDir;
use sorted::Sorter;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use survey::Survey;
use table::{Columns, Table};
use trace::Trace;
use wall::Wall;

/// What is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Form of the tables.
    pub format: Format,
    /// Layers of the timeline.
    pub layers: Layers,
}

/// Why an export was not finished.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Something could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// What does not fit into memory could not be kept on the disk.
    #[error("cannot sort in a file of {OUTPUT}: {0}{way}", way = way_out(.0))]
    Sorting(#[from] io::Error),
}

/// What has been exported.
#[derive(Debug, Default)]
pub struct Report {
    /// Where the files are.
    pub path: PathBuf,
    /// The files, in the order in which they were made.
    pub files: Vec<Made>,
    /// Calls of the directory.
    pub calls: u64,
    /// Calls that are in the statistic and not in the timeline, since they lie before the capture.
    pub early: u64,
    /// What was no call.
    pub skipped: Skipped,
    /// What is wrong with the directory: the export holds what can be read of it.
    pub problems: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// Why it was not finished; the files before that are whole.
    pub failed: Option<ExportError>,
}

impl Report {
    /// Whether everything of the directory is in the export.
    pub fn is_complete(&self) -> bool {
        self.problems.is_empty() && self.failed.is_none()
    }
}

/// What could not be read on the way.
#[derive(Debug, Default)]
struct Problems {
    unread: Unread,
    foreign: BTreeMap<&'static str, u64>,
}

impl Problems {
    fn read<T>(&mut self, result: Result<T, ReadError>) -> Option<T> {
        result.map_err(|error| self.unread.push(error)).ok()
    }

    /// What had the place of a record of a family and was none.
    fn foreign(&mut self, family: &'static str, records: u64) {
        if records > 0 {
            self.foreign.insert(family, records);
        }
    }

    /// Each once, though a family is read more than once.
    fn sentences(self) -> Vec<String> {
        let foreign = self.foreign.iter().map(|(family, count)| {
            format!("{count} records of {family} are torn or none; the others are exported")
        });
        let mut sentences: Vec<String> = foreign.collect();
        sentences.extend(self.unread.sentences());
        sentences
    }
}

/// Devices in the order in which the stock parser takes their directories: by name.
fn devices(source: &Source) -> Vec<u32> {
    let mut devices: Vec<u32> = source.profile().devices().collect();
    devices.sort_by_key(u32::to_string);
    devices
}

/// What `Device_id` is in tables of the host's records: each device in turn, as the stock parser has it, or `host` where
/// there is none.
fn labels(source: &Source) -> Vec<String> {
    let labels: Vec<String> = devices(source).iter().map(u32::to_string).collect();
    match labels.is_empty() {
        true => vec!["host".to_owned()],
        false => labels,
    }
}

/// Exports a directory. `seen` is told now and then how many more bytes of calls have been read, twice of each.
pub fn export(source: &Source, options: &Options, seen: &mut dyn FnMut(u64)) -> Report {
    let mut report = Report {
        notes: notes::notes(source),
        problems: notes::problems(source),
        ..Report::default()
    };
    let mut problems = Problems::default();
    let made = Export::begin(source, options).and_then(|export| {
        report.path = export.dir.path().to_owned();
        export.run(&mut report, &mut problems, seen)
    });
    report.failed = made.err();
    report.problems.extend(problems.sentences());
    report.problems.extend(notes::of_calls(&report.skipped));
    if report.calls > 0 && report.early == report.calls {
        let all = "all calls lie before the capture by the times in start_info, which is damaged then: the timeline has none of them";
        report.problems.push(all.to_owned());
    }
    let left_out = notes::left_out(report.early, &report.skipped);
    report.notes.extend(left_out);
    report
}

/// How many bytes of calls an export reads.
pub fn work(source: &Source) -> u64 {
    2 * source.call_bytes()
}

/// An export that is under way.
struct Export<'a> {
    source: &'a Source,
    options: &'a Options,
    dir: OutputDir,
    wall: Wall,
    stamp: Stamp,
    labels: Vec<String>,
}

impl<'a> Export<'a> {
    fn begin(source: &'a Source, options: &'a Options) -> Result<Export<'a>, ExportError> {
        let dir = OutputDir::open(source.profile().path())?;
        Ok(Export {
            stamp: Stamp::claim(dir.directory()),
            source,
            options,
            dir,
            wall: Wall::of(source),
            labels: labels(source),
        })
    }

    fn table(&self, kind: &'static str, names: &'static [&'static str]) -> Table<'_> {
        let columns = Columns {
            names,
            format: self.options.format,
            with_device: self.labels.len() > 1,
        };
        Table::new(&self.dir, columns, kind, self.stamp.text())
    }

    fn run(
        &self,
        report: &mut Report,
        problems: &mut Problems,
        seen: &mut dyn FnMut(u64),
    ) -> Result<(), ExportError> {
        let result = self.files(report, problems, seen);
        // Of the files that there are, also where others failed.
        let readme = match report.files.is_empty() {
            true => Ok(()),
            false => readme::write(&self.dir, &report.files),
        };
        result.and(readme.map_err(ExportError::from))
    }

    fn files(
        &self,
        report: &mut Report,
        problems: &mut Problems,
        seen: &mut dyn FnMut(u64),
    ) -> Result<(), ExportError> {
        let mut read = |calls: u64| seen(calls * Call::BYTES);
        let mut survey = Survey::of(self.source, &self.wall, &mut read);
        report.calls = survey.calls;
        report.skipped = survey.skipped;
        problems.unread.extend(std::mem::take(&mut survey.errors));
        report
            .notes
            .extend(notes::of_loads(survey.loads.overflow()));
        self.timelines(report, problems, &mut survey, &mut read)?;
        survey.sort();
        let table = self.table("api_statistic", &api_statistic::COLUMNS);
        let made = api_statistic::write(table, &survey, &self.wall, &self.labels)?;
        report.files.extend(made);
        self.tables(report, problems, &survey)
    }

    fn timelines(
        &self,
        report: &mut Report,
        problems: &mut Problems,
        survey: &mut Survey,
        read: &mut impl FnMut(u64),
    ) -> Result<(), ExportError> {
        let layers = self.options.layers;
        let mut big = Trace::new(&self.dir, "msprof", self.stamp.text());
        let mut own = Trace::new(&self.dir, "msprof_tx", self.stamp.text());
        let calls = Some(&mut big).filter(|_| layers.cann);
        report.early = timeline::calls(self.source, &self.wall, survey, calls, read)?;
        if layers.marks {
            let errors = timeline::marks(self.source, &self.wall, &mut big, &mut own)?;
            problems.unread.extend(errors);
        }
        if layers.frequency {
            for device in devices(self.source) {
                timeline::frequency(self.source, device, &mut big)?;
            }
        }
        report.files.extend(big.finish()?);
        report.files.extend(own.finish()?);
        Ok(())
    }

    fn tables(
        &self,
        report: &mut Report,
        problems: &mut Problems,
        survey: &Survey,
    ) -> Result<(), ExportError> {
        let (source, wall, labels) = (self.source, &self.wall, self.labels.as_slice());
        let files = &mut report.files;
        let sorter = || Sorter::new(&self.dir);
        let table = |kind, names: &'static [&'static str]| self.table(kind, names);
        // Marks and plans are the host's alone, whatever devices there are.
        let marks = match self.options.format {
            Format::Csv => table("msprof_tx", &marks::CSV_COLUMNS),
            // The timeline has the name that this file would have.
            Format::Json => table("msprof_tx", &marks::JSON_COLUMNS).called("msprof_tx_summary"),
        };
        let made = marks::write(marks.of_one_device(), sorter(), source, wall, problems)?;
        files.extend(made);
        let aicpu = table("aicpu", &aicpu::NODE_COLUMNS);
        files.extend(aicpu::nodes(aicpu, sorter, source, problems)?);
        let dp = table("dp", &aicpu::DATA_COLUMNS);
        files.extend(aicpu::data(dp, source, wall, problems)?);
        let waits = table("aicpu_mi", &aicpu::WAIT_COLUMNS);
        files.extend(aicpu::waits(waits, source, problems)?);
        let fusion = table("fusion_op", &fusion::COLUMNS);
        files.extend(fusion::write(
            fusion,
            source,
            &survey.loads,
            labels,
            problems,
        )?);
        let operators = table("operator_memory", &memory::OPERATOR_COLUMNS);
        let records = table("memory_record", &memory::RECORD_COLUMNS);
        files.extend(memory::used(
            [operators, records],
            sorter,
            source,
            wall,
            labels,
            problems,
        )?);
        let planned = table("static_op_mem", &memory::STATIC_COLUMNS).of_one_device();
        files.extend(memory::planned(planned, source, problems)?);
        Ok(())
    }
}
