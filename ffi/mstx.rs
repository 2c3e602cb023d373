//! mstx: its library asks a tool for a table of functions and calls these from then on.
//!
//! A table is an array of pointers to places for function pointers; place 0 is not used, and a shorter table
//! is one of an older mstx. Module 1 holds the functions without a domain, module 2 those with one.
//!
//! Another tool in the process (mspti) may register functions of its own and switch them on; calls then go to
//! these instead.

use crate::boundary::{c_bytes, guard, used};
use crate::stock::pass_on;
use crate::types::{MsprofMstxGetter, MsprofMstxInit};
use msprof_agent_core::marks;
use std::ffi::{c_char, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

type Table = *mut *mut c_void;
type Getter = unsafe extern "C" fn(module: i32, table: *mut Table, size: *mut u32) -> i32;

const OK: i32 = 0;
const FAILED: i32 = 1;
const CORE: i32 = 1;
const DOMAIN: i32 = 2;
/// The other tool, as mstx's registration calls number it.
const OTHER_TOOL: u32 = 2;
/// What a program that asks is told: msprof.
const TOOL_ID: u64 = 0x1000;

// The functions, as mstx calls them: strings end with NUL, streams are the runtime's, domains ours.
type MarkA = unsafe extern "C" fn(*const c_char, *mut c_void);
type RangeStartA = unsafe extern "C" fn(*const c_char, *mut c_void) -> u64;
type RangeEnd = unsafe extern "C" fn(u64);
type DomainCreateA = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type DomainDestroy = unsafe extern "C" fn(*mut c_void);
type DomainMarkA = unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void);
type DomainRangeStartA = unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void) -> u64;
type DomainRangeEnd = unsafe extern "C" fn(*mut c_void, u64);

/// Functions of another tool, each in a place of its own that its tables point to.
struct OtherTool {
    core: [AtomicPtr<c_void>; 3],
    domain: [AtomicPtr<c_void>; 5],
    /// Which tool the program's calls go to.
    enabled: AtomicU32,
}

/// The other tool writes to these places whenever it likes, so they cannot lie in the agent, which a forked
/// child makes anew.
static OTHER: OtherTool = OtherTool {
    core: [const { AtomicPtr::new(null_mut()) }; 3],
    domain: [const { AtomicPtr::new(null_mut()) }; 5],
    enabled: AtomicU32::new(0),
};

/// A table of such places, as the other tool is given it.
struct OtherTable<const N: usize>([*mut *mut c_void; N]);
// SAFETY: it is never written, and the places that it points to are atomics.
unsafe impl<const N: usize> Sync for OtherTable<N> {}

static OTHER_CORE: OtherTable<4> = OtherTable([
    null_mut(),
    OTHER.core[0].as_ptr(),
    OTHER.core[1].as_ptr(),
    OTHER.core[2].as_ptr(),
]);
static OTHER_DOMAIN: OtherTable<6> = OtherTable([
    null_mut(),
    OTHER.domain[0].as_ptr(),
    OTHER.domain[1].as_ptr(),
    OTHER.domain[2].as_ptr(),
    OTHER.domain[3].as_ptr(),
    OTHER.domain[4].as_ptr(),
]);

/// Tells the other tool where its functions go.
unsafe extern "C" fn other_table(module: i32, table: *mut Table, size: *mut u32) -> i32 {
    let (places, count) = match module {
        CORE => (OTHER_CORE.0.as_ptr(), OTHER_CORE.0.len()),
        DOMAIN => (OTHER_DOMAIN.0.as_ptr(), OTHER_DOMAIN.0.len()),
        _ => return FAILED,
    };
    if table.is_null() || size.is_null() {
        return FAILED;
    }
    // SAFETY: not null, and the caller has them point to its variables.
    unsafe {
        table.write(places.cast_mut().cast());
        size.write(count as u32);
    }
    OK
}

/// A function of the other tool, if it has registered one.
///
/// # Safety
/// `F` is the type of the functions in this place.
unsafe fn registered<F: Copy>(place: &AtomicPtr<c_void>) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let function = place.load(Ordering::Acquire);
    // SAFETY: by this function's contract; not null.
    (!function.is_null()).then(|| unsafe { std::mem::transmute_copy(&function) })
}

