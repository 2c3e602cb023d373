//! The few lines of a summary behind a stop.

mod support;

use msprof_agent_core::control::extension::{Op, Outcome, Reply};
use msprof_agent_core::records::level;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::*;

/// A stop whose capture is this directory and began as `made` says.
fn ended(path: &Path, start: u64) -> Reply {
    let mut reply = stopped();
    reply.path = Some(path.display().to_string());
    if let Some(ledger) = &mut reply.ledger {
        ledger.start = anchor(start);
        ledger.stop = Some(anchor(2_500_000_000));
    }
    reply
}

/// A session with one start, one stop and a quit.
fn session(lab: &Lab, reply: Reply) -> (Ended, u32) {
    let target = Sleeper::new();
    let pid = target.pid();
    let server = Server::once(&lab.socket(pid), move |mut client| {
        client.greet(pid);
        while let Some((id, op)) = client.read_request() {
            let success = outcome(Outcome::Success);
            client.reply(id, if op == Op::Stop { &reply } else { &success });
            if op == Op::Quit {
                return;
            }
        }
    });
    let ended = lab.attach(&[pid]).script("start\nstop\nquit\n");
    server.join();
    (ended, pid)
}

fn made(lab: &Lab) -> PathBuf {
    let mut capture = Capture::new(lab);
    capture.name(level::MODEL, 1, "ModelExecute");
    capture.event(level::MODEL, 1, 1_000);
    capture.event(level::MODEL, 1, 2_000);
    for kind in 1..=6 {
        capture.call(level::RUNTIME, kind, 0, 10_000 * u64::from(kind));
    }
    capture.finish()
}

#[test]
fn a_stop_is_followed_by_the_runs_of_models_and_the_first_five_calls() {
    let lab = Lab::new();
    let path = made(&lab);
    let (ended, pid) = session(&lab, ended(&path, 0));
    ended.exits(0);
    let lines: Vec<&str> = ended.out.lines().collect();
    let result = format!("dynamic profiling for pid {pid} stop success");
    let at = lines
        .iter()
        .position(|line| *line == result)
        .expect("a result");
    assert_eq!(
        lines[at..],
        [
            result.as_str(),
            &format!("  directory: {}", path.display()),
            "  captured: 2.500 s",
            "  records: 2 (runtime-api 2)",
            "  bytes: 80",
            "  lost 0",
            &format!("summary for pid {pid}:"),
            "  model runs: 1, 0.4 per second",
            "  Level    API  Count  Total(us)  Mean(us)  P99(us)",
            "  runtime  6        1     60.000    60.000   60.000",
            "  runtime  5        1     50.000    50.000   50.000",
            "  runtime  4        1     40.000    40.000   40.000",
            "  runtime  3        1     30.000    30.000   30.000",
            "  runtime  2        1     20.000    20.000   20.000",
            &format!("dynamic profiling for pid {pid} quit success"),
        ]
    );
}

#[test]
fn the_verb_is_followed_by_the_same_unless_programs_read_it() {
    let lab = Lab::new();
    let path = made(&lab);
    for (option, followed) in [(None, true), (Some("--json"), false)] {
        let target = Sleeper::new();
        let pid = target.pid();
        let reply = ended(&path, 0);
        let server = Server::once(&lab.socket(pid), move |mut client| {
            client.greet(pid);
            while let Some((id, op)) = client.read_request() {
                let success = outcome(Outcome::Success);
                client.reply(id, if op == Op::Stop { &reply } else { &success });
            }
        });
        let mut command = lab.msprof();
        // A verb that only stops looks at the process first, which is no agent here.
        let words = ["record", "--duration=1ms", "--output", "."];
        command.args(words).arg(format!("--pid={pid}")).args(option);
        let ended = Run::start(command).ended();
        server.join();
        ended.exits(0);
        let summary = format!("summary for pid {pid}:\n  model runs: 1, 0.4 per second\n");
        assert_eq!(ended.out.contains(&summary), followed, "{}", ended.out);
        assert!(!ended.err.contains("summary for"), "{}", ended.err);
    }
}

#[test]
fn another_capture_of_the_same_path_or_none_is_not_summed_up() {
    let lab = Lab::new();
    let path = made(&lab);
    for reply in [ended(&path, 1), ended(&lab.path("missing"), 0), stopped()] {
        let (ended, _) = session(&lab, reply);
        ended.exits(0).says("stop success");
        assert!(!ended.out.contains("summary for"), "{}", ended.out);
        assert_eq!(ended.err, "");
    }
}

#[test]
fn a_capture_that_takes_long_to_be_read_does_not_hold_up_the_session() {
    let lab = Lab::new();
    let path = made(&lab);
    // More calls than can be read within the time: the same ones again and again.
    let data = path.join("host/data");
    let slice = |number: u32| data.join(format!("unaging.api_event.data.slice_{number}"));
    let records = std::fs::read(slice(0)).expect("records");
    let again = records[80..].repeat((8 << 20) / (records.len() - 80));
    std::fs::write(slice(1), again).expect("written");
    for number in 2..=128 {
        std::fs::hard_link(slice(1), slice(number)).expect("linked");
    }
    let began = Instant::now();
    let (ended, pid) = session(&lab, ended(&path, 0));
    ended.exits(0).says(&format!(
        "summary for pid {pid}:\n  too long to be read at once: msprof summary {}\n",
        path.display()
    ));
    // Its own time is 0.3 s; the rest is for a loaded machine.
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}
