//! Our own small API, for programs that profile themselves.

use crate::boundary::{BAD_ARGUMENT, ERROR, SUCCESS, c_bytes, guard, used};
use crate::types::{
    MSPROF_AGENT_CAPTURING, MSPROF_AGENT_DISABLED, MSPROF_AGENT_FINISHING, MSPROF_AGENT_IDLE,
    MSPROF_AGENT_INERT, MsprofAgentStatus,
};
use msprof_agent_core::agent::Agent;
use msprof_agent_core::{VERSION, VERSION_MARKER, report};
use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The version with its terminating NUL, behind the words by which it is found in the library's file.
static VERSION_TEXT: &str = concat!("libmsprof_agent version ", env!("CARGO_PKG_VERSION"), "\0");
const _: () = assert!(VERSION_TEXT.len() == VERSION_MARKER.len() + VERSION.len() + 1);

/// Version of the library, such as "0.1.0"; a static string.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn msprof_agent_version() -> *const c_char {
    // One text for both: what is called cannot be left out by a linker.
    let marker = VERSION_TEXT.as_ptr().cast::<c_char>();
    marker.wrapping_add(VERSION_MARKER.len())
}

/// Fills in the state of the agent. Set `status->size` to sizeof(MsprofAgentStatus) before. Never waits
/// for the disk. Returns 0, or -1 for a null pointer or a size below 16.
///
/// # Safety
/// `status` is null or valid for reads and writes of `status->size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn msprof_agent_status(status: *mut MsprofAgentStatus) -> i32 {
    const SMALLEST: usize = std::mem::offset_of!(MsprofAgentStatus, captures);
    guard(|| {
        if status.is_null() {
            return BAD_ARGUMENT;
        }
        // SAFETY: not null, so at least the size can be read.
        let size = unsafe { (*status).size } as usize;
        if size < SMALLEST {
            return BAD_ARGUMENT;
        }
        let filled = state_of(msprof_agent_core::agent::current(), size as u32);
        let count = size.min(size_of::<MsprofAgentStatus>());
        // SAFETY: the caller vouches for `size` bytes, and no more than the struct is copied.
        unsafe {
            let from = std::ptr::from_ref(&filled).cast::<u8>();
            std::ptr::copy_nonoverlapping(from, status.cast::<u8>(), count);
        }
        SUCCESS
    })
}

fn state_of(agent: &Agent, size: u32) -> MsprofAgentStatus {
    let status = agent.captures.status();
    let state = if agent.disabled().is_some() {
        MSPROF_AGENT_DISABLED
    } else if status.capturing {
        MSPROF_AGENT_CAPTURING
    } else if status.writing {
        MSPROF_AGENT_FINISHING
    } else if agent.environment.dynamic {
        MSPROF_AGENT_IDLE
    } else {
        MSPROF_AGENT_INERT
    };
    let ledger = status.ledger.unwrap_or_default();
    MsprofAgentStatus {
        size,
        state,
        pid: std::process::id(),
        devices: agent.components.devices().len() as u32,
        captures: status.captures,
        written: ledger.written.total(),
        lost: ledger.lost.total(),
    }
}

/// Starts a capture from inside the program, also without PROFILING_MODE=dynamic. `options` are words of
/// the msprof command line such as "--runtime-api=on --aicpu=on", NULL or "" for the defaults. `output`
/// is the directory in which PROF_XXX is made, NULL for what the options say, else
/// $ASCEND_WORK_PATH/profiling_data, else the current directory. Returns 0, -1 for a bad option,
/// 5 when it cannot start; msprof_agent_last_error says why.
///
/// # Safety
/// Both pointers are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn msprof_agent_start(
    options: *const c_char,
    output: *const c_char,
) -> i32 {
    used(|agent| {
        // SAFETY: by this function's contract.
        let (options, output) = unsafe { (c_bytes(options), c_bytes(output)) };
        let Ok(options) = std::str::from_utf8(options.unwrap_or_default()) else {
            agent.set_error("the options are not UTF-8".to_owned());
            return BAD_ARGUMENT;
        };
        let output = output
            .filter(|path| !path.is_empty())
            .map(|path| PathBuf::from(OsStr::from_bytes(path)));
        match agent.start(options, output) {
            Ok(_) => SUCCESS,
            Err(error) => {
                let code = if error.is_bad_option() {
                    BAD_ARGUMENT
                } else {
                    ERROR
                };
                agent.set_error(error.to_string());
                code
            }
        }
    })
}

/// Stops the running capture, whoever started it, and waits until it is written. `path` receives the
/// PROF_XXX directory, cut to `size` bytes with its NUL; NULL and 0 are allowed. Returns 0, or 5 when no
/// capture runs or it could not be written whole; msprof_agent_last_error says why.
///
/// # Safety
/// `path` is null or valid for writes of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn msprof_agent_stop(path: *mut c_char, size: usize) -> i32 {
    used(|agent| {
        let stopped = match agent.stop() {
            Ok(stopped) => stopped,
            Err(error) => {
                agent.set_error(error);
                // SAFETY: by this function's contract.
                unsafe { copy_text(b"", path, size) };
                return ERROR;
            }
        };
        let text = stopped.path.into_os_string().into_vec();
        // SAFETY: by this function's contract.
        unsafe { copy_text(&text, path, size) };
        match stopped.error {
            None => SUCCESS,
            Some(failure) => {
                agent.set_error(failure.reason);
                ERROR
            }
        }
    })
}

/// Opens a named range on the calling thread. It becomes an api record of the acl level when it is
/// closed, if both happen in one capture with --ascendcl on (the default). Costs a load and a branch
/// while nothing is captured. Returns 0, -1 for NULL or an empty name, 5 when more than 64 are open.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn msprof_agent_push(name: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: by this function's contract.
        match unsafe { c_bytes(name) } {
            None | Some(b"") => BAD_ARGUMENT,
            Some(name) if report::push_range(name) => SUCCESS,
            Some(_) => ERROR,
        }
    })
}

/// Closes the innermost named range of the calling thread. Returns 0, or 5 when none was opened in the
/// running capture.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn msprof_agent_pop() -> i32 {
    guard(|| if report::pop_range() { SUCCESS } else { ERROR })
}

/// Text of the last failure in this process, "" when there was none. Like snprintf: returns the length of
/// the text and writes as much of it as fits, always with a NUL if size is not 0.
///
/// # Safety
/// `text` is null or valid for writes of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn msprof_agent_last_error(text: *mut c_char, size: usize) -> usize {
    guard(|| {
        let agent = msprof_agent_core::agent::current();
        let error = agent.disabled().unwrap_or_else(|| agent.last_error());
        // SAFETY: by this function's contract.
        unsafe { copy_text(error.as_bytes(), text, size) };
        error.len()
    })
}

/// Copies as much as fits, and a NUL.
///
/// # Safety
/// `to` is null or valid for writes of `size` bytes.
unsafe fn copy_text(text: &[u8], to: *mut c_char, size: usize) {
    if to.is_null() || size == 0 {
        return;
    }
    let count = text.len().min(size - 1);
    // SAFETY: `count + 1 <= size` bytes are valid for writes by the contract.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast::<u8>(), count);
        to.add(count).write(0);
    }
}
