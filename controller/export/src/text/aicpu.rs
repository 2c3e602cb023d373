//! The tables of what aicpus report: `aicpu`, `dp` and `aicpu_mi`.

use super::sorted::Sorter;
use super::table::{Cell, Made, Table};
use super::wall::Wall;
use super::{ExportError, Problems};
use crate::decode::aicpu::{Aicpu, AicpuNode, DataQueue};
use crate::decode::device::DeviceClock;
use crate::number::{self, round3};
use crate::source::Source;
use msprof_agent_core::profdir::Place;

/// Columns of `aicpu`.
pub const NODE_COLUMNS: [&str; 9] = [
    "Timestamp(us)",
    "Node",
    "Compute_time(us)",
    "Memcpy_time(us)",
    "Task_time(us)",
    "Dispatch_time(us)",
    "Total_time(us)",
    "Stream ID",
    "Task ID",
];
/// Columns of `dp`.
pub const DATA_COLUMNS: [&str; 4] = ["Timestamp(us)", "Action", "Source", "Cached Buffer Size"];
/// Columns of `aicpu_mi`.
pub const WAIT_COLUMNS: [&str; 4] = ["Node Name", "Start Time(us)", "End Time(us)", "Queue Size"];

/// Milliseconds of a second: the unit in which the stock parser keeps these times.
const MILLIS: f64 = 1000.0;
/// Who waits for a queue, by their number: the first is 1.
const WAITING: [&str; 1] = ["GetNext_dequeue_wait"];

/// How the streams of an aicpu's records are numbered.
#[derive(Clone, Copy, Debug)]
struct Streams {
    /// They have 15 bits, not 11.
    wide: bool,
}

impl Streams {
    fn of(source: &Source, problems: &mut Problems) -> Streams {
        let mut specs = source.stream_specs();
        let first = specs.find_map(|spec| problems.read(spec));
        Streams {
            wide: first.is_some_and(|spec| spec.wide),
        }
    }

    /// Stream and task of a record. Bits of the stream say in which of the two fields the bits of each are.
    fn stream_and_task(self, stream: u16, task: u16) -> (u16, u16) {
        const WIDE: u16 = 0x7FFF;
        const STREAM: u16 = 0x07FF;
        match (self.wide, stream) {
            (true, stream) if stream & 0x8000 != 0 => (task & WIDE, task & !WIDE | stream & WIDE),
            (true, stream) => (stream & WIDE, task),
            (false, stream) if stream & 0x1000 != 0 => {
                (stream & STREAM, task & 0x1FFF | stream & 0xE000)
            }
            (false, stream) if stream & 0x2000 != 0 => {
                (task & 0x0FFF & STREAM, stream & 0x0FFF | task & 0xF000)
            }
            (false, stream) => (stream & STREAM, task),
        }
    }
}

