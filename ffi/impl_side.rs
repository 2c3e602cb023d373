//! The library as `libprofimpl.so`, behind the vendor's `libprofapi.so`: the functions that one looks up there beside
//! those of `lifecycle` (spec 2 section 2.5, way D).
//!
//! Where the vendor's library can divert reports it is asked to, so that they go straight into our rings, and makes no
//! buffers. Else its buffers are emptied (`pops`). Functions with strings of C++ are missing on purpose: there are two
//! layouts of these, and nothing says which one the caller has.

mod pops;

use crate::boundary::{BAD_ARGUMENT, SUCCESS, guard, used};
use crate::device_side::is_feature_on;
use crate::lifecycle::MsprofNotifySetDevice;
use crate::mstx::InitInjectionMstx;
use crate::profile_callback::{
    ADDITIONAL, API, COMPACT, DEVICE_STATE, DeviceState, EVENT, HASH_ID, TYPE_INFO,
};
use crate::reports::{
    MsprofReportAdditionalInfo, MsprofReportApi, MsprofReportCompactInfo, MsprofReportEvent,
};
use crate::stock::{self, pass_on};
use crate::types::{MsprofMstxGetter, MsprofMstxInit, MsprofRawDataCallback};
use msprof_agent_core::agent::{self, Agent};
use msprof_agent_core::dictionary::EMPTY_ID;
use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

pub use pops::quiesce;

// ---- diverting ----------------------------------------------------------------

/// `MsprofRegisterProfileCallback` and `MsprofGetHashId` of the vendor's library.
type Register = unsafe extern "C" fn(kind: i32, callback: *mut c_void, len: u32) -> i32;
type GetHashId = unsafe extern "C" fn(text: *const c_char, len: usize) -> u64;

type OnTypeInfo = unsafe extern "C" fn(u16, u32, *const c_char, usize) -> i32;

const UNKNOWN: u8 = 0;
const REFUSED: u8 = 1;
const DIVERTED: u8 = 2;

/// Belongs to the vendor's library: the same in a forked child.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// What the vendor's library is asked the id of, to see whether it asks us.
const PROBE: &[u8] = b"msprof_agent: are reports diverted?";
static PROBED: AtomicBool = AtomicBool::new(false);

/// Has the vendor's library hand reports over, once in a process; whether it does.
fn divert() -> bool {
    match STATE.load(Ordering::Acquire) {
        DIVERTED => return true,
        REFUSED => return false,
        _ => {}
    }
    let diverted = guard(|| stock::in_front(c"MsprofRegisterProfileCallback").any(register));
    let state = if diverted { DIVERTED } else { REFUSED };
    STATE.store(state, Ordering::Release);
    diverted
}

/// Registers callbacks with the library of `handle`. One generation of it takes them and does not call them, so the
/// first is tried.
fn register((handle, register): (*mut c_void, *mut c_void)) -> bool {
    // SAFETY: the vendor's functions of these names have these types.
    let register: Register = unsafe { std::mem::transmute(register) };
    let Some(get_hash_id) = stock::symbol(handle, c"MsprofGetHashId") else {
        return false;
    };
    // SAFETY: likewise.
    let get_hash_id: GetHashId = unsafe { std::mem::transmute(get_hash_id) };
    let len = size_of::<*mut c_void>() as u32;
    // SAFETY: a callback of that kind's type, which stays: this library is never unloaded.
    if unsafe { register(HASH_ID as i32, on_hash_id as GetHashId as *mut c_void, len) } != SUCCESS {
        return false;
    }
    PROBED.store(false, Ordering::Release);
    // SAFETY: a text and its length.
    unsafe { get_hash_id(PROBE.as_ptr().cast(), PROBE.len()) };
    if !PROBED.load(Ordering::Acquire) {
        return false;
    }
    // SAFETY: as above.
    let takes = |kind: usize, callback| unsafe { register(kind as i32, callback, len) } == SUCCESS;
    // Names of types and devices also come by other calls.
    takes(TYPE_INFO, on_type_info as OnTypeInfo as *mut c_void);
    takes(DEVICE_STATE, on_device as *mut c_void);
    let reports = [
        (API, MsprofReportApi as *mut c_void),
        (EVENT, MsprofReportEvent as *mut c_void),
        (COMPACT, MsprofReportCompactInfo as *mut c_void),
        (ADDITIONAL, MsprofReportAdditionalInfo as *mut c_void),
    ];
    // All are tried. What one kind is refused for goes into the buffers, which are needed then.
    let taken = reports.map(|(kind, callback)| takes(kind, callback));
    taken.into_iter().all(|taken| taken)
}

/// # Safety
/// `text` is null or valid for `len` bytes.
unsafe extern "C" fn on_hash_id(text: *const c_char, len: usize) -> u64 {
    // SAFETY: by this function's contract.
    let Some(text) = (unsafe { crate::boundary::c_slice(text, len) }) else {
        return EMPTY_ID;
    };
    if text == PROBE {
        PROBED.store(true, Ordering::Release);
        return EMPTY_ID;
    }
    used(|agent| agent.dictionary.id_of(text))
}

