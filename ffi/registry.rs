//! Names, ids, the devices of models, and clocks.

use crate::boundary::{BAD_ARGUMENT, ERROR, SUCCESS, c_bytes, c_slice, guard, used};
use crate::profile_callback;
use crate::stock::pass_on;
use msprof_agent_core::agent;
use msprof_agent_core::dictionary::EMPTY_ID;
use msprof_agent_core::gate::{self, Word};
use std::ffi::c_char;

/// Names a type of records of a level; kept for the life of the process and written into every capture.
/// The last name given counts. Returns 0; -1 for a null name; 5 when it cannot be kept: without memory, or
/// in a signal handler that has interrupted such a call.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofRegTypeInfo(
    level: u16,
    kind: u32,
    name: *const c_char,
) -> i32 {
    // For captures of the program's own as well.
    let result = used(|agent| {
        // SAFETY: by this function's contract.
        match unsafe { c_bytes(name) } {
            Some(name) if agent.dictionary.name_type(level, kind, name) => SUCCESS,
            Some(_) => ERROR,
            None => BAD_ARGUMENT,
        }
    });
    pass_on!(MsprofRegTypeInfo(level, kind, name));
    // SAFETY: by this function's contract.
    unsafe { profile_callback::tell_type(level, kind, name) };
    result
}

/// Describes the data of a type; accepted, nothing that reads captures needs it. Returns 0, or -1 for a
/// null pointer.
///
/// # Safety
/// `format` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofRegDataFormat(
    level: u16,
    kind: u32,
    format: *const c_char,
) -> i32 {
    pass_on!(MsprofRegDataFormat(level, kind, format));
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
pub unsafe extern "C-unwind" fn MsprofGetHashId(text: *const c_char, len: usize) -> u64 {
    // SAFETY: by this function's contract.
    let id = unsafe { id_of(text, len) };
    pass_on!(MsprofGetHashId(text, len));
    // SAFETY: by this function's contract.
    unsafe { profile_callback::tell_string(text, len) };
    id
}

/// The same as MsprofGetHashId.
///
/// # Safety
/// As MsprofGetHashId.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofStr2Id(text: *const c_char, len: usize) -> u64 {
    // SAFETY: by this function's contract.
    let id = unsafe { id_of(text, len) };
    pass_on!(MsprofStr2Id(text, len));
    // SAFETY: by this function's contract.
    unsafe { profile_callback::tell_string(text, len) };
    id
}

/// The same as MsprofGetHashId.
///
/// # Safety
/// As MsprofGetHashId.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfStr2Id(text: *const c_char, len: usize) -> u64 {
    // SAFETY: by this function's contract.
    let id = unsafe { id_of(text, len) };
    pass_on!(ProfStr2Id(text, len));
    // SAFETY: by this function's contract.
    unsafe { profile_callback::tell_string(text, len) };
    id
}

/// The string of an id that was given out; "" for others. Stays valid for the life of the process.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofId2Str(id: u64) -> *const c_char {
    pass_on!(MsprofId2Str(id));
    used(|agent| agent.dictionary.text_of(id).unwrap_or(c"").as_ptr())
}

/// The PROF_XXX directory of the running capture, "" when none runs. Stays valid for the life of the
/// process.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofGetPath() -> *const c_char {
    pass_on!(MsprofGetPath());
    used(|agent| agent.capture_path().as_ptr())
}

/// The clock of all records: ns of CLOCK_MONOTONIC_RAW.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofSysCycleTime() -> u64 {
    let word = gate::load();
    if word != Word::OFF && !word.is_capture() {
        pass_on!(MsprofSysCycleTime());
    }
    agent::ticks()
}

/// Whether times are counter ticks of a host frequency; false, they are nanoseconds.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofHostFreqIsEnable() -> bool {
    pass_on!(MsprofHostFreqIsEnable());
    false
}

/// Keeps the device of a GE model index; it is written into msprof_agent.json. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofSetDeviceIdByGeModelIdx(model: u32, device: u32) -> i32 {
    pass_on!(MsprofSetDeviceIdByGeModelIdx(model, device));
    used(|agent| {
        agent.set_model_device(model, Some(device));
        SUCCESS
    })
}

/// Forgets the device of a GE model index. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn MsprofUnsetDeviceIdByGeModelIdx(model: u32, device: u32) -> i32 {
    pass_on!(MsprofUnsetDeviceIdByGeModelIdx(model, device));
    used(|agent| {
        agent.set_model_device(model, None);
        SUCCESS
    })
}

/// Whether an operator is one of those that are chosen by their type (kind 0) for profiling of operators, a thing of
/// another profiling mode: false in dynamic mode.
///
/// # Safety
/// Where calls are passed on, the pointers are what the vendor's function takes; else they are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofCheckOpSwitch(
    kind: u32,
    op: *const c_char,
    len: usize,
) -> bool {
    pass_on!(MsprofCheckOpSwitch(kind, op, len));
    guard(|| false)
}
