//! Tasks in user namespaces, as in rootless containers: they know themselves by another number than the host does, and
//! the places of their sockets go by that.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use support::artifacts::artifacts;
use support::executable::copy_program;
use support::home::{Home, only_prof_dir};
use support::namespace::{empty_tmp, passwd_of, uid};
use support::process::{Program, Running};
use support::puppet;
use support::rules::open_complete;
use support::user_namespace::{PLAIN, Users, as_user, give};
use support::wait::{PATIENCE, wait_until};

/// Namespaces of its own beside that of users, which end with the process that holds them.
const FLAGS: [&str; 5] = ["-m", "-p", "-f", "--mount-proc", "--kill-child"];

/// A user without rights, and whether it is not who we are.
fn plain_user() -> u32 {
    match uid() {
        0 => PLAIN,
        user => user,
    }
}

/// Whether we may be anybody; said on stderr if not.
fn is_root() -> bool {
    let is_root = uid() == 0;
    if !is_root {
        support::skip::skipped(format_args!("only root can be somebody else"));
    }
    is_root
}

/// Where a task finds a place for its socket.
#[derive(Clone, Copy, Debug)]
enum Socket {
    /// In the home that its passwd file has for it.
    PasswdHome,
    /// In `$HOME`.
    Home,
    /// In /tmp, below a directory with its number.
    Tmp,
}

/// A task in a container.
struct Task {
    running: Running,
    /// Its pid here.
    pid: u32,
}

/// Who the task is: by its number there, and on the host.
struct User {
    inside: u32,
    outside: u32,
}

impl Task {
    /// Starts it, and waits for its socket. `None`, said on stderr, where there are no such containers.
    fn start(place: &Home, users: &Users, user: &User, socket: Socket) -> Option<Task> {
        give(place.path(), user.outside);
        // Whoever it is can read it: what the tests build lies in a directory of our own.
        let program = place.path().join("puppet");
        copy_program(puppet::path(), &program);
        let home = place.path().join("home");
        fs::create_dir(&home).expect("made");
        give(&home, user.outside);
        let release = artifacts().library.parent().expect("a directory");
        let in_passwd = matches!(socket, Socket::PasswdHome).then_some(home.as_path());
        let setup = [
            "set -e\nmount --make-rprivate /\n",
            &passwd_of(user.inside, place.path(), in_passwd),
            &empty_tmp(&[place.path(), release]),
            "exec \"$@\"",
        ];
        let number = user.inside.to_string();
        let mut program = without_places(place.armed("unshare"))
            .args(FLAGS)
            .args(["sh", "-c", &setup.concat(), "sh"])
            .args([
                "setpriv",
                "--reuid",
                &number,
                "--regid",
                &number,
                "--keep-groups",
            ])
            .arg(program);
        if matches!(socket, Socket::Home) {
            program = program.env("HOME", &home);
        }
        if !may_contain(users) {
            return None;
        }
        let mut running = users.enter(program).spawn();
        assert_eq!(running.answer(PATIENCE), "ready");
        let outer = running.pid();
        let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children"));
        let children = children.expect("the kernel lists children");
        let pid = children.trim().parse().expect("one child");
        let dir = match socket {
            Socket::PasswdHome | Socket::Home => home,
            Socket::Tmp => PathBuf::from(format!("/tmp/msprof-{number}")),
        };
        // Where only the user may look, whom we may not be.
        if uid() == 0 {
            let path = format!(
                "/proc/{pid}/root{}/dynamic_profiling_socket_1",
                dir.display()
            );
            wait_until(&format!("the socket {path}"), || Path::new(&path).exists());
        }
        Some(Task { running, pid })
    }

    /// A controller of that user on the host attaches, and captures ten records.
    #[track_caller]
    fn assert_found_by(mut self, place: &Home, controller: u32) {
        let msprof = as_user(msprof(place, self.pid), controller).spawn();
        capture(place, msprof, &mut self.running);
        self.running.finish().expect_code(0);
    }
}

/// Whether such containers can be made here; said on stderr if not.
fn may_contain(users: &Users) -> bool {
    let probe = Program::new("unshare").args(FLAGS).args([
        "setpriv",
        "--reuid",
        "0",
        "--regid",
        "0",
        "--keep-groups",
        "mount",
        "-t",
        "tmpfs",
        "none",
        "/tmp",
    ]);
    let ended = users.enter(probe).try_spawn().map(Running::finish);
    let may = ended.as_ref().is_ok_and(|ended| ended.status.success());
    if !may {
        support::skip::skipped(format_args!("no containers can be made here: {ended:?}"));
    }
    may
}

fn without_places(program: Program) -> Program {
    program.without("MSPROF_AGENT_SOCKET_DIR").without("HOME")
}

/// A controller that attaches.
fn msprof(place: &Home, pid: u32) -> Program {
    attach(without_places(place.plain(&artifacts().msprof)), place, pid)
}

fn attach(msprof: Program, place: &Home, pid: u32) -> Program {
    msprof
        .args(["--dynamic=on", "--runtime-api=on"])
        .arg(format!("--output={}", place.output().display()))
        .arg(format!("--pid={pid}"))
}

