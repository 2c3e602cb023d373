//! One PROF_XXX directory while it is being written.
//!
//! Made complete with its control files before the first data byte, so that a process killed at any
//! later moment leaves something the parser reads. Data goes through [`Slices`].

#![forbid(unsafe_code)]

mod account;

use super::control;
use super::error::{Kept, ProfDirError};
use super::facts::HostFacts;
use super::families::{FamilyId, Place};
use super::files::{self, Dir};
use super::listing::Control;
use super::names;
use super::parent::Parent;
use super::setup::{DeviceClock, Setup};
use super::slices::{Slices, is_full};
use super::undo::Undo;
use crate::board::Target;
use crate::ledger::Anchor;
use crate::records::TraceCounts;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// A capture does not begin with less than this free, bytes; as the stock collector.
const FREE_NEEDED: u64 = 20 * 1024 * 1024;
/// Names tried before giving up; each has 18^8 endings.
const NAME_ATTEMPTS: usize = 8;
/// The ledger's file in the root of the directory.
pub const LEDGER_FILE: &str = "msprof_agent.json";
/// Where the ledger is written before it takes its name.
pub(super) const LEDGER_TEMP: &str = ".msprof_agent.json.tmp";
/// Blocks held back so that ledger and end_info can be written when the disk is full.
pub(super) const RESERVE_FILE: &str = ".msprof_agent.reserve";
/// Sub-directory in which a device directory is made: of the few names that the parser skips, so
/// that one left behind by a killed process does no harm (spec 3 section 3).
pub(super) const STAGING: &str = ".profiler";

/// A directory of host or a device, with what its end still needs.
#[derive(Debug)]
struct Section {
    place: Place,
    dir: Dir,
    ended: bool,
}

/// The writer of one PROF_XXX directory. Owned by one thread; dropping it without
/// [`finish`](ProfDir::finish) leaves a directory like that of a killed process.
#[derive(Debug)]
pub struct ProfDir {
    root: Dir,
    setup: Setup,
    facts: HostFacts,
    sections: Vec<Section>,
    slices: Slices,
    ledger_bytes: u64,
    reserved: bool,
    remarks: Vec<String>,
}

impl ProfDir {
    /// Makes the directory and its control files. Checks that the parent can be made and written, has 20 MB
    /// free, and that no other user can put something in the directory's place (the rule of `parent.rs`). On
    /// an error everything made is removed again.
    pub fn create(setup: Setup) -> Result<ProfDir, ProfDirError> {
        let sample = control::sample(&setup.sample_host, None)?;
        let parent_path = std::path::absolute(&setup.parent).unwrap_or(setup.parent.clone());
        let mut undo = Undo::default();
        let way = Parent {
            path: &parent_path,
            allow_shared: setup.allow_shared,
        };
        let mut remarks: Vec<String> = way.check_links()?.into_iter().collect();
        let parent = files::make_dirs(&parent_path, &mut undo.parents)
            .map_err(|source| create_error(&parent_path, source))?;
        remarks.extend(way.check(&parent)?);
        match parent.free_bytes() {
            Ok(Some(free)) if free < FREE_NEEDED => {
                return Err(ProfDirError::LittleSpace {
                    path: parent_path,
                    free,
                    needed: FREE_NEEDED,
                });
            }
            // Where the file system does not say, writing will.
            _ => {}
        }
        let root = make_root(&parent, &setup)?;
        undo.tree = Some(root.path().to_owned());
        let facts = HostFacts::gather();
        let start = setup.start;
        let start_log = control::host_start_log(None, start.monotonic_raw_ns);
        let files = [
            (Control::Info, control::info(&setup, &facts, None)),
            (Control::Sample, sample),
            (Control::StartInfo, control::start_info(start)),
            (Control::HostStart, start_log),
        ]
        .map(|(file, text)| (file.name(Place::Host), text));
        let host = root
            .make_dir("host")
            .map_err(|source| create_error(&root.path().join("host"), source))?;
        let (data, bytes) = fill(&host, &files)?;
        let mut slices = Slices::new(root.path().to_owned(), setup.storage_limit);
        slices.add_place(Place::Host, data);
        slices.count_control(bytes);
        let mut dir = ProfDir {
            root,
            setup,
            facts,
            sections: vec![Section {
                place: Place::Host,
                dir: host,
                ended: false,
            }],
            slices,
            ledger_bytes: 0,
            reserved: false,
            remarks,
        };
        dir.reserve();
        undo.clear();
        Ok(dir)
    }

