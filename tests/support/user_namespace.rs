//! Programs in user namespaces, as rootless container engines have them.

use super::process::Program;
use std::ffi::CString;
use std::io::{Error, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A user who has no rights and no entry in the passwd file.
pub const PLAIN: u32 = 54321;

/// A user namespace that a user makes, and who is who in it.
#[derive(Clone, Debug)]
pub struct Users {
    maker: u32,
    map: String,
}

impl Users {
    /// A namespace with these lines of (number inside, number outside, count), made by this process's user. `None`,
    /// said on stderr, where the host does not let us.
    pub fn new(lines: &[(u32, u32, u32)]) -> Option<Users> {
        Users::made_by(super::namespace::uid(), lines)
    }

    /// The same, made by another user.
    pub fn made_by(maker: u32, lines: &[(u32, u32, u32)]) -> Option<Users> {
        let lines = lines
            .iter()
            .map(|(inside, outside, count)| format!("{inside} {outside} {count}\n"));
        let users = Users {
            maker,
            map: lines.collect(),
        };
        let probe = users.enter(Program::new("true")).try_spawn();
        let reason = match probe.map(|running| running.finish().status) {
            Ok(status) if status.success() => return Some(users),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        super::skip::skipped(format_args!(
            "uid {maker} may not make a user namespace of {:?} here: {reason}",
            users.map
        ));
        None
    }

    /// The program as root in it.
    pub fn enter(&self, program: Program) -> Program {
        let Users { maker, map } = self.clone();
        // SAFETY: between fork and exec it makes system calls only, on memory that was there before.
        unsafe { program.before_exec(move || enter(maker, map.as_bytes())) }
    }
}

/// The program as another user, whom only root can be.
pub fn as_user(program: Program, user: u32) -> Program {
    // SAFETY: the closure makes system calls only.
    unsafe { program.before_exec(move || become_user(user)) }
}

/// Gives a file or directory to a user.
pub fn give(path: &Path, user: u32) {
    let path = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
    // SAFETY: a C string, which the call only reads.
    let given = unsafe { libc::chown(path.as_ptr(), user, user) };
    assert_eq!(given, 0, "{}", Error::last_os_error());
}

fn become_user(user: u32) -> Result<()> {
    // SAFETY: plain system calls.
    unsafe {
        if user == libc::getuid() {
            return Ok(());
        }
        checked(libc::setgroups(0, std::ptr::null()))?;
        checked(libc::setgid(user))?;
        checked(libc::setuid(user))
    }
}

/// The map is written by a child of the user that we are before: newuidmap is root as well where it is of many lines.
fn enter(maker: u32, map: &[u8]) -> Result<()> {
    let mut entered = [0; 2];
    // SAFETY: system calls on descriptors and buffers of this function; the child of a fork of one thread may do anything
    // that is safe in a signal handler, and ends by _exit.
    unsafe {
        checked(libc::pipe2(entered.as_mut_ptr(), libc::O_CLOEXEC))?;
        let us = libc::getpid();
        let helper = libc::fork();
        if helper == 0 {
            libc::close(entered[1]);
            let mut byte = 0u8;
            libc::read(entered[0], (&raw mut byte).cast(), 1);
            libc::_exit(i32::from(!write_maps(us, map)));
        }
        checked(helper)?;
        become_user(maker)?;
        checked(libc::unshare(libc::CLONE_NEWUSER))?;
        libc::close(entered[1]);
        libc::close(entered[0]);
        let mut status = 0;
        checked(libc::waitpid(helper, &mut status, 0))?;
        if status != 0 {
            return Err(Error::from_raw_os_error(libc::EPERM));
        }
        checked(libc::setgid(0))?;
        checked(libc::setuid(0))
    }
}

fn checked(result: i32) -> Result<()> {
    match result {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Writes the lines for users and groups of a process; false when the kernel refuses them.
fn write_maps(process: i32, map: &[u8]) -> bool {
    // Who is not root has to give up groups first.
    // SAFETY: geteuid has no preconditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    (is_root || write_file(process, b"setgroups", b"deny"))
        && write_file(process, b"uid_map", map)
        && write_file(process, b"gid_map", map)
}

/// Without the heap.
fn write_file(process: i32, name: &[u8], text: &[u8]) -> bool {
    use std::io::Write;
    let mut path = [0u8; 64];
    let mut rest = &mut path[..63];
    let written = write!(rest, "/proc/{process}/")
        .and_then(|()| rest.write_all(name))
        .is_ok();
    if !written {
        return false;
    }
    // SAFETY: the path is NUL-terminated, the text as long as it says, and both are only read.
    unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_WRONLY | libc::O_CLOEXEC);
        libc::write(file, text.as_ptr().cast(), text.len()) == text.len() as isize
    }
}
