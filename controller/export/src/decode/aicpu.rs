//! What a device's aicpu reports: operators that ran, queues, models (spec 3 section 6.3).

use super::device::DeviceClock;
use super::{Decoded, Headed, text};
use crate::source::Source;
use msprof_agent_core::records::AdditionalRecord;
use std::mem::{offset_of, size_of};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// One record of a device's aicpu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aicpu {
    /// An operator that ran.
    Node(AicpuNode),
    /// An element that was taken from a data queue.
    Data(DataQueue),
    /// A model with a queue.
    Model(QueueModel),
    /// A wait for a queue.
    Wait(QueueWait),
    /// Of a type that no export of ours shows, such as communication of kernels.
    Other(u32),
}

/// An operator that ran on an aicpu. Ticks are the device's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AicpuNode {
    /// Its stream as the record says it: high bits are flags.
    pub stream: u16,
    /// Its number within the stream.
    pub task: u16,
    /// Ticks; 0 where it is not known.
    pub begin: u64,
    /// Ticks; 0 where it is not known.
    pub end: u64,
    /// us at which it began to compute.
    pub compute_start: u64,
    /// us at which it began to copy.
    pub copy_start: u64,
    /// us at which it had copied.
    pub copy_end: u64,
    /// Ticks when it was submitted.
    pub submitted: u64,
    /// Ticks behind its run.
    pub after_run: u64,
    /// us that it took to be sent.
    pub dispatch_us: u32,
}

/// An element that was taken from a data queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataQueue {
    /// When, ns of the host's CLOCK_MONOTONIC_RAW.
    pub time_ns: u64,
    /// What happened, 16 bytes at most. Text of a file: may hold anything.
    pub action: String,
    /// Which queue, 64 bytes at most. Text of a file: may hold anything.
    pub source: String,
    /// Elements in the queue.
    pub size: u64,
}

/// A model with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueModel {
    /// When, as reported.
    pub time: u64,
    /// Number of the run.
    pub index: u64,
    /// The model.
    pub model: u32,
    /// What happened.
    pub tag: u16,
    /// Number of the event.
    pub event: u64,
}

/// A wait for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueWait {
    /// Who waited; 1 is the operator that takes the next element.
    pub node: u32,
    /// Elements in the queue.
    pub size: u64,
    /// us, of a clock of the device's own.
    pub begin_us: u64,
    /// us, of a clock of the device's own.
    pub end_us: u64,
}

/// From when to when something took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Of an operator, ticks of the device.
    Node(u64, u64),
    /// Of a wait for data, us of a clock that the device chooses.
    Wait(u64, u64),
}

impl Span {
    /// How long, ns.
    pub fn duration_ns(&self, clock: &DeviceClock) -> u64 {
        let (ticks, rate) = match *self {
            Span::Node(begin, end) => (end - begin, clock.ticks_per_us),
            Span::Wait(begin, end) => (end - begin, 1.0),
        };
        (ticks as f64 * 1000.0 / rate) as u64
    }
}

