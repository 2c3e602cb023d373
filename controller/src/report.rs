//! The words in which results are told (spec 4 section 4.2).

use crate::library;
use crate::losses::Losses;
use crate::screen::clean;
use crate::verbs;
use crate::verbs::time::seconds;
use msprof_agent_core::control::extension::{Capture, Op, Outcome, Reply};
use msprof_agent_core::ledger::Ledger;
use msprof_agent_core::records::{Trace, TraceCounts};
use std::fmt::Write;

/// Threads that a loss is broken down by; the rest is summed up.
const THREADS_SHOWN: usize = 5;

/// A result to print.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Lines for the user; the first is the result line.
    pub text: String,
    /// Whether the command did what it was to do.
    pub success: bool,
    /// Whether the first line is an error and belongs on stderr.
    pub is_error: bool,
}

/// Name of a command in result lines.
pub fn name(op: Op) -> &'static str {
    match op {
        Op::Start => "start",
        Op::Stop => "stop",
        Op::Status => "status",
        Op::Quit => "quit",
        Op::Unknown => "command",
    }
}

/// The result of a command that was answered.
pub fn verdict(pid: u32, op: Op, reply: &Reply, extended: bool) -> Verdict {
    let result = |text: String, success| Verdict {
        text,
        success,
        is_error: false,
    };
    match reply.outcome {
        Some(Outcome::Success) if op == Op::Status => result(status(pid, reply, extended), true),
        Some(Outcome::Success) => {
            let mut text = format!("dynamic profiling for pid {pid} {} success", name(op));
            if op == Op::Stop || (op == Op::Quit && reply.ledger.is_some()) {
                account(&mut text, reply, extended);
            }
            notes(&mut text, &reply.notes);
            result(text, true)
        }
        Some(Outcome::AlreadyStarted) => result(
            format!("dynamic profiling for pid {pid} already started"),
            false,
        ),
        Some(Outcome::NotStarted) => result(
            format!("dynamic profiling for pid {pid} has not started"),
            false,
        ),
        Some(Outcome::NoDevice) => {
            result(format!("device for pid {pid} has not been set up"), false)
        }
        Some(Outcome::Failed | Outcome::Disconnected) => {
            let reason = reason(reply).unwrap_or("the process does not say why");
            failed_with(pid, op, reason, reply)
        }
        Some(Outcome::Progress | Outcome::Unknown) | None => {
            let reason = reason(reply).unwrap_or(
                "the answer is of a later version; update msprof to the version of the agent",
            );
            failed_with(pid, op, reason, reply)
        }
    }
}

/// The result of a command that was not answered, or that could not be given.
pub fn failure(pid: u32, op: Op, reason: &str) -> Verdict {
    Verdict {
        text: format!(
            "dynamic profiling for pid {pid} {} failed: {}",
            name(op),
            clean(reason)
        ),
        success: false,
        is_error: true,
    }
}

/// Why a command failed. What an agent fails at that has turned itself off is of less interest than why it has.
fn reason(reply: &Reply) -> Option<&str> {
    reply.disabled.as_deref().or(reply.error.as_deref())
}

/// What is said of an agent that takes no captures any more.
pub fn turned_off(pid: u32, why: &str) -> String {
    format!(
        "pid {pid}: its agent has turned itself off and captures nothing more: {}",
        clean(why)
    )
}

