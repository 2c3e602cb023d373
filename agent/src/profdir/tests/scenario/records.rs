//! Single records, put together field by field at offsets from their start (spec 3 section 6).

use super::super::START_NS;
use crate::records::{ApiRecord, MAGIC, RecordHead, VARIABLE_MAX, level};
use zerocopy::IntoBytes;

/// The process's main thread and a second one.
pub(super) const MAIN: u32 = 4321;
pub(super) const SECOND: u32 = 4400;

/// A record being put together field by field at offsets from its start (spec 3 section 6).
pub(super) struct Record(pub(super) Vec<u8>);

impl Record {
    pub(super) fn new(size: usize, lvl: u16, kind: u32, micros: u64, used: u32) -> Record {
        let head = RecordHead {
            magic: MAGIC,
            level: lvl,
            kind,
            thread_id: MAIN,
            data_len: used,
            time: at(micros),
        };
        let mut bytes = vec![0; size];
        bytes[..head.as_bytes().len()].copy_from_slice(head.as_bytes());
        Record(bytes)
    }

    pub(super) fn compact(lvl: u16, kind: u32, micros: u64) -> Record {
        Record::new(64, lvl, kind, micros, 40)
    }

    pub(super) fn additional(lvl: u16, kind: u32, micros: u64) -> Record {
        Record::new(256, lvl, kind, micros, 232)
    }

    pub(super) fn bytes(mut self, offset: usize, value: &[u8]) -> Record {
        self.0[offset..offset + value.len()].copy_from_slice(value);
        self
    }

    pub(super) fn u16(self, offset: usize, value: u16) -> Record {
        self.bytes(offset, &value.to_le_bytes())
    }

    pub(super) fn u32(self, offset: usize, value: u32) -> Record {
        self.bytes(offset, &value.to_le_bytes())
    }

    pub(super) fn u64(self, offset: usize, value: u64) -> Record {
        self.bytes(offset, &value.to_le_bytes())
    }

    pub(super) fn text(self, offset: usize, value: &str) -> Record {
        self.bytes(offset, value.as_bytes())
    }
}

/// Ticks at this many us after the start.
pub(super) fn at(micros: u64) -> u64 {
    START_NS + micros * 1_000
}

pub(super) fn api_call(lvl: u16, kind: u32, from: u64, to: u64, item_id: u64) -> Vec<u8> {
    ApiRecord {
        magic: MAGIC,
        level: lvl,
        kind,
        thread_id: MAIN,
        request_id: 0,
        begin: at(from),
        end: at(to),
        item_id,
    }
    .as_bytes()
    .to_vec()
}

pub(super) fn event(lvl: u16, kind: u32, micros: u64, request_id: u32, item_id: u64) -> Vec<u8> {
    ApiRecord {
        magic: MAGIC,
        level: lvl,
        kind,
        thread_id: SECOND,
        request_id,
        begin: at(micros),
        end: ApiRecord::EVENT_END,
        item_id,
    }
    .as_bytes()
    .to_vec()
}

pub(super) fn memory(micros: u64, size: i64, total: u64) -> Vec<u8> {
    Record::additional(level::NODE, 6, micros)
        .u64(24, 0x1000)
        .u64(32, size as u64)
        .u64(40, 101)
        .u64(48, total)
        .u64(56, 65_536)
        .u32(68, 20)
        .0
}

pub(super) fn mark(from: u64, to: u64, kind: u32, message: &str) -> Vec<u8> {
    Record::additional(level::TX, 0, from)
        .u32(36, MAIN)
        .u32(40, MAIN)
        .u32(44, 7)
        .u32(48, kind)
        .u64(64, at(from))
        .u64(72, at(to))
        .text(100, message)
        .0
}

/// An operator of a captured graph with tensors, 44 bytes each.
pub(super) fn variable(tensors: u32) -> Vec<u8> {
    let size = 88 + tensors as usize * 44;
    assert!(size <= VARIABLE_MAX);
    Record::new(size, level::RUNTIME, 805, 8_000, size as u32 - 24)
        .u64(48, 101)
        .u32(84, tensors)
        .0
}

pub(super) fn aicpu(kind: u32, micros: u64) -> Record {
    Record::additional(level::AICPU, kind, micros)
}

/// One line of the device's task scheduler log.
pub(super) fn task_log(end: u16, kind: u16, stream: u16, task: u16, micros: u64) -> Vec<u8> {
    Record(vec![0; 64])
        .u16(0, end | kind << 10)
        .u16(2, 0x6BD3)
        .u16(4, stream)
        .u16(6, task)
        .u64(8, at(micros))
        .0
}
