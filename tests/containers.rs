//! Processes in containers: pids that are others outside, homes that several of them share, and pid 1.

mod support;

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use support::artifacts::artifacts;
use support::home::{Home, prof_dirs};
use support::namespace::{Namespace, passwd, uid};
use support::process::{Program, Running};
use support::puppet;
use support::rules::open_complete;
use support::verbs::{object, row};
use support::wait::{PATIENCE, wait_for, wait_until};

/// A pid namespace of its own, which ends with the process that holds it.
const FLAGS: [&str; 4] = ["-p", "-f", "--mount-proc", "--kill-child"];

/// A puppet that is pid 1 where it lives.
struct Contained {
    running: Running,
    /// Its pid here.
    pid: u32,
}

impl Contained {
    fn start(place: &Home, variables: &[(&str, &Path)]) -> Option<Contained> {
        if uid() != 0 {
            support::skip::skipped(format_args!(
                "only root sees the files of another namespace"
            ));
            return None;
        }
        // Nobody's home but what the variables say.
        let namespace = Namespace::new(&passwd(place.path(), None))?.with_flags(&FLAGS)?;
        let program = namespace
            .armed(place, puppet::path())
            .without("MSPROF_AGENT_SOCKET_DIR")
            .without("HOME");
        let program = variables
            .iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        let running = program.spawn();
        let mut contained = Contained { running, pid: 0 };
        assert_eq!(contained.running.answer(PATIENCE), "ready");
        let outer = contained.running.pid();
        let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children"));
        let children = children.expect("the kernel lists children");
        contained.pid = children.trim().parse().expect("one child");
        Some(contained)
    }

    /// A controller that attaches from outside by the pid that it sees.
    fn controller(&self, place: &Home) -> Running {
        let outside = Namespace::new(&passwd(place.path(), None)).expect("as before");
        outside
            .plain(place, &artifacts().msprof)
            .without("MSPROF_AGENT_SOCKET_DIR")
            .without("HOME")
            .args(["--dynamic=on", "--runtime-api=on"])
            .arg(format!("--output={}", place.output().display()))
            .arg(format!("--pid={}", self.pid))
            .spawn()
    }

    /// Such a controller attaches; ten records are captured.
    #[track_caller]
    fn assert_found(&mut self, place: &Home) {
        let before = prof_dirs(&place.output());
        let mut msprof = self.controller(place);
        msprof.say("start");
        msprof.line("the start", |line| {
            line.contains("start success").then_some(())
        });
        assert_eq!(self.running.tell("api 10 1"), "0");
        msprof.say("stop");
        msprof.finish().expect_code(0);
        let mut dirs = prof_dirs(&place.output());
        dirs.retain(|dir| !before.contains(dir));
        assert_eq!(dirs.len(), 1);
        assert_eq!(open_complete(&dirs[0]).api().len(), 10);
    }
}

fn make(place: &Home, name: &str) -> PathBuf {
    let dir = place.path().join(name);
    fs::create_dir(&dir).expect("a directory");
    dir
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("dynamic_profiling_socket_1")
}

#[test]
fn a_process_in_a_container_is_attached_to_by_its_pid_on_the_host() {
    let place = Home::new();
    let home = make(&place, "home");
    let Some(mut contained) = Contained::start(&place, &[("HOME", &home)]) else {
        return;
    };
    wait_until("the socket of pid 1", || socket(&home).exists());
    contained.assert_found(&place);
    contained.running.finish().expect_code(0);
    assert!(!socket(&home).exists());
}

/// What `msprof` with these words says from outside, by its own object.
fn said_outside(place: &Home, words: &[&str]) -> Value {
    let outside = Namespace::new(&passwd(place.path(), None)).expect("as before");
    let program = outside
        .plain(place, &artifacts().msprof)
        .without("MSPROF_AGENT_SOCKET_DIR")
        .without("HOME");
    object(&program.args(words).arg("--json").run()).0
}

