//! Which records the parser can read: a single one that it cannot makes it drop the whole family.

use crate::records::{ApiRecord, HEAD_SIZE, MAGIC, RecordHead, RecordSize, Trace, level};
use zerocopy::FromBytes;

/// Types of aicpu records that the parser has a layout for (spec 3 section 6.3). One of another type costs it all
/// records of the device's CPU.
fn is_aicpu_type(kind: u32) -> bool {
    matches!(kind, 0..=5 | 10..=13)
}

/// The trace of a record that the parser can read.
///
/// # Safety
/// `record` is valid for reads of a record of `size`.
#[inline(always)]
pub(crate) unsafe fn readable(size: RecordSize, record: *const u8) -> Option<Trace> {
    // SAFETY: every record begins with 24 bytes of this layout or longer; callers need not align theirs.
    let head = unsafe { record.cast::<RecordHead>().read_unaligned() };
    // SAFETY: an api record has 40 bytes, with the end at this place.
    let end = (size == RecordSize::Api).then(|| unsafe {
        let end = record.add(std::mem::offset_of!(ApiRecord, end));
        end.cast::<u64>().read_unaligned()
    });
    let trace = classify(&head, end)?;
    let lies = match size {
        // The parser puts the item of an event into a database as it is, and loses all calls with it.
        RecordSize::Api if end == Some(ApiRecord::EVENT_END) => {
            const ITEM: &[usize] = &[std::mem::offset_of!(ApiRecord, item_id)];
            // SAFETY: an api record has 40 bytes, with the item at this place.
            !unsafe { fit(record, ITEM) }
        }
        RecordSize::Api => false,
        // SAFETY: the offsets lie inside the record.
        RecordSize::Compact => !unsafe { fit(record, compact_numbers(&head)) },
        // SAFETY: an additional record has 256 bytes.
        RecordSize::Additional => unsafe { misleads(&head, record) },
    };
    (!lies).then_some(trace)
}

/// Whether the parser can read a record that came from a device, whole and with the head of an aicpu record.
pub(crate) fn is_readable_of_device(record: &[u8; RecordSize::Additional.bytes()]) -> bool {
    // SAFETY: as many bytes as an additional record has.
    unsafe { readable(RecordSize::Additional, record.as_ptr()) }.is_some()
}

/// The trace of a record that is longer than the fixed ones, if the parser can read it.
pub(crate) fn readable_long(record: &[u8]) -> Option<Trace> {
    let (head, payload) = RecordHead::read_from_prefix(record).ok()?;
    let trace = classify(&head, None)?;
    // All are of one family to the parser, operators of a recorded graph, and have their count at the same place.
    let counted = payload.get(CAPTURED_TENSORS - HEAD_SIZE..)?;
    let (count, tensors) = counted.split_first_chunk::<4>()?;
    let room = tensors.len() / TENSOR_SIZE;
    (u32::from_le_bytes(*count) as usize <= room).then_some(trace)
}

/// The trace of a record that the parser can read: it drops the whole family for one of another magic or
/// level, and everything for a time that does not fit a signed number (spec 3 section 9). `end` is that of
/// an api or event record.
#[inline]
fn classify(head: &RecordHead, end: Option<u64>) -> Option<Trace> {
    let fits = |time: u64| time <= i64::MAX as u64;
    // In an api record the begin lies where others have their time.
    let readable = head.magic == MAGIC
        && fits(head.time)
        && end.is_none_or(|end| fits(end) || end == ApiRecord::EVENT_END);
    readable
        .then(|| Trace::of(head.level, end.is_some()))
        .flatten()
}

/// Offset of the number of tensors in a record of a captured operator, and bytes of a tensor.
const CAPTURED_TENSORS: usize = 84;
const TENSOR_SIZE: usize = 44;

/// Where an additional record says how many entries it has, and up to how many the parser finds there: it loops over
/// as many as the record claims (spec 3 section 6.3). Of types whose numbers are fixed.
#[inline]
fn counted(head: &RecordHead) -> Option<(usize, u32)> {
    match (head.level, head.kind) {
        // tensor_info
        (level::NODE, 1) => Some((32, 5)),
        // fusion_op_info: 8, and the parser passes over what lies behind them.
        (level::NODE, 2) => Some((32, 37)),
        // context_id_info
        (level::NODE | level::HCCL, 4) => Some((32, 55)),
        // logic_stream_info
        (level::MODEL, 7) => Some((28, 56)),
        // capture_op_info; the last one of four is cut short.
        (level::RUNTIME, 805) => Some((CAPTURED_TENSORS, 4)),
        _ => None,
    }
}

/// Where an additional record has numbers that the parser puts into a database as they are: signed ones.
#[inline]
fn numbers(head: &RecordHead) -> &'static [usize] {
    match (head.level, head.kind) {
        // Of the AICPU: index and size of data preprocessing; index and event of a model; size, begin and end of a
        // data queue.
        (level::AICPU, 1) => &[104, 112],
        (level::AICPU, 2) => &[24, 40],
        (level::AICPU, 3) => &[32, 40, 48],
        // task_memory_info: address, and what is allocated and reserved.
        (level::NODE, 6) => &[24, 48, 56],
        // static_op_mem: life, and what is allocated.
        (level::NODE, 11) => &[40, 48, 56],
        _ => &[],
    }
}

/// The same of a compact record.
#[inline]
fn compact_numbers(head: &RecordHead) -> &'static [usize] {
    match (head.level, head.kind) {
        // memcpy_info: size, and the largest.
        (level::RUNTIME, 801) => &[24, 32],
        _ => &[],
    }
}

