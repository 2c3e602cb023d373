//! Reports: records of 40, 64 and 256 bytes and longer.
//!
//! Nearly every record goes the quick way, which cannot panic; the rest goes through the panic boundary,
//! in functions of their own so that the quick way saves no registers for it.

use crate::boundary::guard;
use crate::profile_callback;
use crate::stock::pass_on;
use crate::types::{MsprofApi, MsprofEvent};
use msprof_agent_core::diverted::ReportKind;
use msprof_agent_core::gate::{self, Word};
use msprof_agent_core::records::RecordSize;
use msprof_agent_core::report;
use std::ffi::c_void;

/// Reports an api call with its begin and end. `aging` is 1 for a record that may be deleted to keep
/// the storage limit. Returns 0; -1 for a null pointer or a wrong magic while capturing. A record that
/// finds its thread's buffer full is dropped and counted, and 0 is returned.
///
/// # Safety
/// `api` is null or points to a record.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofReportApi(aging: u32, api: *const MsprofApi) -> i32 {
    let word = gate::load();
    // SAFETY: a record has 40 bytes.
    if word == Word::OFF || unsafe { report::quick::<40>(word, RecordSize::Api, aging, api.cast()) }
    {
        return report::SUCCESS;
    }
    // SAFETY: by this function's contract.
    unsafe { api_slowly(aging, api) }
}

#[inline(never)]
unsafe extern "C-unwind" fn api_slowly(aging: u32, api: *const MsprofApi) -> i32 {
    let word = gate::load();
    if !word.is_capture() {
        pass_on!(MsprofReportApi(aging, api));
    }
    if word.is_shared() {
        // SAFETY: by this function's contract.
        let taken = unsafe { profile_callback::take_api(word, aging, api) };
        if let Some(result) = taken {
            return result;
        }
    }
    // SAFETY: a record has 40 bytes.
    guard(|| unsafe { report::api(aging, api.cast()) })
}

/// Reports an event, one point in time; the flag that tells it from an api record is set here. Otherwise
/// as MsprofReportApi.
///
/// # Safety
/// `event` is null or points to a record.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofReportEvent(aging: u32, event: *const MsprofEvent) -> i32 {
    let word = gate::load();
    if word == Word::OFF {
        return report::SUCCESS;
    }
    if !word.is_capture() {
        pass_on!(MsprofReportEvent(aging, event));
    }
    if word.is_shared() {
        // SAFETY: by this function's contract.
        if let Some(result) = unsafe { profile_callback::take_event(word, aging, event) } {
            return result;
        }
    }
    // SAFETY: a record has 40 bytes.
    guard(|| unsafe { report::event(aging, event.cast()) })
}

/// Reports a compact record; `len` must be 64. Otherwise as MsprofReportApi.
///
/// # Safety
/// `data` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofReportCompactInfo(
    aging: u32,
    data: *const c_void,
    len: u32,
) -> i32 {
    let word = gate::load();
    let quick = || {
        // SAFETY: by this function's contract.
        len == 64 && unsafe { report::quick::<64>(word, RecordSize::Compact, aging, data.cast()) }
    };
    if word == Word::OFF || quick() {
        return report::SUCCESS;
    }
    // SAFETY: by this function's contract.
    unsafe { compact_slowly(aging, data, len) }
}

#[inline(never)]
unsafe extern "C-unwind" fn compact_slowly(aging: u32, data: *const c_void, len: u32) -> i32 {
    let word = gate::load();
    if !word.is_capture() {
        pass_on!(MsprofReportCompactInfo(aging, data, len));
    }
    if word.is_shared() {
        // SAFETY: by this function's contract.
        let taken =
            unsafe { profile_callback::take_data(word, ReportKind::Compact, aging, data, len) };
        if let Some(result) = taken {
            return result;
        }
    }
    // SAFETY: by this function's contract.
    guard(|| unsafe { report::compact(aging, data.cast(), len as usize) })
}

/// Reports an additional record. Up to 256 bytes: one record, filled up with zeros. Up to 65,536: a
/// variable record. Shorter than a head of 24 bytes, or longer: -1. Otherwise as MsprofReportApi.
///
/// # Safety
/// `data` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofReportAdditionalInfo(
    aging: u32,
    data: *const c_void,
    len: u32,
) -> i32 {
    let word = gate::load();
    let quick = || {
        // SAFETY: by this function's contract.
        len == 256
            && unsafe { report::quick::<256>(word, RecordSize::Additional, aging, data.cast()) }
    };
    if word == Word::OFF || quick() {
        return report::SUCCESS;
    }
    // SAFETY: by this function's contract.
    unsafe { additional_slowly(aging, data, len) }
}

#[inline(never)]
unsafe extern "C-unwind" fn additional_slowly(aging: u32, data: *const c_void, len: u32) -> i32 {
    let word = gate::load();
    if !word.is_capture() {
        pass_on!(MsprofReportAdditionalInfo(aging, data, len));
    }
    if word.is_shared() {
        // SAFETY: by this function's contract.
        let taken =
            unsafe { profile_callback::take_data(word, ReportKind::Additional, aging, data, len) };
        if let Some(result) = taken {
            return result;
        }
    }
    // SAFETY: by this function's contract.
    guard(|| unsafe { report::additional(aging, data.cast(), len as usize) })
}

/// Reports many additional records of 256 bytes each; `len` must be a multiple of 256 up to
/// MsprofGetBatchReportMaxSize(0). Otherwise as MsprofReportApi.
///
/// # Safety
/// `data` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofReportBatchAdditionalInfo(
    aging: u32,
    data: *const c_void,
    len: u32,
) -> i32 {
    let word = gate::load();
    if word == Word::OFF {
        return report::SUCCESS;
    }
    if !word.is_capture() {
        pass_on!(MsprofReportBatchAdditionalInfo(aging, data, len));
    }
    // SAFETY: by this function's contract.
    guard(|| unsafe { report::batch(aging, data.cast(), len as usize) })
}

/// Most bytes of one batch report: 131072 for kind 0 (additional records), 0 for others.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofGetBatchReportMaxSize(kind: u32) -> usize {
    pass_on!(MsprofGetBatchReportMaxSize(kind));
    if kind == 0 { report::BATCH_MAX } else { 0 }
}
