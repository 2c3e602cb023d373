//! Reading a PROF_XXX directory, ours or the stock collector's.
//!
//! The directory may be that of a killed process, may be written on while it is read, and may be
//! hostile: links are not followed, sizes are bounded, nothing is mapped (a file that shrinks must
//! not end the reader), and odd entries are kept for [`check`](super::check) to name.

#![forbid(unsafe_code)]

use super::families::Place;
use super::listing::{OddNumbers, families_of, list, places};
use super::writer::LEDGER_FILE;
use crate::ledger::Ledger;
use crate::records::{AdditionalRecord, ApiRecord, CompactRecord};
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub use super::dictionaries::TypeNames;
pub use super::hash_names::HashNames;
pub use super::listing::{Control, Entry, EntryKind, Family, Kind, Section, Slice};
pub use super::streams::{Records, VariableRecords};

/// Bytes of a control file that are read: the parser's own bound for a line of JSON.
pub(super) const CONTROL_MAX: u64 = 8 * 1024 * 1024;
/// Bytes of a ledger that are read.
pub(crate) const LEDGER_MAX: u64 = 64 * 1024 * 1024;

/// Why a directory or a file in it could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No host or device directory is in it.
    #[error("{path} is not a PROF_XXX directory: it holds neither host nor device_<id>")]
    NotProfile {
        /// The directory.
        path: PathBuf,
    },
    /// A control file or the ledger is not what it should be.
    #[error("{path} is damaged: {cause}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
}

/// Clocks as start_info, end_info and host_start.log give them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Wall clock, us since the epoch.
    pub wall_us: u64,
    /// CLOCK_MONOTONIC_RAW at that instant, ns.
    pub monotonic_ns: u64,
}

/// An opened PROF_XXX directory.
#[derive(Clone, Debug)]
pub struct Profile {
    root: PathBuf,
    entries: Vec<Entry>,
    sections: Vec<Section>,
    families: Vec<Family>,
    odd: OddNumbers,
}

