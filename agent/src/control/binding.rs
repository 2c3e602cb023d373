//! The socket file: bound where a client finds it, never open to others, never stolen from the living.
//!
//! A socket is bound under a temporary name and linked to its own, which fails when the name is taken;
//! so two agents cannot both believe that they have it. A file that refuses connections is dead and
//! is replaced; one that somebody answers on is left alone.

#![forbid(unsafe_code)]

use super::places::{PlaceError, PlaceInputs, candidates, fallback_dir, key_of, socket_path};
use super::probe::{Presence, before_aside, is_shared, probe, sweep};
use crate::process::fd::{ParentOnly, keep_above_standard};
use rustix::fs::{Mode, inotify};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 64;
/// Owner only; set before the file exists, so that there is no moment with other permissions.
const SOCKET_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// What the file names of sockets begin with until they are linked to their own.
const TEMPORARY_PREFIX: &str = ".msprof-";
/// How often a dead file is replaced before giving up: each round another agent may have won.
const ROUNDS: u32 = 5;

/// Why no socket came up in one place.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The path cannot be a socket address.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A living process answers on that name.
    #[error("{} belongs to another living process", .0.display())]
    Taken(PathBuf),
    /// Something that is no socket of ours has the name.
    #[error("{} is not a socket of this user", .0.display())]
    Foreign(PathBuf),
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    System {
        /// The socket's path or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A bound, listening socket and its file.
#[derive(Debug)]
pub struct Binding {
    socket: ParentOnly,
    path: PathBuf,
    /// Device and inode of the file, to tell it from a successor.
    identity: (u64, u64),
    /// Why it is not in the first place.
    passed_over: Option<BindError>,
    /// Not closed in a forked child, which it does no harm: all watches have one inode, and could not be told
    /// from those of a program that has closed ours.
    watch: Option<ManuallyDrop<OwnedFd>>,
}

/// Binds in the first place that takes a socket. With a launcher's key that a living process already
/// answers on, the own pid is the key.
pub fn bind(
    places: &PlaceInputs,
    key_pid: Option<u32>,
    own_pid: u32,
) -> Result<Binding, BindError> {
    let mut first_error = None;
    for key in [key_pid, Some(own_pid)].into_iter().flatten() {
        for dir in candidates(places) {
            match bind_in(&dir, key, places.uid) {
                Ok(mut binding) => {
                    binding.passed_over = first_error;
                    return Ok(binding);
                }
                Err(error) => {
                    let taken_by_sibling = matches!(error, BindError::Taken(_)) && key != own_pid;
                    first_error.get_or_insert(error);
                    if taken_by_sibling {
                        // A sibling of the same launcher: not another place, but another key.
                        first_error = None;
                        break;
                    }
                }
            }
        }
    }
    Err(first_error.unwrap_or_else(|| BindError::System {
        path: PathBuf::from("/"),
        error: io::Error::from(io::ErrorKind::NotFound),
    }))
}

fn bind_in(dir: &Path, key: u32, uid: u32) -> Result<Binding, BindError> {
    if dir == fallback_dir(uid) {
        make_private_dir(dir, uid)?;
    }
    let path = socket_path(dir, key)?;
    let system = |error: Errno| BindError::System {
        path: path.clone(),
        error: error.into(),
    };
    // Beside the target, so that the link stays in one file system; shorter, so that it fits too.
    let temporary = dir.join(temporary_name(crate::process::current_pid(), key));
    let _ = fs::remove_file(&temporary);
    let socket = listen(&temporary).map_err(system)?;
    // A umask may have taken the owner's own bits.
    let _ = fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600));
    let linked = link_to_name(&temporary, &path, uid);
    let _ = fs::remove_file(&temporary);
    linked?;
    let found = fs::symlink_metadata(&path).map_err(|error| BindError::System {
        path: path.clone(),
        error,
    })?;
    let mut binding = Binding {
        socket,
        identity: (found.dev(), found.ino()),
        path,
        passed_over: None,
        watch: None,
    };
    binding.start_watch();
    Ok(binding)
}

/// Name under which process `pid` binds before it links the socket to its own name.
pub fn temporary_name(pid: u32, key: u32) -> String {
    format!("{TEMPORARY_PREFIX}{pid}-{key}")
}

