//! When tasks ran on a device: the log of its task scheduler, of devices whose platform is 5 (spec 3 section 6.3).

use crate::source::Source;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::{ReadError, Records};
use std::mem::{offset_of, size_of};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Mark of a record of the log.
const MAGIC: u16 = 0x6BD3;
/// Beginning of the files of the log.
const LOGS: &str = "stars_soc.";
/// Beginning of the files in which the scheduler says what else it does.
const TRACKS: &str = "ts_track.";
/// Kind of the record that says that a stream's numbers begin anew.
const FLIP: u8 = 0x0E;

/// A task, or a part of one, starts or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLog {
    /// Ticks of the device.
    pub time: u64,
    /// Its stream.
    pub stream: u16,
    /// Its number within stream and batch.
    pub task: u16,
    /// Number of the part; `None` of a whole task.
    pub part: Option<u16>,
    /// What runs it, by a number of its own for tasks and for parts.
    pub kind: u8,
    /// Whether it ends.
    pub is_end: bool,
}

/// A stream's numbers begin anew on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFlip {
    /// Ticks of the device.
    pub time: u64,
    /// Its stream.
    pub stream: u16,
    /// Number of the first task behind it; all ones at the stream's end.
    pub task: u16,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct LogLayout {
    /// Kind of the record in the low 6 bits, of the task in the high ones.
    kinds: U16,
    magic: U16,
    stream: U16,
    task: U16,
    time: U64,
    part_kind: u8,
    reserved: u8,
    part: U16,
    rest: [u8; 44],
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct TrackLayout {
    reserved: u8,
    kind: u8,
    more: [u8; 6],
    time: U64,
    /// In the low 11 bits.
    stream: U16,
    batch: U16,
    other: U16,
    task: U16,
    rest: [u8; 16],
}

const _: () = {
    assert!(size_of::<LogLayout>() == 64);
    assert!(offset_of!(LogLayout, part) == 18);
    assert!(size_of::<TrackLayout>() == 40);
    assert!(offset_of!(TrackLayout, task) == 22);
};

impl TaskLog {
    fn of(said: &LogLayout, wide: bool) -> Option<TaskLog> {
        if said.magic.get() != MAGIC {
            return None;
        }
        let kinds = said.kinds.get();
        let (is_part, is_end) = match kinds & 0x3F {
            0b00_0000 => (false, false),
            0b00_0001 => (false, true),
            0b10_0010 => (true, false),
            0b10_0011 => (true, true),
            _ => return None,
        };
        let kind = (kinds >> 10) as u8;
        let (stream, task) = place(said.stream.get(), said.task.get(), wide, kind);
        Some(TaskLog {
            time: said.time.get(),
            stream,
            task,
            part: is_part.then(|| said.part.get()),
            kind: match is_part {
                true => said.part_kind,
                false => kind,
            },
            is_end,
        })
    }
}

/// Stream and number of a task, which share their bits in ways that the high ones tell.
fn place(stream: u16, task: u16, wide: bool, kind: u8) -> (u16, u16) {
    const PLACE_HOLDER: u8 = 3;
    const EVENT_RECORD: u8 = 4;
    if wide {
        let plain = matches!(kind, PLACE_HOLDER | EVENT_RECORD) || stream & 0x8000 == 0;
        return match plain {
            true => (stream & 0x7FFF, task),
            false => (task & 0x7FFF, (task & 0x8000) | (stream & 0x7FFF)),
        };
    }
    if stream & 0x1000 != 0 {
        (stream & 0x7FF, (task & 0x1FFF) | (stream & 0xE000))
    } else if stream & 0x2000 != 0 {
        (task & 0x7FF, (stream & 0x0FFF) | (task & 0xF000))
    } else {
        (stream & 0x7FF, task)
    }
}

/// Iterator over the records of a kind; what is none of them is passed over.
#[derive(Debug)]
struct Logs<R, T> {
    records: Records<R>,
    wide: bool,
    decode: fn(&R, bool) -> Option<T>,
}

impl<R: FromBytes, T> Iterator for Logs<R, T> {
    type Item = Result<T, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.records.next()? {
                Ok(record) => {
                    if let Some(said) = (self.decode)(&record, self.wide) {
                        return Some(Ok(said));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Source {
    /// Whether a device has a log of tasks.
    pub(crate) fn has_task_logs(&self, device: u32) -> bool {
        let place = Place::Device(device);
        let mut families = self.profile().families().iter();
        families.any(|family| family.place == place && family.name.starts_with(LOGS))
    }

    /// Starts and ends of tasks in the order of the files; `wide` as the host says of its streams.
    pub(crate) fn task_logs(
        &self,
        device: u32,
        wide: bool,
    ) -> impl Iterator<Item = Result<TaskLog, ReadError>> {
        let place = Place::Device(device);
        Logs {
            records: self
                .profile()
                .records_of(place, |name| name.starts_with(LOGS)),
            wide,
            decode: TaskLog::of,
        }
    }

    /// When numbers of streams begin anew, in the order of the files.
    pub(crate) fn device_flips(
        &self,
        device: u32,
    ) -> impl Iterator<Item = Result<DeviceFlip, ReadError>> {
        let place = Place::Device(device);
        Logs {
            records: self
                .profile()
                .records_of(place, |name| name.starts_with(TRACKS)),
            wide: false,
            decode: |said: &TrackLayout, _| {
                (said.kind == FLIP).then(|| DeviceFlip {
                    time: said.time.get(),
                    stream: said.stream.get() & 0x7FF,
                    task: said.task.get(),
                })
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_and_number_share_their_bits_as_the_high_ones_say() {
        assert_eq!(place(5, 20, false, 0), (5, 20));
        assert_eq!(place(0xB005, 0xE014, false, 0), (5, 0xA014));
        assert_eq!(place(0x2014, 0x3005, false, 0), (5, 0x3014));
        assert_eq!(place(0x8014, 0x8005, true, 0), (5, 0x8014));
        assert_eq!(place(0x8014, 0x8005, true, 3), (0x14, 0x8005));
        assert_eq!(place(0x0014, 0x8005, true, 0), (0x14, 0x8005));
    }
}
