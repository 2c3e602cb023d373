//! A record that says in its own bytes who made it.

use msprof_agent_core::gate::Word;
use msprof_agent_core::lanes::{Dropped, Lanes, RingKey};
use msprof_agent_core::records::{
    AdditionalRecord, ApiRecord, CompactRecord, MAGIC, RecordHead, RecordSize, Trace,
};
use zerocopy::{FromBytes, IntoBytes};

/// What a record is about: all that its bytes are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) thread: u32,
    pub(super) ring: u32,
    pub(super) capture: u64,
    pub(super) number: u64,
    pub(super) level: u16,
    pub(super) kind: u32,
}

impl Stamp {
    pub(super) fn trace(&self) -> Trace {
        let is_api = RingKey::of(self.ring as usize).size == RecordSize::Api;
        Trace::of(self.level, is_api).expect("a level that is read")
    }

    fn mixed(&self) -> u64 {
        self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(self.thread) ^ self.capture
    }

    pub(super) fn head(&self, data_len: usize) -> RecordHead {
        RecordHead {
            magic: MAGIC,
            level: self.level,
            kind: self.kind,
            thread_id: self.thread,
            data_len: data_len as u32,
            time: self.number,
        }
    }

    pub(super) fn fill(&self, payload: &mut [u8]) {
        for word in payload.chunks_exact_mut(8) {
            word.copy_from_slice(&self.mixed().to_le_bytes());
        }
        payload[..8].copy_from_slice(&self.capture.to_le_bytes());
        payload[8..12].copy_from_slice(&self.ring.to_le_bytes());
    }

    fn api(&self) -> ApiRecord {
        ApiRecord {
            magic: MAGIC,
            level: self.level,
            kind: self.kind,
            thread_id: self.thread,
            request_id: self.ring,
            begin: self.capture,
            end: self.capture + (self.mixed() >> 2),
            item_id: self.number,
        }
    }

    fn compact(&self) -> CompactRecord {
        let mut payload = [0; 40];
        self.fill(&mut payload);
        CompactRecord {
            head: self.head(payload.len()),
            payload,
        }
    }

    fn additional(&self) -> AdditionalRecord {
        let mut payload = [0; 232];
        self.fill(&mut payload);
        AdditionalRecord {
            head: self.head(payload.len()),
            payload,
        }
    }

    pub(super) fn push(&self, lanes: &Lanes, word: Word) -> Result<(), Dropped> {
        let key = RingKey::of(self.ring as usize);
        let trace = self.trace();
        // SAFETY: each record is a local of its ring's size.
        unsafe {
            match key.size {
                RecordSize::Api => {
                    lanes.push::<40>(word, key, trace, self.api().as_bytes().as_ptr())
                }
                RecordSize::Compact => {
                    lanes.push::<64>(word, key, trace, self.compact().as_bytes().as_ptr())
                }
                RecordSize::Additional => {
                    lanes.push::<256>(word, key, trace, self.additional().as_bytes().as_ptr())
                }
            }
        }
    }

    /// What the bytes of a record say, all of which must fit together.
    pub(super) fn of(bytes: &[u8]) -> Stamp {
        let whole = |head: &RecordHead, payload: &[u8]| Stamp {
            thread: head.thread_id,
            ring: u32::from_le_bytes(payload[8..12].try_into().expect("4 bytes")),
            capture: u64::from_le_bytes(payload[..8].try_into().expect("8 bytes")),
            number: head.time,
            level: head.level,
            kind: head.kind,
        };
        let (stamp, again) = match bytes.len() {
            40 => {
                let record = ApiRecord::read_from_bytes(bytes).expect("40 bytes");
                let stamp = Stamp {
                    thread: record.thread_id,
                    ring: record.request_id,
                    capture: record.begin,
                    number: record.item_id,
                    level: record.level,
                    kind: record.kind,
                };
                (stamp, stamp.api().as_bytes().to_vec())
            }
            64 => {
                let record = CompactRecord::read_from_bytes(bytes).expect("64 bytes");
                let stamp = whole(&record.head, &record.payload);
                (stamp, stamp.compact().as_bytes().to_vec())
            }
            _ => {
                let record = AdditionalRecord::read_from_bytes(bytes).expect("256 bytes");
                let stamp = whole(&record.head, &record.payload);
                (stamp, stamp.additional().as_bytes().to_vec())
            }
        };
        assert_eq!(bytes, again, "torn record {stamp:?}");
        stamp
    }
}