/// Whether a file of that name may be a socket of some agent: bound, being bound, or being swept by one that
/// was killed at it.
fn is_socket_name(name: &str) -> bool {
    let name = before_aside(name);
    let is_temporary = || {
        let (pid, key) = name.strip_prefix(TEMPORARY_PREFIX)?.split_once('-')?;
        Some(pid.parse::<u32>().is_ok() && key.parse::<u32>().is_ok())
    };
    key_of(name).is_some() || is_temporary().unwrap_or(false)
}

/// A listening socket whose file has mode 0600 from its first moment on. Guarded before anybody can see the file: a program
/// that waits for it and then closes all descriptors may be quicker than whatever we do next.
fn listen(path: &Path) -> Result<ParentOnly, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let socket = ParentOnly::new(keep_above_standard(socket)?);
    // Linux makes the file with the mode of the unbound socket (less the umask).
    rustix::fs::fchmod(&socket, SOCKET_MODE)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let listening = rustix::net::listen(&socket, BACKLOG);
    if let Err(error) = listening {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(socket)
}

/// Gives the socket its name unless a living process has it.
fn link_to_name(temporary: &Path, path: &Path, uid: u32) -> Result<(), BindError> {
    for _ in 0..ROUNDS {
        match fs::hard_link(temporary, path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(BindError::System {
                    path: path.to_owned(),
                    error,
                });
            }
        }
        match probe(path) {
            Presence::Absent => {}
            Presence::Alive => return Err(BindError::Taken(path.to_owned())),
            Presence::Dead if sweep(path, uid) => {}
            // It came alive or went away just now: look again.
            Presence::Dead if probe(path) != Presence::Dead => {}
            _ => return Err(BindError::Foreign(path.to_owned())),
        }
    }
    Err(BindError::Taken(path.to_owned()))
}

fn make_private_dir(dir: &Path, uid: u32) -> Result<(), BindError> {
    let refused = |error| BindError::System {
        path: dir.to_owned(),
        error,
    };
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(refused(error)),
    }
    let found = fs::symlink_metadata(dir).map_err(refused)?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o077 != 0 {
        return Err(BindError::Foreign(dir.to_owned()));
    }
    Ok(())
}

