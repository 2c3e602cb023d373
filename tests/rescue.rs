//! A program dies in mid capture with our controller attached: every record whose report had returned is in the
//! directory, once and in order, and nothing else is.

mod support;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};
use support::artifacts::artifacts;
use support::builder::{Linkage, build};
use support::home::{Home, only_prof_dir};
use support::mortal::{account, check_reported, mortal, ready, reported};
use support::msprof::{dynamic, give};
use support::parser::{export, exported, rows, stock_parser};
use support::proc::Proc;
use support::process::{Finished, Program, Running};
use support::prof::Prof;
use support::random::Random;
use support::rules::{open_complete, open_recovered};
use support::wait::{PATIENCE, wait_for, wait_until};

/// Kills under load, as many as fit in the time.
const KILLS: u64 = 20;
const KILLING: Duration = Duration::from_secs(30);

/// A program that is captured by a controller that is attached to it, and reports.
struct Captured {
    home: Home,
    program: Running,
    msprof: Running,
}

impl Captured {
    fn start(words: &str) -> Captured {
        let home = Home::new();
        let program = mortal(&home, words);
        Captured::start_program(home, program)
    }

    fn start_program(home: Home, program: Program) -> Captured {
        let mut program = program.spawn();
        ready(&home, &mut program);
        let mut msprof = dynamic(&home, &home.output())
            .arg(format!("--pid={}", program.pid()))
            .spawn();
        give(&mut msprof, &["start"]);
        started(&mut msprof, program.pid());
        program.say("go");
        Captured {
            home,
            program,
            msprof,
        }
    }

    fn wait_reported(&self, records: u64) {
        wait_until("records", || reported(&account(&self.home)) >= records);
    }

    /// What the controller says when the program has died.
    fn end(self) -> (Home, Finished) {
        let mut msprof = self.msprof;
        msprof.wait_end(PATIENCE);
        (self.home, msprof.finish())
    }
}

fn started(msprof: &mut Running, pid: u32) {
    let expected = format!("dynamic profiling for pid {pid} start success");
    msprof.line("the start", |line| (line == expected).then_some(()));
}

/// Checks what the controller said and what is in the directory; gives the records out of memory.
fn check_rescued(home: &Home, finished: &Finished) -> (Prof, u64) {
    let dir = only_prof_dir(&home.output());
    let prof = open_recovered(&dir);
    let count = check_reported(&prof, &account(home));
    let line = rescued_line(finished);
    let rescued = line
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a number");
    let text = finished.text();
    assert!(text.contains(&format!("records: {count} ")), "{text}");
    // What was lost after the last account nobody can say, here as little as in a summary.
    let summary = home
        .plain(&artifacts().msprof)
        .arg("summary")
        .arg(&dir)
        .run();
    summary.expect_code(0);
    for begin in [
        "lost until the last account: 0 records",
        "lost after it (made ",
    ] {
        let line = summary.line_with(begin);
        assert!(
            text.lines().any(|told| told.trim() == line),
            "{line}: {text}"
        );
    }
    let in_ledger = &prof.ledger()["recovered"]["rescued"];
    assert_eq!(in_ledger.as_u64().unwrap_or(0), rescued);
    let recovered = home
        .plain(&artifacts().msprof)
        .arg("recover")
        .arg(&dir)
        .run();
    recovered.expect_code(0).line_with("nothing to recover");
    (prof, rescued)
}

fn rescued_line(finished: &Finished) -> String {
    let text = finished.text();
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("rescued: "));
    line.unwrap_or_else(|| panic!("nothing rescued: {text}"))
        .to_owned()
}

/// Api records by the stock parser's own count.
fn exported_launches(dir: &Path) -> u64 {
    let csv = exported(dir, "api_statistic_", ".csv").expect("api_statistic csv");
    let rows = rows(&csv);
    let row = rows.iter().find(|row| row["API Name"] == "KernelLaunch");
    row.map_or(0, |row| row["Count"].parse().expect("a number"))
}

