//! Other copies of this library in the process: components report to one of them, and that one's socket answers.
//!
//! There is more than one where a program gets two files of ours, or opens ours in a namespace of its own (dlmopen),
//! where it has a constructor, an allocator and an order of symbols of its own.

use crate::stock::{OF_OURS, library_of};
use msprof_agent_core::names::LIBRARY_SONAME;
use std::ffi::{c_int, c_void};

/// Whether the library that holds `address` is in a namespace of the loader that is not the program's own.
///
/// The C library that it has there knows of our threads, and the program's does not: that one may still take the
/// process for one of a single thread and do without atomic operations on locks that both share, the loader's among
/// them. So there must be no thread of ours.
pub fn is_in_a_namespace_of_its_own(address: *const ()) -> bool {
    namespace_of(address) != libc::LM_ID_BASE
}

/// Whether components report to another copy than the one that holds `address`.
pub fn another_takes_the_records(address: *const ()) -> bool {
    let Some(ours) = library_of(address) else {
        return false;
    };
    // Out of the order of symbols (Python loads libraries like that) the first of several answers.
    let first = first_of(program()).or_else(first_loaded);
    first.is_some_and(|first| first != ours)
}

/// The loader's namespace of the library that holds `address`.
fn namespace_of(address: *const ()) -> libc::Lmid_t {
    const RTLD_DL_LINKMAP: c_int = 2;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let mut map = std::ptr::null_mut();
    let mut namespace = libc::LM_ID_BASE;
    // SAFETY: any address may be asked for, and the results go to locals of the types that the flag and the request
    // want. A library's map is its handle, and ours stays loaded.
    unsafe {
        if libc::dladdr1(address.cast(), info.as_mut_ptr(), &mut map, RTLD_DL_LINKMAP) != 0
            && !map.is_null()
            && libc::dlinfo(map, libc::RTLD_DI_LMID, (&raw mut namespace).cast()) != 0
        {
            return libc::LM_ID_BASE;
        }
    }
    namespace
}

/// The program itself and all that is in the order of its symbols. Not RTLD_DEFAULT: for a library out of that order it
/// stands for the library, too.
fn program() -> *mut c_void {
    // SAFETY: a null name is the program itself; nothing is loaded.
    unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) }
}

/// Where the first copy that was loaded is mapped.
fn first_loaded() -> Option<usize> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the name is a C string, and nothing is loaded that is not there. The reference is never given back:
    // such a library is never unloaded anyway.
    first_of(unsafe { libc::dlopen(LIBRARY_SONAME.as_ptr(), flags) })
}

/// Where the copy that a handle leads to is mapped; none for a null handle.
fn first_of(handle: *mut c_void) -> Option<usize> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: the name is a C string, and the handle stays open.
    let found = unsafe { libc::dlsym(handle, OF_OURS.as_ptr()) };
    (!found.is_null()).then(|| library_of(found.cast_const().cast()))?
}
