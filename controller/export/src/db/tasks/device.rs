//! Tasks as a device ran them: starts and ends of its log put together.

use super::TaskKey;
use super::WHOLE;
use crate::db::Export;
use crate::decode::stars::{DeviceFlip, TaskLog};
use std::collections::{BTreeMap, HashMap};

/// What a task is called by what ran it.
const TASKS: [&str; 21] = [
    "AI_CORE",
    "AI_CPU",
    "AIV_SQE",
    "PLACE_HOLDER_SQE",
    "EVENT_RECORD_SQE",
    "EVENT_WAIT_SQE",
    "NOTIFY_RECORD_SQE",
    "NOTIFY_WAIT_SQE",
    "WRITE_VALUE_SQE",
    "VQ6_SQE",
    "TOF_SQE",
    "SDMA_SQE",
    "VPC_SQE",
    "JPEGE_SQE",
    "JPEGD_SQE",
    "DSA_SQE",
    "ROCCE_SQE",
    "PCIE_DMA_SQE",
    "HOST_CPU_SQE",
    "CDQM_SQE",
    "C_CORE_SQE",
];

/// A task, or a part of one, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) key: TaskKey,
    /// Ticks of the device.
    pub(super) start: u64,
    /// Ticks of the device.
    pub(super) end: u64,
    /// What ran it; `None` of what has no name.
    pub(super) kind: Option<&'static str>,
}

/// Reads the tasks of a device.
pub(super) fn runs(export: &mut Export<'_>, device: u32) -> Vec<Run> {
    let Ok(number) = u16::try_from(device) else {
        return Vec::new();
    };
    let source = export.source;
    let wide = source
        .stream_specs()
        .next()
        .is_some_and(|spec| spec.is_ok_and(|spec| spec.wide));
    let mut logs = Vec::new();
    for log in source.task_logs(device, wide) {
        let log = export.read(log);
        logs.extend(log);
    }
    let mut flips: HashMap<u16, Vec<DeviceFlip>> = HashMap::new();
    for flip in source.device_flips(device) {
        if let Some(flip) = export.read(flip) {
            flips.entry(flip.stream).or_default().push(flip);
        }
    }
    for flips in flips.values_mut() {
        flips.sort_by_key(|flip| flip.time);
    }
    // Tasks and parts have numbers of batches of their own.
    logs.sort_by_key(|log| (log.part.is_some(), log.stream, log.time));
    let mut runs = Vec::new();
    for logs in logs.chunk_by(|a, b| (a.part.is_some(), a.stream) == (b.part.is_some(), b.stream)) {
        let flips = flips.get(&logs[0].stream).map_or(&[][..], Vec::as_slice);
        stream_runs(number, logs, flips, &mut runs);
    }
    runs.sort_by_key(|run| run.start);
    runs
}

/// Starts with their batches, and ends, of one task.
type Pairs = (Vec<(TaskLog, u16)>, Vec<u64>);

/// The tasks of one stream, whose logs and flips come by their time.
fn stream_runs(device: u16, logs: &[TaskLog], flips: &[DeviceFlip], runs: &mut Vec<Run>) {
    let starts: Vec<TaskLog> = logs.iter().filter(|log| !log.is_end).copied().collect();
    let batches = batches(&starts, flips);
    let mut tasks: BTreeMap<(Option<u16>, u16), Pairs> = BTreeMap::new();
    for (start, batch) in starts.into_iter().zip(batches) {
        let task = tasks.entry((start.part, start.task)).or_default();
        task.0.push((start, batch));
    }
    for end in logs.iter().filter(|log| log.is_end) {
        if let Some(task) = tasks.get_mut(&(end.part, end.task)) {
            task.1.push(end.time);
        }
    }
    for (starts, ends) in tasks.values() {
        pair(starts, ends, |(start, batch), end| {
            runs.push(Run {
                key: TaskKey {
                    device,
                    stream: start.stream,
                    batch: *batch,
                    number: start.task.into(),
                    context: start.part.map_or(WHOLE, u32::from),
                },
                start: start.time,
                end,
                kind: kind(start),
            });
        });
    }
}

/// Each start with its end. Where some are missing, an end belongs to the last start before it.
fn pair(starts: &[(TaskLog, u16)], ends: &[u64], mut found: impl FnMut(&(TaskLog, u16), u64)) {
    if starts.len() == ends.len() {
        for (start, end) in starts.iter().zip(ends) {
            found(start, *end);
        }
        return;
    }
    let (mut at, mut end) = (0, 0);
    while at < starts.len() && end < ends.len() {
        let is_behind = ends[end] >= starts[at].0.time;
        let is_next = starts
            .get(at + 1)
            .is_none_or(|next| ends[end] < next.0.time);
        if is_behind && is_next {
            found(&starts[at], ends[end]);
        }
        match (is_behind, is_next) {
            (true, true) => (at, end) = (at + 1, end + 1),
            (true, false) => at += 1,
            (false, _) => end += 1,
        }
    }
}

