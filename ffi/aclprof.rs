//! The back end of the aclprof* API: another profiling mode, which a process in dynamic mode refuses.

use crate::boundary::{BAD_ARGUMENT, SUCCESS, used};
use crate::stock::pass_on;
use std::ffi::{c_char, c_void};

/// The process is in dynamic mode: aclprof cannot be used beside it.
const ACL_ERROR_PROF_MODE_CONFLICT: i32 = 100_042;

/// Refused: the process belongs to dynamic profiling, whose session is left alone. Returns 100042.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclInit(kind: u32, path: *const c_char, len: u32) -> i32 {
    pass_on!(ProfAclInit(kind, path, len));
    refuse()
}

/// Refused like ProfAclInit.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclWarmup(kind: u32, config: *const c_void) -> i32 {
    pass_on!(ProfAclWarmup(kind, config));
    refuse()
}

/// Refused like ProfAclInit.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclStart(kind: u32, config: *const c_void) -> i32 {
    pass_on!(ProfAclStart(kind, config));
    refuse()
}

/// Refused like ProfAclInit.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclStop(kind: u32, config: *const c_void) -> i32 {
    pass_on!(ProfAclStop(kind, config));
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfAclFinalize(kind: u32) -> i32 {
    pass_on!(ProfAclFinalize(kind));
    refuse()
}

/// Refused like ProfAclInit.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclSetConfig(
    kind: i32,
    config: *const c_char,
    len: usize,
) -> i32 {
    pass_on!(ProfAclSetConfig(kind, config, len));
    refuse()
}

/// Refused like ProfAclInit.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclSubscribe(
    kind: u32,
    model: u32,
    config: *const c_void,
) -> i32 {
    pass_on!(ProfAclSubscribe(kind, model, config));
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfAclUnSubscribe(kind: u32, model: u32) -> i32 {
    pass_on!(ProfAclUnSubscribe(kind, model));
    refuse()
}

/// Refused like ProfAclInit.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfOpSubscribe(device: u32, config: *const c_void) -> i32 {
    pass_on!(ProfOpSubscribe(device, config));
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfOpUnSubscribe(device: u32) -> i32 {
    pass_on!(ProfOpUnSubscribe(device));
    refuse()
}

fn refuse() -> i32 {
    used(|_| ACL_ERROR_PROF_MODE_CONFLICT)
}

/// Number of devices that are open, as far as this library was told.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfAclDrvGetDevNum() -> i32 {
    pass_on!(ProfAclDrvGetDevNum());
    used(|agent| agent.components.devices().len() as i32)
}

/// Time of an operator from a subscription; there is none: 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclGetOpTime(
    kind: u32,
    data: *const c_void,
    len: usize,
    index: u32,
) -> u64 {
    pass_on!(ProfAclGetOpTime(kind, data, len, index));
    0
}

/// Id of a subscription; there is none: 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclGetId(
    kind: u32,
    data: *const c_void,
    len: usize,
    index: u32,
) -> usize {
    pass_on!(ProfAclGetId(kind, data, len, index));
    0
}

/// Value of an operator from a subscription. Refused like ProfAclInit.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclGetOpVal(
    kind: u32,
    op: *const c_void,
    op_len: usize,
    index: u32,
    data: *mut c_void,
    len: usize,
) -> i32 {
    pass_on!(ProfAclGetOpVal(kind, op, op_len, index, data, len));
    refuse()
}

/// Attribute of an operator from a subscription; there is none: NULL.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclGetOpAttriVal(
    kind: u32,
    op: *const c_void,
    op_len: usize,
    index: u32,
    attribute: u32,
) -> *const c_char {
    pass_on!(ProfAclGetOpAttriVal(kind, op, op_len, index, attribute));
    std::ptr::null()
}

/// Execution time of an operator from a subscription; there is none: 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfGetOpExecutionTime(
    data: *const c_void,
    len: u32,
    index: u32,
) -> u64 {
    pass_on!(ProfGetOpExecutionTime(data, len, index));
    0
}

/// Features that can be used beside each other: none in dynamic mode. Returns 0, or -1 for a null pointer.
///
/// # Safety
/// Both pointers are null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclGetCompatibleFeatures(
    count: *mut usize,
    features: *mut *mut c_void,
) -> i32 {
    pass_on!(ProfAclGetCompatibleFeatures(count, features));
    if count.is_null() || features.is_null() {
        return BAD_ARGUMENT;
    }
    // SAFETY: both are valid for writes by the contract.
    unsafe {
        count.write(0);
        features.write(std::ptr::null_mut());
    }
    SUCCESS
}

/// As ProfAclGetCompatibleFeatures.
///
/// # Safety
/// As ProfAclGetCompatibleFeatures.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclGetCompatibleFeaturesV2(
    count: *mut usize,
    features: *mut *mut c_void,
) -> i32 {
    pass_on!(ProfAclGetCompatibleFeaturesV2(count, features));
    // SAFETY: the same contract.
    unsafe { ProfAclGetCompatibleFeatures(count, features) }
}

/// Registers a callback for device states of another profiling mode; accepted, never called. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfAclRegisterDeviceCallback() -> i32 {
    pass_on!(ProfAclRegisterDeviceCallback());
    used(|_| SUCCESS)
}
