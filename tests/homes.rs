//! Homes of every kind: wherever the socket finds a place, the controller finds the socket.

mod support;

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use support::artifacts::artifacts;
use support::home::{Home, only_prof_dir};
use support::msprof::dynamic;
use support::namespace::{Namespace, empty_tmp, passwd, uid};
use support::process::Program;
use support::puppet::{self, Puppet};
use support::rules::open_complete;
use support::wait::wait_until;

/// Length of a socket address' path, its NUL included.
const SUN_PATH: usize = 108;

/// A user: the home that the passwd file has, `$HOME`, and `$XDG_RUNTIME_DIR`.
#[derive(Clone, Debug, Default)]
struct User {
    passwd: Option<PathBuf>,
    home: Option<PathBuf>,
    runtime: Option<PathBuf>,
    /// More that is mounted.
    mounts: String,
}

impl User {
    fn namespace(&self, place: &Home) -> Option<Namespace> {
        let setup = [
            passwd(place.path(), self.passwd.as_deref()),
            self.mounts.clone(),
        ];
        Namespace::new(&setup.concat())
    }

    /// The user's variables in place of those that the other tests set.
    fn variables(&self, program: Program) -> Program {
        let set = [("HOME", &self.home), ("XDG_RUNTIME_DIR", &self.runtime)];
        let program = program.without("MSPROF_AGENT_SOCKET_DIR");
        set.into_iter()
            .fold(program, |program, (name, value)| match value {
                Some(value) => program.env(name, value),
                None => program.without(name),
            })
    }
}

/// A puppet of that user; `None` where there are no namespaces. Its socket is to be in `expected`, which names
/// the directory as this process sees it.
fn start(place: &Home, user: &User, expected: &Path) -> Option<Puppet> {
    let namespace = user.namespace(place)?;
    let program = user.variables(namespace.armed(place, puppet::path()));
    let puppet = Puppet::start_program(place, program);
    let root = format!("/proc/{}/root", puppet.pid());
    let inside = Path::new(&root).join(expected.strip_prefix("/").expect("absolute"));
    let socket = inside.join(format!("dynamic_profiling_socket_{}", puppet.pid()));
    wait_until(&format!("a socket in {}", expected.display()), || {
        fs::symlink_metadata(&socket).is_ok()
    });
    Some(puppet)
}

/// The controller, run as that user, attaches, captures and stops.
#[track_caller]
fn assert_found(place: &Home, user: &User, puppet: &mut Puppet) {
    let namespace = user.namespace(place).expect("as before");
    let output = place.output();
    let before = support::home::prof_dirs(&output).len();
    let program = user.variables(namespace.plain(place, &artifacts().msprof));
    let mut msprof = program
        .args(["--dynamic=on", "--runtime-api=on"])
        .arg(format!("--output={}", output.display()))
        .arg(format!("--pid={}", puppet.pid()))
        .spawn();
    msprof.say("start");
    msprof.line("the start", |line| {
        line.contains("start success").then_some(())
    });
    assert_eq!(puppet.tell("api 10 1"), "0");
    msprof.say("stop");
    msprof.finish().expect_code(0);
    let dirs = support::home::prof_dirs(&output);
    assert_eq!(dirs.len(), before + 1);
    assert_eq!(open_complete(&dirs[before]).api().len(), 10);
}

