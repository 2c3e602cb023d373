//! Without PROFILING_MODE=dynamic the library does nothing; with it, it leaves the process as it is.

mod support;

use std::path::PathBuf;
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::client::{ByteClient, params};
use support::home::{Home, only_prof_dir};
use support::proc::{Manners, Proc};
use support::process::{Program, words};
use support::puppet::{self, Puppet};
use support::rules::open_complete;
use support::task::{EASY, Task, Way};
use support::wait::wait_until;

/// What an agent that is armed and idle may take, KiB.
const ARMED_KIB: u64 = 2048;

/// A task in which the agent is mapped and was not asked for.
fn unarmed_task(home: &Home, mode: Option<&str>) -> Task {
    let program = home
        .plain(&artifacts().task)
        .env("LD_PRELOAD", &artifacts().library)
        .args(words(EASY));
    let program = match mode {
        Some(mode) => program.env("PROFILING_MODE", mode),
        None => program,
    };
    Task::start_program(home, program, false)
}

fn everything_in(home: &Home) -> Vec<PathBuf> {
    home.entries(|_| true)
}

#[test]
fn without_dynamic_mode_there_is_no_socket_no_thread_and_no_file() {
    for mode in [
        None,
        Some(""),
        Some("static"),
        Some("Dynamic"),
        Some("dynamic "),
    ] {
        let home = Home::new();
        let task = unarmed_task(&home, mode);
        let proc = Proc::of(task.pid());
        assert!(proc.maps_file("/libmsprof_agent.so"), "{mode:?}");
        assert_eq!(proc.agent_threads(), [] as [String; 0], "{mode:?}");
        assert_eq!(everything_in(&home), [] as [PathBuf; 0], "{mode:?}");
        let bare = Task::start(&Home::new(), Way::None, EASY);
        assert_eq!(
            proc.resources(),
            Proc::of(bare.pid()).resources(),
            "threads and descriptors as without the library"
        );
        task.terminate();
        assert_eq!(everything_in(&home), [] as [PathBuf; 0], "{mode:?}");
    }
}

#[test]
fn without_dynamic_mode_the_task_says_and_does_the_same() {
    let home = Home::new();
    let run = |program: Program| {
        let options = "--seconds=1 --streams=1 --pause-us=1000";
        let finished = program.args(words(options)).run();
        finished.expect_code(0);
        assert_eq!(finished.stderr, [] as [String; 0]);
        assert_eq!(finished.stdout.len(), 2, "{finished:#?}");
        finished.line_with("done runs=");
    };
    run(home.plain(&artifacts().task));
    run(home
        .plain(&artifacts().task)
        .env("LD_PRELOAD", &artifacts().library));
}

#[test]
fn every_call_is_harmless_without_dynamic_mode() {
    let home = Home::new();
    let program = build("tests/c/every_call.c", Linkage::Shared);
    home.plain(program).run().expect_code(0);
    assert_eq!(everything_in(&home), [] as [PathBuf; 0]);
}

#[test]
fn a_process_can_be_told_not_to_bind() {
    let home = Home::new();
    let program = home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "off");
    let mut puppet = Puppet::start_program(&home, program);
    assert_eq!(puppet.tell("init"), "0");
    assert_eq!(puppet.tell("api 10 1"), "0");
    assert_eq!(home.sockets(), [] as [PathBuf; 0]);
    assert_eq!(Proc::of(puppet.pid()).agent_threads(), [] as [String; 0]);
}

#[test]
fn a_process_can_be_told_to_bind_at_its_first_call() {
    let home = Home::new();
    for call in ["api 1 1", "init", "device 0 1", "name"] {
        let program = home.armed(puppet::path()).env("MSPROF_AGENT_BIND", "use");
        let mut puppet = Puppet::start_program(&home, program);
        assert_eq!(home.sockets(), [] as [PathBuf; 0], "before {call}");
        assert_eq!(puppet.tell(call), "0");
        puppet.wait_socket();
        puppet.finish().expect_code(0);
    }
}

