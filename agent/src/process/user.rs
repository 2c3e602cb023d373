//! The user's entry in the passwd database.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// First size of the buffer that the entry's texts are put into.
const BUFFER_START: usize = 1024;
/// Beyond this size an entry is taken for broken.
const BUFFER_MAX: usize = 1 << 20;

/// Home directory of a user by the passwd database, whatever `$HOME` says.
///
/// `None` when there is no entry, no home in it, or the database cannot be read. May load name
/// service modules and wait for a directory service: not for a thread of the application.
pub fn passwd_home(uid: u32) -> Option<PathBuf> {
    let mut buffer: Vec<libc::c_char> = vec![0; BUFFER_START];
    loop {
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        let mut found: *mut libc::passwd = std::ptr::null_mut();
        // SAFETY: all pointers are to live objects of the sizes given; the call writes only to them.
        let error = unsafe {
            libc::getpwuid_r(
                uid,
                entry.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &mut found,
            )
        };
        match error {
            0 if found.is_null() => return None,
            0 => {}
            libc::EINTR => continue,
            libc::ERANGE if buffer.len() < BUFFER_MAX => {
                let larger = buffer.len() * 2;
                buffer.resize(larger, 0);
                continue;
            }
            _ => return None,
        }
        // SAFETY: `found` is not null, so the call has filled the entry in.
        let home = unsafe { entry.assume_init_ref() }.pw_dir;
        if home.is_null() {
            return None;
        }
        // SAFETY: the entry's texts are NUL-terminated and lie in `buffer`, which is not touched here.
        let home = unsafe { CStr::from_ptr(home) }.to_bytes();
        return (!home.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(home)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_home_and_an_unknown_user_has_none() {
        let text = std::fs::read_to_string("/etc/passwd").expect("passwd is readable");
        let root = text.lines().find(|l| l.split(':').nth(2) == Some("0"));
        let home = root.and_then(|l| l.split(':').nth(5)).map(PathBuf::from);
        assert_eq!(passwd_home(0), home);
        assert_eq!(passwd_home(0x7FFF_FFF1), None);
    }
}