/// The puppet ends unharmed and leaves no socket in `dir`.
#[track_caller]
fn assert_tidy(puppet: Puppet, dir: &Path) {
    puppet.finish().expect_code(0);
    let left: Vec<_> = fs::read_dir(dir)
        .expect("the home")
        .map(|entry| entry.expect("entry").file_name())
        .filter(|name| name.to_string_lossy().contains("socket"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn make(place: &Home, name: &str) -> PathBuf {
    let dir = place.path().join(name);
    fs::create_dir(&dir).expect("a directory");
    dir
}

/// Both sides have the same user, whose socket lies in `expected`.
#[track_caller]
fn assert_works(place: &Home, user: &User, expected: &Path) {
    let Some(mut puppet) = start(place, user, expected) else {
        return;
    };
    assert_found(place, user, &mut puppet);
    assert_tidy(puppet, expected);
}

/// Whether a program in one namespace may look at the files of one in another.
fn sees_other_roots() -> bool {
    let may = uid() == 0;
    if !may {
        support::skip::skipped(format_args!(
            "only root sees the files of another user namespace"
        ));
    }
    may
}

// ---- whose home ---------------------------------------------------------------

#[test]
fn the_home_of_the_passwd_file_comes_before_the_variable() {
    let place = Home::new();
    let (passwd, home) = (make(&place, "passwd-home"), make(&place, "home"));
    let user = User {
        passwd: Some(passwd.clone()),
        home: Some(home),
        ..User::default()
    };
    assert_works(&place, &user, &passwd);
}

#[test]
fn a_user_without_a_passwd_entry_has_the_variables_home() {
    let place = Home::new();
    let home = make(&place, "home");
    let user = User {
        home: Some(home.clone()),
        ..User::default()
    };
    assert_works(&place, &user, &home);
}

#[test]
fn a_user_without_the_variable_has_the_home_of_the_passwd_file() {
    let place = Home::new();
    let home = make(&place, "home");
    let user = User {
        passwd: Some(home.clone()),
        ..User::default()
    };
    assert_works(&place, &user, &home);
}

#[test]
fn a_user_without_any_home_has_the_runtime_directory() {
    let place = Home::new();
    let runtime = make(&place, "runtime");
    for (passwd, home) in [
        (None, None),
        (Some("/nonexistent/at/all"), Some("/nonexistent/either")),
        (Some("relative"), Some("relative")),
        (Some(""), Some("")),
        // What some containers say of users that they do not know: not a place for sockets, unless for root.
        (Some("/proc"), Some("/sys")),
    ] {
        let user = User {
            passwd: passwd.map(PathBuf::from),
            home: home.map(PathBuf::from),
            runtime: Some(runtime.clone()),
            ..User::default()
        };
        assert_works(&place, &user, &runtime);
    }
}

#[test]
fn a_user_without_any_place_has_one_in_tmp_that_nobody_else_may_enter() {
    if !sees_other_roots() {
        return;
    }
    let place = Home::new();
    // Own mounts are in the way of neither the program nor its home, which may lie in the real one.
    let release = artifacts().library.parent().expect("a directory");
    let programs = puppet::path().parent().expect("a directory");
    let mounts = empty_tmp(&[place.path(), release, programs]);
    let user = User {
        mounts,
        ..User::default()
    };
    let expected = PathBuf::from(format!("/tmp/msprof-{}", uid()));
    let Some(mut puppet) = start(&place, &user, &expected) else {
        return;
    };
    let inside = PathBuf::from(format!("/proc/{}/root{}", puppet.pid(), expected.display()));
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(inside).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // It has a /tmp of its own; the controller sees it by way of the process.
    let outside = User::default();
    assert_found(&place, &outside, &mut puppet);
    puppet.finish().expect_code(0);
}

#[test]
fn a_controller_with_another_home_finds_the_processs_home() {
    if !sees_other_roots() {
        return;
    }
    let place = Home::new();
    let (ours, theirs) = (make(&place, "ours"), make(&place, "theirs"));
    let (mine, seen) = (make(&place, "mine"), make(&place, "seen"));
    let user = User {
        passwd: Some(theirs.clone()),
        home: Some(ours),
        ..User::default()
    };
    let Some(mut puppet) = start(&place, &user, &theirs) else {
        return;
    };
    let other = User {
        passwd: Some(mine),
        home: Some(seen),
        ..User::default()
    };
    assert_found(&place, &other, &mut puppet);
    assert_tidy(puppet, &theirs);
}

// ---- homes that take no socket --------------------------------------------------

#[test]
fn a_read_only_home_is_passed_over_with_one_line_in_the_log() {
    let place = Home::new();
    let (home, runtime) = (make(&place, "home"), make(&place, "runtime"));
    let shown = home.display();
    let user = User {
        passwd: Some(home.clone()),
        home: Some(home.clone()),
        runtime: Some(runtime.clone()),
        mounts: format!(
            "mount --bind '{shown}' '{shown}'\nmount -o remount,bind,ro '{shown}' '{shown}'\n"
        ),
    };
    let Some(mut puppet) = start(&place, &user, &runtime) else {
        return;
    };
    assert_found(&place, &user, &mut puppet);
    assert_tidy(puppet, &runtime);
    let log = place.log();
    let about: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("Read-only"))
        .collect();
    assert_eq!(about.len(), 1, "{log}");
    assert!(about[0].contains(runtime.to_str().expect("UTF-8")), "{log}");
    assert!(fs::read_dir(home).expect("there").next().is_none());
}

#[test]
fn a_home_that_is_full_is_passed_over() {
    let place = Home::new();
    let (home, runtime) = (make(&place, "home"), make(&place, "runtime"));
    let user = User {
        passwd: Some(home.clone()),
        runtime: Some(runtime.clone()),
        // One inode is the root's, and a socket needs another.
        mounts: format!("mount -t tmpfs -o nr_inodes=1 none '{}'\n", home.display()),
        ..User::default()
    };
    let Some(mut puppet) = start(&place, &user, &runtime) else {
        return;
    };
    assert_found(&place, &user, &mut puppet);
    assert_tidy(puppet, &runtime);
}

// ---- long ones ------------------------------------------------------------------

/// A directory whose path has that many bytes.
fn make_long(place: &Home, length: usize) -> PathBuf {
    let mut dir = place.path().to_owned();
    while dir.as_os_str().len() < length {
        let missing = length - dir.as_os_str().len() - 1;
        // Not so long that one byte would be left, which is no name.
        let name = if missing > 200 { 100 } else { missing };
        dir.push("h".repeat(name));
    }
    fs::create_dir_all(&dir).expect("a long directory");
    assert_eq!(dir.as_os_str().len(), length);
    dir
}

#[test]
fn homes_of_every_length_are_found() {
    for length in [60, 80, 107, 108, 300] {
        let place = Home::new();
        let home = make_long(&place, length);
        let runtime = make(&place, "runtime");
        let user = User {
            passwd: Some(home.clone()),
            home: Some(home.clone()),
            runtime: Some(runtime.clone()),
            ..User::default()
        };
        let name = format!("/dynamic_profiling_socket_{}", u16::MAX);
        // Never cut short: either the whole path fits, or another place serves.
        let fits = length + name.len() < SUN_PATH;
        assert!(fits || length > 75);
        assert_works(&place, &user, if fits { &home } else { &runtime });
    }
}

#[test]
fn the_longest_path_that_fits_is_used_and_one_byte_more_is_not() {
    let place = Home::new();
    let runtime = make(&place, "runtime");
    // Any pid up to the kernel's largest: the directory is chosen for one that is known.
    let digits = std::process::id().to_string().len();
    let around = SUN_PATH - 1 - "/dynamic_profiling_socket_".len() - digits;
    for length in [around - 2, around - 1, around, around + 1, around + 2] {
        let home = make_long(&place, length);
        let user = User {
            passwd: Some(home.clone()),
            runtime: Some(runtime.clone()),
            ..User::default()
        };
        let Some(namespace) = user.namespace(&place) else {
            return;
        };
        let program = user.variables(namespace.armed(&place, puppet::path()));
        let mut puppet = Puppet::start_program(&place, program);
        let name = format!("dynamic_profiling_socket_{}", puppet.pid());
        let fits = home.join(&name).as_os_str().len() < SUN_PATH;
        let socket = if fits { &home } else { &runtime }.join(&name);
        wait_until("the socket", || socket.exists());
        assert_found(&place, &user, &mut puppet);
        assert_tidy(puppet, if fits { &home } else { &runtime });
    }
}

#[test]
fn a_socket_directory_that_is_too_long_is_said_and_does_no_harm() {
    let place = Home::new();
    let long = make_long(&place, 300);
    let program = place
        .armed(puppet::path())
        .env("MSPROF_AGENT_SOCKET_DIR", &long);
    let mut puppet = Puppet::start_program(&place, program);
    wait_until("a line in the log", || {
        place.log().contains("MSPROF_AGENT_SOCKET_DIR")
    });
    assert_eq!(puppet.tell("api 10 1"), "0");
    assert!(place.log().contains("at most 107 fit"), "{}", place.log());
    puppet.finish().expect_code(0);
}

// ---- odd names ------------------------------------------------------------------

#[test]
fn homes_with_odd_names_are_found() {
    for name in [
        "under_score_1_2_",
        "with blank",
        "new\nline",
        "größe-家",
        "quote'\"$HOME`",
        "dynamic_profiling_socket_1",
    ] {
        let place = Home::new();
        let home = make(&place, name);
        let mut puppet = {
            // The passwd file cannot hold every name; the variables can.
            let program = place
                .armed(puppet::path())
                .env("MSPROF_AGENT_SOCKET_DIR", &home);
            Puppet::start_program(&place, program)
        };
        let socket = home.join(format!("dynamic_profiling_socket_{}", puppet.pid()));
        wait_until(&format!("a socket in {name:?}"), || {
            UnixStream::connect(&socket).is_ok()
        });
        let mut msprof = dynamic(&place, &place.output())
            .env("MSPROF_AGENT_SOCKET_DIR", &home)
            .arg(format!("--pid={}", puppet.pid()))
            .spawn();
        msprof.say("start");
        msprof.line("the start", |line| {
            line.contains("start success").then_some(())
        });
        assert_eq!(puppet.tell("api 10 1"), "0");
        msprof.say("stop");
        msprof.finish().expect_code(0);
        let prof = open_complete(&only_prof_dir(&place.output()));
        assert_eq!(prof.api().len(), 10, "{name:?}");
        assert_tidy(puppet, &home);
    }
}

#[test]
fn odd_names_in_the_variable_are_found_too() {
    for name in ["under_score_1_2_", "with blank", "new\nline", "größe-家"] {
        let place = Home::new();
        let home = make(&place, name);
        let user = User {
            home: Some(home.clone()),
            ..User::default()
        };
        assert_works(&place, &user, &home);
    }
}
