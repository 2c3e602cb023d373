//! msproftx stamps: marks and ranges that the program sets itself, recorded while something is captured.
//!
//! A stamp is no address but a number in the shape of one; NULL and a stamp that was destroyed are bad
//! arguments. While nothing is captured, marks, pushes and pops return 0 whatever their arguments. All may be called
//! in signal handlers: one that has interrupted such a call of its own thread is refused with 5 (a new stamp: NULL).

use crate::boundary::{BAD_ARGUMENT, SUCCESS, c_slice, guard, used};
use crate::stock::pass_on;
use msprof_agent_core::marks;
use std::ffi::{c_char, c_void};

fn handle(stamp: *mut c_void) -> u64 {
    stamp.addr() as u64
}

/// Makes a stamp; to be given to ProfAclDestroyStamp. NULL when there are 65,536, or for want of memory.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfAclCreateStamp() -> *mut c_void {
    pass_on!(ProfAclCreateStamp());
    used(|agent| std::ptr::without_provenance_mut(agent.marks.create_stamp() as usize))
}

/// Frees a stamp. Ranges that were opened with it stay open.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclDestroyStamp(stamp: *mut c_void) {
    pass_on!(ProfAclDestroyStamp(stamp));
    used(|agent| agent.marks.destroy_stamp(handle(stamp)));
}

/// Names a category of stamps. Returns 0: the parser has no place for the name and shows the number.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclSetCategoryName(category: u32, name: *const c_char) -> i32 {
    pass_on!(ProfAclSetCategoryName(category, name));
    SUCCESS
}

/// Sets the category of a stamp. Returns 0; -1 for no stamp.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclSetStampCategory(stamp: *mut c_void, category: u32) -> i32 {
    pass_on!(ProfAclSetStampCategory(stamp, category));
    used(|agent| agent.marks.set_category(handle(stamp), category))
}

/// Sets the kind of a stamp's payload. Its value, whose size nobody knows, is not recorded. Returns 0; -1 for
/// no stamp.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclSetStampPayload(
    stamp: *mut c_void,
    kind: i32,
    value: *mut c_void,
) -> i32 {
    pass_on!(ProfAclSetStampPayload(stamp, kind, value));
    used(|agent| agent.marks.set_payload_kind(handle(stamp), kind))
}

/// Sets the message of a stamp, `len` bytes of UTF-8; what is longer than 155 is cut off. Returns 0; -1 for no
/// stamp or a null pointer.
///
/// # Safety
/// `message` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclSetStampTraceMessage(
    stamp: *mut c_void,
    message: *const c_char,
    len: u32,
) -> i32 {
    pass_on!(ProfAclSetStampTraceMessage(stamp, message, len));
    used(|agent| {
        // SAFETY: by this function's contract.
        match unsafe { c_slice(message, len as usize) } {
            Some(message) => agent.marks.set_message(handle(stamp), message),
            None => BAD_ARGUMENT,
        }
    })
}

/// Marks an instant. Returns 0; -1 for no stamp.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclMark(stamp: *mut c_void) -> i32 {
    pass_on!(ProfAclMark(stamp));
    guard(|| marks::mark(handle(stamp)))
}

/// Marks an instant with a message of `len` bytes; the mark on the stream itself is not made. Returns 0; -1
/// for a null message.
///
/// # Safety
/// `message` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclMarkEx(
    message: *const c_char,
    len: usize,
    stream: *mut c_void,
) -> i32 {
    pass_on!(ProfAclMarkEx(message, len, stream));
    guard(|| {
        // SAFETY: by this function's contract.
        match unsafe { c_slice(message, len) } {
            Some(message) => marks::mark_ex(message),
            None => BAD_ARGUMENT,
        }
    })
}

/// Opens a range on this thread, with what the stamp says now. Returns 0; -1 for no stamp; 5 when 4,096 are
/// open.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclPush(stamp: *mut c_void) -> i32 {
    pass_on!(ProfAclPush(stamp));
    guard(|| marks::push(handle(stamp)))
}

/// Closes the innermost range of this thread. Returns 0; -1 when none was opened in this capture.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfAclPop() -> i32 {
    pass_on!(ProfAclPop());
    guard(marks::pop)
}

/// As ProfAclPush; the mark on the stream itself is not made.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclRangePushEx(stamp: *mut c_void) -> i32 {
    pass_on!(ProfAclRangePushEx(stamp));
    // SAFETY: the same contract.
    unsafe { ProfAclPush(stamp) }
}

/// As ProfAclPop.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfAclRangePop() -> i32 {
    pass_on!(ProfAclRangePop());
    ProfAclPop()
}

/// Starts a range, with what the stamp says now, and writes its id, which is never 0. Returns 0; -1 for no
/// stamp or a null pointer; 5 when too many are open.
///
/// # Safety
/// `range` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfAclRangeStart(stamp: *mut c_void, range: *mut u32) -> i32 {
    pass_on!(ProfAclRangeStart(stamp, range));
    used(|agent| {
        if range.is_null() {
            return BAD_ARGUMENT;
        }
        let (result, id) = marks::begin_range(agent, handle(stamp));
        // SAFETY: valid for a write by the contract.
        unsafe { range.write(id) };
        result
    })
}

/// Ends a range by its id, on whatever thread. Returns 0; -1 for an id of no range of this capture.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfAclRangeStop(range: u32) -> i32 {
    pass_on!(ProfAclRangeStop(range));
    guard(|| marks::end_range(range))
}
