//! A summary as one JSON object. Its keys stay; docs/json.md says what they mean.

use super::Summary;
use msprof_agent_core::records::TraceCounts;
use msprof_export::statistics::{DeviceRow, ModelRow, Times};
use serde_json::{Value, json};

pub(super) fn object(summary: &Summary) -> Value {
    let ledger = summary.source.ledger();
    let statistics = &summary.statistics;
    let captured = statistics.captured;
    let process = summary.source.process();
    let counts = |counts: Option<&TraceCounts>| counts.map(counts_object);
    let calls = statistics.calls.iter().map(|row| {
        with(
            json!({ "level": row.level_name(), "name": row.name }),
            &row.times,
        )
    });
    json!({
        "path": summary.path.to_string_lossy(),
        "pid": ledger.map(|ledger| ledger.pid).or(Some(process.pid).filter(|pid| *pid != 0)),
        "command": Some(&process.name).filter(|name| !name.is_empty()),
        "agent_version": ledger.map(|ledger| &ledger.agent_version),
        "capture": ledger.map(|ledger| ledger.capture),
        "state": ledger.map(|ledger| ledger.state),
        "captured_seconds": captured.map(|captured| captured.ns as f64 / 1e9),
        "captured_until": captured.map(|captured| captured.until),
        "bytes": summary.source.profile().bytes(),
        "threads": ledger.map(|ledger| ledger.threads.iter().filter(|row| row.tid != 0).count()),
        "records": counts(ledger.map(|ledger| &ledger.written)),
        "lost": counts(ledger.map(|ledger| &ledger.lost)),
        "lost_known": ledger.is_some_and(|ledger| ledger.stop.is_some() && ledger.recovered.is_none()),
        "aged_out": counts(ledger.map(|ledger| &ledger.aged_out)),
        "unreadable": ledger.map(|ledger| ledger.unreadable),
        "notes": ledger.map(|ledger| &ledger.notes),
        "not_read": summary.not_read,
        "calls": calls.collect::<Vec<_>>(),
        "model_runs": {
            "count": statistics.model_runs(),
            "per_second": statistics.model_runs_per_second(),
        },
        "models": statistics.models.iter().map(model).collect::<Vec<_>>(),
        "devices": statistics.devices.iter().map(device).collect::<Vec<_>>(),
        "left_out": {
            "events_without_partner": statistics.skipped.unpaired,
            "calls_in_part": statistics.skipped.partial,
            "calls_at_time_0": statistics.skipped.dropped,
            "no_records": statistics.skipped.foreign,
        },
        "refused_by_parser": summary.refused,
    })
}

fn counts_object(counts: &TraceCounts) -> Value {
    let mut object = json!({ "total": counts.total() });
    extend(
        &mut object,
        serde_json::to_value(counts).unwrap_or_default(),
    );
    object
}

fn model(row: &ModelRow) -> Value {
    let object = json!({ "model": row.model, "name": row.name, "per_second": row.per_second });
    with(object, &row.times)
}

fn device(row: &DeviceRow) -> Value {
    let records = row.records.iter().map(|record| {
        json!({
            "type": record.kind,
            "name": record.name(),
            "count": record.count,
            "timed": record.timed,
        })
    });
    json!({
        "device": row.device,
        "busy_ns": row.busy_ns,
        "busy_share": row.busy_share,
        "data_wait_ns": row.data_wait_ns,
        "data_wait_share": row.data_wait_share,
        "records": records.collect::<Vec<_>>(),
    })
}

/// An object with count and times behind its other keys.
fn with(mut object: Value, times: &Times) -> Value {
    extend(&mut object, serde_json::to_value(times).unwrap_or_default());
    object
}

fn extend(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}
