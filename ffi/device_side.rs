//! The calls of the AICPU process on a device. On the host they are answered like their host twins.

use crate::reports::{
    MsprofGetBatchReportMaxSize, MsprofReportAdditionalInfo, MsprofReportBatchAdditionalInfo,
};
use crate::stock::pass_on;
use msprof_agent_core::gate;
use msprof_agent_core::records::Trace;
use std::ffi::{c_char, c_void};

/// Bit of a feature word that asks for the aicpu trace.
const AICPU_FEATURE: u64 = 0x8;

/// Whether a feature is switched on by the running capture: 1 or 0. Known here is the aicpu trace, 0x8.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn AdprofCheckFeatureIsOn(feature: u64) -> i32 {
    pass_on!(AdprofCheckFeatureIsOn(feature));
    is_feature_on(feature)
}

pub(crate) fn is_feature_on(feature: u64) -> i32 {
    let word = gate::load();
    i32::from(word.is_capture() && feature & AICPU_FEATURE != 0 && word.takes(Trace::Aicpu))
}

/// As MsprofReportAdditionalInfo.
///
/// # Safety
/// As MsprofReportAdditionalInfo.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn AdprofReportAdditionalInfo(
    aging: u32,
    data: *const c_void,
    len: u32,
) -> i32 {
    pass_on!(AdprofReportAdditionalInfo(aging, data, len));
    // SAFETY: the same contract.
    unsafe { MsprofReportAdditionalInfo(aging, data, len) }
}

/// As MsprofReportBatchAdditionalInfo.
///
/// # Safety
/// As MsprofReportBatchAdditionalInfo.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn AdprofReportBatchAdditionalInfo(
    aging: u32,
    data: *const c_void,
    len: u32,
) -> i32 {
    pass_on!(AdprofReportBatchAdditionalInfo(aging, data, len));
    // SAFETY: the same contract.
    unsafe { MsprofReportBatchAdditionalInfo(aging, data, len) }
}

/// As MsprofGetBatchReportMaxSize.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn AdprofGetBatchReportMaxSize(kind: u32) -> usize {
    pass_on!(AdprofGetBatchReportMaxSize(kind));
    MsprofGetBatchReportMaxSize(kind)
}

/// As MsprofGetHashId.
///
/// # Safety
/// As MsprofGetHashId.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn AdprofGetHashId(text: *const c_char, len: usize) -> u64 {
    pass_on!(AdprofGetHashId(text, len));
    // SAFETY: the same contract.
    unsafe { crate::registry::MsprofGetHashId(text, len) }
}
