//! The panic boundary that every export goes through, and what each result type becomes on a panic.

pub use msprof_agent_core::report::{BAD_ARGUMENT, SUCCESS};
use msprof_agent_core::{agent, process};
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The value that an export returns when its body panicked: the type's way of saying "error".
pub trait OnPanic {
    /// The value.
    const VALUE: Self;
}

/// MSPROF_ERROR.
pub const ERROR: i32 = 5;

impl OnPanic for i32 {
    const VALUE: i32 = ERROR;
}
impl OnPanic for u32 {
    const VALUE: u32 = 0;
}
impl OnPanic for u64 {
    const VALUE: u64 = 0;
}
impl OnPanic for usize {
    const VALUE: usize = 0;
}
impl OnPanic for bool {
    const VALUE: bool = false;
}
impl OnPanic for () {
    const VALUE: () = ();
}
impl<T> OnPanic for *const T {
    const VALUE: *const T = std::ptr::null();
}
impl<T> OnPanic for *mut T {
    const VALUE: *mut T = std::ptr::null_mut();
}

/// Runs the body of an export. A panic in it turns the agent off; the program goes on.
#[inline]
pub fn guard<R: OnPanic>(body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        agent::disable(&format!("a call: {}", process::panic_text(&*panic)));
        R::VALUE
    })
}

/// [`guard`] for exports that are a use of the ABI: brings the socket up where that was left to the
/// first use.
#[inline]
pub fn used<R: OnPanic>(body: impl FnOnce(&'static agent::Agent) -> R) -> R {
    let _not_cancelled = process::NotCancelled::new();
    guard(|| body(agent::used()))
}

/// Bytes of a C string without its NUL; `None` for a null pointer.
///
/// # Safety
/// `text` is null or a C string that lives for `'a`.
pub unsafe fn c_bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    Some(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// `len` bytes at `data`; `None` for a null pointer.
///
/// # Safety
/// `data` is null or valid for reads of `len` bytes for `'a`.
pub unsafe fn c_slice<'a, T>(data: *const T, len: usize) -> Option<&'a [u8]> {
    if data.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    Some(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) })
}