/// Writes `aicpu`: operators by their begin, device after device.
pub fn nodes<'a>(
    mut table: Table,
    sorter: impl Fn() -> Sorter<'a>,
    source: &Source,
    problems: &mut Problems,
) -> Result<Vec<Made>, ExportError> {
    let streams = Streams::of(source, problems);
    for device in super::devices(source) {
        let clock = source.device_clock(device);
        let label = device.to_string();
        let mut sorter = sorter();
        let columns = table.columns();
        let reported = source.aicpu(device).filter_map(|record| match record {
            Ok(Aicpu::Node(node)) => Some(Ok((node, false))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        let legacy = source.legacy_aicpu(Place::Device(device));
        for node in reported.chain(legacy.map(|node| node.map(|node| (node, true)))) {
            let Some((node, is_legacy)) = problems.read(node) else {
                continue;
            };
            if node.begin == 0 || node.end == 0 {
                continue;
            }
            let begin = clock.monotonic(node.begin, MILLIS);
            let wall = clock.wall_of_us(begin * MILLIS);
            if !clock.is_inside(wall) {
                continue;
            }
            let (stream, task) = match is_legacy {
                true => (node.stream & 0x07FF, node.task),
                false => streams.stream_and_task(node.stream, node.task),
            };
            let cells = node_cells(&node, &clock, (begin, wall), (stream, task));
            sorter.add(wall, &columns.row(&label, &cells))?;
        }
        sorter.finish(|row| table.add_row(row).map_err(ExportError::from))?;
    }
    Ok(table.finish()?)
}

fn node_cells(
    node: &AicpuNode,
    clock: &DeviceClock,
    (begin, wall): (f64, i128),
    (stream, task): (u16, u16),
) -> [Cell<'static>; 9] {
    let micros = |millis: f64| Cell::Float(round3(millis * MILLIS));
    let between = |from: u64, to: u64| (i128::from(to) - i128::from(from)) as f64 / MILLIS;
    let ticks = i128::from(node.after_run) - i128::from(node.submitted);
    [
        Cell::Own(format!("{}\t", number::us(wall)).into()),
        // Its name is known where the device's log of tasks is, which no agent writes.
        Cell::NONE,
        micros(between(node.compute_start, node.copy_start)),
        micros(between(node.copy_start, node.copy_end)),
        micros(clock.monotonic(node.end, MILLIS) - begin),
        micros(f64::from(node.dispatch_us) / MILLIS),
        micros(clock.duration(ticks, MILLIS)),
        Cell::Int(stream.into()),
        Cell::Int(task.into()),
    ]
}

/// Writes `dp`: elements that were taken from data queues, of the devices and of the host.
pub fn data(
    mut table: Table,
    source: &Source,
    wall: &Wall,
    problems: &mut Problems,
) -> Result<Vec<Made>, ExportError> {
    for device in super::devices(source) {
        let clock = source.device_clock(device);
        let label = device.to_string();
        let place = Place::Device(device);
        let mut any = false;
        for record in source.aicpu(device) {
            let Some(Aicpu::Data(queue)) = problems.read(record) else {
                continue;
            };
            any = true;
            // The host's clock, even so.
            let ns = clock.wall_of_us(queue.time_ns as f64 / MILLIS);
            table.add(&label, &data_cells(&queue, number::us(ns)))?;
        }
        if !any {
            legacy_data(&mut table, source, place, &label, problems, |ns| {
                clock.wall_of_us(ns as f64 / MILLIS)
            })?;
        }
    }
    legacy_data(&mut table, source, Place::Host, "host", problems, |ns| {
        i128::from(ns) + wall.offset_ns()
    })?;
    Ok(table.finish()?)
}

fn legacy_data(
    table: &mut Table,
    source: &Source,
    place: Place,
    label: &str,
    problems: &mut Problems,
    wall_ns: impl Fn(u64) -> i128,
) -> Result<(), ExportError> {
    for queue in source.legacy_data(place) {
        let Some(queue) = problems.read(queue) else {
            continue;
        };
        // The stock parser makes floats of these times: of three decimals, two more quarters of a us are left.
        let us: f64 = number::us(wall_ns(queue.time_ns)).parse().unwrap_or(0.0);
        table.add(label, &data_cells(&queue, number::float(us)))?;
    }
    Ok(())
}

fn data_cells(queue: &DataQueue, time: String) -> [Cell<'_>; 4] {
    [
        Cell::Own(time.into()),
        Cell::Name(queue.action.as_str().into()),
        Cell::Name(queue.source.as_str().into()),
        Cell::Int(queue.size.into()),
    ]
}

/// Writes `aicpu_mi`: waits for queues.
pub fn waits(
    mut table: Table,
    source: &Source,
    problems: &mut Problems,
) -> Result<Vec<Made>, ExportError> {
    for device in super::devices(source) {
        let label = device.to_string();
        let mut records = source.aicpu(device);
        for record in records.by_ref() {
            let Some(Aicpu::Wait(wait)) = problems.read(record) else {
                continue;
            };
            let name = (wait.node as usize)
                .checked_sub(1)
                .and_then(|at| WAITING.get(at));
            let times = (wait.begin_us, wait.end_us);
            table.add(&label, &wait_cells(name.unwrap_or(&""), times, wait.size))?;
        }
        problems.foreign("aicpu.data", records.foreign());
        for wait in source.legacy_waits(Place::Device(device)) {
            let Some(wait) = problems.read(wait) else {
                continue;
            };
            let times = (wait.begin_us, wait.end_us);
            table.add(&label, &wait_cells(&wait.node, times, wait.size))?;
        }
    }
    Ok(table.finish()?)
}

fn wait_cells(node: &str, (begin_us, end_us): (u64, u64), size: u64) -> [Cell<'_>; 4] {
    [
        Cell::Name(node.into()),
        Cell::Float(begin_us as f64),
        Cell::Float(end_us as f64),
        Cell::Int(size.into()),
    ]
}
