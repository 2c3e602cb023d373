//! Tells of every socket that appears in a home, however short its life.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const SOCKET_PREFIX: &str = "dynamic_profiling_socket_";

/// Watches one directory from its making on.
#[derive(Debug)]
pub struct Watcher {
    events: OwnedFd,
    /// How often a socket of a key has appeared.
    appeared: BTreeMap<u32, usize>,
}

impl Watcher {
    pub fn of(directory: &Path) -> Watcher {
        let path = CString::new(directory.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: plain system calls; the descriptor is new and ours.
        let events = unsafe {
            let events = libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK);
            assert!(events >= 0, "{}", std::io::Error::last_os_error());
            let events = OwnedFd::from_raw_fd(events);
            let mask = libc::IN_CREATE | libc::IN_MOVED_TO;
            let watch = libc::inotify_add_watch(events.as_raw_fd(), path.as_ptr(), mask);
            assert!(watch >= 0, "{}", std::io::Error::last_os_error());
            events
        };
        Watcher {
            events,
            appeared: BTreeMap::new(),
        }
    }

    /// How often the socket of each key has appeared so far.
    pub fn appeared(&mut self) -> &BTreeMap<u32, usize> {
        const HEAD: usize = size_of::<libc::inotify_event>();
        let mut buffer = [0u8; 16 * 1024];
        loop {
            // SAFETY: reads into a buffer of this frame.
            let count = unsafe {
                libc::read(
                    self.events.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                )
            };
            if count <= 0 {
                return &self.appeared;
            }
            let mut rest = &buffer[..count as usize];
            while rest.len() >= HEAD {
                let word =
                    |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().expect("four"));
                // Watch, mask, cookie, length of the name.
                assert_eq!(word(4) & libc::IN_Q_OVERFLOW, 0, "too much happened");
                let (name, behind) = rest[HEAD..].split_at(word(12) as usize);
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = String::from_utf8_lossy(name);
                if let Some(Ok(key)) = name.strip_prefix(SOCKET_PREFIX).map(str::parse) {
                    *self.appeared.entry(key).or_default() += 1;
                }
                rest = behind;
            }
        }
    }
}