    /// Kind of chip for the directories of devices that are made from here on (spec 3 section 4.1).
    pub fn set_platform_version(&mut self, version: String) {
        self.setup.platform_version = version;
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// What is worth saying of the place where it is, one sentence each.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Makes `device_<device>`; does nothing if it is there. `clock` says what the ticks in its data
    /// are, host nanoseconds by default.
    ///
    /// The parser drops aicpu records older than `start`: pass the capture's own start if records
    /// may be older than this call.
    pub fn add_device(
        &mut self,
        device: u32,
        sample: &str,
        start: Anchor,
        clock: Option<DeviceClock>,
    ) -> Result<(), ProfDirError> {
        let place = Place::Device(device);
        if self.slices.has_place(place) {
            return Ok(());
        }
        let clock = clock.unwrap_or_else(|| DeviceClock::of_host(start));
        let info = control::info(&self.setup, &self.facts, Some((device, &clock)));
        let start_log = control::host_start_log(Some(device), clock.host_ns);
        let files = [
            (Control::Info, info),
            (Control::Sample, control::sample(sample, Some(device))?),
            (Control::StartInfo, control::start_info(start)),
            (Control::HostStart, start_log),
            (Control::DevStart, control::dev_start_log(&clock)),
        ]
        .map(|(file, text)| (file.name(place), text));
        let name = format!("device_{device}");
        let mut undo = Undo::default();
        let staging_path = self.root.path().join(STAGING);
        // Left by an earlier attempt whose clearing up failed as well.
        let _ = std::fs::remove_dir_all(&staging_path);
        let staging = self
            .root
            .make_dir(STAGING)
            .map_err(|source| create_error(&staging_path, source))?;
        undo.tree = Some(staging_path.clone());
        let dir = staging
            .make_dir(&name)
            .map_err(|source| create_error(&staging_path.join(&name), source))?;
        let (data, bytes) = fill(&dir, &files)?;
        let path = self.root.path().join(&name);
        staging
            .rename(&name, &self.root, &name)
            .map_err(|source| create_error(&path, source))?;
        undo.clear();
        // Left behind it does no harm.
        let _ = self.root.remove_dir(STAGING);
        self.slices.add_place(place, data.moved(path.join("data")));
        self.slices.count_control(bytes);
        self.sections.push(Section {
            place,
            dir: dir.moved(path),
            ended: false,
        });
        Ok(())
    }

    /// The family `name` (such as `aging.api_event.data`) in a place. The same name gives the same id;
    /// no file is made before the first [`append`](ProfDir::append). `record_size` in bytes, `None`
    /// for text and for records of variable length.
    pub fn family(&mut self, place: Place, name: &str, record_size: Option<usize>) -> FamilyId {
        self.slices.family(place, name, record_size)
    }

    /// Appends whole records with one write. `counts` are the records in `bytes` by trace, needed to
    /// account for what the storage limit deletes later.
    ///
    /// On an error the slice holds whole records only; [`ProfDirError::kept`] says how much of
    /// `bytes` is among them (nothing for families without a record size).
    pub fn append(
        &mut self,
        family: FamilyId,
        bytes: &[u8],
        counts: &TraceCounts,
    ) -> Result<(), ProfDirError> {
        self.append_noting(family, bytes, counts, |_| {})
    }

    /// The same; `note` is told which slice that will be, before anything is written to it.
    pub fn append_noting(
        &mut self,
        family: FamilyId,
        bytes: &[u8],
        counts: &TraceCounts,
        note: impl FnOnce(Target<'_>),
    ) -> Result<(), ProfDirError> {
        self.slices.append(family, bytes, counts, note)
    }

    /// Number and length in bytes of the slice that the next [`append`](ProfDir::append) to a family
    /// goes to, unless the storage limit or an error moves it.
    pub fn position(&self, family: FamilyId) -> (u32, u64) {
        self.slices.position(family)
    }

    /// Whether it has a storage limit.
    pub fn is_limited(&self) -> bool {
        self.slices.is_limited()
    }

    /// Whether a slice that was appended to is still there: the storage limit deletes some.
    pub fn has_slice(&self, family: FamilyId, slice: u32) -> bool {
        self.slices.has_slice(family, slice)
    }

    /// Writes `bytes` over what was written at each of `offsets` in a slice. An error may leave some as they were.
    pub fn overwrite(
        &self,
        family: FamilyId,
        slice: u32,
        offsets: impl Iterator<Item = u64>,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.slices.overwrite(family, slice, offsets, bytes)
    }

    /// Has the kernel begin to write out what has been appended, so that a long capture does not pile up
    /// dirty pages. Never waits for the device: a thread of the directory's does.
    pub fn start_write_back(&mut self) {
        self.slices.start_write_back();
    }

    /// Records deleted so far to keep the storage limit.
    pub fn aged_out(&self) -> TraceCounts {
        self.slices.aged_out()
    }

    /// Bytes of data slices in the directory.
    pub fn bytes(&self) -> u64 {
        self.slices.bytes()
    }

    /// Ends the directory: `.done` of every slice, end_info with the clocks at the stop. Goes on after
    /// an error and returns the first. What is missing can be tried again by another call.
    pub fn finish(&mut self, stop: Anchor) -> Result<(), ProfDirError> {
        let mut result = self.slices.finish();
        for index in 0..self.sections.len() {
            if !self.sections[index].ended {
                result = result.and(self.end_section(index, stop));
            }
        }
        self.release_reserve();
        result
    }

    fn end_section(&mut self, index: usize, stop: Anchor) -> Result<(), ProfDirError> {
        let section = &self.sections[index];
        let name = Control::EndInfo.name(section.place);
        let text = control::end_info(stop);
        let mut written = put_with_done(&section.dir, &name, &text);
        if self.reserved && written.as_ref().is_err_and(is_full) {
            self.release_reserve();
            written = put_with_done(&self.sections[index].dir, &name, &text);
        }
        let section = &mut self.sections[index];
        match written {
            Ok(_) => {
                section.ended = true;
                Ok(())
            }
            Err(source) => Err(ProfDirError::Write {
                path: section.dir.path().join(&name),
                source,
                kept: Kept::default(),
            }),
        }
    }
}

impl AsFd for ProfDir {
    /// The open PROF_XXX directory, for whoever finishes it after this process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

fn make_root(parent: &Dir, setup: &Setup) -> Result<Dir, ProfDirError> {
    let mut attempt = 0;
    loop {
        let name = names::directory_name(
            setup.index,
            setup.start.realtime_ns,
            setup.pid,
            names::random_letters(),
        );
        attempt += 1;
        match parent.make_dir(&name) {
            Ok(root) => return Ok(root),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && attempt < NAME_ATTEMPTS => {}
            Err(source) => return Err(create_error(&parent.path().join(name), source)),
        }
    }
}

/// Writes control files with their `.done` and makes `data`; returns it and the bytes written.
fn fill(dir: &Dir, files: &[(String, String)]) -> Result<(Dir, u64), ProfDirError> {
    let mut bytes = 0;
    for (name, text) in files {
        bytes += put_with_done(dir, name, text)
            .map_err(|source| create_error(&dir.path().join(name), source))?;
    }
    let data = dir
        .make_dir("data")
        .map_err(|source| create_error(&dir.path().join("data"), source))?;
    Ok((data, bytes))
}

/// Writes a control file and its `.done`; returns the bytes of both.
fn put_with_done(dir: &Dir, name: &str, text: &str) -> io::Result<u64> {
    dir.put(name, text.as_bytes())?;
    let done = control::done(text.len() as u64);
    if let Err(error) = dir.put(&format!("{name}.done"), done.as_bytes()) {
        // So that another attempt finds the name free.
        let _ = dir.unlink(name);
        return Err(error);
    }
    Ok((text.len() + done.len()) as u64)
}

fn create_error(path: &Path, source: io::Error) -> ProfDirError {
    ProfDirError::Create {
        path: path.to_owned(),
        source,
    }
}
