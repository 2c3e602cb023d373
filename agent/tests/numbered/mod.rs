//! Threads that report numbered records, and a check that finds every number again.
//!
//! A record says in its own bytes which thread made it in which capture, through which ring, and which
//! number it has among that thread's records of that ring; the rest of it follows from these, so that a
//! torn one shows. The check knows of each report whether it had returned when the stop was asked for
//! (then it must be accounted for) or was under way (then it may be).
#![allow(dead_code)] // each of its two users does without some of it

mod check;
mod reporter;
mod stamp;

pub use check::{Ended, Fate, check};
pub use reporter::{Burst, Door, LongReports, Reporter};

use msprof_agent_core::records::{RecordSize, level};

/// Size, level and type of records that a burst may be of: every trace, families with and without a
/// name, and one of a device.
pub const CLASSES: [(RecordSize, u16, u32); 11] = [
    (RecordSize::Api, level::RUNTIME, 1),
    (RecordSize::Api, level::MODEL, 2),
    (RecordSize::Api, level::AICPU, 3),
    (RecordSize::Api, level::ACL, 4),
    (RecordSize::Api, level::NODE, 5),
    (RecordSize::Compact, level::NODE, 1),
    (RecordSize::Compact, level::RUNTIME, 2),
    (RecordSize::Compact, level::AICPU, 3),
    (RecordSize::Additional, level::NODE, 1),
    (RecordSize::Additional, level::HCCL, 2),
    (RecordSize::Additional, level::AICPU, 1),
];
