//! msproftx stamps and mstx marks. Accepted without effect by this version: the calls succeed and
//! nothing is recorded.

use crate::boundary::{SUCCESS, guard};
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

/// What `ProfAclCreateStamp` returns: stamps have no content here, so all are the same object.
static STAMP: u8 = 0;
static NEXT_RANGE: AtomicU32 = AtomicU32::new(1);

/// Makes a stamp; to be given to ProfAclDestroyStamp.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclCreateStamp() -> *mut c_void {
    std::ptr::from_ref(&STAMP).cast_mut().cast()
}

/// Frees a stamp.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclDestroyStamp(_stamp: *mut c_void) {}

/// Names a category of stamps. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclSetCategoryName(_category: u32, _name: *const c_char) -> i32 {
    SUCCESS
}

/// Sets the category of a stamp. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclSetStampCategory(_stamp: *mut c_void, _category: u32) -> i32 {
    SUCCESS
}

/// Sets the payload of a stamp. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclSetStampPayload(
    _stamp: *mut c_void,
    _kind: i32,
    _value: *mut c_void,
) -> i32 {
    SUCCESS
}

/// Sets the message of a stamp. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclSetStampTraceMessage(
    _stamp: *mut c_void,
    _message: *const c_char,
    _len: u32,
) -> i32 {
    SUCCESS
}

/// Marks an instant. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclMark(_stamp: *mut c_void) -> i32 {
    SUCCESS
}

/// Marks an instant with a message on a stream. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclMarkEx(_message: *const c_char, _len: usize, _stream: *mut c_void) -> i32 {
    SUCCESS
}

/// Opens a range on this thread. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclPush(_stamp: *mut c_void) -> i32 {
    SUCCESS
}

/// Closes the innermost range of this thread. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclPop() -> i32 {
    SUCCESS
}

/// Ends a range by its id. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclRangeStop(_range: u32) -> i32 {
    SUCCESS
}

/// Opens a range on this thread. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclRangePushEx(_stamp: *mut c_void) -> i32 {
    SUCCESS
}

/// Closes the innermost range of this thread. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ProfAclRangePop() -> i32 {
    SUCCESS
}

/// Starts a range and writes its id. Returns 0.
///
/// # Safety
/// `range` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ProfAclRangeStart(_stamp: *mut c_void, range: *mut u32) -> i32 {
    guard(|| {
        if !range.is_null() {
            // SAFETY: valid for a write by the contract.
            unsafe { range.write(NEXT_RANGE.fetch_add(1, Ordering::Relaxed)) };
        }
        SUCCESS
    })
}

/// Fills in a table of mstx functions: none, so that mstx keeps its own no-ops. Returns 1, "no tool".
#[unsafe(no_mangle)]
pub extern "C" fn InitInjectionMstx(_table_getter: *mut c_void) -> i32 {
    1
}

/// Switches mstx functions of a module on; nothing to do.
#[unsafe(no_mangle)]
pub extern "C" fn ProfEnableMstxFunc(_module: u32) {}

/// Registers the mstx functions of a module; nothing to do.
#[unsafe(no_mangle)]
pub extern "C" fn ProfRegisterMstxFunc(_init: *mut c_void, _module: u32) {}