/// What is said of a process in which a capture runs when a session with it begins.
pub fn runs_already(pid: u32, capture: &Capture) -> String {
    let text = format!(
        "pid {pid}: a capture runs already{}; `stop` ends it\n  directory: {}",
        verbs::whose(capture),
        capture.path
    );
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// Whose a capture is that a start has found, where it is, and what ends it, behind `text`.
pub fn found_running(text: &mut String, capture: &Capture, way_out: &str) {
    let whose = verbs::whose(capture);
    if !whose.is_empty() {
        let _ = write!(text, "\n  it runs{}", clean(&whose));
    }
    if !capture.path.is_empty() {
        directory(text, &capture.path);
    }
    let _ = write!(text, "\n  {way_out}");
}

/// What is said of an agent of another release.
pub fn other_version(pid: u32, version: &str) -> String {
    format!("pid {pid}: {}", library::differs(&clean(version)))
}

/// A failed stop still has a directory and an account of what was kept.
fn failed_with(pid: u32, op: Op, reason: &str, reply: &Reply) -> Verdict {
    let mut verdict = failure(pid, op, reason);
    if reply.ledger.is_some() {
        account(&mut verdict.text, reply, true);
    }
    notes(&mut verdict.text, &reply.notes);
    verdict
}

fn status(pid: u32, reply: &Reply, extended: bool) -> String {
    let state = if reply.capturing { "capturing" } else { "idle" };
    if !extended {
        return format!("pid {pid}: {state}, stock agent (it tells no more)");
    }
    let mut text = format!("pid {pid}: {state}");
    if let Some(why) = &reply.disabled {
        text = turned_off(pid, why);
    }
    let failed = reply.capture.as_ref().and_then(|c| c.failed.as_ref());
    if let Some(reason) = failed {
        let _ = write!(text, ", but has failed: {}", clean(reason));
    }
    if let Some(failure) = &reply.last_failure {
        let _ = write!(text, ", {}", clean(&verbs::failed(failure)));
    }
    match reply.devices.as_slice() {
        [] => text.push_str(", no device open"),
        devices => {
            let devices: Vec<_> = devices.iter().map(u32::to_string).collect();
            let _ = write!(text, ", devices {}", devices.join(","));
        }
    }
    if reply.ledger.is_some() {
        let which = if reply.capturing {
            ""
        } else {
            " (last capture)"
        };
        text.push_str(which);
        account(&mut text, reply, true);
    }
    notes(&mut text, &reply.notes);
    text
}

/// Directory, duration, counts and losses of a capture, one line each.
fn account(text: &mut String, reply: &Reply, extended: bool) {
    if let Some(path) = &reply.path {
        directory(text, path);
    }
    let Some(ledger) = &reply.ledger else {
        let why = if extended {
            "the agent sent no account"
        } else {
            "a stock agent gives no account"
        };
        let _ = write!(
            text,
            "\n  records: unknown, {why}; see the PROF directory in --output"
        );
        return;
    };
    counts(text, ledger);
}

/// Where a capture is.
pub fn directory(text: &mut String, path: &str) {
    let _ = write!(text, "\n  directory: {}", clean(path));
}

/// How long a capture was; `None` of one without an end.
pub fn captured(ledger: &Ledger) -> Option<String> {
    let stop = ledger.stop?.monotonic_raw_ns;
    Some(seconds(stop.saturating_sub(ledger.start.monotonic_raw_ns)))
}

/// Duration, counts and losses of a capture, one line each.
pub fn counts(text: &mut String, ledger: &Ledger) {
    if let Some(captured) = captured(ledger) {
        let _ = write!(text, "\n  captured: {captured}");
    }
    let _ = write!(text, "\n  records: {}", ledger.written.total());
    by_trace(text, &ledger.written);
    let _ = write!(text, "\n  bytes: {}", ledger.bytes);
    losses(text, ledger);
    notes(text, &ledger.notes);
}

fn losses(text: &mut String, ledger: &Ledger) {
    match Losses::of(ledger) {
        Some(losses) => text.extend(losses.lines().iter().map(|line| format!("\n  {line}"))),
        None => {
            let _ = write!(text, "\n  lost {}", ledger.lost.total());
            by_trace(text, &ledger.lost);
        }
    }
    if ledger.lost.total() > 0 {
        let mut threads: Vec<_> = ledger
            .threads
            .iter()
            .filter(|t| t.lost.total() > 0)
            .collect();
        threads.sort_by_key(|t| std::cmp::Reverse(t.lost.total()));
        for thread in threads.iter().take(THREADS_SHOWN) {
            let who = match thread.tid {
                0 => "further threads".to_owned(),
                tid => format!("thread {tid}"),
            };
            let _ = write!(text, "\n    {who}: {}", thread.lost.total());
            by_trace(text, &thread.lost);
        }
        let rest: u64 = threads
            .iter()
            .skip(THREADS_SHOWN)
            .map(|t| t.lost.total())
            .sum();
        if rest > 0 {
            let count = threads.len() - THREADS_SHOWN;
            let _ = write!(text, "\n    {count} other threads: {rest}");
        }
    }
    if ledger.aged_out.total() > 0 {
        let _ = write!(
            text,
            "\n  aged out {} (storage limit)",
            ledger.aged_out.total()
        );
        by_trace(text, &ledger.aged_out);
    }
    if ledger.unreadable > 0 {
        let _ = write!(
            text,
            "\n  left out {} records that the parser cannot read",
            ledger.unreadable
        );
    }
}

/// ` (runtime-api 3, task 1)`; nothing when all are 0.
pub fn by_trace(text: &mut String, counts: &TraceCounts) {
    let counted = Trace::ALL
        .into_iter()
        .filter(|trace| counts.get(*trace) > 0);
    let parts: Vec<_> = counted
        .map(|trace| format!("{} {}", trace.name(), counts.get(trace)))
        .collect();
    if !parts.is_empty() {
        let _ = write!(text, " ({})", parts.join(", "));
    }
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = write!(text, "\n  note: {}", clean(note));
    }
}

