//! Files of the old reporter interface: `DATA_PREPROCESS.*` (spec 3 sections 5.3 and 6.3).
//!
//! An old component names its files itself, so that they may lie in the host's directory, under device 64.

use super::aicpu::{AicpuNode, DataLayout, DataQueue, NodeTimes};
use crate::source::Source;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::{Family, ReadError};
use msprof_agent_core::records::MAGIC;
use std::io::{self, BufRead, BufReader, Read};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// First bytes of a record of an operator that ran on an aicpu.
const AICPU_TAG: u16 = 60;
/// First bytes of a record of a data queue.
const DATA_TAG: u16 = 100;
/// Bytes of a line of text that are looked at.
const LINE_MAX: u64 = 64 * 1024;

/// An operator that ran on an aicpu, 128 bytes.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct LegacyNode {
    magic: u16,
    tag: u16,
    stream: u16,
    task: u16,
    times: NodeTimes,
    rest: [u8; 8],
    reserved: u64,
}

/// An element that was taken from a data queue, 128 bytes.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct LegacyData {
    magic: u16,
    tag: u16,
    reserved: u32,
    time_ns: u64,
    data: DataLayout,
    rest: [u8; 16],
}

const _: () = {
    assert!(size_of::<LegacyNode>() == 128);
    assert!(size_of::<LegacyData>() == 128);
};

impl Source {
    /// Operators that ran on an aicpu, as the old interface reported them.
    pub(crate) fn legacy_aicpu(
        &self,
        place: Place,
    ) -> impl Iterator<Item = Result<AicpuNode, ReadError>> {
        let records = self
            .profile()
            .records_of::<LegacyNode>(place, |name| is_legacy(name, "AICPU"));
        records.filter_map(|record| match record {
            Ok(record) if record.magic == MAGIC && record.tag == AICPU_TAG => {
                Some(Ok(record.times.node(record.stream, record.task)))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }

    /// Elements that were taken from data queues, as the old interface reported them: in records, or in text.
    pub(crate) fn legacy_data(
        &self,
        place: Place,
    ) -> Box<dyn Iterator<Item = Result<DataQueue, ReadError>> + '_> {
        let records = self
            .profile()
            .records_of::<LegacyData>(place, |name| is_legacy(name, "DP"));
        let mut records = records.peekable();
        let binary = |record: &LegacyData| record.magic == MAGIC && record.tag == DATA_TAG;
        if records
            .peek()
            .is_some_and(|first| first.as_ref().is_ok_and(binary))
        {
            return Box::new(records.filter_map(move |record| match record {
                Ok(record) if binary(&record) => Some(Ok(record.data.queue(record.time_ns))),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            }));
        }
        Box::new(
            self.legacy_lines(place, "DP")
                .filter_map(|line| match line {
                    Ok(line) => of_text(&line).map(Ok),
                    Err(error) => Some(Err(error)),
                }),
        )
    }

    /// Waits for data queues, as the old interface reported them.
    pub(crate) fn legacy_waits(
        &self,
        place: Place,
    ) -> impl Iterator<Item = Result<LegacyWait, ReadError>> + '_ {
        let lines = self.legacy_lines(place, "AICPUMI");
        lines.filter_map(|line| match line {
            Ok(line) => LegacyWait::of_text(&line).map(Ok),
            Err(error) => Some(Err(error)),
        })
    }

    /// Lines of text of a tag.
    fn legacy_lines(
        &self,
        place: Place,
        tag: &'static str,
    ) -> impl Iterator<Item = Result<String, ReadError>> + '_ {
        let families = self.legacy_families(place, tag);
        let slices = families.flat_map(|family| &family.slices);
        slices.flat_map(|slice| {
            let path = slice.path.clone();
            let (lines, failed) = match self.profile().open_slice(slice) {
                Ok(file) => (Some(Lines::new(file)), None),
                Err(error) => (None, Some(Err(error))),
            };
            let lines = lines.into_iter().flatten();
            let read = lines.map(move |line| {
                line.map_err(|source| ReadError::Io {
                    path: path.clone(),
                    source,
                })
            });
            failed.into_iter().chain(read)
        })
    }

    fn legacy_families(&self, place: Place, tag: &str) -> impl Iterator<Item = &Family> {
        let families = self.profile().families().iter();
        families.filter(move |family| family.place == place && is_legacy(&family.name, tag))
    }
}

/// `DATA_PREPROCESS.<tag>.<device>` or `DATA_PREPROCESS.dev.<tag>.<device>`.
fn is_legacy(family: &str, tag: &str) -> bool {
    let Some(rest) = family.strip_prefix("DATA_PREPROCESS.") else {
        return false;
    };
    let rest = rest.strip_prefix("dev.").unwrap_or(rest);
    let device = rest
        .strip_prefix(tag)
        .and_then(|rest| rest.strip_prefix('.'));
    device.is_some_and(|device| {
        !device.is_empty() && device.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A wait for a data queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyWait {
    /// Who waited. Text of a file: may hold anything.
    pub node: String,
    /// Elements in the queue.
    pub size: u64,
    /// us, of a clock of the device's own.
    pub begin_us: u64,
    /// us, of a clock of the device's own.
    pub end_us: u64,
}

impl LegacyWait {
    /// Four fields with a name each: the node, the queue's size, begin and end.
    fn of_text(line: &str) -> Option<LegacyWait> {
        let mut values = line.split([':', ',']).skip(1).step_by(2);
        let number = |text: Option<&str>| text?.trim().parse().ok();
        let node = values.next()?.to_owned();
        Some(LegacyWait {
            node,
            size: number(values.next())?,
            begin_us: number(values.next())?,
            end_us: number(values.next())?,
        })
    }
}

/// `[<ns>] Last queue dequeue, source:<s>, index:<i>, size:<n>`; no other line counts.
fn of_text(line: &str) -> Option<DataQueue> {
    if !line.contains("Last queue dequeue") {
        return None;
    }
    let (begin, rest) = line.split_once(',')?;
    let (time, action) = begin.trim_start_matches('[').split_once(']')?;
    let field = |key: &str| {
        let fields = rest.split(',').map(str::trim);
        let mut found =
            fields.filter_map(|field| field.split_once(':').filter(|(name, _)| *name == key));
        found.next().map(|(_, value)| value.trim().to_owned())
    };
    Some(DataQueue {
        time_ns: time.trim().parse().ok()?,
        action: action.trim().to_owned(),
        source: field("source")?,
        size: field("size")?.parse().ok()?,
    })
}

/// Lines that end with a NUL, of bounded length.
struct Lines<R>(BufReader<R>);

impl<R: Read> Lines<R> {
    fn new(file: R) -> Lines<R> {
        Lines(BufReader::new(file))
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.0.by_ref().take(LINE_MAX).read_until(0, &mut line) {
            Ok(0) => None,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                Some(Ok(text.trim_end_matches(['\0', '\n']).to_owned()))
            }
            Err(error) => Some(Err(error)),
        }
    }
}
