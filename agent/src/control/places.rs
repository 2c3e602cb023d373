//! Where the control socket lies (spec 1 section 1.1).
//!
//! The agent binds in the first place that takes a socket, the controller looks in all of them in
//! the same order. Pure functions: what they depend on is handed in.

#![forbid(unsafe_code)]

use crate::names::variable;
use std::path::{Path, PathBuf};

/// What the file names of sockets begin with; the key follows.
pub const SOCKET_PREFIX: &str = "dynamic_profiling_socket_";
/// Variable that overrides every place, for both sides.
pub const SOCKET_DIR_VARIABLE: &str = variable::SOCKET_DIR;
/// Bytes of `sun_path` in a unix socket address, the final NUL included.
pub const SUN_PATH_SIZE: usize = 108;

/// What the places depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceInputs {
    /// [`SOCKET_DIR_VARIABLE`].
    pub override_dir: Option<PathBuf>,
    /// Home by the passwd database: where stock clients look.
    pub passwd_home: Option<PathBuf>,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// User id of the profiled process.
    pub uid: u32,
}

impl PlaceInputs {
    /// Inputs of a user, with the variables that `variable` looks up.
    ///
    /// `passwd_home` is handed in because finding it may wait for a directory service.
    pub fn new(
        uid: u32,
        passwd_home: Option<PathBuf>,
        variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> PlaceInputs {
        let path = |name| variable(name).map(PathBuf::from);
        PlaceInputs {
            override_dir: path(SOCKET_DIR_VARIABLE),
            passwd_home,
            home: path("HOME"),
            xdg_runtime_dir: path("XDG_RUNTIME_DIR"),
            uid,
        }
    }
}

/// Why a place cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The path does not fit into a socket address.
    #[error(
        "socket path {path} has {length} bytes, at most {} fit; set MSPROF_AGENT_SOCKET_DIR to a shorter directory for both sides",
        SUN_PATH_SIZE - 1
    )]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
}

/// The directories to try, best first, each once. Empty and relative ones are left out.
pub fn candidates(inputs: &PlaceInputs) -> Vec<PathBuf> {
    if let Some(dir) = usable(&inputs.override_dir) {
        return vec![dir.to_owned()];
    }
    let last = fallback_dir(inputs.uid);
    let mut dirs: Vec<PathBuf> = Vec::with_capacity(4);
    let all = [
        usable(&inputs.passwd_home),
        usable(&inputs.home),
        usable(&inputs.xdg_runtime_dir),
        Some(last.as_path()),
    ];
    for dir in all.into_iter().flatten() {
        // Paths compare by component: "/root/" and "/root" are one.
        if !dirs.iter().any(|known| known == dir) {
            dirs.push(dir.to_owned());
        }
    }
    dirs
}

/// The last place: made by the agent with mode 0700, its owner checked.
pub fn fallback_dir(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/msprof-{uid}"))
}

fn usable(dir: &Option<PathBuf>) -> Option<&Path> {
    dir.as_deref().filter(|dir| dir.is_absolute())
}

/// File name of the socket with this key.
pub fn socket_name(key: u32) -> String {
    format!("{SOCKET_PREFIX}{key}")
}

/// The key in a socket's file name; `None` for other files.
pub fn key_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(SOCKET_PREFIX)?;
    if digits.starts_with(['0', '+']) {
        return None;
    }
    digits.parse().ok()
}

/// Path of the socket with this key in `dir`, if a socket address can hold it.
pub fn socket_path(dir: &Path, key: u32) -> Result<PathBuf, PlaceError> {
    let path = dir.join(socket_name(key));
    let length = path.as_os_str().len();
    if length >= SUN_PATH_SIZE {
        return Err(PlaceError::TooLong { path, length });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(passwd: &str, home: &str, xdg: &str) -> PlaceInputs {
        PlaceInputs::new(7, Some(passwd.into()), |name| match name {
            "HOME" => Some(home.into()),
            "XDG_RUNTIME_DIR" => Some(xdg.into()),
            _ => None,
        })
    }

    #[test]
    fn places_come_in_the_documented_order_once_each() {
        let dirs = candidates(&inputs("/home/a", "/home/b", "/run/user/7"));
        assert_eq!(
            dirs,
            ["/home/a", "/home/b", "/run/user/7", "/tmp/msprof-7"].map(PathBuf::from)
        );
        let dirs = candidates(&inputs("/home/a", "/home/a/", ""));
        assert_eq!(dirs, ["/home/a", "/tmp/msprof-7"].map(PathBuf::from));
    }

    #[test]
    fn relative_and_missing_places_are_left_out() {
        let dirs = candidates(&PlaceInputs::new(7, None, |_| Some("rel".into())));
        assert_eq!(dirs, [PathBuf::from("/tmp/msprof-7")]);
    }

    #[test]
    fn the_override_is_the_only_place() {
        let mut all = inputs("/home/a", "/home/b", "/run");
        all.override_dir = Some("/elsewhere".into());
        assert_eq!(candidates(&all), [PathBuf::from("/elsewhere")]);
    }

    #[test]
    fn a_path_that_a_socket_address_cannot_hold_is_refused() {
        let rest = "/".len() + SOCKET_PREFIX.len() + 1;
        let fits = format!("/{}", "x".repeat(SUN_PATH_SIZE - 2 - rest));
        let path = socket_path(Path::new(&fits), 1).expect("107 bytes fit");
        assert_eq!(path.as_os_str().len(), 107);
        let error = socket_path(Path::new(&fits), 12).expect_err("108 bytes do not");
        assert!(error.to_string().contains("MSPROF_AGENT_SOCKET_DIR"));
    }

    #[test]
    fn keys_are_read_back_from_file_names() {
        assert_eq!(key_of(&socket_name(4711)), Some(4711));
        for other in [
            "dynamic_profiling_socket_",
            "dynamic_profiling_socket_1x",
            "x",
            "dynamic_profiling_socket_+1",
        ] {
            assert_eq!(key_of(other), None, "{other}");
        }
    }
}
