//! Callbacks of other tools (mspti, msServiceProfiler), which get some reports in place of the capture and see the
//! names, strings and devices that go by.
//!
//! A callback is called on the thread that reports, with no lock held and outside of the panic boundary. What it throws
//! goes on to whoever has reported, as it would without us.

use crate::boundary::{BAD_ARGUMENT, SUCCESS, used};
use crate::stock::pass_on;
use crate::types::{MsprofApi, MsprofEvent};
use msprof_agent_core::agent::Agent;
use msprof_agent_core::diverted::ReportKind;
use msprof_agent_core::gate::Word;
use std::ffi::{CStr, c_char, c_void};
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

// What a callback can be registered for, by the number that registers it. All others up to the last are those of an
// older interface, of C++ strings or of another clock than ours: accepted, and not called.
pub(crate) const COMPACT: usize = 4;
pub(crate) const ADDITIONAL: usize = 5;
pub(crate) const API: usize = 9;
pub(crate) const EVENT: usize = 10;
pub(crate) const TYPE_INFO: usize = 11;
pub(crate) const HASH_ID: usize = 12;
pub(crate) const DEVICE_STATE: usize = 16;

type OnApi = unsafe extern "C-unwind" fn(aging: u32, api: *const MsprofApi) -> i32;
type OnEvent = unsafe extern "C-unwind" fn(aging: u32, event: *const MsprofEvent) -> i32;
type OnData = unsafe extern "C-unwind" fn(aging: u32, data: *const c_void, len: u32) -> i32;
type OnTypeInfo =
    unsafe extern "C-unwind" fn(level: u16, kind: u32, name: *const c_char, len: usize) -> i32;
type OnHashId = unsafe extern "C-unwind" fn(text: *const c_char, len: usize) -> u64;
type OnDeviceState = unsafe extern "C-unwind" fn(state: *mut c_void, len: u32) -> i32;

/// By kind. Not in the agent, which a forked child makes anew: the other tool is there as well.
static CALLBACKS: [AtomicPtr<c_void>; DEVICE_STATE + 1] =
    [const { AtomicPtr::new(null_mut()) }; DEVICE_STATE + 1];

/// Registers a callback of another tool. Kinds: 4 compact records, 5 additional records, 9 api records, 10 events:
/// the callback gets these reports, but for batches, and no capture has them. 11 type names, 12 strings that get an
/// id, 16 devices (also those that were opened or closed before): the callback is told as well. 0 to 3, 6 to 8 and 13
/// to 15 are accepted and never called. The callback runs on the thread that reports, and is called as the vendor's
/// library calls it. A null callback takes away the one that was there. Returns 0, or -1 for another kind or a null
/// callback where there was none.
///
/// # Safety
/// `callback` is null or a function of that kind's type, until another one takes its place. Where calls are passed on,
/// what the vendor's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MsprofRegisterProfileCallback(
    kind: i32,
    callback: *mut c_void,
    len: u32,
) -> i32 {
    pass_on!(MsprofRegisterProfileCallback(kind, callback, len));
    let Ok(kind) = usize::try_from(kind) else {
        return used(|_| BAD_ARGUMENT);
    };
    let result = used(|agent| register(agent, kind, callback));
    if result == SUCCESS && kind == DEVICE_STATE {
        replay_devices();
    }
    result
}

fn register(agent: &Agent, kind: usize, callback: *mut c_void) -> i32 {
    let Some(place) = CALLBACKS.get(kind) else {
        return BAD_ARGUMENT;
    };
    let before = place.swap(callback, Ordering::AcqRel);
    let reports = ReportKind::ALL.into_iter().find(|&of| number(of) == kind);
    if let Some(reports) = reports {
        agent.diverted.set(reports, !callback.is_null());
    }
    if before.is_null() && callback.is_null() {
        BAD_ARGUMENT
    } else {
        SUCCESS
    }
}

fn number(kind: ReportKind) -> usize {
    match kind {
        ReportKind::Api => API,
        ReportKind::Event => EVENT,
        ReportKind::Compact => COMPACT,
        ReportKind::Additional => ADDITIONAL,
    }
}

/// The callback of a kind.
///
/// # Safety
/// `F` is the type of that kind's callbacks.
unsafe fn callback<F: Copy>(kind: usize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let callback = CALLBACKS[kind].load(Ordering::Acquire);
    // SAFETY: by this function's contract and that of the registration; not null.
    (!callback.is_null()).then(|| unsafe { std::mem::transmute_copy(&callback) })
}

/// The callback that gets the report of a kind; counted as one that the capture does not have. `word` is what the
/// gate said.
///
/// # Safety
/// `F` is the type of that kind's callbacks.
unsafe fn taker<F: Copy>(word: Word, kind: ReportKind) -> Option<F> {
    // SAFETY: by this function's contract.
    let taker = unsafe { callback(number(kind)) }?;
    if word == Word::ASK {
        // A use of the ABI, as any report.
        used(|_| SUCCESS);
    } else if word.is_capture()
        && let Some(agent) = Agent::current()
    {
        agent.diverted.count(kind);
    }
    Some(taker)
}

