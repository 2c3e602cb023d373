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

macro_rules! accepted {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) -> i32 {
            SUCCESS
        }
    )*};
}

accepted! {
    /// Names a category of stamps. Returns 0.
    ProfAclSetCategoryName(_category: u32, _name: *const c_char);
    /// Sets the category of a stamp. Returns 0.
    ProfAclSetStampCategory(_stamp: *mut c_void, _category: u32);
    /// Sets the payload of a stamp. Returns 0.
    ProfAclSetStampPayload(_stamp: *mut c_void, _kind: i32, _value: *mut c_void);
    /// Sets the message of a stamp. Returns 0.
    ProfAclSetStampTraceMessage(_stamp: *mut c_void, _message: *const c_char, _len: u32);
    /// Marks an instant. Returns 0.
    ProfAclMark(_stamp: *mut c_void);
    /// Marks an instant with a message on a stream. Returns 0.
    ProfAclMarkEx(_message: *const c_char, _len: usize, _stream: *mut c_void);
    /// Opens a range on this thread. Returns 0.
    ProfAclPush(_stamp: *mut c_void);
    /// Closes the innermost range of this thread. Returns 0.
    ProfAclPop();
    /// Ends a range by its id. Returns 0.
    ProfAclRangeStop(_range: u32);
    /// Opens a range on this thread. Returns 0.
    ProfAclRangePushEx(_stamp: *mut c_void);
    /// Closes the innermost range of this thread. Returns 0.
    ProfAclRangePop();
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
