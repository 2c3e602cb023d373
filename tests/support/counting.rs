//! The demo's own counts, and the law by which records must equal them.

use super::prof::{ACL, MODEL, NODE, Prof, RUNTIME, record_size};
use serde_json::Value;
use std::collections::BTreeMap;

/// Groups of calls in a window's account, and their levels.
const GROUPS: [(&str, u16); 4] = [
    ("runtime", RUNTIME),
    ("acl", ACL),
    ("node", NODE),
    ("model", MODEL),
];
/// Calls that are reported as a pair of events.
const EVENT_PAIRS: [&str; 2] = ["ModelExecute", "ModelLoad"];

/// What the demo counted between a start and the stop.
#[derive(Clone, Debug)]
pub struct Window {
    json: Value,
}

/// Counts by name, of calls or records.
pub type Counts = BTreeMap<String, u64>;

impl Window {
    /// Reads a line that the demo printed.
    pub fn from_line(line: &str) -> Option<Window> {
        let json = serde_json::from_str(line.strip_prefix("window ")?).expect("JSON");
        Some(Window { json })
    }

    pub fn number(&self) -> u64 {
        self.json["window"].as_u64().expect("a number")
    }

    /// Bits of the switch word that the runtime received.
    pub fn switches(&self) -> u64 {
        let text = self.json["switch"].as_str().expect("text");
        u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal")
    }

    /// Calls of a group that began.
    pub fn calls(&self, group: &str) -> Counts {
        counts(&self.json["api"][group])
    }

    /// Records that are no calls.
    pub fn records(&self) -> Counts {
        counts(&self.json["records"])
    }

    /// Calls that were cut by the end of the window, and those that the window before left over.
    pub fn cut(&self, group: &str) -> (u64, u64) {
        let count = |key: &str| self.json[key][group].as_u64().expect("a number");
        (count("open"), count("carried"))
    }

    /// Commands of a kind that a component received for this window.
    pub fn commands(&self, component: &str, kind: &str) -> u64 {
        let count = &self.json["commands"][component][kind];
        count.as_u64().expect("a number")
    }

    pub fn bad_commands(&self) -> u64 {
        self.json["bad_commands"].as_u64().expect("a number")
    }

    /// `count - open <= records <= count + carried`, for every call and every family.
    #[track_caller]
    pub fn assert_matches(&self, prof: &Prof) {
        self.assert_matches_without(&[], prof);
    }

    /// The same, but of some groups, whose trace was not asked for, there is no record at all.
    #[track_caller]
    pub fn assert_matches_without(&self, off: &[&str], prof: &Prof) {
        let mut wrong = Vec::new();
        let calls = prof.calls();
        for (group, level) in GROUPS {
            let (open, carried) = self.cut(group);
            for (name, count) in self.calls(group) {
                let key = (level, name.clone());
                let (apis, events) = calls.get(&key).copied().unwrap_or((0, 0));
                // Two events are one call, and of a call that was cut there may be one.
                let is_pair = is_pair(group, &name);
                let per_call = if is_pair { 2 } else { 1 };
                let (records, others) = if is_pair {
                    (events, apis)
                } else {
                    (apis, events)
                };
                let is_on = u64::from(!off.contains(&group));
                let low = (count - open.min(count)) * per_call * is_on;
                let high = (count + carried) * per_call * is_on;
                if !(low..=high).contains(&records) || others != 0 {
                    wrong.push(format!("{group} {name}: {apis} api and {events} event records for {count} calls (open {open}, carried {carried})"));
                }
            }
        }
        let (open, carried) = self.cut("records");
        for (name, count) in self.records() {
            let records = family_count(prof, &name);
            if !(count - open.min(count)..=count + carried).contains(&records) {
                wrong.push(format!(
                    "{name}: {records} records for {count} reports (open {open}, carried {carried})"
                ));
            }
        }
        // Nothing that the demo does not know of.
        for ((level, name), (apis, events)) in &calls {
            let group = GROUPS
                .iter()
                .find(|(_, of)| of == level)
                .map(|(group, _)| *group);
            let known = group.is_some_and(|group| self.calls(group).contains_key(name));
            if !known {
                wrong.push(format!(
                    "level {level} {name}: {apis} + {events} records of a call unknown to the demo"
                ));
            }
        }
        assert!(wrong.is_empty(), "{}: {wrong:#?}", prof.path.display());
    }

    /// The same of each level, and of compact and additional records together: for records without names. None is
    /// of the aicpu.
    #[track_caller]
    pub fn assert_totals_without_aicpu(&self, prof: &Prof) {
        let api = prof.api();
        for (group, level) in GROUPS {
            let (open, carried) = self.cut(group);
            let weight = |name: &str| 1 + u64::from(is_pair(group, name));
            let calls = self.calls(group);
            let count: u64 = calls.iter().map(|(name, n)| n * weight(name)).sum();
            let records = api.iter().filter(|record| record.level == level).count() as u64;
            let (low, high) = (count.saturating_sub(2 * open), count + 2 * carried);
            assert!(
                (low..=high).contains(&records),
                "{group}: {records} records for {low} to {high}"
            );
        }
        let (open, carried) = self.cut("records");
        let reports = self.records();
        let of_host = reports.iter().filter(|(name, _)| *name != "aicpu");
        let count: u64 = of_host.map(|(_, count)| count).sum();
        let sized = prof.host.iter().filter_map(|(family, slices)| {
            let size = record_size(family).filter(|size| *size != 40)?;
            Some(slices.values().map(Vec::len).sum::<usize>() / size)
        });
        let records = (sized.sum::<usize>() - prof.repeated_names().len()) as u64;
        let families = reports.len() as u64;
        assert!(
            (count.saturating_sub(families * open)..=count + families * carried).contains(&records),
            "{records} records for {count} reports (open {open}, carried {carried})"
        );
        assert_eq!(prof.aicpu(), []);
    }

    /// All calls and reports together, to see that the window holds something at all.
    pub fn total(&self) -> u64 {
        let calls: u64 = GROUPS
            .iter()
            .map(|(group, _)| self.calls(group).values().sum::<u64>())
            .sum();
        calls + self.records().values().sum::<u64>()
    }
}

fn is_pair(group: &str, name: &str) -> bool {
    group == "model" && EVENT_PAIRS.contains(&name)
}

fn family_count(prof: &Prof, name: &str) -> u64 {
    let records = match name {
        "aicpu" => prof.aicpu(),
        "task_track" | "memcpy_info" | "node_basic_info" => prof.compact(name),
        _ => prof.additional(name),
    };
    records.len() as u64
}

fn counts(object: &Value) -> Counts {
    let object = object.as_object().expect("an object");
    let count = |value: &Value| value.as_u64().expect("a number");
    object
        .iter()
        .map(|(name, value)| (name.clone(), count(value)))
        .collect()
}