#[test]
fn a_kill_under_load_loses_no_record_whose_report_had_returned() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = now.expect("after 1970").as_nanos() as u64;
    eprintln!("seed {seed}");
    let mut random = Random::new(seed);
    let until = Instant::now() + KILLING;
    let (mut rounds, mut rescued, mut in_writes) = (0, 0, 0);
    while rounds < KILLS && Instant::now() < until {
        let threads = 1 + random.below(4);
        // Floods and trickles, threads that stay and threads that come and go.
        let burst = [4, 30, 300][random.below(3) as usize];
        let life = [0, 0, 1_000][random.below(3) as usize];
        let captured = Captured::start(&format!("{threads} {burst} {} {life}", 300 * burst / 30));
        captured.wait_reported(1_000 + random.below(60_000));
        captured.program.kill();
        let mut msprof = captured.msprof;
        msprof.wait_end(PATIENCE);
        let finished = msprof.finish();
        finished.expect_code(1);
        let (prof, records) = check_rescued(&captured.home, &finished);
        rounds += 1;
        rescued += records;
        in_writes += u32::from(finished.text().contains("was done again"));
        if rounds == 1
            && let Some(parser) = stock_parser()
        {
            export(&parser, &prof.path);
            assert_eq!(exported_launches(&prof.path), prof.api().len() as u64);
        }
    }
    eprintln!(
        "{rounds} kills, {rescued} records out of memory, {in_writes} kills in the midst of a write"
    );
    assert!(rounds >= 3 && rescued > 0);
}

#[test]
fn a_program_that_crashes_or_leaves_at_once_loses_nothing() {
    for (death, signal) in [("abort", Some(6)), ("segv", Some(11)), ("exit", None)] {
        let captured = Captured::start(&format!("3 50 200 0 {death} 7000"));
        let mut program = captured.program;
        let status = program.wait_end(PATIENCE);
        assert_eq!(
            (status.signal(), status.code()),
            (signal, signal.map_or(Some(7), |_| None))
        );
        let mut msprof = captured.msprof;
        msprof.wait_end(PATIENCE);
        let finished = msprof.finish();
        finished.expect_code(1);
        let (prof, _) = check_rescued(&captured.home, &finished);
        assert!(prof.api().len() >= 7000, "{death}");
    }
}

#[test]
fn of_two_captured_programs_the_killed_one_is_rescued_and_the_other_one_stops_as_ever() {
    let homes = [Home::new(), Home::new()];
    let mut programs = homes.each_ref().map(|home| {
        let program = mortal(home, "2 30 300 0").env("MSPROF_AGENT_SOCKET_DIR", homes[0].path());
        let mut program = program.spawn();
        ready(&homes[0], &mut program);
        program
    });
    let [first, second] = programs.each_ref().map(Running::pid);
    let msprof = dynamic(&homes[0], &homes[0].output());
    let mut msprof = msprof.arg(format!("--pid={first},{second}")).spawn();
    give(&mut msprof, &["start"]);
    let expected = "start times of 2 processes";
    msprof.line("both starts", |line| {
        line.starts_with(expected).then_some(())
    });
    for program in &mut programs {
        program.say("go");
    }
    for home in &homes {
        wait_until("records", || reported(&account(home)) > 20_000);
    }
    let [killed, mut other] = programs;
    killed.kill();
    wait_until("the rescue", || {
        msprof
            .stderr()
            .iter()
            .any(|line| line.contains("rescued: "))
    });
    give(&mut msprof, &["stop", "quit"]);
    let finished = msprof.finish();
    finished.expect_code(1);
    finished.line_with(&format!("dynamic profiling for pid {second} stop success"));
    let mut dirs = support::home::prof_dirs(&homes[0].output());
    dirs.retain(|dir| Prof::open(dir).ledger()["pid"] == first);
    check_reported(&open_recovered(&dirs[0]), &account(&homes[0]));
    let mut dirs = support::home::prof_dirs(&homes[0].output());
    dirs.retain(|dir| Prof::open(dir).ledger()["pid"] == second);
    open_complete(&dirs[0]);
    assert!(!other.has_ended());
    other.kill();
}

#[test]
fn a_launched_program_that_is_killed_is_rescued_and_its_status_is_the_controllers() {
    let home = Home::new();
    let program = build("tests/c/mortal.c", Linkage::Shared);
    let account_file = home.path().join("account");
    // A launched program's stdin is empty: this one gets its word through a pipe.
    let pipe = home.path().join("pipe");
    let name = std::ffi::CString::new(pipe.as_os_str().as_encoded_bytes()).expect("a path");
    // SAFETY: the name ends with NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let opened = std::fs::File::options().read(true).write(true).open(&pipe);
    let mut word = opened.expect("opened");
    let script = home.path().join("launch.sh");
    let (program, account_file) = (program.display(), account_file.display());
    let text = format!(
        "exec {program} {account_file} 3 40 300 0 <{}\n",
        pipe.display()
    );
    std::fs::write(&script, text).expect("written");
    let mut msprof = dynamic(&home, &home.output())
        .arg(format!("--application=/bin/sh {}", script.display()))
        .spawn();
    give(&mut msprof, &["start"]);
    let pid = wait_for("the start", PATIENCE, || {
        let lines = msprof.stdout();
        let line = lines
            .iter()
            .find(|line| line.ends_with("start success"))?
            .clone();
        line.split_whitespace().nth(4)?.parse::<i32>().ok()
    });
    word.write_all(b"\n").expect("said");
    wait_until("records", || reported(&account(&home)) > 50_000);
    // SAFETY: the controller's child, which has not ended.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    msprof.wait_end(PATIENCE);
    let finished = msprof.finish();
    finished.expect_code(128 + libc::SIGKILL);
    check_rescued(&home, &finished);
}

