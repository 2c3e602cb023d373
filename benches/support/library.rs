//! Libraries as a CANN component opens them: dlopen and dlsym.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library that stays loaded for the life of the process.
pub struct Library {
    handle: *mut c_void,
    path: PathBuf,
}

impl Library {
    /// Loads it, with all symbols bound at once.
    pub fn open(path: &Path) -> Library {
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path has no NUL");
        // SAFETY: a C string; the constructors of the libraries opened here are this repository's own.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{}: {}", path.display(), dl_error());
        let path = path.to_owned();
        Library { handle, path }
    }

    /// Where it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A function.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the function of that name.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> F {
        let symbol = CString::new(name).expect("a name has no NUL");
        // SAFETY: the handle is open, the name a C string.
        let address = unsafe { libc::dlsym(self.handle, symbol.as_ptr()) };
        assert!(!address.is_null(), "{name}: {}", dl_error());
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        // SAFETY: by this function's contract.
        unsafe { std::mem::transmute_copy(&address) }
    }
}

fn dl_error() -> String {
    // SAFETY: dlerror has no preconditions; its text lives until the next call, and is copied here.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return String::new();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

/// Where cargo puts finished libraries: the parent of the directory that this program lies in.
fn release_dir() -> PathBuf {
    let exe = std::env::current_exe().expect("every process has a program");
    exe.ancestors()
        .nth(2)
        .expect("target/release/deps/x")
        .to_owned()
}

/// The variable that names another build of the agent.
const AGENT_VARIABLE: &str = "MSPROF_AGENT_LIB";

/// Builds what is missing or old: the alternatives, and the agent unless MSPROF_AGENT_LIB names one.
pub fn build() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--quiet", "--example", "bench_doors"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", release_dir().parent().expect("target"));
    if std::env::var_os(AGENT_VARIABLE).is_none() {
        command.arg("--lib");
    }
    let built = command.status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "building the libraries failed"
    );
}

/// The agent.
pub fn agent_path() -> PathBuf {
    std::env::var_os(AGENT_VARIABLE).map_or_else(
        || release_dir().join("libmsprof_agent.so"),
        |path| Path::new(&path).to_owned(),
    )
}

/// The alternatives.
pub fn doors_path() -> PathBuf {
    release_dir().join("examples").join("libbench_doors.so")
}