/// The batch of each start: how many flips of the stream were before it.
fn batches(starts: &[TaskLog], flips: &[DeviceFlip]) -> Vec<u16> {
    let mut batches = vec![0; starts.len()];
    // Up to which start the batch before a flip goes, and where the search for the next flip begins.
    let (mut done, mut from, mut batch) = (0, 0, 0u16);
    for flip in flips {
        if from >= starts.len() {
            break;
        }
        let before = starts[from..].partition_point(|start| start.time <= flip.time);
        if before > 0 {
            let mut last = from + before - 1;
            // Some with numbers behind the flip have started before it.
            if flip.task != 0 && flip.task != u16::MAX {
                while last > 0 && starts[last].task <= flip.task {
                    last -= 1;
                }
            }
            if last >= done {
                batches[done..=last].fill(batch);
                done = last + 1;
            }
        }
        from += before;
        batch = batch.saturating_add(1);
    }
    if from < starts.len() {
        batches[done..].fill(batch);
    }
    batches
}

fn kind(log: &TaskLog) -> Option<&'static str> {
    if log.part.is_none() {
        return TASKS.get(usize::from(log.kind)).copied();
    }
    Some(match log.kind {
        0 => "AIC",
        1 => "AIV",
        3 => "Notify Wait",
        4 => "Notify Record",
        5 => "Write Value",
        6 => "MIX_AIC",
        7 => "MIX_AIV",
        8 => "SDMA",
        9 => "Data Context",
        10 => "Invalidate Data Context",
        11 => "Writeback Data Context",
        12 => "AI_CPU",
        13 => "Load Context",
        15 => "DSA",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(time: u64, task: u16, is_end: bool) -> TaskLog {
        TaskLog {
            time,
            stream: 2,
            task,
            part: None,
            kind: 0,
            is_end,
        }
    }

    fn times(logs: &[TaskLog], flips: &[DeviceFlip]) -> Vec<(u64, u64, u16)> {
        let mut runs = Vec::new();
        stream_runs(0, logs, flips, &mut runs);
        runs.iter()
            .map(|run| (run.start, run.end, run.key.batch))
            .collect()
    }

    #[test]
    fn as_many_starts_as_ends_are_pairs_in_their_order() {
        let logs = [
            log(1, 9, false),
            log(3, 9, true),
            log(5, 9, false),
            log(8, 9, true),
        ];
        assert_eq!(times(&logs, &[]), [(1, 3, 0), (5, 8, 0)]);
    }

    #[test]
    fn where_some_are_missing_an_end_belongs_to_the_start_right_before_it() {
        let mut logs: Vec<_> = [1, 5, 9, 13, 25].map(|time| log(time, 9, false)).into();
        logs.extend([3, 7, 10, 15].map(|time| log(time, 9, true)));
        assert_eq!(
            times(&logs, &[]),
            [(1, 3, 0), (5, 7, 0), (9, 10, 0), (13, 15, 0)]
        );
        let mut logs: Vec<_> = [4, 6, 9, 13].map(|time| log(time, 9, false)).into();
        logs.extend([3, 5, 8, 10, 15].map(|time| log(time, 9, true)));
        assert_eq!(
            times(&logs, &[]),
            [(4, 5, 0), (6, 8, 0), (9, 10, 0), (13, 15, 0)]
        );
    }

    #[test]
    fn starts_behind_a_flip_are_of_the_next_batch() {
        let starts = [
            log(1, 65_534, false),
            log(3, 65_535, false),
            log(5, 0, false),
            log(9, 1, false),
        ];
        let flip = |time, task| DeviceFlip {
            time,
            stream: 2,
            task,
        };
        assert_eq!(batches(&starts, &[]), [0, 0, 0, 0]);
        assert_eq!(batches(&starts, &[flip(4, 0)]), [0, 0, 1, 1]);
        // The start at 5 has a number behind the flip.
        assert_eq!(batches(&starts, &[flip(6, 1)]), [0, 0, 1, 1]);
        assert_eq!(
            batches(&starts, &[flip(4, 0), flip(6, u16::MAX)]),
            [0, 0, 1, 2]
        );
    }
}
