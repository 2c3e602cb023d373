//! The vendor's own library behind ours, to which calls are passed on while the process is not in dynamic mode:
//! its other profiling modes go on working (spec 2 sections 2.1 and 2.5).
//!
//! Found once, at the first call: the next definition in the order of symbols; else a loaded `libprofapi.so`, which
//! in Python programs is out of that order; else, where ours stands in its place, the file that ours hides. All its
//! functions are looked up then, and it stays loaded. Calls that come during the search find no such library: they
//! may come from what the loader runs for us, which would wait for itself.

mod functions;

pub use functions::Function;

use crate::boundary::guard;
use msprof_agent_core::names;
use msprof_agent_core::process::environment::Environment;
use msprof_agent_core::{agent, gate, process};
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

const FILE: &str = names::PROFAPI;
/// Every version of it has this symbol.
const PROBE: &CStr = c"MsprofRegTypeInfo";
/// What ours may be instead: the library behind it, which it loads by this name.
const IMPL_FILE: &str = names::PROFIMPL;
/// Every version of that has this symbol, and no `libprofapi.so`.
const IMPL_PROBE: &CStr = c"ProfImplGetImplInfo";
/// A symbol of every copy of our library, and of no other.
pub const OF_OURS: &CStr = c"msprof_agent_version";
/// Libraries of CANN that lie in one directory with it.
const NEIGHBOURS: [&str; 4] = ["libruntime.so", "libascendcl.so", "libge_executor.so", FILE];

const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const FOUND: u8 = 2;

/// Belongs to the loader's state, as the library itself: the same in a forked child.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Process in which a thread is looking for the library; 0 while none is. In a forked child the parent's is not there.
static SEARCHER: AtomicU32 = AtomicU32::new(0);

impl Function {
    /// Where it is, if calls are passed on and the vendor's library has it. Costs a load and a branch where they are
    /// not.
    #[inline]
    pub fn address(self) -> Option<*mut c_void> {
        match STATE.load(Ordering::Acquire) {
            ABSENT => None,
            UNKNOWN if !find() => None,
            _ => self.known_address(),
        }
    }
}

/// Passes a call of an export on, if the process is not in dynamic mode and the vendor's library has the function. What
/// that lets out, from a callback of the program's, goes on to whoever has called: every export lets unwinding through,
/// and is outside of the panic boundary here.
macro_rules! pass_on {
    ($name:ident($($argument:ident),*)) => {
        if let Some(address) = $crate::stock::Function::$name.address() {
            // SAFETY: the vendor's function of that name has the type of ours, which the compiler takes from the
            // arguments and the result.
            let function = unsafe {
                std::mem::transmute::<
                    *mut std::ffi::c_void,
                    unsafe extern "C-unwind" fn($($crate::stock::any!($argument)),*) -> _,
                >(address)
            };
            // SAFETY: the caller's arguments, by the contract of this function.
            return unsafe { function($($argument),*) };
        }
    };
}
pub(crate) use pass_on;

/// A type for the compiler to find out.
macro_rules! any {
    ($argument:ident) => {
        _
    };
}
pub(crate) use any;

/// Looks again at the next call, where the vendor's library was not there: CANN may have been loaded since.
pub fn forget_absence() {
    let _ = STATE.compare_exchange(ABSENT, UNKNOWN, Ordering::AcqRel, Ordering::Relaxed);
}