/// Whether the numbers at these places are no larger than a signed one can be.
///
/// # Safety
/// `record` is valid for reads of 8 bytes at each of `offsets`.
#[inline]
unsafe fn fit(record: *const u8, offsets: &[usize]) -> bool {
    offsets.iter().all(|&offset| {
        // SAFETY: the caller's contract.
        let number = unsafe { record.add(offset).cast::<u64>().read_unaligned() };
        i64::try_from(number).is_ok()
    })
}

/// Whether an additional record claims more entries than it has room for, or is of a type without a layout.
///
/// # Safety
/// `record` is valid for reads of 256 bytes.
#[inline]
unsafe fn misleads(head: &RecordHead, record: *const u8) -> bool {
    let is_of_no_type = head.level == level::AICPU && !is_aicpu_type(head.kind);
    // SAFETY: the offsets lie inside the record.
    if is_of_no_type || !unsafe { fit(record, numbers(head)) } {
        return true;
    }
    counted(head).is_some_and(|(offset, most)| {
        // SAFETY: the offsets lie inside the record.
        let count = unsafe { record.add(offset).cast::<u32>().read_unaligned() };
        count > most
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(level: u16, kind: u32, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        bytes[..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2..4].copy_from_slice(&level.to_le_bytes());
        bytes[4..8].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    fn is_readable(bytes: &[u8]) -> bool {
        assert_eq!(bytes.len(), 256);
        // SAFETY: as many bytes as an additional record has.
        unsafe { readable(RecordSize::Additional, bytes.as_ptr()) }.is_some()
    }

    #[test]
    fn a_record_may_claim_as_many_entries_as_the_parser_finds_in_it() {
        let kinds = [
            (level::NODE, 1, 32, 5),
            (level::NODE, 2, 32, 37),
            (level::NODE, 4, 32, 55),
            (level::HCCL, 4, 32, 55),
            (level::MODEL, 7, 28, 56),
            (level::RUNTIME, 805, 84, 4),
        ];
        for (level, kind, offset, most) in kinds {
            for (count, expected) in [
                (0, true),
                (most, true),
                (most + 1, false),
                (u32::MAX, false),
            ] {
                let mut bytes = record(level, kind, 256);
                bytes[offset..offset + 4].copy_from_slice(&count.to_le_bytes());
                assert_eq!(is_readable(&bytes), expected, "{count} of {level} {kind}");
                // The same numbers mean nothing elsewhere.
                bytes[4..8].copy_from_slice(&99u32.to_le_bytes());
                assert!(is_readable(&bytes));
            }
        }
    }

    #[test]
    fn an_aicpu_record_is_readable_by_its_type() {
        let known = |kind| is_readable(&record(level::AICPU, kind, 256));
        let readable: Vec<u32> = (0..20).filter(|&kind| known(kind)).collect();
        assert_eq!(readable, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13]);
        assert!(!known(u32::MAX));
    }

    #[test]
    fn an_event_has_no_item_that_a_database_cannot_hold_and_a_call_may() {
        let is_readable = |end: u64, item: u64| {
            let mut bytes = record(level::MODEL, 1, 40);
            bytes[24..32].copy_from_slice(&end.to_le_bytes());
            bytes[32..40].copy_from_slice(&item.to_le_bytes());
            // SAFETY: as many bytes as an api record has.
            unsafe { readable(RecordSize::Api, bytes.as_ptr()) }.is_some()
        };
        assert!(is_readable(u64::MAX, i64::MAX as u64));
        assert!(!is_readable(u64::MAX, 1 << 63));
        assert!(is_readable(7, u64::MAX));
    }

    #[test]
    fn a_copy_has_no_size_that_a_database_cannot_hold() {
        for offset in [24, 32] {
            let mut bytes = record(level::RUNTIME, 801, 64);
            // SAFETY: as many bytes as a compact record has.
            let is_readable =
                |bytes: &[u8]| unsafe { readable(RecordSize::Compact, bytes.as_ptr()) };
            assert!(is_readable(&bytes).is_some());
            bytes[offset..offset + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            assert!(is_readable(&bytes).is_none());
        }
    }

    #[test]
    fn an_additional_record_has_no_number_that_a_database_cannot_hold() {
        for (level, kind, offsets) in [
            (level::AICPU, 1, &[104, 112][..]),
            (level::AICPU, 2, &[24, 40]),
            (level::AICPU, 3, &[32, 40, 48]),
            (level::NODE, 6, &[24, 48, 56]),
            (level::NODE, 11, &[40, 48, 56]),
        ] {
            for &offset in offsets {
                let mut bytes = record(level, kind, 256);
                bytes[offset..offset + 8].copy_from_slice(&i64::MAX.to_le_bytes());
                assert!(is_readable(&bytes), "{kind} at {offset}");
                bytes[offset..offset + 8].copy_from_slice(&(1u64 << 63).to_le_bytes());
                assert!(!is_readable(&bytes), "{kind} at {offset}");
            }
        }
    }

    #[test]
    fn a_long_record_has_as_many_tensors_as_it_says() {
        for (len, count, expected) in [
            (257, 0, true),
            (88 + 5 * 44, 5, true),
            (88 + 5 * 44, 6, false),
            (88 + 5 * 44 - 1, 5, false),
            (1000, u32::MAX, false),
        ] {
            let mut bytes = record(level::RUNTIME, 805, len);
            bytes[84..88].copy_from_slice(&u32::to_le_bytes(count));
            let trace = readable_long(&bytes);
            assert_eq!(trace, expected.then_some(Trace::Task), "{count} in {len}");
        }
        assert_eq!(readable_long(&record(4500, 805, 300)), None);
    }
}