#[test]
fn captures_one_after_the_other_leave_no_descriptor_at_either_end() {
    let mut captured = Captured::start("1 30 3000 0");
    let pid = captured.program.pid();
    let ends = [Proc::of(pid), Proc::of(captured.msprof.pid())];
    let mut before = None;
    for _ in 0..5 {
        captured.wait_reported(1);
        let during = ends[1].descriptors();
        let memory = during
            .values()
            .filter(|to| to.contains("msprof-rings"))
            .count();
        assert_eq!(memory, 1, "{during:?}");
        for (number, to) in &during {
            if to.contains("msprof-rings") || to.contains("PROF_") {
                assert!(
                    ends[1].is_close_on_exec(*number) && *number > 2,
                    "{number}: {to}"
                );
            }
        }
        give(&mut captured.msprof, &["stop"]);
        let stopped = |running: &Running| {
            running
                .stdout()
                .iter()
                .filter(|line| line.ends_with("stop success"))
                .count()
        };
        let count = stopped(&captured.msprof);
        wait_until("the stop", || stopped(&captured.msprof) > count);
        let now = || ends.each_ref().map(|end| end.descriptors().len());
        // Either end opens a file for a moment now and then (/proc, the directory's ledger). One that was
        // open at the first stop hides one that stays, but not one of every turn.
        let before = *before.get_or_insert_with(now);
        wait_until("no more descriptors than after the first stop", || {
            now().iter().zip(&before).all(|(now, before)| now <= before)
        });
        let running = |running: &Running| {
            running
                .stdout()
                .iter()
                .filter(|line| line.ends_with("start success"))
                .count()
        };
        let count = running(&captured.msprof);
        give(&mut captured.msprof, &["start"]);
        wait_until("the start", || running(&captured.msprof) > count);
    }
    give(&mut captured.msprof, &["stop", "quit"]);
    let Captured {
        home,
        program,
        msprof,
    } = captured;
    msprof.finish().expect_code(0);
    for dir in support::home::prof_dirs(&home.output()) {
        open_complete(&dir);
    }
    program.kill();
}

#[test]
fn a_program_that_has_no_memory_to_share_says_so_once_and_is_captured_all_the_same() {
    let home = Home::new();
    let program = mortal(&home, "1 30 300 0");
    // SAFETY: setrlimit is async-signal-safe.
    let program = unsafe {
        program.before_exec(|| {
            let limit = libc::rlimit {
                rlim_cur: 128 << 20,
                rlim_max: 128 << 20,
            };
            match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        })
    };
    let captured = Captured::start_program(home, program);
    captured.wait_reported(10_000);
    let said = |running: &Running| {
        running
            .stdout()
            .iter()
            .filter(|line| line.contains("its buffers cannot be shared"))
            .count()
    };
    assert_eq!(said(&captured.msprof), 1);
    let mut captured = captured;
    give(&mut captured.msprof, &["stop", "start"]);
    wait_until("the second start", || {
        captured
            .msprof
            .stdout()
            .iter()
            .filter(|line| line.ends_with("start success"))
            .count()
            == 2
    });
    captured.wait_reported(reported(&account(&captured.home)) + 10_000);
    assert_eq!(said(&captured.msprof), 1);
    let pid = captured.program.pid();
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    // SAFETY: our own child, which has not been waited for.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    let (home, finished) = captured.end();
    finished.expect_code(1);
    let text = finished.text();
    assert!(text.contains("finish it with: msprof recover"), "{text}");
    let dirs = support::home::prof_dirs(&home.output());
    home.plain(&artifacts().msprof)
        .arg("recover")
        .arg(&dirs[1])
        .run()
        .expect_code(0);
    open_recovered(&dirs[1]);
}