/// Whether calls are to be passed on: looks for the library, unless a thread of this process is doing so.
#[cold]
fn find() -> bool {
    let pid = process::current_pid();
    let searcher = SEARCHER.load(Ordering::Acquire);
    let taken = searcher != pid
        && SEARCHER
            .compare_exchange(searcher, pid, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
    if !taken {
        return false;
    }
    // Another search may have ended just before.
    if STATE.load(Ordering::Acquire) == UNKNOWN {
        let _not_cancelled = process::NotCancelled::new();
        let found = guard(look_around);
        let state = if found { FOUND } else { ABSENT };
        STATE.store(state, Ordering::Release);
        if found {
            gate::pass_on();
        }
    }
    SEARCHER.store(0, Ordering::Release);
    STATE.load(Ordering::Acquire) == FOUND
}

/// Finds the library and its functions.
fn look_around() -> bool {
    let agent = agent::current();
    if !agent.passes_on() {
        return false;
    }
    let environment = &agent.environment;
    if is_implementation() {
        // What comes next in the order of symbols is the library that calls us.
        let handle =
            hidden_files(IMPL_FILE, environment).find_map(|file| open(&file, IMPL_PROBE, 0));
        if let Some(handle) = handle {
            functions::fill(|name| symbol(handle, name));
        }
        return handle.is_some();
    }
    if is_before_implementation(environment) {
        return false;
    }
    let Some(handle) = library(environment) else {
        return false;
    };
    functions::fill(|name| symbol(handle, name).or_else(|| next(name)));
    true
}

/// Whether this library was loaded in the place of the one behind libprofapi.so.
fn is_implementation() -> bool {
    let path = library_path(own_address());
    path.is_some_and(|path| path.file_name().is_some_and(|name| name == IMPL_FILE))
}

/// Whether the vendor's libprofapi.so would find ours, which is here another way, as the library behind it: what was
/// passed on would come back for ever.
fn is_before_implementation(environment: &Environment) -> bool {
    let mut found = environment.library_path.iter();
    let found = found.find_map(|dir| std::fs::metadata(dir.join(IMPL_FILE)).ok());
    found.is_some_and(|found| is_ours(&found))
}

/// The libraries that may call us, each with the address of a function of theirs.
pub fn in_front(name: &CStr) -> impl Iterator<Item = (*mut c_void, *mut c_void)> {
    let loaded = loaded_files(FILE).into_iter();
    let handles = loaded.filter_map(|file| dlopen(&file, libc::RTLD_NOLOAD));
    handles.filter_map(move |handle| Some((handle, symbol(handle, name)?)))
}

/// A handle of the library. It stays loaded, since the handle is never closed; or it is the program itself.
fn library(environment: &Environment) -> Option<*mut c_void> {
    if let Some(address) = symbol(libc::RTLD_NEXT, PROBE) {
        return Some(hold(address, PROBE).unwrap_or(libc::RTLD_NEXT));
    }
    let mut loaded = loaded_files(FILE).into_iter();
    let loaded = loaded.find_map(|file| open(&file, PROBE, libc::RTLD_NOLOAD));
    loaded.or_else(|| hidden_files(FILE, environment).find_map(|file| open(&file, PROBE, 0)))
}

/// The next definition in the order of symbols. Its library stays loaded.
fn next(name: &CStr) -> Option<*mut c_void> {
    let address = symbol(libc::RTLD_NEXT, name)?;
    hold(address, name);
    Some(address)
}

/// A handle of the library that holds `address`, the definition of `name`; `None` for the program itself, which has no
/// file name that could be opened.
fn hold(address: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    let file = library_path(address.cast_const().cast())?;
    let handle = dlopen(&file, libc::RTLD_NOLOAD)?;
    (symbol(handle, name) == Some(address)).then_some(handle)
}

/// The address of a definition that is neither ours nor that of another copy of our library.
pub fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    let (address, library) = definition(handle, name)?;
    let copy = definition(handle, OF_OURS).and_then(|(_, library)| library);
    (library != ours() && (copy.is_none() || library != copy)).then_some(address)
}

/// What a handle has by that name, and where the library that holds it is mapped.
fn definition(handle: *mut c_void, name: &CStr) -> Option<(*mut c_void, Option<usize>)> {
    // SAFETY: the name is a C string, the handle that of a library that stays loaded or one that dlsym defines.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!address.is_null()).then(|| (address, library_of(address.cast_const().cast())))
}

/// Opens a library that has the vendor's functions; it stays loaded.
fn open(file: &Path, probe: &CStr, flags: c_int) -> Option<*mut c_void> {
    dlopen(file, flags).filter(|&handle| symbol(handle, probe).is_some())
}

