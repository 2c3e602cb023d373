//! The page's text: what is in page.html, page.css and script/, and the capture's data between them.
//!
//! Names come from whoever wrote the directory. They stand in the page as JSON that cannot end its element, or escaped; the
//! page's policy forbids every script and style but its own two, and every load.

use super::View;
use super::banner::banners;
use super::pack::{base64, html, json, number};
use crate::levels;
use crate::statistics::Times;
use crate::visible::{clean, cut};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(
    include_str!("script/data.js"),
    include_str!("script/timeline.js"),
    include_str!("script/input.js"),
    include_str!("script/page.js"),
);
/// Calls of the table; the rest is counted.
const CALLS_MAX: usize = 1000;
/// Calls of the table that is shown without scripts.
const PLAIN_MAX: usize = 50;
/// Characters of a name in the tables.
const LONGEST: usize = 300;

/// Columns of the intervals, each packed for itself.
const COLUMNS: [&str; 4] = ["begins", "durations", "names", "items"];

pub(super) fn write(view: &View, out: &mut impl Write) -> io::Result<()> {
    let mut rest = TEMPLATE;
    while let Some((text, behind)) = rest.split_once("{{") {
        out.write_all(text.as_bytes())?;
        let Some((key, behind)) = behind.split_once("}}") else {
            break;
        };
        match key {
            "policy" => out.write_all(policy().as_bytes())?,
            "title" => out.write_all(html(&title(view)).as_bytes())?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => out.write_all(SCRIPT.as_bytes())?,
            "plain" => plain(view, out)?,
            "facts" => out.write_all(json(&facts(view)).as_bytes())?,
            "columns" => columns(view, out)?,
            _ => {}
        }
        rest = behind;
    }
    out.write_all(rest.as_bytes())
}

/// Nothing is loaded, and no script or style runs but these two.
fn policy() -> String {
    let hash = |text: &str| base64(&Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

fn title(view: &View) -> String {
    let name = view.source.profile().path().file_name();
    let name = name.unwrap_or_default().to_string_lossy();
    cut(&name, LONGEST)
}

/// All but the intervals.
fn facts(view: &View) -> Value {
    let statistics = &view.statistics;
    let origin = origin(view);
    let offset = view.source.clock().offset_ns;
    let wall_ms = (i128::from(origin) + offset) as f64 / 1e6;
    let window = statistics.captured.map(|captured| {
        let begin = captured.start_ns as f64 - origin as f64;
        [begin, begin + captured.ns as f64]
    });
    let calls = statistics.calls.iter().take(CALLS_MAX);
    let rest = statistics.calls.iter().skip(CALLS_MAX);
    let names = view.names.names.iter();
    let lanes = view.lanes.iter().map(|lane| {
        json!({
            "label": lane.label(),
            "device": lane.is_device(),
            "shown": lane.shown(),
            "total": lane.total,
        })
    });
    json!({
        "facts": capture(view),
        "banners": banners(view),
        "wall_ms": view.source.start().map(|_| wall_ms),
        "window": window,
        "total": view.total(),
        "names": names.map(|(lvl, name)| json!([levels::name(*lvl), name])).collect::<Vec<_>>(),
        "items": view.names.items,
        "lanes": lanes.collect::<Vec<_>>(),
        "calls": calls.map(|row| call(&row.level_name(), &row.name, &row.times)).collect::<Vec<_>>(),
        "more": [rest.clone().count(), rest.map(|row| row.times.count).sum::<u64>()],
        "models": statistics.models.iter().take(CALLS_MAX).map(|row| {
            let id = row.model.map_or_else(|| "others".to_owned(), |id| id.to_string());
            let name = cut(row.name.as_deref().unwrap_or_default(), LONGEST);
            json!({ "id": id, "name": name, "per_second": row.per_second, "times": row.times })
        }).collect::<Vec<_>>(),
        "devices": statistics.devices.iter().take(CALLS_MAX).map(|row| json!({
            "device": row.device,
            "busy_ns": row.busy_ns,
            "busy_share": row.busy_share,
            "data_wait_ns": row.data_wait_ns,
            "data_wait_share": row.data_wait_share,
        })).collect::<Vec<_>>(),
    })
}

fn call(lvl: &str, name: &str, times: &Times) -> Value {
    json!([
        lvl,
        cut(name, LONGEST),
        times.count,
        times.total_ns,
        times.mean_ns,
        times.p50_ns,
        times.p99_ns,
        times.max_ns,
    ])
}

/// Names and values for the head of the page.
fn capture(view: &View) -> Vec<[String; 2]> {
    let (source, statistics) = (view.source, &view.statistics);
    let process = source.process();
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push([name.to_owned(), clean(&value)]);
        }
    };
    let pid = source.ledger().map_or(process.pid, |ledger| ledger.pid);
    add(
        "pid",
        if pid == 0 {
            String::new()
        } else {
            pid.to_string()
        },
    );
    add("command", cut(&process.name, LONGEST));
    add("host", cut(&process.host, LONGEST));
    if let Some(captured) = statistics.captured {
        add("captured", format!("{:.3} s", captured.ns as f64 / 1e9));
    }
    if let Some(ledger) = source.ledger() {
        add("records", ledger.written.total().to_string());
        add("agent", ledger.agent_version.clone());
    }
    add("intervals", view.total().to_string());
    if statistics.model_runs() > 0 {
        let rate = statistics.model_runs_per_second();
        let rate = rate.map(|rate| format!(", {rate:.1} per second"));
        let runs = statistics.model_runs();
        add("model runs", format!("{runs}{}", rate.unwrap_or_default()));
    }
    facts
}