/// Times of an operator, in this record and in that of the old reporter interface.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
pub(super) struct NodeTimes {
    start_time: u64,
    begin: u64,
    compute_start: u64,
    copy_start: u64,
    copy_end: u64,
    end_time: u64,
    end: u64,
    thread: u32,
    device: u32,
    submitted: u64,
    scheduled: u64,
    before_run: u64,
    after_run: u64,
    kernel_kind: u32,
    dispatch_us: u32,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct NodeLayout {
    stream: u16,
    task: u16,
    reserved: u32,
    times: NodeTimes,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
pub(super) struct DataLayout {
    pub(super) action: [u8; 16],
    pub(super) source: [u8; 64],
    pub(super) index: u64,
    pub(super) size: u64,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct ModelLayout {
    index: u64,
    model: u32,
    tag: u16,
    reserved: u16,
    event: u64,
}

#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct WaitLayout {
    node: u32,
    reserved: u32,
    size: u64,
    begin_us: u64,
    end_us: u64,
}

const _: () = {
    // Offsets from the record's beginning are those of spec 3, with the head's 24 bytes before the payload.
    assert!(offset_of!(NodeLayout, times) + offset_of!(NodeTimes, begin) == 40 - 24);
    assert!(offset_of!(NodeLayout, times) + offset_of!(NodeTimes, end) == 80 - 24);
    assert!(offset_of!(NodeLayout, times) + offset_of!(NodeTimes, submitted) == 96 - 24);
    assert!(offset_of!(NodeLayout, times) + offset_of!(NodeTimes, after_run) == 120 - 24);
    assert!(offset_of!(NodeLayout, times) + offset_of!(NodeTimes, dispatch_us) == 132 - 24);
    assert!(offset_of!(DataLayout, size) == 112 - 24);
    assert!(offset_of!(ModelLayout, event) == 40 - 24);
    assert!(size_of::<WaitLayout>() == 56 - 24);
};

impl NodeTimes {
    pub(super) fn node(&self, stream: u16, task: u16) -> AicpuNode {
        AicpuNode {
            stream,
            task,
            begin: self.begin,
            end: self.end,
            compute_start: self.compute_start,
            copy_start: self.copy_start,
            copy_end: self.copy_end,
            submitted: self.submitted,
            after_run: self.after_run,
            dispatch_us: self.dispatch_us,
        }
    }
}

impl DataLayout {
    pub(super) fn queue(&self, time_ns: u64) -> DataQueue {
        DataQueue {
            time_ns,
            action: text(&self.action),
            source: text(&self.source),
            size: self.size,
        }
    }
}

impl Aicpu {
    /// Type of the record of an operator.
    pub const NODE: u32 = 0;
    /// That of an element of a data queue.
    pub const DATA: u32 = 1;
    /// That of a model.
    pub const MODEL: u32 = 2;
    /// That of a wait.
    pub const WAIT: u32 = 3;

    /// Type of its record.
    pub fn kind(&self) -> u32 {
        match self {
            Aicpu::Node(_) => Aicpu::NODE,
            Aicpu::Data(_) => Aicpu::DATA,
            Aicpu::Model(_) => Aicpu::MODEL,
            Aicpu::Wait(_) => Aicpu::WAIT,
            Aicpu::Other(kind) => *kind,
        }
    }

    /// What took time; `None` of what is a point in time or, as the parser has it, has no begin or no end.
    pub fn span(&self) -> Option<Span> {
        let is_whole = |begin: u64, end: u64| begin != 0 && end >= begin;
        match self {
            Aicpu::Node(node) => {
                is_whole(node.begin, node.end).then_some(Span::Node(node.begin, node.end))
            }
            Aicpu::Wait(wait) => is_whole(wait.begin_us, wait.end_us)
                .then_some(Span::Wait(wait.begin_us, wait.end_us)),
            _ => None,
        }
    }

    fn of(record: &AdditionalRecord) -> Option<Aicpu> {
        match record.head.kind {
            Aicpu::NODE => {
                let said: NodeLayout = record.read()?;
                Some(Aicpu::Node(said.times.node(said.stream, said.task)))
            }
            Aicpu::DATA => {
                let said: DataLayout = record.read()?;
                Some(Aicpu::Data(said.queue(record.head.time)))
            }
            Aicpu::MODEL => {
                let said: ModelLayout = record.read()?;
                Some(Aicpu::Model(QueueModel {
                    time: record.head.time,
                    index: said.index,
                    model: said.model,
                    tag: said.tag,
                    event: said.event,
                }))
            }
            Aicpu::WAIT => {
                let said: WaitLayout = record.read()?;
                Some(Aicpu::Wait(QueueWait {
                    node: said.node,
                    size: said.size,
                    begin_us: said.begin_us,
                    end_us: said.end_us,
                }))
            }
            other => Some(Aicpu::Other(other)),
        }
    }
}

impl Source {
    /// Records of a device's aicpu in the order of the files.
    pub(crate) fn aicpu(&self, device: u32) -> Decoded<AdditionalRecord, Aicpu> {
        Decoded::new(self.profile().aicpu(device), Aicpu::of)
    }
}
