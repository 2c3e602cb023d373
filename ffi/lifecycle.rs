//! Load, init, finalize and exit; the other profiling modes; handlers and devices.
//!
//! The constructor lives beside `MsprofRegisterCallback`, which refers to it: in the static library a module
//! with nothing but a constructor would be dropped by the linker.

use crate::boundary::{BAD_ARGUMENT, SUCCESS, guard, used};
use crate::copies;
use crate::impl_side;
use crate::profile_callback;
use crate::stock::{self, pass_on};
use crate::types::{MsprofCommandHandle, MsprofRawDataCallback};
use msprof_agent_core::agent;
use std::ffi::{c_char, c_void};

#[ctor::ctor(unsafe)]
fn load() {
    guard(|| {
        // The address of an export of ours would be the first copy's as well: a private function tells where we are.
        let here = load as *const ();
        if copies::is_in_a_namespace_of_its_own(here) {
            let reason = "the library was opened in a namespace of its own (dlmopen)";
            agent::stay_inert(reason);
            agent::disable(reason);
        } else if copies::another_takes_the_records(here) {
            agent::stay_inert("another copy of the library in this process takes the records");
        }
        agent::load();
    });
}

#[dtor::dtor(unsafe)]
fn unload() {
    guard(agent::exit);
}

/// Initialises profiling; called by aclInit. `kind`: 0xFF dynamic, 0 acl environment, 1 acl.json, 2 GE
/// options, 4 helper, 5 pure cpu, 6 aicpu; data and len are not read. In dynamic mode it makes sure
/// that the control socket is up, whatever the kind. Returns 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofInit(kind: u32, data: *mut c_void, len: u32) -> i32 {
    stock::forget_absence();
    pass_on!(MsprofInit(kind, data, len));
    used(|agent| {
        agent.ensure_control();
        SUCCESS
    })
}

/// Finalizes profiling; called by aclFinalize. Ends a running capture, which is complete when this
/// returns, and the control socket. A later MsprofInit brings the socket up again. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofFinalize() -> i32 {
    pass_on!(MsprofFinalize());
    used(|agent| {
        agent.finalize();
        impl_side::quiesce();
        SUCCESS
    })
}

/// Start of another profiling mode; accepted and ignored in dynamic mode. Returns 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofStart(kind: u32, data: *const c_void, len: u32) -> i32 {
    pass_on!(MsprofStart(kind, data, len));
    used(|_| SUCCESS)
}

/// Stop of another profiling mode; ignored in dynamic mode, but that records are no longer taken out of the buffers of a
/// vendor's library in front of this one: it may free them afterwards. What they hold is taken out before, for a capture
/// that runs. Returns 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofStop(kind: u32, data: *const c_void, len: u32) -> i32 {
    pass_on!(MsprofStop(kind, data, len));
    used(|_| {
        impl_side::quiesce();
        SUCCESS
    })
}

/// Configuration of another profiling mode; accepted and ignored in dynamic mode. Returns 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofSetConfig(
    kind: u32,
    config: *const c_char,
    len: usize,
) -> i32 {
    pass_on!(MsprofSetConfig(kind, config, len));
    used(|_| SUCCESS)
}

/// A command of another profiling mode; accepted and ignored in dynamic mode. Returns 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn profSetProfCommand(command: *mut c_void, len: u32) -> i32 {
    pass_on!(profSetProfCommand(command, len));
    used(|_| SUCCESS)
}

/// Marks a training step; accepted and ignored in dynamic mode. Returns 0.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn profSetStepInfo(index: u64, tag: u16, stream: *mut c_void) -> i32 {
    pass_on!(profSetStepInfo(index, tag, stream));
    used(|_| SUCCESS)
}

/// Subscribes to raw data of another profiling mode; accepted, nothing is delivered in dynamic mode.
/// Returns 0, or -1 for a null callback.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofSubscribeRawData(callback: MsprofRawDataCallback) -> i32 {
    pass_on!(MsprofSubscribeRawData(callback));
    used(|_| match callback {
        Some(_) => SUCCESS,
        None => BAD_ARGUMENT,
    })
}

/// Ends a raw data subscription. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofUnSubscribeRawData() -> i32 {
    pass_on!(MsprofUnSubscribeRawData());
    used(|_| SUCCESS)
}

/// Registers the handler of a component, by which it is told to report. Several handlers per module are
/// possible; the same pair twice is one. If a capture is running and devices are open, the handler is
/// told init and start before this returns. Returns 0, or -1 for a null handler.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofRegisterCallback(module: u32, handler: MsprofCommandHandle) -> i32 {
    stock::forget_absence();
    pass_on!(MsprofRegisterCallback(module, handler));
    // Keeps the constructor in the static library.
    std::hint::black_box(load as *const ());
    used(|agent| match handler {
        Some(handler) => {
            agent.register(module, handler);
            SUCCESS
        }
        None => BAD_ARGUMENT,
    })
}

/// Tells that a device was opened or closed. Only the first open of a device and its close command the
/// components; repeats cost a look-up. Ids with bit 31 set are no NPUs and are ignored. Returns 0, or
/// -1 for another id that is not in 0..63.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofNotifySetDevice(chip: u32, device: u32, open: bool) -> i32 {
    pass_on!(MsprofNotifySetDevice(chip, device, open));
    profile_callback::tell_device(chip, device, open);
    used(|agent| {
        if agent.set_device(device, open) {
            SUCCESS
        } else {
            BAD_ARGUMENT
        }
    })
}