/// The earliest time, which the others are counted from.
fn origin(view: &View) -> u64 {
    let begins = view.lanes.iter().filter_map(|lane| lane.intervals.first());
    let begins = begins.map(|interval| interval.begin);
    let start = view.statistics.captured.map(|captured| captured.start_ns);
    begins.chain(start).min().unwrap_or(0)
}

/// The intervals of all lanes one after the other. A begin is counted from the one before it in its lane.
fn columns(view: &View, out: &mut impl Write) -> io::Result<()> {
    let origin = origin(view);
    for column in COLUMNS {
        let mut packed = Vec::new();
        for lane in &view.lanes {
            let mut before = origin;
            for interval in &lane.intervals {
                let value = match column {
                    "begins" => interval.begin - before,
                    "durations" => interval.duration,
                    "names" => interval.name.into(),
                    _ => interval.item.into(),
                };
                before = interval.begin;
                number(&mut packed, value);
            }
        }
        writeln!(
            out,
            "<script type=\"application/octet-stream\" id=\"{column}\">{}</script>",
            base64(&packed)
        )?;
    }
    Ok(())
}

/// What there is without scripts: facts, banners and the first calls.
fn plain(view: &View, out: &mut impl Write) -> io::Result<()> {
    for banner in banners(view) {
        let bad = if banner.bad { " bad" } else { "" };
        writeln!(out, "<p class=\"banner{bad}\">{}</p>", html(&banner.text))?;
    }
    writeln!(out, "<dl>")?;
    for [name, value] in capture(view) {
        writeln!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            html(&name),
            html(&value)
        )?;
    }
    writeln!(out, "</dl>\n<table><caption>Calls by total time</caption>")?;
    write!(
        out,
        "<tr><th>Level</th><th>API</th><th>Count</th><th>Total (us)</th>"
    )?;
    writeln!(
        out,
        "<th>Mean (us)</th><th>P50 (us)</th><th>P99 (us)</th><th>Max (us)</th></tr>"
    )?;
    let us = |ns: f64| format!("{:.3}", ns / 1000.0);
    let maybe = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| us(ns as f64));
    for row in view.statistics.calls.iter().take(PLAIN_MAX) {
        let times = &row.times;
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            row.level_name(),
            html(&cut(&row.name, LONGEST)),
            times.count,
            us(times.total_ns as f64),
            us(times.mean_ns),
            maybe(times.p50_ns),
            maybe(times.p99_ns),
            us(times.max_ns as f64),
        )?;
    }
    writeln!(out, "</table>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_script_nor_style_ends_its_own_element() {
        assert!(!SCRIPT.to_lowercase().contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.to_lowercase().contains("</style"));
        // Each place of the template is one that is filled.
        let keys = TEMPLATE
            .split("{{")
            .skip(1)
            .map(|rest| rest.split("}}").next());
        let keys: Vec<_> = keys.flatten().collect();
        assert_eq!(
            keys,
            [
                "policy", "title", "style", "title", "plain", "facts", "columns", "script"
            ]
        );
    }
}
