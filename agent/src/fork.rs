//! What happens at fork: the child forgets the agent of its parent.
//!
//! The handler only zeroes the gate's page (which most kernels did already) and closes the descriptors that
//! are the parent's alone: sockets, and what a controller was handed. The child becomes a process of its own
//! only when it calls the ABI.

use crate::gate;
use crate::process::fd;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

static REGISTERED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// glibc's registration, exported in every version and on every architecture; `pthread_atfork`
    /// itself is a static helper that is not always there.
    fn __register_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
        dso: *mut c_void,
    ) -> i32;
}

unsafe extern "C" fn in_child() {
    gate::wipe();
    fd::close_in_child();
}

/// Registers the child handler, once.
pub fn watch() {
    gate::mark_wipe_on_fork();
    if REGISTERED.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: the handler lives as long as this library, which is never unloaded (-z nodelete); a null
    // handle ties the registration to no library.
    unsafe { __register_atfork(None, None, Some(in_child), std::ptr::null_mut()) };
}