#[test]
fn processes_in_containers_are_listed_with_both_of_their_pids() {
    let place = Home::new();
    let home = make(&place, "home");
    let runtimes = [make(&place, "first"), make(&place, "second")];
    // One home for both, so that the second has its socket elsewhere.
    let variables = |runtime| [("HOME", home.as_path()), ("XDG_RUNTIME_DIR", runtime)];
    let Some(first) = Contained::start(&place, &variables(&runtimes[0])) else {
        return;
    };
    wait_until("the first socket", || socket(&home).exists());
    let second = Contained::start(&place, &variables(&runtimes[1])).expect("as the first");
    wait_until("the second socket", || socket(&runtimes[1]).exists());
    let list = said_outside(&place, &["list"]);
    for (contained, dir) in [(&first, &home), (&second, &runtimes[1])] {
        let row = row(&list, contained.pid);
        assert_eq!(
            (&row["state"], &row["code"]),
            (&json!("idle"), &json!("ready")),
            "{row}"
        );
        assert_eq!(row["container_pid"], 1);
        assert_eq!(row["socket"].as_str(), socket(dir).to_str());
    }
    let pid = format!("--pid={}", second.pid);
    let doctor = said_outside(&place, &["doctor", &pid]);
    let findings = row(&doctor, second.pid)["findings"].to_string();
    assert!(
        findings.contains("\"container\"") && findings.contains("where it is pid 1"),
        "{findings}"
    );
    // One command by the number outside.
    let output = format!("--output={}", place.output().display());
    let started = said_outside(&place, &["start", &pid, &output, "--runtime-api=on"]);
    assert_eq!(row(&started, second.pid)["code"], "ok", "{started}");
    let list = said_outside(&place, &["list"]);
    assert_eq!(row(&list, second.pid)["state"], "capturing");
    assert_eq!(row(&list, first.pid)["state"], "idle");
    let stopped = said_outside(&place, &["stop", &pid]);
    assert_eq!(row(&stopped, second.pid)["code"], "ok", "{stopped}");
    let dir = support::home::only_prof_dir(&place.output());
    open_complete(&dir);
    first.running.finish().expect_code(0);
    second.running.finish().expect_code(0);
}

#[test]
fn two_containers_with_one_home_and_one_pid_have_a_socket_each() {
    let place = Home::new();
    let home = make(&place, "home");
    let runtimes = [make(&place, "first"), make(&place, "second")];
    let variables = |runtime| [("HOME", home.as_path()), ("XDG_RUNTIME_DIR", runtime)];
    let Some(mut first) = Contained::start(&place, &variables(&runtimes[0])) else {
        return;
    };
    wait_until("the first socket", || socket(&home).exists());
    let inode = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        fs::symlink_metadata(path).expect("there").ino()
    };
    let of_first = inode(&socket(&home));
    let mut second = Contained::start(&place, &variables(&runtimes[1])).expect("as the first");
    wait_until("the second socket", || socket(&runtimes[1]).exists());
    assert_eq!(inode(&socket(&home)), of_first, "it is not stolen");
    wait_for("a line about it", PATIENCE, || {
        let log = place.log();
        let taken = log.lines().any(|line| {
            line.contains("belongs to another living process")
                && line.contains(runtimes[1].to_str().expect("UTF-8"))
        });
        taken.then_some(())
    });
    second.assert_found(&place);
    first.assert_found(&place);
    second.running.finish().expect_code(0);
    assert!(socket(&home).exists() && !socket(&runtimes[1]).exists());
    first.running.finish().expect_code(0);
    assert!(!socket(&home).exists());
}

#[test]
fn a_container_that_was_killed_and_starts_again_replaces_its_socket() {
    let place = Home::new();
    let home = make(&place, "home");
    let Some(killed) = Contained::start(&place, &[("HOME", &home)]) else {
        return;
    };
    wait_until("the socket", || socket(&home).exists());
    // Pid 1 goes with whoever holds it.
    killed.running.kill();
    wait_until("the process to be gone", || {
        !support::proc::Proc::of(killed.pid).is_alive()
    });
    assert!(socket(&home).exists(), "a killed process cannot tidy up");
    let mut next = Contained::start(&place, &[("HOME", &home)]).expect("as before");
    wait_until("somebody to answer", || {
        std::os::unix::net::UnixStream::connect(socket(&home)).is_ok()
    });
    next.assert_found(&place);
    next.running.finish().expect_code(0);
    assert!(!socket(&home).exists());
}

/// What a container's root does not have: the kernel then keeps the files and the environment of others from it.
const WITHOUT: &str = "-sys_ptrace,-perfmon,-sys_admin";

/// A controller of the same user with fewer rights, as in a container beside the task's.
fn controller_without_ptrace(namespace: &Namespace, place: &Home, pid: u32) -> Program {
    namespace
        .plain(place, "setpriv")
        .without("MSPROF_AGENT_SOCKET_DIR")
        .without("HOME")
        .args(["--bounding-set", WITHOUT])
        .arg(&artifacts().msprof)
        .args(["--dynamic=on", "--runtime-api=on"])
        .arg(format!("--output={}", place.output().display()))
        .arg(format!("--pid={pid}"))
}