fn dlopen(file: &Path, flags: c_int) -> Option<*mut c_void> {
    let name = CString::new(file.as_os_str().as_bytes()).ok()?;
    // SAFETY: the name is a C string. What the library does as it is loaded is what it does without us.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | flags) };
    (!handle.is_null()).then_some(handle)
}

/// Files of that name where the loader would have found it after ours, or that lie beside CANN's other libraries.
fn hidden_files(name: &str, environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let searched = environment.library_path.iter().cloned();
    let homes = environment.cann_homes.iter();
    searched
        .chain(neighbours())
        .chain(homes.map(|home| home.join("lib64")))
        .map(move |dir| dir.join(name))
        .filter(move |file| {
            // The loader would wait for somebody to write to a pipe.
            let found = std::fs::metadata(file).ok();
            found.is_some_and(|found| found.is_file() && !is_ours(&found))
        })
}

fn is_ours(found: &std::fs::Metadata) -> bool {
    let ours = library_path(own_address()).and_then(|path| std::fs::metadata(path).ok());
    ours.is_some_and(|ours| (found.dev(), found.ino()) == (ours.dev(), ours.ino()))
}

/// Directories of CANN's libraries that are loaded.
fn neighbours() -> impl Iterator<Item = PathBuf> {
    let files = NEIGHBOURS.into_iter().flat_map(loaded_files);
    files.filter_map(|file| file.parent().map(Path::to_owned))
}

/// Files of loaded libraries with that name, with or without a version behind it. To ask the loader for the name would
/// have it search the file system.
fn loaded_files(name: &str) -> Vec<PathBuf> {
    let mut search = LoadedFiles {
        name: name.as_bytes(),
        found: Vec::with_capacity(LOADED_FILES_BYTES),
    };
    // SAFETY: the callback gets a pointer to `search`, which lives as long as the call.
    unsafe { libc::dl_iterate_phdr(Some(note_loaded), (&raw mut search).cast()) };
    let files = search.found.split(|&byte| byte == 0);
    files
        .filter(|file| !file.is_empty())
        .map(|file| PathBuf::from(OsStr::from_bytes(file)))
        .collect()
}

/// Room for the names of a few files.
const LOADED_FILES_BYTES: usize = 16 << 10;

struct LoadedFiles<'a> {
    name: &'a [u8],
    /// File names, each with a NUL behind it. Never grows: the callback runs under the loader's lock, and an allocator
    /// may need the loader.
    found: Vec<u8>,
}

unsafe extern "C" fn note_loaded(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    search: *mut c_void,
) -> c_int {
    // SAFETY: what `loaded_files` has passed.
    let search = unsafe { &mut *search.cast::<LoadedFiles<'_>>() };
    // SAFETY: the loader passes a struct that is valid for the call.
    let file = unsafe { (*info).dlpi_name };
    if file.is_null() {
        return 0;
    }
    // SAFETY: a C string of the loader's, which stays for the call.
    let file = unsafe { CStr::from_ptr(file) }.to_bytes_with_nul();
    let base = file.rsplit(|&byte| byte == b'/').next().unwrap_or(file);
    let is_named = base
        .strip_prefix(search.name)
        .is_some_and(|rest| matches!(rest, [0] | [b'.', ..]));
    if is_named && file.len() <= search.found.capacity() - search.found.len() {
        search.found.extend_from_slice(file);
    }
    0
}

fn own_address() -> *const () {
    find as *const ()
}

fn ours() -> Option<usize> {
    library_of(own_address())
}

/// Where the library that holds an address is mapped.
pub fn library_of(address: *const ()) -> Option<usize> {
    info(address).map(|info| info.dli_fbase as usize)
}

/// File of the library that holds an address.
fn library_path(address: *const ()) -> Option<PathBuf> {
    let name = info(address)?.dli_fname;
    // SAFETY: a C string of the loader's, which stays as long as the library.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

fn info(address: *const ()) -> Option<libc::Dl_info> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; the result goes to a local of the right type.
    if unsafe { libc::dladdr(address.cast(), found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: zeroed is valid for the struct, and the call has filled it in.
    Some(unsafe { found.assume_init() })
}