/// # Safety
/// `name` is null or valid for `len` bytes.
unsafe extern "C" fn on_type_info(level: u16, kind: u32, name: *const c_char, len: usize) -> i32 {
    used(|agent| {
        // SAFETY: by this function's contract.
        match unsafe { crate::boundary::c_slice(name, len) } {
            Some(name) if agent.dictionary.name_type(level, kind, name) => SUCCESS,
            _ => BAD_ARGUMENT,
        }
    })
}

/// # Safety
/// `state` is null or valid for `len` bytes.
unsafe extern "C-unwind" fn on_device(state: *mut c_void, len: u32) -> i32 {
    if state.is_null() || (len as usize) < size_of::<DeviceState>() {
        return BAD_ARGUMENT;
    }
    // SAFETY: at least that many bytes, and any are a value of this type.
    let state = unsafe { state.cast::<DeviceState>().read_unaligned() };
    MsprofNotifySetDevice(state.chip, state.device, state.open != 0)
}

// ---- what the vendor's library calls --------------------------------------------

/// What the vendor's library asks before it makes its buffers.
#[repr(C)]
pub struct ImplInfo {
    /// In answer, bytes: each buffer has at most a thousandth of this many slots.
    free_ram: usize,
    /// Kind of the initialisation.
    kind: u32,
    /// In answer: whether buffers are needed.
    init: bool,
}
const _: () = {
    assert!(size_of::<ImplInfo>() == 16);
    assert!(offset_of!(ImplInfo, kind) == 8);
    assert!(offset_of!(ImplInfo, init) == 12);
};

/// Answers what buffers the vendor's library is to make: none where it hands reports over at once.
///
/// # Safety
/// `info` is null or valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfImplGetImplInfo(info: *mut ImplInfo) {
    pass_on!(ProfImplGetImplInfo(info));
    used(|agent| {
        if info.is_null() {
            return;
        }
        let needed = agent.is_armed() && !divert();
        // SAFETY: not null, so valid.
        unsafe {
            (*info).init = needed;
            (*info).free_ram = if needed { room(agent) } else { 0 };
        }
    });
}

/// Bytes that the vendor's buffers are measured by: what is free, within the bound on ours.
fn room(agent: &Agent) -> usize {
    let mut system = std::mem::MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: the call fills in a local of the right type.
    let free = match unsafe { libc::sysinfo(system.as_mut_ptr()) } {
        // SAFETY: zeroed is valid for the struct.
        0 => unsafe { system.assume_init() }.freeram as usize,
        _ => 0,
    };
    free.min(agent.environment.buffer_bytes)
}

/// Whether a feature is switched on by the running capture: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfImplGetFeatureIsOn(feature: u64) -> i32 {
    pass_on!(ProfImplGetFeatureIsOn(feature));
    is_feature_on(feature)
}

/// Whether times are counter ticks of a host frequency; false, they are nanoseconds.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfImplHostFreqIsEnable() -> bool {
    pass_on!(ProfImplHostFreqIsEnable());
    false
}

/// A command of another profiling mode; accepted and ignored in dynamic mode. Returns 0.
///
/// # Safety
/// Where calls are passed on, the pointer is what the vendor's function takes; else it is not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfImplSetProfCommand(command: *mut c_void, len: u32) -> i32 {
    pass_on!(ProfImplSetProfCommand(command, len));
    used(|_| SUCCESS)
}

/// As MsprofSubscribeRawData.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfImplSubscribeRawData(callback: MsprofRawDataCallback) -> i32 {
    pass_on!(ProfImplSubscribeRawData(callback));
    used(|_| match callback {
        Some(_) => SUCCESS,
        None => BAD_ARGUMENT,
    })
}

/// Ends a raw data subscription. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfImplUnSubscribeRawData() -> i32 {
    pass_on!(ProfImplUnSubscribeRawData());
    used(|_| SUCCESS)
}

/// As MsprofCheckOpSwitch.
///
/// # Safety
/// Where calls are passed on, the pointer is what the vendor's function takes; else it is not read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfCheckOpSwitch(
    kind: u32,
    op: *const c_char,
    len: usize,
) -> bool {
    pass_on!(ProfCheckOpSwitch(kind, op, len));
    guard(|| false)
}

/// Registers our functions for mstx with the vendor's library.
type RegisterMstx = Option<unsafe extern "C" fn(init: MsprofMstxInit, module: u32)>;

/// Our number there.
const MSPROF_MODULE: u32 = 1;

/// Registers our functions for mstx by the function that is given.
///
/// # Safety
/// `register` is null or such a function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfImplInitMstxInjection(register: RegisterMstx) {
    pass_on!(ProfImplInitMstxInjection(register));
    let init: unsafe extern "C-unwind" fn(MsprofMstxGetter) -> i32 = InitInjectionMstx;
    if let Some(register) = register.filter(|_| agent::current().is_armed()) {
        // SAFETY: by this function's contract.
        unsafe { register(Some(init), MSPROF_MODULE) };
    }
}

/// Functions by which marks would get into the vendor's buffers; they go into our rings.
macro_rules! not_needed {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The function is null or has the type that the vendor's library gives it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(function: *mut c_void) {
            pass_on!($name(function));
        }
    )*};
}

not_needed! {
    /// How marks get into the vendor's buffers: not needed.
    ProfImplSetAdditionalBufPush,
    /// How a mark is set on a stream: not needed.
    ProfImplSetMarkEx,
    /// How to ask whether the vendor's buffers are empty: not needed.
    ProfImplIfReportBufEmpty,
}