/// The same, if the program's calls go there.
///
/// # Safety
/// As [`registered`].
unsafe fn other<F: Copy>(place: &AtomicPtr<c_void>) -> Option<F> {
    let enabled = OTHER.enabled.load(Ordering::Acquire) == OTHER_TOOL;
    // SAFETY: by this function's contract.
    enabled.then(|| unsafe { registered(place) }).flatten()
}

/// Fills in a table of mstx functions, by which the program's marks get here. Returns 0; 1 when the getter is
/// NULL or knows no functions.
///
/// # Safety
/// `getter` is null or a function that gives out tables as mstx has them.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn InitInjectionMstx(getter: MsprofMstxGetter) -> i32 {
    pass_on!(InitInjectionMstx(getter));
    used(|_| {
        let Some(getter) = getter else {
            return FAILED;
        };
        let core = [
            mark_a as MarkA as *const c_void,
            range_start_a as RangeStartA as *const c_void,
            range_end as RangeEnd as *const c_void,
            tool_id as unsafe extern "C" fn(*mut u64) as *const c_void,
        ];
        let domain = [
            domain_create_a as DomainCreateA as *const c_void,
            domain_destroy as DomainDestroy as *const c_void,
            domain_mark_a as DomainMarkA as *const c_void,
            domain_range_start_a as DomainRangeStartA as *const c_void,
            domain_range_end as DomainRangeEnd as *const c_void,
        ];
        // SAFETY: by this function's contract.
        let filled = unsafe { fill(getter, CORE, &core) };
        // SAFETY: likewise. An older mstx has no domains.
        unsafe { fill(getter, DOMAIN, &domain) };
        if filled { OK } else { FAILED }
    })
}

/// # Safety
/// `getter` gives out tables as mstx has them.
unsafe fn fill(getter: Getter, module: i32, functions: &[*const c_void]) -> bool {
    let (mut table, mut size): (Table, u32) = (null_mut(), 0);
    // SAFETY: by this function's contract; both point to local variables.
    if unsafe { getter(module, &mut table, &mut size) } != OK || table.is_null() {
        return false;
    }
    for (index, function) in (1..size as usize).zip(functions) {
        // SAFETY: the table has `size` places.
        let place = unsafe { table.add(index).read() };
        if !place.is_null() {
            // SAFETY: a place for the pointer of this function.
            unsafe { place.cast::<*const c_void>().write(*function) };
        }
    }
    size > 1
}

/// Switches to the functions that another tool has registered (2), or back to ours (any other number).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ProfEnableMstxFunc(module: u32) {
    pass_on!(ProfEnableMstxFunc(module));
    OTHER.enabled.store(module, Ordering::Release);
}

/// Lets another tool (2) fill in its functions, by calling its `init` with a getter of tables. Those of any
/// other number are ours already.
///
/// # Safety
/// `init` is null or such a function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ProfRegisterMstxFunc(init: MsprofMstxInit, module: u32) {
    pass_on!(ProfRegisterMstxFunc(init, module));
    if let Some(init) = init.filter(|_| module == OTHER_TOOL) {
        // SAFETY: by this function's contract.
        unsafe { init(Some(other_table)) };
    }
}

// ---- what the program calls -------------------------------------------------

/// # Safety
/// `message` is null or a C string.
unsafe extern "C" fn mark_a(message: *const c_char, stream: *mut c_void) {
    // SAFETY: the type of that place.
    if let Some(other) = unsafe { other::<MarkA>(&OTHER.core[0]) } {
        // SAFETY: the program's own arguments.
        return unsafe { other(message, stream) };
    }
    guard(|| {
        // SAFETY: by this function's contract.
        if let Some(message) = unsafe { c_bytes(message) } {
            marks::mstx_mark(None, message);
        }
    });
}

/// # Safety
/// `message` is null or a C string.
unsafe extern "C" fn range_start_a(message: *const c_char, stream: *mut c_void) -> u64 {
    // SAFETY: the type of that place.
    if let Some(other) = unsafe { other::<RangeStartA>(&OTHER.core[1]) } {
        // SAFETY: the program's own arguments.
        return unsafe { other(message, stream) };
    }
    guard(|| {
        // SAFETY: by this function's contract.
        let message = unsafe { c_bytes(message) };
        message.map_or(0, |message| marks::mstx_begin(None, message))
    })
}

/// Ends a range.
unsafe extern "C" fn range_end(id: u64) {
    // SAFETY: the type of that place.
    if let Some(other) = unsafe { other::<RangeEnd>(&OTHER.core[2]) } {
        // SAFETY: the program's own argument.
        return unsafe { other(id) };
    }
    guard(|| marks::mstx_end(id));
}

