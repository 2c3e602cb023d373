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
    let home = text_of(uid, |entry| entry.pw_dir)?;
    Some(PathBuf::from(OsStr::from_bytes(&home)))
}

/// Name of a user by the passwd database; like [`passwd_home`] not for a thread of the application.
pub fn passwd_name(uid: u32) -> Option<String> {
    let name = text_of(uid, |entry| entry.pw_name)?;
    Some(String::from_utf8_lossy(&name).into_owned())
}

/// A text of a user's entry; `None` also when it is empty.
fn text_of(uid: u32, pick: fn(&libc::passwd) -> *mut libc::c_char) -> Option<Vec<u8>> {
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
        let text = pick(unsafe { entry.assume_init_ref() });
        if text.is_null() {
            return None;
        }
        // SAFETY: the entry's texts are NUL-terminated and lie in `buffer`, which is not touched here.
        let text = unsafe { CStr::from_ptr(text) }.to_bytes();
        return (!text.is_empty()).then(|| text.to_vec());
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
        let name = root.and_then(|l| l.split(':').next()).map(str::to_owned);
        assert_eq!(passwd_name(0), name);
        assert_eq!(passwd_name(0x7FFF_FFF1), None);
    }
}
