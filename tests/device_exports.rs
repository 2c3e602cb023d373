//! What the stock parser makes of the devices' records: exactly the rows and times that the driver served.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use support::hal::{AICPU, Hal, RECORD, start};
use support::home::{Home, only_prof_dir};
use support::parser::{export, exported, rows, stock_parser};
use support::prof::{u16_at, u32_at, u64_at};
use support::rules::open_complete;

const DEVICES: [u32; 2] = [0, 1];
const RECORDS: u64 = 600;
const NODE: u32 = 0;
const DP: u32 = 1;
const MI: u32 = 3;
/// As tests/cann/hal.h has it: ticks that the devices' counters are ahead, of device D by D seconds more.
const COUNTER_OFFSET: u64 = 7_000_000_000_000;
/// The parser's doubles are that coarse, us.
const COARSE: f64 = 1.0;

/// Clocks of a device's directory, as the parser uses them (spec 3 section 7).
#[derive(Debug)]
struct Clocks {
    /// MHz of the device's counter.
    megahertz: f64,
    host_ns: u64,
    device_ticks: u64,
    /// At the capture's start.
    wall_us: u64,
    monotonic_ns: u64,
}

impl Clocks {
    fn read(dir: &Path, device: u32) -> Clocks {
        let of_device = dir.join(format!("device_{device}"));
        let text = |name: String| std::fs::read_to_string(of_device.join(name)).expect("a file");
        let json = |name: String| serde_json::from_str::<Value>(&text(name)).expect("JSON");
        let info = json(format!("info.json.{device}"));
        let begin = json(format!("start_info.{device}"));
        let number = |value: &Value| {
            value
                .as_str()
                .expect("text")
                .parse::<u64>()
                .expect("digits")
        };
        let logged = |file: &str, key: &str| {
            let text = text(format!("{file}.{device}"));
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.expect("the key")
                .trim()
                .parse::<u64>()
                .expect("digits")
        };
        let frequency = info["DeviceInfo"][0]["hwts_frequency"].as_str();
        Clocks {
            megahertz: frequency.expect("text").parse().expect("a number"),
            host_ns: logged("host_start.log", "clock_monotonic_raw"),
            device_ticks: logged("dev_start.log", "cntvct"),
            wall_us: number(&begin["collectionTimeBegin"]),
            monotonic_ns: number(&begin["clockMonotonicRaw"]),
        }
    }

    fn host_ns(&self, ticks: u64) -> f64 {
        let since = ticks as i64 - self.device_ticks as i64;
        self.host_ns as f64 + since as f64 * 1000.0 / self.megahertz
    }

    /// Wall clock, us.
    fn wall_us(&self, host_ns: f64) -> f64 {
        self.wall_us as f64 + (host_ns - self.monotonic_ns as f64) / 1000.0
    }
}

/// Records of a type that the devices served, with their device, in the order of their numbers.
fn of_type(served: &BTreeMap<u32, Vec<u8>>, kind: u32) -> Vec<(u32, &[u8])> {
    let all = served.iter().flat_map(|(device, bytes)| {
        let records = bytes.chunks_exact(RECORD);
        records.map(|record| (*device, record))
    });
    all.filter(|(_, record)| u32_at(record, 4) == kind)
        .collect()
}