impl Binding {
    /// The listening socket; non-blocking.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Readable when something happened to the file; `None`: look now and then.
    pub fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(|watch| watch.as_fd())
    }

    /// Whether the program has left our descriptors alone.
    pub fn is_intact(&self) -> bool {
        self.socket.is_ours()
    }

    /// Why the socket is not in the first place, if it is not.
    pub fn passed_over(&self) -> Option<&BindError> {
        self.passed_over.as_ref()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has the system tell of the removal of the file without a timer, where it can and has watches left.
    fn start_watch(&mut self) {
        if is_shared(&self.path) {
            // Nobody tells of a removal on another machine.
            return;
        }
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let Ok(watch) = inotify::init(flags).and_then(keep_above_standard) else {
            return;
        };
        // An unlinked file that is still open tells by its link count, an attribute.
        let events = inotify::WatchFlags::ATTRIB
            | inotify::WatchFlags::DELETE_SELF
            | inotify::WatchFlags::MOVE_SELF;
        let added = inotify::add_watch(&watch, &self.path, events);
        self.watch = Some(ManuallyDrop::new(watch));
        if added.is_err() {
            self.end_watch();
        }
    }

    fn end_watch(&mut self) {
        // With the socket gone, the watch's number may be the program's as well.
        if let Some(watch) = self.watch.take()
            && self.socket.is_ours()
        {
            drop(ManuallyDrop::into_inner(watch));
        }
    }

    /// Takes what the watch has to say, so that it sleeps again.
    pub fn drain_watch(&self) {
        let mut buffer = [0u8; 1024];
        if let Some(watch) = &self.watch {
            while matches!(rustix::io::read(watch.as_fd(), &mut buffer), Ok(n) if n > 0) {}
        }
    }

    /// Whether the file is still there and still this socket's.
    pub fn in_place(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }

    /// Removes what killed processes of this user have left beside the socket, as long as it may go on.
    pub fn sweep_siblings(&self, uid: u32, may_go_on: impl Fn() -> bool) {
        let Some(entries) = self.path.parent().and_then(|dir| fs::read_dir(dir).ok()) else {
            return;
        };
        for entry in entries.flatten().take_while(|_| may_go_on()) {
            if entry.file_name().to_str().is_some_and(is_socket_name) {
                sweep(&entry.path(), uid);
            }
        }
    }

    /// Removes the file if it is this socket's.
    pub fn remove(&self) {
        if self.in_place() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        self.end_watch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dir: &Path) -> PlaceInputs {
        PlaceInputs {
            override_dir: Some(dir.to_owned()),
            uid: crate::process::effective_uid(),
            ..PlaceInputs::default()
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("there").mode() & 0o777
    }

    #[test]
    fn a_socket_is_private_and_leaves_nothing_else_in_its_directory() {
        let dir = tempfile::tempdir().expect("temp dir");
        let binding = bind(&places(dir.path()), None, 4711).expect("binds");
        assert_eq!(
            binding.path(),
            dir.path().join("dynamic_profiling_socket_4711")
        );
        assert_eq!(mode(binding.path()), 0o600);
        assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 1);
        assert!(binding.in_place());
        binding.remove();
        assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 0);
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
        let dir = tempfile::tempdir().expect("temp dir");
        let places = places(dir.path());
        let dead = bind(&places, None, 5).expect("binds");
        drop(dead);
        let living = bind(&places, None, 5).expect("replaces the dead one");
        assert!(matches!(bind(&places, None, 5), Err(BindError::Taken(_))));
        assert!(living.in_place());
        let sibling = bind(&places, Some(5), 6).expect("takes its own pid as key");
        assert!(sibling.path().ends_with("dynamic_profiling_socket_6"));
    }

    #[test]
    fn what_killed_processes_left_is_swept_and_the_living_stay() {
        let dir = tempfile::tempdir().expect("temp dir");
        let places = places(dir.path());
        drop(bind(&places, None, 1).expect("binds"));
        // Killed while it was bound, and while it was swept.
        for name in [
            temporary_name(1, 1),
            "dynamic_profiling_socket_1.dead7".into(),
            "dynamic_profiling_socket_1.dead7.dead8".into(),
        ] {
            drop(listen(&dir.path().join(name)).expect("binds"));
        }
        let being_made = dir.path().join(temporary_name(5, 5));
        let _being_made = listen(&being_made).expect("binds");
        let _living = bind(&places, None, 2).expect("binds");
        fs::write(dir.path().join("dynamic_profiling_socket_3"), "").expect("write");
        let binding = bind(&places, None, 4).expect("binds");
        binding.sweep_siblings(places.uid, || true);
        assert!(being_made.exists());
        assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 4);
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .expect("list")
            .filter_map(|entry| key_of(entry.ok()?.file_name().to_str()?))
            .collect();
        left.sort_unstable();
        assert_eq!(left, [2, 3, 4]);
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join("dynamic_profiling_socket_9");
        fs::write(&path, "mine").expect("write");
        let result = bind(&places(dir.path()), None, 9);
        assert!(matches!(result, Err(BindError::Foreign(_))), "{result:?}");
        assert_eq!(fs::read(&path).expect("still there"), b"mine");
    }

    #[test]
    fn the_next_place_serves_when_a_home_takes_no_socket() {
        let dir = tempfile::tempdir().expect("temp dir");
        let inputs = PlaceInputs {
            passwd_home: Some("/nonexistent/home".into()),
            home: Some(dir.path().to_owned()),
            uid: crate::process::effective_uid(),
            ..PlaceInputs::default()
        };
        let binding = bind(&inputs, None, 3).expect("binds");
        assert!(binding.path().starts_with(dir.path()));
    }

    #[test]
    fn the_watch_tells_when_the_file_is_removed() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let dir = tempfile::tempdir().expect("temp dir");
        let binding = bind(&places(dir.path()), None, 8).expect("binds");
        fs::remove_file(binding.path()).expect("remove");
        let watch = binding.watch().expect("inotify");
        let mut fds = [PollFd::new(&watch, PollFlags::IN)];
        let deadline = Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        assert_eq!(poll(&mut fds, Some(&deadline)), Ok(1));
        binding.drain_watch();
        assert!(!binding.in_place());
    }
}
