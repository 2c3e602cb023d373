//! Finishing the directory of a process that was killed in mid capture.
//!
//! Whole records are kept, torn ends cut off, control files completed as the process would have at its stop,
//! and the ledger says what is known of the loss. The ledger is written last: until then an interrupted
//! recovery can be run again. A directory whose process may still live is left alone.
//!
//! Nothing in a directory is trusted: no link is followed, reads are bounded, and no name that a file holds
//! becomes a path.

#![forbid(unsafe_code)]

mod account;
mod controls;
mod framing;
mod life;
mod obstacles;
mod refill;
mod report;
mod slices;
pub(crate) mod tree;

pub use account::rescued_note;
pub use life::{Life, Maker, look};
pub(crate) use refill::Refill;
pub use report::{Cut, Done, Left, RecoverError, Recovery};

use super::families::Place;
use super::listing::{Control, Entry, EntryKind, place_of};
use super::reader::{CONTROL_MAX, LEDGER_MAX};
use super::writer::{LEDGER_FILE, LEDGER_TEMP, RESERVE_FILE, STAGING};
use crate::ledger::{Anchor, Ledger, Recovered};
use crate::names::PROF_PREFIX;
use controls::Source;
use framing::Found;
use report::{failed, failed_in};
use serde_json::{Map, Value};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use tree::{TEMP, Tree};

/// Where a ledger is kept that could not be read, when another takes its place.
const LEDGER_DAMAGED: &str = "msprof_agent.json.damaged";

/// Finishes a directory unless it is complete. `life` says whether the process that makes it still lives:
/// [`look`], unless the caller knows better.
pub fn recover(path: &Path, life: impl FnOnce(&Maker) -> Life) -> Result<Recovery, RecoverError> {
    let root = Tree::open(path).map_err(|source| failed(path, source))?;
    recover_refilled(&root, life, |_| 0)
}

