//! The back end of the aclprof* API: another profiling mode, which a process in dynamic mode refuses.

use crate::boundary::{SUCCESS, used};
use std::ffi::{c_char, c_void};

/// The process is in dynamic mode: aclprof cannot be used beside it.
const ACL_ERROR_PROF_MODE_CONFLICT: i32 = 100_042;

/// Refused: the process belongs to dynamic profiling, whose session is left alone. Returns 100042.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclInit(_kind: u32, _path: *const c_char, _len: u32) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclWarmup(_kind: u32, _config: *const c_void) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclStart(_kind: u32, _config: *const c_void) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclStop(_kind: u32, _config: *const c_void) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclFinalize(_kind: u32) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclSetConfig(_kind: i32, _config: *const c_char, _len: usize) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclSubscribe(_kind: u32, _model: u32, _config: *const c_void) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclUnSubscribe(_kind: u32, _model: u32) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfOpSubscribe(_device: u32, _config: *const c_void) -> i32 {
    refuse()
}

/// Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfOpUnSubscribe(_device: u32) -> i32 {
    refuse()
}

fn refuse() -> i32 {
    used(|_| ACL_ERROR_PROF_MODE_CONFLICT)
}

/// Number of devices that are open, as far as this library was told.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclDrvGetDevNum() -> i32 {
    used(|agent| agent.components.devices().len() as i32)
}

/// Time of an operator from a subscription; there is none: 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclGetOpTime(
    _kind: u32,
    _data: *const c_void,
    _len: usize,
    _index: u32,
) -> u64 {
    0
}

/// Id of a subscription; there is none: 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclGetId(
    _kind: u32,
    _data: *const c_void,
    _len: usize,
    _index: u32,
) -> usize {
    0
}

/// Value of an operator from a subscription. Refused like ProfAclInit.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclGetOpVal(
    _kind: u32,
    _op: *const c_void,
    _op_len: usize,
    _index: u32,
    _data: *mut c_void,
    _len: usize,
) -> i32 {
    refuse()
}

/// Attribute of an operator from a subscription; there is none: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclGetOpAttriVal(
    _kind: u32,
    _op: *const c_void,
    _op_len: usize,
    _index: u32,
    _attribute: u32,
) -> *const c_char {
    std::ptr::null()
}

/// Execution time of an operator from a subscription; there is none: 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfGetOpExecutionTime(_data: *const c_void, _len: u32, _index: u32) -> u64 {
    0
}

/// Features that can be used beside each other: none in dynamic mode. Returns 0, or -1 for a null pointer.
///
/// # Safety
/// Both pointers are null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ProfAclGetCompatibleFeatures(
    count: *mut usize,
    features: *mut *mut c_void,
) -> i32 {
    if count.is_null() || features.is_null() {
        return crate::boundary::BAD_ARGUMENT;
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
pub unsafe extern "C" fn ProfAclGetCompatibleFeaturesV2(
    count: *mut usize,
    features: *mut *mut c_void,
) -> i32 {
    // SAFETY: the same contract.
    unsafe { ProfAclGetCompatibleFeatures(count, features) }
}

/// Registers a callback for device states of another profiling mode; accepted, never called. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclRegisterDeviceCallback() -> i32 {
    used(|_| SUCCESS)
}
