//! Exports of several directories at a time, and the bar that shows how far they are.

use super::options::Form;
use super::outcome::{Outcome, export, tell};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use msprof_export::text::Options;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// How often the progress bar moves.
const TICK: Duration = Duration::from_millis(200);

/// Exports directories, as many at a time as there are processors, and says what came of each in their order. Whether
/// nothing is missing.
pub(super) fn export_all(directories: &[PathBuf], form: Form, options: &Options) -> bool {
    let bar = &bar();
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let next = AtomicUsize::new(0);
    let (sender, results) = channel();
    let mut whole = true;
    std::thread::scope(|scope| {
        for _ in 0..processors.min(directories.len()) {
            let sender = sender.clone();
            let next = &next;
            scope.spawn(move || work(directories, form, options, bar, next, &sender));
        }
        drop(sender);
        let mut waiting: Vec<Option<Outcome>> = directories.iter().map(|_| None).collect();
        let mut told = 0;
        for (index, outcome) in results {
            waiting[index] = Some(outcome);
            while let Some(outcome) = waiting.get_mut(told).and_then(Option::take) {
                bar.suspend(|| whole &= tell(&directories[told], &outcome));
                told += 1;
            }
        }
    });
    bar.finish_and_clear();
    whole
}

/// Takes one directory after the other, while there are any.
fn work(
    directories: &[PathBuf],
    form: Form,
    options: &Options,
    bar: &ProgressBar,
    next: &AtomicUsize,
    results: &Sender<(usize, Outcome)>,
) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(directory) = directories.get(index) else {
            return;
        };
        let outcome = export(directory, form, options, bar);
        if results.send((index, outcome)).is_err() {
            return;
        }
    }
}

/// A bar on a terminal; nothing anywhere else.
fn bar() -> ProgressBar {
    // Of a length of 0 everything would be done.
    let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::hidden());
    if !std::io::stderr().is_terminal() {
        return bar;
    }
    if let Ok(style) = ProgressStyle::with_template("exporting [{bar:40}] {percent}%, {elapsed}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.tick();
    bar.enable_steady_tick(TICK);
    bar
}
