//! Where the socket of a process may lie, and what is in the way of one.

use crate::process::Process;
use crate::screen::clean;
use msprof_agent_core::control::places::{
    self, PlaceInputs, SOCKET_DIR_VARIABLE, fallback_dir, socket_path,
};
use msprof_agent_core::process::effective_uid;
use msprof_agent_core::process::user::passwd_home;
use rustix::fs::StatVfsMountFlags;
use rustix::process::getuid;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A directory that may hold the socket.
pub(super) struct Place {
    /// As the user knows it.
    pub(super) dir: PathBuf,
    /// Where it lies as seen from here.
    pub(super) reach: PathBuf,
}

/// Where the socket of a process may lie, best first.
pub(super) fn places_of(process: &Process) -> Vec<Place> {
    let mut found = Vec::new();
    let mut add = |dir: PathBuf, root: Option<PathBuf>| {
        let reach = match root {
            Some(root) => root.join(dir.strip_prefix("/").unwrap_or(&dir)),
            None => dir.clone(),
        };
        if !found.iter().any(|place: &Place| place.reach == reach) {
            found.push(Place { dir, reach });
        }
    };
    let user = process.own_user();
    let home = passwd_home(user.uid);
    let ours = PlaceInputs::new(user.euid, home.clone(), |name| std::env::var_os(name));
    if ours.override_dir.is_some() {
        for dir in places::candidates(&ours) {
            add(dir, None);
        }
        return found;
    }
    if process.has_own_root() {
        let inner_home = process.home_in_own_root(user);
        for dir in places::candidates(&process.place_inputs(user, inner_home)) {
            add(dir, Some(process.root()));
        }
    }
    for dir in places::candidates(&process.place_inputs(user, home)) {
        add(dir, None);
    }
    for dir in places::candidates(&ours) {
        add(dir, None);
    }
    found
}

/// The places by our own environment.
pub fn our_places() -> Vec<PathBuf> {
    let home = passwd_home(getuid().as_raw());
    let uid = effective_uid();
    places::candidates(&PlaceInputs::new(uid, home, |name| std::env::var_os(name)))
}

/// The directory that our own environment names for sockets, if it is none.
pub(super) fn our_dir_missing() -> Option<PathBuf> {
    let ours = std::env::var_os(SOCKET_DIR_VARIABLE).map(PathBuf::from);
    ours.filter(|dir| dir.is_absolute() && !dir.is_dir())
}

/// Why a process can have a socket in none of its places, one after the other; `None` when it can in some, as far as
/// can be seen.
pub(super) fn obstacles(process: &Process) -> Option<String> {
    let user = process.own_user();
    let home = match process.has_own_root() {
        true => process.home_in_own_root(user),
        false => passwd_home(user.uid),
    };
    let dirs = places::candidates(&process.place_inputs(user, home));
    let found: Option<Vec<String>> = dirs
        .iter()
        .map(|dir| {
            let why = obstacle(process, dir, user.euid)?;
            Some(format!("{} {why}", clean(&dir.display().to_string())))
        })
        .collect();
    Some(found.filter(|found| !found.is_empty())?.join(", "))
}

fn obstacle(process: &Process, dir: &Path, own_euid: u32) -> Option<String> {
    if socket_path(dir, process.own_pid).is_err() {
        return Some("is too long for a socket's path".to_owned());
    }
    let reach = process.root().join(dir.strip_prefix("/").unwrap_or(dir));
    let meta = match std::fs::metadata(&reach) {
        Ok(meta) => meta,
        // The agent makes this one itself.
        Err(_) if dir == fallback_dir(own_euid) => {
            let parent = dir.parent()?;
            return obstacle(process, parent, own_euid);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Some("does not exist".to_owned());
        }
        Err(_) => return None,
    };
    if !meta.is_dir() {
        return Some("is no directory".to_owned());
    }
    let file_system = rustix::fs::statvfs(&reach);
    if file_system.is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        return Some("is on a read-only file system".to_owned());
    }
    if dir == fallback_dir(own_euid) && meta.uid() != process.euid {
        return Some(format!("belongs to uid {}", meta.uid()));
    }
    let mode = meta.permissions().mode();
    let bits = match process.groups() {
        // Root may write whatever the mode says.
        _ if own_euid == 0 => return None,
        _ if meta.uid() == process.euid => mode >> 6,
        Some(groups) if groups.contains(&meta.gid()) => mode >> 3,
        Some(_) => mode,
        None => return None,
    };
    const WRITE_AND_SEARCH: u32 = 0o3;
    (bits & WRITE_AND_SEARCH != WRITE_AND_SEARCH).then(|| {
        format!(
            "may not be written to by its user (mode {:03o})",
            mode & 0o777
        )
    })
}
