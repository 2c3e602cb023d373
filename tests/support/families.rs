//! The capture with every kind of record (tests/c/families.c), exported by the stock parser together with a log of the
//! device's tasks, so that operators have their names.

use super::home::Home;
use super::parser::{export, exported, rows};
use super::prof::Prof;
use super::reported::{Reported, capture};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

pub type Row = BTreeMap<String, String>;

/// A task on the device: stream, number, kind, and when it ran, us.
pub struct Task(pub u16, pub u16, pub u16, pub u64, pub u64);

pub const AI_CORE: u16 = 0;
pub const AI_CPU: u16 = 1;
pub const AI_VECTOR_CORE: u16 = 2;
pub const SDMA: u16 = 11;

/// What the device would have logged of the tasks of tests/c/families.c.
pub const TASKS: [Task; 9] = [
    Task(2, 9, SDMA, 345, 360),
    Task(2, 10, AI_CORE, 440, 490),
    Task(2, 11, AI_VECTOR_CORE, 560, 590),
    // The AICPU says 640 to 680 itself; the parser looks in doubles for a task around it.
    Task(2, 12, AI_CPU, 635, 690),
    Task(2, 13, SDMA, 830, 845),
    Task(4, 20, SDMA, 1060, 1090),
    Task(6, 30, AI_VECTOR_CORE, 1360, 1365),
    Task(6, 31, AI_VECTOR_CORE, 1370, 1375),
    Task(6, 32, AI_VECTOR_CORE, 1380, 1385),
];

/// A task as the device logs it: when it ran, in ticks of the device, which are ns.
#[derive(Clone, Copy, Debug)]
pub struct TaskRun {
    pub stream: u16,
    pub number: u16,
    pub kind: u16,
    pub from: u64,
    pub to: u64,
}

/// A log of tasks: two records of 64 bytes each, for begin and end (spec 3 section 6.3).
pub fn task_log(runs: impl IntoIterator<Item = TaskRun>) -> Vec<u8> {
    const END: u16 = 1;
    const MARK: u16 = 0x6BD3;
    let mut log = Vec::new();
    for run in runs {
        for (what, time) in [(0, run.from), (END, run.to)] {
            let mut record = [0u8; 64];
            let words = [what | run.kind << 10, MARK, run.stream, run.number];
            for (place, word) in record.chunks_mut(2).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            record[8..16].copy_from_slice(&time.to_le_bytes());
            log.extend(record);
        }
    }
    log
}

/// An exported capture.
pub struct Exported {
    /// Where it is; removed with this.
    _home: Home,
    pub prof: Prof,
    pub reported: Reported,
    pub timeline: Vec<Value>,
}

impl Exported {
    pub fn make(parser: &Path) -> Exported {
        let home = Home::new();
        let (prof, reported) = capture(&home, "tests/c/families.c");
        let log = prof.path.join("device_0/data/stars_soc.data.0.slice_0");
        let runs = TASKS.map(|Task(stream, number, kind, from, to)| TaskRun {
            stream,
            number,
            kind,
            from: reported.base + from * 1000,
            to: reported.base + to * 1000,
        });
        std::fs::write(log, task_log(runs)).expect("written");
        export(parser, &prof.path);
        let text = exported(&prof.path, "msprof_", ".json").expect("msprof json");
        let timeline = serde_json::from_str(&text).expect("an array");
        Exported {
            _home: home,
            prof,
            reported,
            timeline,
        }
    }

    pub fn rows(&self, name: &str) -> Vec<Row> {
        let csv = exported(&self.prof.path, name, ".csv");
        rows(&csv.unwrap_or_else(|| panic!("no {name} csv")))
    }

    /// Those of one device, without that column.
    pub fn rows_of(&self, name: &str, device: &str) -> Vec<Row> {
        let mut rows = self.rows(name);
        rows.retain(|row| row["Device_id"] == device);
        rows
    }

    /// The wall clock at `us` behind the program's base.
    pub fn wall(&self, us: u64) -> f64 {
        let text = std::fs::read_to_string(self.prof.path.join("host/start_info"));
        let start: Value = serde_json::from_str(&text.expect("start_info")).expect("JSON");
        let number = |key: &str| -> u64 {
            start[key]
                .as_str()
                .expect("text")
                .parse()
                .expect("a number")
        };
        let since = self.reported.base + us * 1000 - number("clockMonotonicRaw");
        number("collectionTimeBegin") as f64 + since as f64 / 1000.0
    }

    #[track_caller]
    pub fn assert_time(&self, shown: &str, us: u64) {
        let shown: f64 = shown.trim().parse().expect("a time");
        let expected = self.wall(us);
        // The parser computes with doubles, which are a quarter of a microsecond apart there.
        assert!((shown - expected).abs() <= 1.0, "{shown} for {expected}");
    }

    /// Spans of the timeline that are called so.
    pub fn spans(&self, name: &str) -> Vec<&Value> {
        let named = |event: &&Value| event["ph"] == "X" && event["name"] == name;
        self.timeline.iter().filter(named).collect()
    }
}

#[track_caller]
pub fn assert_row(row: &Row, expected: &[(&str, &str)]) {
    for (column, value) in expected {
        assert_eq!(row[*column], *value, "{column} of {row:?}");
    }
}

/// The only row whose column has this value.
#[track_caller]
pub fn row_with<'a>(rows: &'a [Row], column: &str, value: &str) -> &'a Row {
    let found: Vec<&Row> = rows.iter().filter(|row| row[column] == value).collect();
    assert_eq!(found.len(), 1, "{column} {value} in {rows:?}");
    found[0]
}