/// The same of an open directory, into which `fill` may put what it knows of beside; it tells how many records
/// that was, and is not asked where nothing is to be recovered.
pub(crate) fn recover_refilled(
    root: &Tree,
    life: impl FnOnce(&Maker) -> Life,
    fill: impl FnOnce(&mut Refill<'_>) -> u64,
) -> Result<Recovery, RecoverError> {
    let path = root.path().to_owned();
    let survey = Survey::of(root)?;
    if survey.is_complete() {
        return survey.untouched(&path);
    }
    let Some(maker) = survey.maker(root)? else {
        return Err(RecoverError::NeverBegan { path });
    };
    match life(&maker) {
        Life::Dead => {}
        Life::Runs(pid) => return Err(RecoverError::Running { path, pid }),
        Life::Writes => return Err(RecoverError::Written { path }),
        Life::Elsewhere(host) => return Err(RecoverError::Elsewhere { path, host }),
        Life::Hidden(pid) => return Err(RecoverError::Hidden { path, pid }),
    }
    if !root.lock().map_err(|source| failed(&path, source))? {
        return Err(RecoverError::Busy { path });
    }
    // It may have ended its capture, or another recovery its work, while we looked.
    let survey = Survey::of(root)?;
    if survey.is_complete() {
        return survey.untouched(&path);
    }
    let mut refill = Refill::new(root).map_err(|source| failed(&path, source))?;
    let refilled = fill(&mut refill);
    // There may be devices that were not there before.
    Survey::of(root)?.finish(root, maker, refilled)
}

/// The parts of a directory as they were found.
struct Survey {
    entries: Vec<Entry>,
    /// Places with their directories, the host first.
    sections: Vec<(Place, Tree)>,
    ledger: Option<Ledger>,
    has_ends: bool,
}

impl Survey {
    fn of(root: &Tree) -> Result<Survey, RecoverError> {
        let path = root.path();
        let entries = root.list().map_err(|source| failed(path, source))?;
        let mut sections = Vec::new();
        for entry in &entries {
            let place = place_of(&entry.name).filter(|_| entry.kind == EntryKind::Directory);
            if let Some(place) = place {
                let tree = root.enter(&entry.name);
                let tree = tree.map_err(|source| failed(&path.join(&entry.name), source))?;
                sections.push((place, tree));
            }
        }
        if sections.is_empty() {
            return Err(RecoverError::NotProfile {
                path: path.to_owned(),
            });
        }
        sections.sort_by_key(|(place, _)| match place {
            Place::Host => None,
            Place::Device(device) => Some(*device),
        });
        let there = |name: &str| entries.iter().any(|entry| entry.name == name);
        if !there(LEDGER_FILE) && !there(RESERVE_FILE) {
            return Err(RecoverError::NotOurs {
                path: path.to_owned(),
            });
        }
        let ledger = read_ledger(root)?;
        let has_ends = sections.iter().all(|(place, tree)| {
            let name = Control::EndInfo.name(*place);
            let text = tree.read(&name, CONTROL_MAX).unwrap_or_default();
            controls::times(&text, "collectionTimeEnd").is_some()
        });
        Ok(Survey {
            entries,
            sections,
            ledger,
            has_ends,
        })
    }

    /// Whether there was a plain file of that name.
    fn has_file(&self, name: &str) -> bool {
        let is = |entry: &Entry| entry.name == name && entry.kind == EntryKind::File;
        self.entries.iter().any(is)
    }

    fn is_stopped(&self) -> bool {
        self.ledger
            .as_ref()
            .is_some_and(|ledger| ledger.stop.is_some())
    }

    fn is_complete(&self) -> bool {
        self.is_stopped() && self.has_ends
    }

    fn host(&self) -> Option<&Tree> {
        let host = self
            .sections
            .iter()
            .find(|(place, _)| *place == Place::Host);
        host.map(|(_, tree)| tree)
    }

    /// The report on a directory in which nothing is done.
    fn untouched(&self, path: &Path) -> Result<Recovery, RecoverError> {
        let ledger = self.ledger.clone().unwrap_or_default();
        let mut recovery = Recovery {
            path: path.to_owned(),
            kept: ledger.written,
            bytes: ledger.bytes,
            lost: ledger.lost,
            aged_out: ledger.aged_out,
            before: ledger.recovered,
            ..Recovery::default()
        };
        if let Some(end) = ledger.recovered {
            recovery.account_ns = end.account_ns;
            recovery.last_record_ns = end.last_record_ns;
        }
        obstacles::name(self, &mut recovery)?;
        Ok(recovery)
    }

    /// Who makes it; `None` if nothing says when the capture began, since it has not begun then.
    fn maker(&self, root: &Tree) -> Result<Option<Maker>, RecoverError> {
        let host = |name: &str| {
            let bytes = self.host()?.read(name, CONTROL_MAX).ok()?;
            Some(bytes)
        };
        let info = host("info.json").and_then(|bytes| controls::object(&bytes));
        let text = |key: &str| info.as_ref()?.get(key)?.as_str().map(str::to_owned);
        let begun = host("start_info");
        let begun = begun.and_then(|bytes| controls::times(&bytes, "collectionTimeBegin"));
        let ledger = self.ledger.as_ref();
        let start = ledger.map(|ledger| ledger.start);
        let start = start.filter(|start| start.monotonic_raw_ns > 0).or(begun);
        let Some(start) = start else {
            return Ok(None);
        };
        let stat = rustix::fs::fstat(root.as_fd());
        let stat = stat.map_err(|source| failed(root.path(), source.into()))?;
        // Some targets have narrower fields.
        #[allow(clippy::unnecessary_cast)]
        let directory = (stat.st_dev as u64, stat.st_ino as u64);
        let pid = ledger.map(|ledger| ledger.pid).filter(|pid| *pid > 0);
        let pid = pid.or_else(|| text("pid")?.parse().ok()).unwrap_or(0);
        Ok(Some(Maker {
            pid,
            host: text("hostname"),
            start,
            directory,
            account: root.path().join(LEDGER_FILE),
        }))
    }

    fn finish(
        mut self,
        root: &Tree,
        maker: Maker,
        refilled: u64,
    ) -> Result<Recovery, RecoverError> {
        let path = root.path();
        let mut recovery = Recovery {
            path: path.to_owned(),
            ..Recovery::default()
        };
        let mut ledger = self.ledger.take().unwrap_or_default();
        let stopped = ledger.stop;
        // A full disk may have killed it: these blocks are for the files that are written now. Without a
        // ledger this file is what tells that the directory is the agent's, and goes last.
        let has_ledger = ledger.start.monotonic_raw_ns > 0;
        if has_ledger {
            root.unlink(RESERVE_FILE)
                .map_err(failed_in(root, RESERVE_FILE))?;
        } else if self.has_file(LEDGER_FILE) {
            // Whoever can read more of it than we shall still have it. Not every file system has links.
            let _ = root.link(LEDGER_FILE, LEDGER_DAMAGED);
        }
        ledger.pid = maker.pid;
        ledger.start = maker.start;
        ledger.capture = match ledger.capture {
            0 => number_in(path).unwrap_or(1),
            number => number,
        };
        let mut found = Found::default();
        for (_, tree) in &self.sections {
            if let Ok(data) = tree.enter("data") {
                slices::mend(&data, maker.start, &mut found, &mut recovery)?;
            }
        }
        let accounted = self.accounted(root, &ledger);
        let stop = stopped.unwrap_or_else(|| self.end(&maker, &found, accounted));
        let mut source = Source {
            pid: maker.pid,
            start: maker.start,
            stop,
            ..Source::default()
        };
        for (place, tree) in &self.sections {
            tree.tidy().map_err(failed_in(tree, TEMP))?;
            controls::complete(tree, *place, &mut source, &mut recovery)?;
        }
        recovery.kept = found.counts;
        recovery.lost = ledger.lost;
        recovery.aged_out = ledger.aged_out;
        recovery.exported = self.host().is_some_and(|host| host.enter("sqlite").is_ok());
        recovery.before = ledger.recovered;
        self.tidy(root, &mut recovery)?;
        obstacles::name(&self, &mut recovery)?;
        recovery.done = Done::Completed;
        if stopped.is_none() {
            let after_start = |at: u64| at.saturating_sub(maker.start.monotonic_raw_ns);
            let recovered = Recovered {
                account_ns: accounted.map(after_start),
                last_record_ns: found.last.map(after_start),
                cut_bytes: recovery.cut.iter().map(|cut| cut.bytes).sum(),
                rescued: refilled,
            };
            let places = self.sections.iter().filter_map(|(place, _)| match place {
                Place::Host => None,
                Place::Device(device) => Some(*device),
            });
            ledger.devices = places.collect();
            account::settle(&mut ledger, &found, stop, recovered, recovery.bytes);
            recovery.kept = ledger.written;
            recovery.account_ns = recovered.account_ns;
            recovery.last_record_ns = recovered.last_record_ns;
            recovery.done = Done::Recovered;
            let put = serde_json::to_vec(&ledger).map_err(io::Error::from);
            let put =
                put.and_then(|text| root.put(LEDGER_FILE, &[text.as_slice(), b"\n"].concat()));
            put.map_err(failed_in(root, LEDGER_FILE))?;
        }
        root.unlink(RESERVE_FILE)
            .map_err(failed_in(root, RESERVE_FILE))?;
        Ok(recovery)
    }

    /// When the last account was made, by the monotonic clock; agents before this field do not say.
    fn accounted(&self, root: &Tree, ledger: &Ledger) -> Option<u64> {
        let at = ledger.accounted?.monotonic_raw_ns;
        let file = root.file(LEDGER_FILE).ok()?;
        let possible = ledger.start.monotonic_raw_ns..=slices::latest_in(&file, ledger.start);
        possible.contains(&at).then_some(at)
    }

    /// The last that is known of the capture: what the process wrote at its own stop, its last record or its
    /// last account.
    fn end(&self, maker: &Maker, found: &Found, accounted: Option<u64>) -> Anchor {
        let text = self
            .host()
            .and_then(|host| host.read("end_info", CONTROL_MAX).ok());
        let said = text.and_then(|text| controls::times(&text, "collectionTimeEnd"));
        if let Some(said) = said {
            return said;
        }
        let start = maker.start;
        let end = found.last.max(accounted).unwrap_or(0);
        let length = end.saturating_sub(start.monotonic_raw_ns);
        Anchor {
            ticks: start.ticks.saturating_add(length),
            monotonic_raw_ns: start.monotonic_raw_ns.saturating_add(length),
            realtime_ns: start.realtime_ns.saturating_add(length),
            cpu_counter: 0,
        }
    }

    /// Removes what the agent makes for a moment only: a ledger on its way, a device directory that was not
    /// moved in. No record can be in the latter.
    fn tidy(&self, root: &Tree, recovery: &mut Recovery) -> Result<(), RecoverError> {
        let path = root.path();
        root.unlink(LEDGER_TEMP)
            .map_err(failed_in(root, LEDGER_TEMP))?;
        root.tidy().map_err(failed_in(root, TEMP))?;
        let is_staging =
            |entry: &&Entry| entry.name == STAGING && entry.kind == EntryKind::Directory;
        if self.entries.iter().any(|entry| is_staging(&entry))
            && (root.enter(STAGING).and_then(|staging| empty(&staging, 0)))
                .and_then(|()| root.remove_dir(STAGING))
                .is_err()
        {
            // The parser passes over it.
            recovery.leave(&path.join(STAGING), "it cannot be removed");
        }
        Ok(())
    }
}

/// The ledger; `None` where there is none or it is cut off or overwritten, since the files say the rest. One that is whole and
/// not in our words is an error: it says more than we could put in its place.
fn read_ledger(root: &Tree) -> Result<Option<Ledger>, RecoverError> {
    let Ok(bytes) = root.read(LEDGER_FILE, LEDGER_MAX) else {
        return Ok(None);
    };
    match serde_json::from_slice(&bytes) {
        Ok(ledger) => Ok(Some(ledger)),
        Err(cause) if serde_json::from_slice::<Map<String, Value>>(&bytes).is_ok() => {
            Err(RecoverError::OtherRelease {
                path: root.path().to_owned(),
                cause: cause.to_string(),
            })
        }
        Err(_) => Ok(None),
    }
}

/// Empties a device directory in the making: the directory, its files, its `data`.
fn empty(dir: &Tree, depth: u32) -> io::Result<()> {
    const DEPTH: u32 = 2;
    for entry in dir.list()? {
        match entry.kind {
            EntryKind::Directory if depth < DEPTH => {
                empty(&dir.enter(&entry.name)?, depth + 1)?;
                dir.remove_dir(&entry.name)?;
            }
            EntryKind::Directory => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
            _ => dir.unlink(&entry.name)?,
        }
    }
    Ok(())
}

/// The capture's number in a directory's name.
fn number_in(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(PROF_PREFIX)?
        .split('_')
        .next()?
        .parse()
        .ok()
}