#[track_caller]
fn capture(place: &Home, mut msprof: Running, task: &mut Running) {
    msprof.say("start");
    msprof.line("the start", |line| {
        line.contains("start success").then_some(())
    });
    assert_eq!(task.tell("api 10 1"), "0");
    msprof.say("stop");
    msprof.finish().expect_code(0);
    let dir = only_prof_dir(&place.output());
    assert_eq!(open_complete(&dir).api().len(), 10);
}

#[test]
fn the_root_of_a_rootless_container_is_found_by_the_user_whose_container_it_is() {
    let user = plain_user();
    let root = User {
        inside: 0,
        outside: user,
    };
    let one_user = [(0, user, 1)];
    let many_users = [(0, user, 1), (1, 100_000, 65_535)];
    for map in [&one_user[..], &many_users] {
        if map.len() > 1 && !is_root() {
            continue;
        }
        let Some(users) = Users::made_by(user, map) else {
            return;
        };
        for socket in [Socket::PasswdHome, Socket::Home, Socket::Tmp] {
            let place = Home::new();
            let Some(task) = Task::start(&place, &users, &root, socket) else {
                return;
            };
            task.assert_found_by(&place, user);
        }
    }
}

#[test]
fn a_user_of_a_container_whose_numbers_are_others_is_found_by_root() {
    if !is_root() {
        return;
    }
    let one_range = [(0, 100_000, 65_536)];
    let several = [(0, 100_000, 1), (1, 300_000, 4000), (4001, 200_000, 1000)];
    let one_user = [(0, 100_000, 1)];
    for (map, inside, outside) in [
        (&one_user[..], 0, 100_000),
        (&one_range, 0, 100_000),
        (&one_range, 4242, 104_242),
        (&several, 0, 100_000),
        (&several, 4242, 200_241),
    ] {
        let Some(users) = Users::new(map) else {
            return;
        };
        for socket in [Socket::PasswdHome, Socket::Home, Socket::Tmp] {
            let place = Home::new();
            let user = User { inside, outside };
            let Some(task) = Task::start(&place, &users, &user, socket) else {
                return;
            };
            task.assert_found_by(&place, 0);
        }
    }
}

#[test]
fn a_user_of_a_container_is_refused_to_others_by_the_number_on_the_host() {
    if !is_root() {
        return;
    }
    let Some(users) = Users::made_by(PLAIN, &[(0, PLAIN, 1), (1, 100_000, 65_535)]) else {
        return;
    };
    let place = Home::new();
    let user = User {
        inside: 4242,
        outside: 104_241,
    };
    let Some(mut task) = Task::start(&place, &users, &user, Socket::Tmp) else {
        return;
    };
    // The one is its number there, the other the user whose container it is.
    for other in [4242, PLAIN] {
        let program = as_user(msprof(&place, task.pid), other);
        let finished = program.run();
        finished.expect_code(1);
        let text = finished.text();
        assert!(
            text.contains("other user: it belongs to uid 104241"),
            "{text}"
        );
    }
    assert_eq!(task.running.tell("state"), "0 1 0 0");
    task.running.finish().expect_code(0);
}

#[test]
fn a_task_that_shares_our_files_and_has_other_users_is_found() {
    if !is_root() {
        return;
    }
    let place = Home::new();
    give(place.path(), PLAIN);
    let program = place.path().join("puppet");
    copy_program(puppet::path(), &program);
    let release = artifacts().library.parent().expect("a directory");
    // A /tmp of their own for both, since the directory in it stays.
    let setup = [
        "set -e\nmount --make-rprivate /\n",
        &passwd_of(0, place.path(), None),
        &empty_tmp(&[place.path(), release]),
        "exec \"$@\"",
    ];
    let number = PLAIN.to_string();
    let become_plain = [
        "setpriv",
        "--reuid",
        &number,
        "--regid",
        &number,
        "--clear-groups",
    ];
    let contained = |program: &[&str]| {
        let words = ["-m", "sh", "-c", &setup.concat(), "sh"];
        without_places(place.armed("unshare"))
            .args(words)
            .args(become_plain)
            .args(["unshare", "-r"])
            .args(program)
    };
    let probe = contained(&["true"]).try_spawn().map(Running::finish);
    if !probe.as_ref().is_ok_and(|ended| ended.status.success()) {
        support::skip::skipped(format_args!("no user namespaces here: {probe:?}"));
        return;
    }
    let mut task = contained(&[program.to_str().expect("UTF-8")]).spawn();
    assert_eq!(task.answer(PATIENCE), "ready");
    let pid = task.pid();
    let socket = format!("/proc/{pid}/root/tmp/msprof-0/dynamic_profiling_socket_{pid}");
    wait_until("the socket of its own number", || {
        Path::new(&socket).exists()
    });
    let controller = without_places(place.plain("nsenter"))
        .args(["-m", "-t", &pid.to_string()])
        .args(become_plain)
        .arg(&artifacts().msprof);
    let controller = attach(controller, &place, pid);
    capture(&place, controller.spawn(), &mut task);
    task.finish().expect_code(0);
}