impl Profile {
    /// Lists the directory. Fails if it cannot be read or holds neither host nor device; everything
    /// else that may be wrong is met later.
    pub fn open(path: &Path) -> Result<Profile, ReadError> {
        let entries = list(path)?;
        let mut sections = Vec::new();
        let mut odd = OddNumbers::default();
        for (place, entry) in places(&entries, &mut odd) {
            let dir = path.join(&entry.name);
            let inside = list(&dir)?;
            let has_data = inside
                .iter()
                .any(|e| e.name == "data" && e.kind == EntryKind::Directory);
            let data = if has_data {
                list(&dir.join("data"))?
            } else {
                Vec::new()
            };
            sections.push(Section {
                place,
                path: dir,
                entries: inside,
                data,
            });
        }
        if sections.is_empty() {
            return Err(ReadError::NotProfile {
                path: path.to_owned(),
            });
        }
        sections.sort_by_key(|section| match section.place {
            Place::Host => 0,
            Place::Device(device) => u64::from(device) + 1,
        });
        let families = sections
            .iter()
            .flat_map(|section| families_of(section, &mut odd));
        let families = families.collect();
        Ok(Profile {
            root: path.to_owned(),
            entries,
            sections,
            families,
            odd,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// What is directly in it.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Host and devices, the host first.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Host or one device.
    pub fn section(&self, place: Place) -> Option<&Section> {
        self.sections.iter().find(|section| section.place == place)
    }

    /// Numbers of the devices.
    pub fn devices(&self) -> impl Iterator<Item = u32> {
        self.sections
            .iter()
            .filter_map(|section| match section.place {
                Place::Host => None,
                Place::Device(device) => Some(device),
            })
    }

    /// All families, in the parser's order: per place, unaging before aging.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// Slices and devices that are left out since another one has the same number, such as `host/data/x.slice_00` beside
    /// `x.slice_0`; by their path in the directory.
    pub fn doubled(&self) -> &[String] {
        &self.odd.doubled
    }

    /// Slices and devices that are left out since their number is beyond 32 bits; by their path in the directory.
    pub fn overlong(&self) -> &[String] {
        &self.odd.overlong
    }

    /// Bytes of all data slices.
    pub fn bytes(&self) -> u64 {
        self.families.iter().map(Family::bytes).sum()
    }

    /// Api and event records of the host in the parser's order.
    pub fn api(&self) -> Records<ApiRecord> {
        self.records(Place::Host, |kind| *kind == Kind::Api)
    }

    /// Compact records of a type name.
    pub fn compact(&self, name: &str) -> Records<CompactRecord> {
        self.records(
            Place::Host,
            |kind| matches!(kind, Kind::Compact(n) if n == name),
        )
    }

    /// Additional records of a type name.
    pub fn additional(&self, name: &str) -> Records<AdditionalRecord> {
        self.records(
            Place::Host,
            |kind| matches!(kind, Kind::Additional(n) if n == name),
        )
    }

    /// A device's aicpu records.
    pub fn aicpu(&self, device: u32) -> Records<AdditionalRecord> {
        self.records(Place::Device(device), |kind| *kind == Kind::Aicpu)
    }

    /// Records of the families of a place that are wanted, by the family's name; for those that this module does not know.
    pub fn records_of<T>(&self, place: Place, wanted: impl Fn(&str) -> bool) -> Records<T> {
        let families = self.families.iter();
        let wanted = families.filter(|family| family.place == place && wanted(&family.name));
        let slices = wanted.flat_map(|family| family.slices.iter().map(|slice| slice.path.clone()));
        Records::new(slices.collect())
    }

    /// Opens a slice for reading; only a regular file, and not through a link.
    pub fn open_slice(&self, slice: &Slice) -> Result<File, ReadError> {
        open_file(&slice.path)
    }

    /// Records with a length of their own, of a type name.
    pub fn variable(&self, name: &str) -> VariableRecords {
        VariableRecords::new(self.slices(
            Place::Host,
            |kind| matches!(kind, Kind::Variable(n) if n == name),
        ))
    }

    fn records<T>(&self, place: Place, wanted: impl Fn(&Kind) -> bool) -> Records<T> {
        Records::new(self.slices(place, wanted))
    }

    fn slices(&self, place: Place, wanted: impl Fn(&Kind) -> bool) -> Vec<PathBuf> {
        self.families
            .iter()
            .filter(|family| family.place == place && wanted(&family.kind))
            .flat_map(|family| family.slices.iter().map(|slice| slice.path.clone()))
            .collect()
    }

    /// Names of (level, type) pairs.
    pub fn type_names(&self) -> Result<TypeNames, ReadError> {
        TypeNames::read(&self.slices(Place::Host, |kind| *kind == Kind::Types))
    }

    /// Strings by their id.
    pub fn hash_names(&self) -> Result<HashNames, ReadError> {
        HashNames::read(&self.slices(Place::Host, |kind| *kind == Kind::Hashes))
    }

    /// Text of a control file, `None` if there is none.
    pub fn control(&self, place: Place, control: Control) -> Result<Option<String>, ReadError> {
        let Some(section) = self.section(place) else {
            return Ok(None);
        };
        match section.candidates(control).next() {
            Some(entry) => read_text(&section.path.join(&entry.name), CONTROL_MAX).map(Some),
            None => Ok(None),
        }
    }

    /// The object in a JSON control file: its first line, as the parser reads it.
    pub fn control_json(
        &self,
        place: Place,
        control: Control,
    ) -> Result<Option<Map<String, Value>>, ReadError> {
        let Some(text) = self.control(place, control)? else {
            return Ok(None);
        };
        let line = text.lines().next().unwrap_or_default();
        serde_json::from_str(line)
            .map(Some)
            .map_err(|error| ReadError::Damaged {
                path: self.control_path(place, control),
                cause: format!("its first line is not a JSON object ({error})"),
            })
    }

    fn control_path(&self, place: Place, control: Control) -> PathBuf {
        let section = self.section(place);
        let path = section.and_then(|section| {
            let entry = section.candidates(control).next()?;
            Some(section.path.join(&entry.name))
        });
        path.unwrap_or_else(|| self.root.join(control.prefix()))
    }

    /// Clocks at the start, `None` if start_info is missing or damaged.
    pub fn start(&self, place: Place) -> Option<Times> {
        self.times(place, Control::StartInfo, "collectionTimeBegin")
    }

    /// Clocks at the stop; `None` as well for a capture that was never stopped.
    pub fn stop(&self, place: Place) -> Option<Times> {
        self.times(place, Control::EndInfo, "collectionTimeEnd")
    }

    fn times(&self, place: Place, control: Control, wall: &str) -> Option<Times> {
        let map = self.control_json(place, control).ok()??;
        let number = |key: &str| map.get(key)?.as_str()?.parse().ok();
        Some(Times {
            wall_us: number(wall)?,
            monotonic_ns: number("clockMonotonicRaw")?,
        })
    }

    /// Ticks of the host's records per us. 1000, that is nanoseconds, unless info.json names another
    /// frequency (spec 3 section 7).
    pub fn ticks_per_us(&self) -> f64 {
        const NANOSECONDS: f64 = 1000.0;
        let frequency = || {
            let map = self.control_json(Place::Host, Control::Info).ok()??;
            let cpu = map.get("CPU")?.as_array()?.first()?;
            cpu.get("Frequency")?.as_str()?.trim().parse::<f64>().ok()
        };
        match frequency() {
            Some(mhz) if mhz.is_finite() && mhz > 0.0 => mhz,
            _ => NANOSECONDS,
        }
    }

    /// The agent's own account, `None` in a directory of the stock collector.
    pub fn ledger(&self) -> Result<Option<Ledger>, ReadError> {
        let Some(entry) = self.entries.iter().find(|entry| entry.name == LEDGER_FILE) else {
            return Ok(None);
        };
        let path = self.root.join(&entry.name);
        let text = read_text(&path, LEDGER_MAX)?;
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| ReadError::Damaged {
                path,
                cause: error.to_string(),
            })
    }
}

/// Opens a regular file; not through a link, and without waiting for the writer of a pipe.
pub(super) fn open_file(path: &Path) -> Result<File, ReadError> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        });
    opened.map_err(|source| ReadError::Io {
        path: path.to_owned(),
        source,
    })
}

/// Text of a file of bounded size, lossy where it is not UTF-8.
pub(super) fn read_text(path: &Path, max: u64) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    open_file(path)?
        .take(max + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| ReadError::Io {
            path: path.to_owned(),
            source,
        })?;
    if bytes.len() as u64 > max {
        return Err(ReadError::Damaged {
            path: path.to_owned(),
            cause: format!("it is longer than {max} bytes"),
        });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
