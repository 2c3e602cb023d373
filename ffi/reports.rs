//! Reports: records of 40, 64 and 256 bytes and longer.

use crate::boundary::guard;
use crate::types::{MsprofApi, MsprofEvent};
use msprof_agent_core::{gate, report};
use std::ffi::c_void;

/// Reports an api call with its begin and end. `aging` is 1 for a record that may be deleted to keep
/// the storage limit. Returns 0; -1 for a null pointer or a wrong magic while capturing. A record that
/// finds its thread's buffer full is dropped and counted, and 0 is returned.
///
/// # Safety
/// `api` is null or points to a record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MsprofReportApi(aging: u32, api: *const MsprofApi) -> i32 {
    if gate::is_off() {
        return report::SUCCESS;
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
pub unsafe extern "C" fn MsprofReportEvent(aging: u32, event: *const MsprofEvent) -> i32 {
    if gate::is_off() {
        return report::SUCCESS;
    }
    // SAFETY: a record has 40 bytes.
    guard(|| unsafe { report::event(aging, event.cast()) })
}

/// Reports a compact record; `len` must be 64. Otherwise as MsprofReportApi.
///
/// # Safety
/// `data` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MsprofReportCompactInfo(aging: u32, data: *const c_void, len: u32) -> i32 {
    if gate::is_off() {
        return report::SUCCESS;
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
pub unsafe extern "C" fn MsprofReportAdditionalInfo(
    aging: u32,
    data: *const c_void,
    len: u32,
) -> i32 {
    if gate::is_off() {
        return report::SUCCESS;
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
pub unsafe extern "C" fn MsprofReportBatchAdditionalInfo(
    aging: u32,
    data: *const c_void,
    len: u32,
) -> i32 {
    if gate::is_off() {
        return report::SUCCESS;
    }
    // SAFETY: by this function's contract.
    guard(|| unsafe { report::batch(aging, data.cast(), len as usize) })
}

/// Most bytes of one batch report: 131072 for kind 0 (additional records), 0 for others.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofGetBatchReportMaxSize(kind: u32) -> usize {
    if kind == 0 { report::BATCH_MAX } else { 0 }
}