#[test]
fn a_process_whose_files_cannot_be_seen_is_reached_by_a_directory_that_both_know() {
    let place = Home::new();
    let sockets = make(&place, "sockets");
    if uid() != 0 {
        support::skip::skipped(format_args!("only root has rights to be without"));
        return;
    }
    let Some(namespace) = Namespace::new(&passwd(place.path(), None)) else {
        return;
    };
    let program = namespace.armed(&place, puppet::path()).without("HOME");
    let mut running = program.env("MSPROF_AGENT_SOCKET_DIR", &sockets).spawn();
    assert_eq!(running.answer(PATIENCE), "ready");
    let pid = running.pid();
    let environment = format!("/proc/{pid}/environ");
    let look = ["--bounding-set", WITHOUT, "cat", &environment];
    let looks = Program::new("setpriv").args(look).try_spawn();
    let sees = looks.map(|looks| looks.finish().status.success());
    if !matches!(sees, Ok(false)) {
        support::skip::skipped(format_args!(
            "there is no setpriv, or root sees as much without those rights here"
        ));
        return;
    }
    let finished = controller_without_ptrace(&namespace, &place, pid).run();
    finished.expect_code(1);
    let text = finished.text();
    let said = text
        .contains("cannot be seen from here: run msprof as uid 0 or with CAP_SYS_PTRACE")
        && text.contains("MSPROF_AGENT_SOCKET_DIR");
    assert!(said, "{text}");

    let controller = controller_without_ptrace(&namespace, &place, pid);
    let mut msprof = controller.env("MSPROF_AGENT_SOCKET_DIR", &sockets).spawn();
    msprof.say("start");
    msprof.line("the start", |line| {
        line.contains("start success").then_some(())
    });
    assert_eq!(running.tell("api 10 1"), "0");
    msprof.say("stop");
    msprof.finish().expect_code(0);
    let dir = support::home::only_prof_dir(&place.output());
    assert_eq!(open_complete(&dir).api().len(), 10);
    running.finish().expect_code(0);
}

#[test]
fn a_process_that_is_killed_in_a_container_is_rescued_from_outside() {
    let place = Home::new();
    let home = make(&place, "home");
    let Some(mut contained) = Contained::start(&place, &[("HOME", &home)]) else {
        return;
    };
    wait_until("the socket of pid 1", || socket(&home).exists());
    let mut msprof = contained.controller(&place);
    msprof.say("start");
    msprof.line("the start", |line| {
        line.contains("start success").then_some(())
    });
    assert_eq!(contained.running.tell("api 500 1"), "0");
    // SAFETY: a process of this test, which nobody has waited for.
    let killed = unsafe { libc::kill(contained.pid as i32, libc::SIGKILL) };
    assert_eq!(killed, 0);
    msprof.wait_end(PATIENCE);
    let finished = msprof.finish();
    finished.expect_code(1);
    let text = finished.text();
    assert!(
        text.contains("; what it still had in memory is written"),
        "{text}"
    );
    let dir = support::home::only_prof_dir(&place.output());
    assert_eq!(support::rules::open_recovered(&dir).api().len(), 500);
    assert!(
        text.contains(&format!("directory: {}", dir.display())),
        "{text}"
    );
}

#[test]
fn each_place_is_named_once_where_there_is_no_socket() {
    let place = Home::new();
    let home = make(&place, "home");
    let Some(namespace) = Namespace::new(&passwd(place.path(), None)) else {
        return;
    };
    // Mounts of their own, so that each place is looked at by way of the process and by itself.
    let with_home = |program: Program| {
        let program = program.without("MSPROF_AGENT_SOCKET_DIR");
        program.env("HOME", &home)
    };
    let mut running = with_home(namespace.plain(&place, puppet::path())).spawn();
    assert_eq!(running.answer(PATIENCE), "ready");
    let pid = running.pid();
    let finished = with_home(namespace.plain(&place, &artifacts().msprof))
        .arg("--dynamic=on")
        .arg(format!("--pid={pid}"))
        .run();
    finished.expect_code(1);
    let expected = format!(
        "dynamic profiling for pid {pid} cannot begin: not armed: no socket in {}, /tmp/msprof-{}; it was started without \
         PROFILING_MODE: start it with PROFILING_MODE=dynamic and libmsprof_agent.so in LD_PRELOAD",
        home.display(),
        uid()
    );
    assert_eq!(finished.stderr, [expected]);
    running.finish().expect_code(0);
}
