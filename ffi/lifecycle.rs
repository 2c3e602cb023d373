//! Load, init, finalize and exit.
//!
//! The constructor lives beside `MsprofInit`, which refers to it: in the static library a module with
//! nothing but a constructor would be dropped by the linker.

use crate::boundary::{SUCCESS, guard, used};
use crate::types::{MsprofCommandHandle, MsprofRawDataCallback};
use msprof_agent_core::agent;
use std::ffi::{c_char, c_void};

#[ctor::ctor(unsafe)]
fn load() {
    guard(|| {
        if is_second_copy() {
            agent::stay_inert("another copy of the library in this process takes the records");
        }
        agent::load();
    });
}

/// Whether another copy of this library comes before us in the order of symbols: components report to it,
/// so two sockets would only confuse.
fn is_second_copy() -> bool {
    // SAFETY: the name is a C string; the call only looks a symbol up.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"msprof_agent_version".as_ptr()) };
    // The address of an export of ours would be the first copy's as well: a private function tells where
    // we are.
    let ours = library_of(load as *const ());
    !first.is_null() && ours.is_some() && library_of(first.cast_const().cast()) != ours
}

/// Where the library that holds an address is mapped.
fn library_of(address: *const ()) -> Option<usize> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; the result goes to a local of the right type.
    if unsafe { libc::dladdr(address.cast(), found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: zeroed is valid for the struct, and the call has filled it in.
    Some(unsafe { found.assume_init() }.dli_fbase as usize)
}

#[dtor::dtor(unsafe)]
fn unload() {
    guard(agent::exit);
}

/// Initialises profiling; called by aclInit. `kind`: 0xFF dynamic, 0 acl environment, 1 acl.json, 2 GE
/// options, 4 helper, 5 pure cpu, 6 aicpu; data and len are not read. In dynamic mode it makes sure
/// that the control socket is up, whatever the kind. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofInit(_kind: u32, _data: *mut c_void, _len: u32) -> i32 {
    used(|agent| {
        agent.ensure_control();
        SUCCESS
    })
}

/// Finalizes profiling; called by aclFinalize. Ends a running capture, which is complete when this
/// returns, and the control socket. A later MsprofInit brings the socket up again. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofFinalize() -> i32 {
    used(|agent| {
        agent.finalize();
        SUCCESS
    })
}

/// Start of another profiling mode; accepted and ignored in dynamic mode. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofStart(_kind: u32, _data: *const c_void, _len: u32) -> i32 {
    used(|_| SUCCESS)
}

/// Stop of another profiling mode; accepted and ignored in dynamic mode. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofStop(_kind: u32, _data: *const c_void, _len: u32) -> i32 {
    used(|_| SUCCESS)
}

/// Configuration of another profiling mode; accepted and ignored in dynamic mode. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofSetConfig(_kind: u32, _config: *const c_char, _len: usize) -> i32 {
    used(|_| SUCCESS)
}

/// A command of another profiling mode; accepted and ignored in dynamic mode. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn profSetProfCommand(_command: *mut c_void, _len: u32) -> i32 {
    used(|_| SUCCESS)
}

/// Marks a training step; accepted and ignored in dynamic mode. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn profSetStepInfo(_index: u64, _tag: u16, _stream: *mut c_void) -> i32 {
    used(|_| SUCCESS)
}

/// Registers a callback of a third party for reports; accepted, no report is diverted. Returns 0, or
/// -1 for a null callback.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofRegisterProfileCallback(
    _kind: i32,
    callback: *mut c_void,
    _len: u32,
) -> i32 {
    used(|_| {
        if callback.is_null() {
            return crate::boundary::BAD_ARGUMENT;
        }
        SUCCESS
    })
}

/// Subscribes to raw data of another profiling mode; accepted, nothing is delivered in dynamic mode.
/// Returns 0, or -1 for a null callback.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofSubscribeRawData(callback: MsprofRawDataCallback) -> i32 {
    used(|_| match callback {
        Some(_) => SUCCESS,
        None => crate::boundary::BAD_ARGUMENT,
    })
}

/// Ends a raw data subscription. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofUnSubscribeRawData() -> i32 {
    used(|_| SUCCESS)
}

/// Registers the handler of a component, by which it is told to report. Several handlers per module are
/// possible; the same pair twice is one. If a capture is running and devices are open, the handler is
/// told init and start before this returns. Returns 0, or -1 for a null handler.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofRegisterCallback(module: u32, handler: MsprofCommandHandle) -> i32 {
    // Keeps the constructor in the static library.
    std::hint::black_box(load as *const ());
    used(|agent| match handler {
        Some(handler) => {
            agent.register(module, handler);
            SUCCESS
        }
        None => crate::boundary::BAD_ARGUMENT,
    })
}

/// Tells that a device was opened or closed. Only the first open of a device and its close command the
/// components; repeats cost a look-up. Ids with bit 31 set are no NPUs and are ignored. Returns 0, or
/// -1 for another id that is not in 0..63.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofNotifySetDevice(_chip: u32, device: u32, open: bool) -> i32 {
    used(|agent| {
        if agent.set_device(device, open) {
            SUCCESS
        } else {
            crate::boundary::BAD_ARGUMENT
        }
    })
}