/// Has another tool take an api record, if one wants them: its result.
///
/// # Safety
/// As MsprofReportApi.
pub unsafe fn take_api(word: Word, aging: u32, api: *const MsprofApi) -> Option<i32> {
    if api.is_null() {
        return None;
    }
    // SAFETY: the type of that kind.
    let taker = unsafe { taker::<OnApi>(word, ReportKind::Api) }?;
    // SAFETY: the reporter's own arguments.
    Some(unsafe { taker(aging, api) })
}

/// The same of an event.
///
/// # Safety
/// As MsprofReportEvent.
pub unsafe fn take_event(word: Word, aging: u32, event: *const MsprofEvent) -> Option<i32> {
    if event.is_null() {
        return None;
    }
    // SAFETY: the type of that kind.
    let taker = unsafe { taker::<OnEvent>(word, ReportKind::Event) }?;
    // SAFETY: the reporter's own arguments.
    Some(unsafe { taker(aging, event) })
}

/// The same of a compact or additional record.
///
/// # Safety
/// As MsprofReportCompactInfo. `kind` is one of these two.
pub unsafe fn take_data(
    word: Word,
    kind: ReportKind,
    aging: u32,
    data: *const c_void,
    len: u32,
) -> Option<i32> {
    if data.is_null() {
        return None;
    }
    // SAFETY: the type of both kinds.
    let taker = unsafe { taker::<OnData>(word, kind) }?;
    // SAFETY: the reporter's own arguments.
    Some(unsafe { taker(aging, data, len) })
}

/// Tells another tool the name of a type.
///
/// # Safety
/// `name` is null or a C string.
pub unsafe fn tell_type(level: u16, kind: u32, name: *const c_char) {
    // SAFETY: the type of that kind.
    if let Some(callback) = unsafe { callback::<OnTypeInfo>(TYPE_INFO) }
        && !name.is_null()
    {
        // SAFETY: by this function's contract.
        let len = unsafe { CStr::from_ptr(name) }.count_bytes();
        // SAFETY: the reporter's own arguments, and the name's length.
        unsafe { callback(level, kind, name, len) };
    }
}

/// Tells another tool a string that gets an id. Its idea of the id is not asked for.
///
/// # Safety
/// `text` is null or valid for `len` bytes.
pub unsafe fn tell_string(text: *const c_char, len: usize) {
    // SAFETY: the type of that kind.
    if let Some(callback) = unsafe { callback::<OnHashId>(HASH_ID) }
        && !text.is_null()
        && len != 0
    {
        // SAFETY: the reporter's own arguments.
        unsafe { callback(text, len) };
    }
}

/// What a callback is told of a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DeviceState {
    pub chip: u32,
    pub device: u32,
    /// 0 or 1. No `bool`: somebody else may have filled it in.
    pub open: u8,
}
const _: () = {
    assert!(size_of::<DeviceState>() == 12);
    assert!(offset_of!(DeviceState, device) == 4);
    assert!(offset_of!(DeviceState, open) == 8);
};

/// Tells another tool of a device, and notes it for one that comes later.
pub fn tell_device(chip: u32, device: u32, open: bool) {
    SEEN.note(u64::from(chip) << 32 | u64::from(device), open);
    tell(chip, device, open);
}

fn tell(chip: u32, device: u32, open: bool) {
    // SAFETY: the type of that kind.
    if let Some(callback) = unsafe { callback::<OnDeviceState>(DEVICE_STATE) } {
        let mut state = DeviceState {
            chip,
            device,
            open: open.into(),
        };
        let len = size_of::<DeviceState>() as u32;
        // SAFETY: the callback takes such a struct, which lives until it returns.
        unsafe { callback((&raw mut state).cast(), len) };
    }
}

fn replay_devices() {
    for (id, open) in SEEN.all() {
        tell((id >> 32) as u32, id as u32, open);
    }
}

/// Devices that were opened or closed, by chip (high half) and device; those beyond the first are not kept. Without a
/// lock, which a fork could leave held.
struct Seen {
    ids: [AtomicU64; Self::MOST],
    states: [AtomicU8; Self::MOST],
}

static SEEN: Seen = Seen {
    ids: [const { AtomicU64::new(Seen::FREE) }; Seen::MOST],
    states: [const { AtomicU8::new(Seen::UNKNOWN) }; Seen::MOST],
};

impl Seen {
    const MOST: usize = 128;
    /// Chip and device are never both this.
    const FREE: u64 = u64::MAX;
    const UNKNOWN: u8 = 0;
    const OPEN: u8 = 1;
    const CLOSED: u8 = 2;

    fn note(&self, id: u64, open: bool) {
        let state = if open { Self::OPEN } else { Self::CLOSED };
        let is_its = |place: &AtomicU64| {
            let taken = place.compare_exchange(Self::FREE, id, Ordering::AcqRel, Ordering::Acquire);
            taken.is_ok() || taken == Err(id)
        };
        let place = |place: &AtomicU64| match place.load(Ordering::Acquire) {
            Self::FREE => is_its(place),
            other => other == id,
        };
        if let Some(index) = self.ids.iter().position(place) {
            self.states[index].store(state, Ordering::Release);
        }
    }

    fn all(&self) -> impl Iterator<Item = (u64, bool)> {
        let both = self.ids.iter().zip(&self.states);
        both.filter_map(|(id, state)| match state.load(Ordering::Acquire) {
            Self::UNKNOWN => None,
            state => Some((id.load(Ordering::Acquire), state == Self::OPEN)),
        })
    }
}
