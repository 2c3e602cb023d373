//! Programs that see mounts of their own, by `unshare` and a shell: nothing outside of them changes.

use super::home::Home;
use super::process::{Program, start_words};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a program finds mounted: shell commands that run before it, in namespaces of its own.
#[derive(Clone, Debug)]
pub struct Namespace {
    flags: Vec<&'static str>,
    setup: String,
}

/// Makes the rest of the setup invisible outside, and a failure of it the program's end.
const PRIVATE: &str = "set -e\nmount --make-rprivate /\n";

impl Namespace {
    /// `None`, said on stderr, where the host does not let us.
    pub fn new(setup: &str) -> Option<Namespace> {
        let namespace = Namespace {
            flags: mount_flags()?.to_vec(),
            setup: [PRIVATE, setup].concat(),
        };
        Some(namespace)
    }

    /// In further namespaces too, by more flags of `unshare`.
    pub fn with_flags(mut self, flags: &[&'static str]) -> Option<Namespace> {
        self.flags.extend(flags);
        is_permitted(&self.flags).then_some(self)
    }

    /// The program in it, armed or not; arguments may be added.
    pub fn armed(&self, home: &Home, program: impl AsRef<OsStr>) -> Program {
        self.wrap(home.armed("unshare"), program)
    }

    pub fn plain(&self, home: &Home, program: impl AsRef<OsStr>) -> Program {
        self.wrap(home.plain("unshare"), program)
    }

    fn wrap(&self, unshare: Program, program: impl AsRef<OsStr>) -> Program {
        let setup = format!("{}\nexec \"$@\"", self.setup);
        unshare
            .args(&self.flags)
            .args(["sh", "-c", &setup, "sh"])
            .args(start_words(program.as_ref()))
    }
}

/// The commands that put a passwd file into the place of the real one, in which this user has `home` or is not
/// mentioned, and have nobody but this file asked. The files are written into `dir`.
pub fn passwd(dir: &Path, home: Option<&Path>) -> String {
    passwd_of(uid(), dir, home)
}

/// The same of another user.
pub fn passwd_of(user: u32, dir: &Path, home: Option<&Path>) -> String {
    // A number of its own: another program may have an earlier one mounted.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = dir.join(format!("passwd-{number}"));
    let services = dir.join(format!("nsswitch-{number}"));
    let line = match home {
        Some(home) => format!("somebody:x:{user}:0::{}:/bin/sh\n", home.display()),
        None => String::new(),
    };
    let text = format!("{line}other:x:54321:54321::/nonexistent:/bin/sh\n");
    std::fs::write(&file, text).expect("written");
    std::fs::write(&services, "passwd: files\n").expect("written");
    format!(
        "mount --bind '{}' /etc/passwd\n[ ! -e /etc/nsswitch.conf ] || mount --bind '{}' /etc/nsswitch.conf\n",
        file.display(),
        services.display()
    )
}

/// The commands that put an empty directory into the place of /tmp, with nothing in it but these directories.
pub fn empty_tmp(kept: &[&Path]) -> String {
    let mut commands = "mount --rbind / /mnt\nmount -t tmpfs none /tmp\n".to_owned();
    for dir in kept {
        let dir = dir.display();
        commands += &format!("mkdir -p '{dir}'\nmount --bind '/mnt{dir}' '{dir}'\n");
    }
    commands
}

/// Who we are.
pub fn uid() -> u32 {
    // SAFETY: getuid has no preconditions.
    unsafe { libc::getuid() }
}

/// Flags of `unshare` under which this user may mount.
fn mount_flags() -> Option<&'static [&'static str]> {
    static FLAGS: OnceLock<Option<&[&str]>> = OnceLock::new();
    *FLAGS.get_or_init(|| {
        // Who is not root becomes nobody else, but may mount where nobody else sees it.
        let ways: [&[&str]; 2] = [&["-m"], &["-c", "--keep-caps", "-m"]];
        let found = ways.into_iter().find(|flags| is_permitted(flags));
        if found.is_none() {
            super::skip::skipped(format_args!("this host lets nobody mount anything"));
        }
        found
    })
}

fn is_permitted(flags: &[&str]) -> bool {
    let probe = Program::new("unshare").args(flags).args([
        "sh",
        "-c",
        "mount --make-rprivate / && mount -t tmpfs none /tmp",
    ]);
    match probe.try_spawn() {
        Ok(running) => {
            let permitted = running.finish().status.success();
            if !permitted {
                super::skip::skipped(format_args!(
                    "unshare {} is not permitted here",
                    flags.join(" ")
                ));
            }
            permitted
        }
        Err(error) => {
            super::skip::skipped(format_args!("unshare: {error}"));
            false
        }
    }
}