/// How far apart the captures of several processes began, ns of CLOCK_MONOTONIC_RAW.
pub fn spread(started_ns: &[u64]) -> Option<String> {
    let (first, last) = (started_ns.iter().min()?, started_ns.iter().max()?);
    if started_ns.len() < 2 {
        return None;
    }
    let us = (last - first) / 1000;
    Some(format!(
        "start times of {} processes lie within {}.{:03} ms",
        started_ns.len(),
        us / 1000,
        us % 1000
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use msprof_agent_core::ledger::{Anchor, ThreadLedger};

    fn counts(runtime: u64, task: u64) -> TraceCounts {
        let mut counts = TraceCounts::default();
        counts.add(Trace::RuntimeApi, runtime);
        counts.add(Trace::Task, task);
        counts
    }

    fn stopped(ledger: Ledger) -> Reply {
        Reply {
            outcome: Some(Outcome::Success),
            path: Some("/out/PROF_1".into()),
            ledger: Some(ledger),
            ..Reply::default()
        }
    }

    #[test]
    fn a_stop_tells_directory_seconds_records_bytes_and_no_loss() {
        let ledger = Ledger {
            start: Anchor {
                monotonic_raw_ns: 1_000_000_000,
                ..Anchor::default()
            },
            stop: Some(Anchor {
                monotonic_raw_ns: 3_012_700_000,
                ..Anchor::default()
            }),
            written: counts(5, 2),
            bytes: 328,
            ..Ledger::default()
        };
        let verdict = verdict(7, Op::Stop, &stopped(ledger), true);
        let lines: Vec<_> = verdict.text.lines().collect();
        assert_eq!(
            lines,
            [
                "dynamic profiling for pid 7 stop success",
                "  directory: /out/PROF_1",
                "  captured: 2.013 s",
                "  records: 7 (runtime-api 5, task 2)",
                "  bytes: 328",
                "  lost 0",
            ]
        );
        assert!(verdict.success);
    }

    #[test]
    fn a_loss_is_told_by_trace_and_thread() {
        let thread = |tid, lost| ThreadLedger {
            tid,
            lost: counts(lost, 0),
            ..ThreadLedger::default()
        };
        let ledger = Ledger {
            lost: counts(21, 0),
            threads: (1..=6).map(|n| thread(n, u64::from(n))).collect(),
            aged_out: counts(0, 9),
            unreadable: 4,
            notes: vec!["the disk was full".into()],
            ..Ledger::default()
        };
        let text = verdict(7, Op::Stop, &stopped(ledger), true).text;
        for part in [
            "lost 21 (runtime-api 21)\n    thread 6: 6 (runtime-api 6)",
            "1 other threads: 1",
            "aged out 9 (storage limit) (task 9)",
            "left out 4 records",
            "note: the disk was full",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn warnings_and_failures_have_the_documented_lines() {
        let line = |outcome, error: Option<&str>| {
            let reply = Reply {
                outcome: Some(outcome),
                error: error.map(str::to_owned),
                ..Reply::default()
            };
            verdict(7, Op::Start, &reply, true)
        };
        let already = line(Outcome::AlreadyStarted, None);
        assert_eq!(already.text, "dynamic profiling for pid 7 already started");
        assert!(!already.success && !already.is_error);
        let no_device = line(Outcome::NoDevice, None);
        assert_eq!(no_device.text, "device for pid 7 has not been set up");
        let failed = line(Outcome::Failed, Some("disk full"));
        assert_eq!(
            failed.text,
            "dynamic profiling for pid 7 start failed: disk full"
        );
        assert!(failed.is_error);
        assert!(line(Outcome::Unknown, None).text.contains("later version"));
    }

    #[test]
    fn what_a_process_says_cannot_command_the_terminal() {
        let reply = Reply {
            outcome: Some(Outcome::Failed),
            error: Some("no\u{1b}[2J\r\nspace".into()),
            notes: vec!["\u{7}note".into()],
            ..Reply::default()
        };
        let text = verdict(7, Op::Start, &reply, true).text;
        assert_eq!(
            text,
            "dynamic profiling for pid 7 start failed: no [2J  space\n  note:  note"
        );
    }

    #[test]
    fn the_spread_needs_two_processes() {
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[5]), None);
        assert_eq!(
            spread(&[2_000_000, 5_250_000, 3_000_000]).as_deref(),
            Some("start times of 3 processes lie within 3.250 ms")
        );
    }
}