/// Rows of a csv by device, each device's in the order of a column that is a time.
fn rows_of(dir: &Path, prefix: &str, time: &str) -> Vec<BTreeMap<String, String>> {
    let csv = exported(dir, prefix, ".csv").unwrap_or_else(|| panic!("{prefix}*.csv"));
    let mut rows = rows(&csv);
    let key = |row: &BTreeMap<String, String>| -> (u32, u64) {
        let us: f64 = row[time].parse().expect("a time");
        let device = row["Device_id"].parse().expect("a device");
        (device, (us * 1000.0) as u64)
    };
    rows.sort_by_key(key);
    rows
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    let text = &row[column];
    text.parse()
        .unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

#[track_caller]
fn assert_near(found: f64, expected: f64, row: &BTreeMap<String, String>) {
    assert!(
        (found - expected).abs() < COARSE,
        "{found} for {expected}: {row:?}"
    );
}

#[test]
fn the_stock_parser_exports_exactly_the_rows_and_times_that_two_devices_served() {
    let Some(parser) = stock_parser() else {
        return;
    };
    for clock in ["", "CLOCK=50"] {
        let home = Home::new();
        let hal = Hal::new(&home);
        let settings =
            format!("DEVICES=0,1 RATE=2000 TOTAL={RECORDS} TYPES=0,1,3 SERVED=bytes {clock}");
        let puppet = hal.puppet(&home, &settings, &DEVICES);
        let mut client = start(&puppet, &home);
        let starts = DEVICES.map(|device| (device, AICPU, 1));
        hal.wait_served(puppet.pid(), &starts, RECORDS);
        client.stop();
        let dir = only_prof_dir(&home.output());
        open_complete(&dir);
        let bytes = DEVICES.map(|device| (device, hal.bytes(puppet.pid(), (device, AICPU, 1))));
        let served = BTreeMap::from(bytes);
        let clocks = BTreeMap::from(DEVICES.map(|device| (device, Clocks::read(&dir, device))));
        check_clocks(&clocks, clock);
        export(&parser, &dir);
        check_nodes(&dir, &served, &clocks);
        check_dp(&dir, &served, &clocks);
        check_mi(&dir, &served);
    }
}

/// The directory's clocks are the device's own.
fn check_clocks(clocks: &BTreeMap<u32, Clocks>, clock: &str) {
    for (device, clocks) in clocks {
        if clock.is_empty() {
            assert_eq!(clocks.megahertz, 1000.0);
            assert_eq!(clocks.device_ticks, clocks.host_ns);
            continue;
        }
        assert_eq!(clocks.megahertz, 50.0);
        let second = 50_000_000;
        let ticks = clocks.device_ticks - COUNTER_OFFSET - u64::from(*device) * second;
        let off_ns = (ticks * 20).abs_diff(clocks.host_ns);
        // Host and counter are read one after the other; a thread may lose its CPU between.
        assert!(off_ns < 50_000_000, "device {device}: {off_ns} ns");
    }
}

fn check_nodes(dir: &Path, served: &BTreeMap<u32, Vec<u8>>, clocks: &BTreeMap<u32, Clocks>) {
    let rows = rows_of(dir, "aicpu_", "Timestamp(us)");
    let nodes = of_type(served, NODE);
    assert_eq!(rows.len(), nodes.len());
    assert_eq!(nodes.len() as u64, 2 * RECORDS / 3);
    for (row, (device, node)) in rows.iter().zip(nodes) {
        let clocks = &clocks[&device];
        let us = |from: usize, to: usize| {
            (u64_at(node, to) - u64_at(node, from)) as f64 / clocks.megahertz
        };
        assert_eq!(row["Device_id"], device.to_string());
        assert_eq!(row["Stream ID"], u16_at(node, 24).to_string());
        assert_eq!(row["Task ID"], u16_at(node, 26).to_string(), "{row:?}");
        let wall = clocks.wall_us(clocks.host_ns(u64_at(node, 40)));
        assert_near(number(row, "Timestamp(us)"), wall, row);
        assert_near(number(row, "Task_time(us)"), us(40, 80), row);
        assert_near(number(row, "Total_time(us)"), us(96, 120), row);
        let memcpy = (u64_at(node, 64) - u64_at(node, 56)) as f64;
        assert_near(number(row, "Memcpy_time(us)"), memcpy, row);
        let compute = (u64_at(node, 56) - u64_at(node, 48)) as f64;
        assert_near(number(row, "Compute_time(us)"), compute, row);
        let dispatch = f64::from(u32_at(node, 132));
        assert_near(number(row, "Dispatch_time(us)"), dispatch, row);
    }
}

fn check_dp(dir: &Path, served: &BTreeMap<u32, Vec<u8>>, clocks: &BTreeMap<u32, Clocks>) {
    let rows = rows_of(dir, "dp_", "Timestamp(us)");
    let records = of_type(served, DP);
    assert_eq!(rows.len(), records.len());
    for (row, (device, record)) in rows.iter().zip(records) {
        assert_eq!(row["Device_id"], device.to_string());
        assert_eq!(row["Action"], "Last queue deque");
        assert_eq!(row["Source"], "iterator_standin");
        assert_eq!(
            row["Cached Buffer Size"],
            u64_at(record, 112).to_string(),
            "{row:?}"
        );
        let wall = clocks[&device].wall_us(u64_at(record, 16) as f64);
        assert_near(number(row, "Timestamp(us)"), wall, row);
    }
}

fn check_mi(dir: &Path, served: &BTreeMap<u32, Vec<u8>>) {
    let rows = rows_of(dir, "aicpu_mi_", "Start Time(us)");
    let records = of_type(served, MI);
    assert_eq!(rows.len(), records.len());
    for (row, (device, record)) in rows.iter().zip(records) {
        assert_eq!(row["Device_id"], device.to_string());
        assert_eq!(row["Node Name"], "GetNext_dequeue_wait");
        assert_eq!(row["Queue Size"], u64_at(record, 32).to_string(), "{row:?}");
        assert_near(
            number(row, "Start Time(us)"),
            u64_at(record, 40) as f64,
            row,
        );
        assert_near(number(row, "End Time(us)"), u64_at(record, 48) as f64, row);
    }
}
