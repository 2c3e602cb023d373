//! Without PROFILING_MODE=dynamic the library does nothing; with it, it leaves the process as it is.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use support::artifacts::artifacts;
use support::builder::{Linkage, build, build_library};
use support::client::{ByteClient, params};
use support::executable::copy_program;
use support::home::{Home, only_prof_dir};
use support::namespace::uid;
use support::proc::{Manners, Proc};
use support::process::{Program, words};
use support::puppet::{self, Puppet};
use support::rules::open_complete;
use support::task::{EASY, Task, Way};

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

/// A user that is nobody's.
const NOBODY: u32 = 65_534;

/// The puppet with all variables set that have the agent write files or load the vendor's library, run by nobody.
fn puppet_of_nobody(home: &Home, set_user_id: bool, mode: &str) -> Option<Puppet> {
    let file = home.path().join("puppet");
    copy_program(puppet::path(), &file);
    let mode_bits = |bits| std::fs::Permissions::from_mode(bits);
    let bits = if set_user_id { 0o4755 } else { 0o755 };
    std::fs::set_permissions(&file, mode_bits(bits)).expect("our file");
    std::fs::set_permissions(home.path(), mode_bits(0o777)).expect("our directory");
    let lib64 = home.path().join("lib64");
    std::fs::create_dir(&lib64).expect("a new directory");
    build_library("tests/c/vendor_profapi.c", &lib64.join("libprofapi.so"));
    // Where that user can read it. The set-user-ID program finds the library by RUNPATH, as root.
    let library = home.path().join("libmsprof_agent.so");
    std::fs::copy(&artifacts().library, library).expect("a copy");
    let become_nobody = || {
        // SAFETY: plain system calls.
        match unsafe { libc::setgid(NOBODY) | libc::setuid(NOBODY) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    let program = home.armed(&file).env("PROFILING_MODE", mode);
    let program = program.env("ASCEND_HOME_PATH", home.path());
    let program = program.env("LD_LIBRARY_PATH", home.path());
    // SAFETY: the closure makes system calls only.
    let program = unsafe { program.before_exec(become_nobody) };
    let mut puppet = Puppet::start_program(home, program);
    let user = Proc::of(puppet.pid()).status("Uid");
    let effective = user.split_whitespace().nth(1).expect("four ids");
    if set_user_id && effective != "0" {
        support::skip::skipped(format_args!("set-user-ID has no effect here"));
        return None;
    }
    assert_eq!(puppet.tell("init") == "0", mode == "dynamic" || set_user_id);
    Some(puppet)
}

#[test]
fn a_set_user_id_program_takes_nothing_from_the_environment() {
    if uid() != 0 {
        support::skip::skipped(format_args!(
            "only root can make a program of another user's"
        ));
        return;
    }
    let seen = |set_user_id, mode| {
        let home = Home::new();
        let puppet = puppet_of_nobody(&home, set_user_id, mode)?;
        let proc = Proc::of(puppet.pid());
        let vendors = proc.maps_file("/lib64/libprofapi.so");
        let log = home.path().join("agent.log").exists();
        Some((log, !home.sockets().is_empty(), vendors))
    };
    // That the variables have an effect elsewhere.
    assert_eq!(seen(false, "dynamic"), Some((true, true, false)));
    assert_eq!(seen(false, ""), Some((false, false, true)));
    for mode in ["dynamic", ""] {
        let nothing = Some((false, false, false));
        assert!([None, nothing].contains(&seen(true, mode)), "{mode:?}");
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
    let socket = home.wait_socket(pid);
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
    let mut puppet = Puppet::start_armed(&home, program);
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
