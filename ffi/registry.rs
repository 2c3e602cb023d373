//! Names, ids, devices and clocks.

use crate::boundary::{BAD_ARGUMENT, SUCCESS, c_bytes, c_slice, guard, used};
use msprof_agent_core::agent;
use msprof_agent_core::dictionary::EMPTY_ID;
use std::ffi::{c_char, c_void};

/// Names a type of records of a level; kept for the life of the process and written into every capture.
/// The last name given counts. Returns 0, or -1 for a null name.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MsprofRegTypeInfo(level: u16, kind: u32, name: *const c_char) -> i32 {
    used(|agent| {
        // SAFETY: by this function's contract.
        match unsafe { c_bytes(name) } {
            Some(name) => {
                agent.dictionary.name_type(level, kind, name);
                SUCCESS
            }
            None => BAD_ARGUMENT,
        }
    })
}

/// Describes the data of a type; accepted, nothing that reads captures needs it. Returns 0, or -1 for a
/// null pointer.
///
/// # Safety
/// `format` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MsprofRegDataFormat(
    _level: u16,
    _kind: u32,
    format: *const c_char,
) -> i32 {
    used(|_| {
        if format.is_null() {
            BAD_ARGUMENT
        } else {
            SUCCESS
        }
    })
}

/// # Safety
/// `text` is null or valid for `len` bytes.
unsafe fn id_of(text: *const c_char, len: usize) -> u64 {
    used(|agent| {
        // SAFETY: by this function's contract.
        match unsafe { c_slice(text, len) } {
            Some(text) => agent.dictionary.id_of(text),
            None => EMPTY_ID,
        }
    })
}

/// Id of a string of `len` bytes (up to the first NUL), which is remembered. NULL or length 0: all ones.
///
/// # Safety
/// `text` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MsprofGetHashId(text: *const c_char, len: usize) -> u64 {
    // SAFETY: by this function's contract.
    unsafe { id_of(text, len) }
}

/// The same as MsprofGetHashId.
///
/// # Safety
/// As MsprofGetHashId.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MsprofStr2Id(text: *const c_char, len: usize) -> u64 {
    // SAFETY: by this function's contract.
    unsafe { id_of(text, len) }
}

/// The same as MsprofGetHashId.
///
/// # Safety
/// As MsprofGetHashId.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ProfStr2Id(text: *const c_char, len: usize) -> u64 {
    // SAFETY: by this function's contract.
    unsafe { id_of(text, len) }
}

/// The string of an id that was given out; "" for others. Stays valid for the life of the process.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofId2Str(id: u64) -> *const c_char {
    used(|agent| agent.dictionary.text_of(id).unwrap_or(c"").as_ptr())
}

/// The PROF_XXX directory of the running capture, "" when none runs. Stays valid for the life of the
/// process.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofGetPath() -> *const c_char {
    used(|agent| agent.capture_path().as_ptr())
}

/// The clock of all records: ns of CLOCK_MONOTONIC_RAW.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofSysCycleTime() -> u64 {
    agent::ticks()
}

/// Whether times are counter ticks of a host frequency; false, they are nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofHostFreqIsEnable() -> bool {
    false
}

/// Keeps the device of a GE model index; it is written into msprof_agent.json. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofSetDeviceIdByGeModelIdx(model: u32, device: u32) -> i32 {
    used(|agent| {
        agent.set_model_device(model, Some(device));
        SUCCESS
    })
}

/// Forgets the device of a GE model index. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofUnsetDeviceIdByGeModelIdx(model: u32, _device: u32) -> i32 {
    used(|agent| {
        agent.set_model_device(model, None);
        SUCCESS
    })
}

/// Whether an operator is switched on for operator-level profiling, a thing of another profiling mode:
/// false in dynamic mode.
#[unsafe(no_mangle)]
pub extern "C" fn MsprofCheckOpSwitch(_op: *const c_void, _len: usize) -> bool {
    guard(|| false)
}
