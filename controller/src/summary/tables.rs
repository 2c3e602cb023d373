//! The tables of a summary: calls, models, devices; and what was left out of them.

use crate::paint::{Paint, Tone};
use crate::table::{Kind, Table};
use crate::verbs::time::seconds;
use msprof_export::statistics::{CallRow, DeviceRow, ModelRow, Statistics, Times, Until};
use std::fmt::Write as _;

/// Rows that are shown; the rest is counted.
const ROWS: usize = 30;

// Writing to a String cannot fail; the results of `writeln!` say nothing below.

/// All tables, each with an empty line above it.
pub(super) fn text(statistics: &Statistics, paint: &Paint) -> String {
    let mut text = String::new();
    calls(&mut text, &statistics.calls, paint);
    models(&mut text, statistics, paint);
    devices(&mut text, &statistics.devices, paint);
    left_out(&mut text, statistics, paint);
    text
}

fn calls(text: &mut String, rows: &[CallRow], paint: &Paint) {
    if rows.is_empty() {
        text.push_str("\nno calls were captured\n");
        return;
    }
    let mut table = with_times([
        (Kind::Label, "Level"),
        (Kind::Name, "API"),
        (Kind::Number, "Count"),
        (Kind::Rank, "Total(us)"),
    ]);
    for row in rows.iter().take(ROWS) {
        let mut cells = vec![row.level_name().to_owned(), row.name.clone()];
        cells.push(row.times.count.to_string());
        cells.push(us(row.times.total_ns));
        cells.extend(times(&row.times));
        table.row(cells);
    }
    let _ = write!(text, "\n{}", table.text(paint));
    if rows.len() > ROWS {
        let rest: u64 = rows[ROWS..].iter().map(|row| row.times.count).sum();
        let names = rows.len() - ROWS;
        let _ = writeln!(text, "... and {names} more names with {rest} calls");
    }
}

fn models(text: &mut String, statistics: &Statistics, paint: &Paint) {
    let rows = &statistics.models;
    if rows.is_empty() {
        return;
    }
    let mut table = with_times([
        (Kind::Label, "Model"),
        (Kind::Name, "Name"),
        (Kind::Number, "Runs"),
        (Kind::Rank, "Runs/s"),
    ]);
    for row in rows.iter().take(ROWS) {
        let mut cells = vec![model(row), row.name.clone().unwrap_or_else(unknown)];
        cells.push(row.times.count.to_string());
        cells.push(row.per_second.map_or_else(unknown, rate));
        cells.extend(times(&row.times));
        table.row(cells);
    }
    let _ = write!(text, "\n{}", table.text(paint));
    if rows.len() > ROWS {
        let rest: u64 = rows[ROWS..].iter().map(|row| row.times.count).sum();
        let models = rows.len() - ROWS;
        let _ = writeln!(text, "... and {models} more models with {rest} runs");
    }
    let _ = writeln!(text, "{}", runs(statistics));
}

/// All runs of models in one line.
pub(super) fn runs(statistics: &Statistics) -> String {
    let mut line = format!("model runs: {}", statistics.model_runs());
    if let (Some(per_second), Some(captured)) =
        (statistics.model_runs_per_second(), statistics.captured)
    {
        let until = match captured.until {
            Until::Stop => "",
            Until::LastCall => " until the last call",
        };
        let _ = write!(line, ", {} per second{until}", rate(per_second));
    }
    line
}

/// What the devices' AICPU did; no lines without records of it.
fn devices(text: &mut String, rows: &[DeviceRow], paint: &Paint) {
    if rows.is_empty() {
        return;
    }
    let mut table = with_times([
        (Kind::Label, "Device"),
        (Kind::Label, "AICPU records"),
        (Kind::Number, "Count"),
        (Kind::Rank, "Total(us)"),
    ]);
    let all = rows
        .iter()
        .flat_map(|row| row.records.iter().map(|of| (row.device, of)));
    for (device, row) in all.clone().take(ROWS) {
        let mut cells = vec![device.to_string(), row.name(), row.count.to_string()];
        if row.timed.count > 0 {
            cells.push(us(row.timed.total_ns));
            cells.extend(times(&row.timed));
        } else {
            cells.extend(std::iter::repeat_with(unknown).take(5));
        }
        table.row(cells);
    }
    let _ = write!(text, "\n{}", table.text(paint));
    let rest: u64 = all.skip(ROWS).map(|(_, row)| row.count).sum();
    if rest > 0 {
        let _ = writeln!(text, "... and {rest} more records");
    }
    for row in rows.iter().take(ROWS) {
        let _ = writeln!(
            text,
            "device {}: AICPU busy {}, data wait {}",
            row.device,
            part(row.busy_ns, row.busy_share),
            part(row.data_wait_ns, row.data_wait_share)
        );
    }
}

fn left_out(text: &mut String, statistics: &Statistics, paint: &Paint) {
    let skipped = &statistics.skipped;
    let lines = [
        (
            "events without a partner (cut by the edges of the window)",
            skipped.unpaired,
        ),
        (
            "calls that are here in part (cut by the edges of the window)",
            skipped.partial,
        ),
        (
            "calls that begin at time 0, which the parser drops",
            skipped.dropped,
        ),
    ];
    for (what, count) in lines.into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(text, "{what}: {count}");
    }
    if skipped.foreign > 0 {
        let line = format!(
            "left out, since they are no records (torn, or not written by an agent): {}",
            skipped.foreign
        );
        let _ = writeln!(text, "{}", paint.tone(Tone::Bad, &line));
    }
}

/// A table that ends in the columns of [`times`].
fn with_times(own: [(Kind, &'static str); 4]) -> Table {
    let [a, b, c, d] = own;
    let number = |name| (Kind::Number, name);
    let [mean, p50, p99, max] = ["Mean(us)", "P50(us)", "P99(us)", "Max(us)"].map(number);
    Table::new(&[a, b, c, d, mean, p50, p99, max])
}

/// Mean, p50, p99 and longest.
fn times(times: &Times) -> [String; 4] {
    [
        format!("{:.3}", times.mean_ns / 1000.0),
        times.p50_ns.map_or_else(unknown, us),
        times.p99_ns.map_or_else(unknown, us),
        us(times.max_ns),
    ]
}

/// A time and which part of the captured time it is.
fn part(ns: u64, share: Option<f64>) -> String {
    let share = share.map(|share| format!(" ({:.1} %)", share * 100.0));
    format!("{}{}", seconds(ns), share.unwrap_or_default())
}

pub(super) fn model(row: &ModelRow) -> String {
    row.model
        .map_or_else(|| "others".to_owned(), |model| model.to_string())
}

pub(super) fn us(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1000.0)
}

fn rate(per_second: f64) -> String {
    format!("{per_second:.1}")
}

fn unknown() -> String {
    "-".to_owned()
}