#[test]
fn a_shell_that_starts_the_task_gets_no_socket_and_the_task_does() {
    let home = Home::new();
    let script = format!(
        "{} --seconds=-1 --streams=1 --pause-us=1000 & echo $!; wait",
        artifacts().task.display()
    );
    let mut shell = home
        .armed("/bin/sh")
        .env("LD_PRELOAD", &artifacts().library)
        .args(["-c", &script])
        .spawn();
    let pid: u32 = shell.line("the task's pid", |line| line.parse().ok());
    let socket = home.socket(pid);
    wait_until("the task's socket", || socket.exists());
    let ready = format!("pid {pid} ready");
    shell.line("the task to be ready", |line| (line == ready).then_some(()));
    assert_eq!(home.sockets(), [socket]);
    assert_eq!(Proc::of(shell.pid()).agent_threads(), [] as [String; 0]);
}

// ---- manners -----------------------------------------------------------------

/// What the process looks like, but for what the program itself does in the course of time.
fn manners(pid: u32) -> Manners {
    Proc::of(pid).manners()
}

#[test]
fn signals_umask_and_working_directory_stay_as_they_are() {
    let home = Home::new();
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let start = |way| {
        let program = support::task::program(&home, way, EASY).current_dir(&elsewhere);
        Task::start_program(&home, program, way != Way::None)
    };
    let bare = start(Way::None);
    let expected = manners(bare.pid());
    bare.terminate();
    for way in [Way::Preload, Way::DropIn, Way::Linked] {
        let task = start(way);
        assert_eq!(manners(task.pid()), expected, "{way:?}: loaded");
        let mut client = ByteClient::open(task.socket(), &params(&home.output()));
        assert_eq!(manners(task.pid()), expected, "{way:?}: a client is there");
        client.start();
        assert_eq!(manners(task.pid()), expected, "{way:?}: capturing");
        client.stop();
        assert_eq!(manners(task.pid()), expected, "{way:?}: stopped");
        client.quit();
        task.terminate();
    }
}

#[test]
fn agent_threads_block_every_signal_of_the_program() {
    let home = Home::new();
    let puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", puppet.pid())).expect("tasks");
    let mut seen = 0;
    for task in tasks {
        let path = task.expect("entry").path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        if !name.starts_with("msprof") {
            continue;
        }
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        let Some(blocked) = status.lines().find_map(|line| line.strip_prefix("SigBlk:")) else {
            continue; // it has just ended
        };
        let blocked = u64::from_str_radix(blocked.trim(), 16).expect("hexadecimal");
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGUSR1,
            libc::SIGCHLD,
            libc::SIGALRM,
        ] {
            assert!(
                blocked >> (signal - 1) & 1 == 1,
                "{name} takes signal {signal}"
            );
        }
        seen += 1;
    }
    assert!(seen >= 2, "control and drain");
    client.stop();
}

#[test]
fn ctrl_c_in_mid_capture_ends_the_program_as_without_us() {
    use std::os::unix::process::ExitStatusExt;
    let home = Home::new();
    let mut puppet = Puppet::start(&home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    puppet.signal(libc::SIGINT);
    assert_eq!(puppet.wait_end().signal(), Some(libc::SIGINT));
}

#[test]
fn an_armed_and_idle_agent_takes_less_than_two_megabytes() {
    // The smallest of several, since what else is resident varies a little.
    let smallest = |way| {
        let resident = (0..5).map(|_| {
            let home = Home::new();
            let task = Task::start(&home, way, "--seconds=-1 --streams=1 --pause-us=50000");
            Proc::of(task.pid()).resident_kib()
        });
        resident.min().expect("five")
    };
    let without = smallest(Way::None);
    let with = smallest(Way::Preload);
    assert!(
        with < without + ARMED_KIB,
        "{without} KiB without, {with} KiB armed"
    );
}

#[test]
fn nothing_is_written_to_the_programs_streams() {
    let home = Home::new();
    let program = home
        .plain(puppet::path())
        .env("PROFILING_MODE", "dynamic")
        .env("MSPROF_AGENT_LOG", "warn");
    let mut puppet = Puppet::start_program(&home, program);
    puppet.wait_socket();
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    assert_eq!(puppet.tell("api 10 1"), "0");
    client.stop();
    client.quit();
    open_complete(&only_prof_dir(&home.output()));
    let finished = puppet.finish();
    finished.expect_code(0);
    assert_eq!(finished.stderr, [] as [String; 0]);
    assert_eq!(finished.stdout, ["ready", "0"]);
}