/// # Safety
/// `id` is null or valid for a write.
unsafe extern "C" fn tool_id(id: *mut u64) {
    if !id.is_null() {
        // SAFETY: by this function's contract.
        unsafe { id.write(TOOL_ID) };
    }
}

/// Makes a domain, here and with the other tool. NULL for a null pointer, an empty name, or when there are
/// too many.
///
/// # Safety
/// `name` is null or a C string.
unsafe extern "C" fn domain_create_a(name: *const c_char) -> *mut c_void {
    used(|agent| {
        // SAFETY: by this function's contract.
        let Some(text) = unsafe { c_bytes(name) }.filter(|text| !text.is_empty()) else {
            return null_mut();
        };
        // SAFETY: the type of that place.
        let create = unsafe { registered::<DomainCreateA>(&OTHER.domain[0]) };
        // SAFETY: the name is a C string.
        let theirs = create.map_or(null_mut(), |create| unsafe { create(name) });
        let domains = agent.marks.domains();
        let domain = domains.create(&agent.dictionary, text, theirs.expose_provenance() as u64);
        without_provenance_mut(domain as usize)
    })
}

/// Ends a domain.
unsafe extern "C" fn domain_destroy(domain: *mut c_void) {
    used(|agent| {
        let was = agent.marks.domains().destroy(domain.addr() as u64);
        // SAFETY: the type of that place.
        let destroy = unsafe { registered::<DomainDestroy>(&OTHER.domain[1]) };
        if let Some(was) = was.filter(|was| was.other != 0)
            && let Some(destroy) = destroy
        {
            // SAFETY: the domain is one that the other tool made.
            unsafe { destroy(theirs(was.other)) };
        }
    });
}

/// The other tool's domain.
fn theirs(other: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(other as usize)
}

/// A function of the other tool and what it knows a domain by.
///
/// # Safety
/// As [`other`].
unsafe fn other_in<F: Copy>(
    place: &AtomicPtr<c_void>,
    domain: *mut c_void,
) -> Option<(F, *mut c_void)> {
    // SAFETY: by this function's contract.
    let other = unsafe { other::<F>(place) }?;
    let known = guard(|| {
        let agent = msprof_agent_core::agent::current();
        let known = agent.marks.domains().get(domain.addr() as u64);
        known.map_or(null_mut(), |known| theirs(known.other))
    });
    Some((other, known))
}

/// # Safety
/// `message` is null or a C string.
unsafe extern "C" fn domain_mark_a(
    domain: *mut c_void,
    message: *const c_char,
    stream: *mut c_void,
) {
    // SAFETY: the type of that place.
    if let Some((other, domain)) = unsafe { other_in::<DomainMarkA>(&OTHER.domain[2], domain) } {
        // SAFETY: the program's own arguments, and the other tool's domain.
        return unsafe { other(domain, message, stream) };
    }
    guard(|| {
        // SAFETY: by this function's contract.
        if let Some(message) = unsafe { c_bytes(message) } {
            marks::mstx_mark(Some(domain.addr() as u64), message);
        }
    });
}

/// # Safety
/// `message` is null or a C string.
unsafe extern "C" fn domain_range_start_a(
    domain: *mut c_void,
    message: *const c_char,
    stream: *mut c_void,
) -> u64 {
    // SAFETY: the type of that place.
    let theirs = unsafe { other_in::<DomainRangeStartA>(&OTHER.domain[3], domain) };
    if let Some((other, domain)) = theirs {
        // SAFETY: the program's own arguments, and the other tool's domain.
        return unsafe { other(domain, message, stream) };
    }
    guard(|| {
        // SAFETY: by this function's contract.
        let message = unsafe { c_bytes(message) };
        message.map_or(0, |message| {
            marks::mstx_begin(Some(domain.addr() as u64), message)
        })
    })
}

/// Ends a range.
unsafe extern "C" fn domain_range_end(domain: *mut c_void, id: u64) {
    // SAFETY: the type of that place.
    if let Some((other, domain)) = unsafe { other_in::<DomainRangeEnd>(&OTHER.domain[4], domain) } {
        // SAFETY: the program's own arguments, and the other tool's domain.
        return unsafe { other(domain, id) };
    }
    guard(|| marks::mstx_end(id));
}
