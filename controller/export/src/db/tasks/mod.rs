//! Tasks that the host sent to devices, and what they have to do with the calls of their thread (spec 3 section 8).
//!
//! Records of a thread come in order, those of a family do not: tasks, and what belongs to them, are held in memory until
//! all are known. Calls and records that no task needs are not.

mod batches;
pub(super) mod compute;
mod device;
mod kinds;
pub(super) mod memcpy;
mod operators;
pub(super) mod overlap;
mod row;
pub(super) mod runs;
mod sent;
mod shapes;
mod spans;

use super::Export;
use super::session::platform;
use msprof_agent_core::profdir::Place;
use msprof_agent_core::profdir::reader::Control;
use std::collections::HashMap;

/// Part of a task that has none.
pub(super) const WHOLE: u32 = u32::MAX;
/// Type of the record that says that a stream's numbers begin anew.
const FLIP: u64 = 98;
/// Type of the task that ends a stream, of which devices say nothing.
const MAINTENANCE: u64 = 6;
/// Drivers from this one on report when numbers begin anew.
const FLIPS_SINCE: u64 = 0x07_2211;

/// A task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) thread: u32,
    /// Ticks.
    pub(super) time: u64,
    pub(super) device: u16,
    pub(super) stream: u16,
    pub(super) batch: u16,
    pub(super) number: u32,
    pub(super) kind: u64,
    pub(super) kernel: u64,
    /// What it runs on, where its record says so.
    pub(super) extent: Option<[u16; 8]>,
}

/// What tells a task, or a part of one, from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TaskKey {
    pub(super) device: u16,
    pub(super) stream: u16,
    pub(super) batch: u16,
    pub(super) number: u32,
    pub(super) context: u32,
}

impl Task {
    pub(super) fn key(&self, context: u32) -> TaskKey {
        TaskKey {
            device: self.device,
            stream: self.stream,
            batch: self.batch,
            number: self.number,
            context,
        }
    }
}

/// Numbers of tasks, the same in all tables (`globalTaskId`).
#[derive(Default)]
pub(super) struct TaskIds(HashMap<TaskKey, i64>);

impl TaskIds {
    pub(super) fn id(&mut self, key: TaskKey) -> i64 {
        let next = self.0.len() as i64;
        *self.0.entry(key).or_insert(next)
    }
}

/// All tasks, by thread and time.
pub(super) struct Tasks {
    tasks: Vec<Task>,
    /// Whether the devices are of the sixth kind: their tasks have neither batches nor parts.
    pub(super) sixth: bool,
}

impl Tasks {
    /// Reads them.
    pub(super) fn read(export: &mut Export<'_>) -> Tasks {
        let source = export.source;
        let sixth = matches!(platform(source.profile(), Place::Host), Some(15 | 16));
        let (mut tasks, mut flips) = (Vec::new(), Vec::new());
        for track in source.task_tracks() {
            let Some(track) = export.read(track) else {
                continue;
            };
            if track.kind == FLIP {
                flips.push(batches::Flip::of(&track));
            } else if track.kind != MAINTENANCE && !track.foreign_device {
                let (number, batch) = match sixth {
                    true => (u32::from(track.batch) << 16 | u32::from(track.task), 0),
                    false => (track.task.into(), track.batch),
                };
                tasks.push(Task {
                    thread: track.thread,
                    time: track.time,
                    device: track.device,
                    stream: track.stream,
                    batch,
                    number,
                    kind: track.kind,
                    kernel: track.kernel,
                    extent: track.full_extent(),
                });
            }
        }
        if !sixth && flips_are_reported(export) {
            batches::count(&mut tasks, flips);
        }
        tasks.sort_by_key(|task| (task.thread, task.time));
        Tasks { tasks, sixth }
    }

    pub(super) fn all(&self) -> &[Task] {
        &self.tasks
    }

    /// Those of each thread.
    pub(super) fn by_thread(&self) -> impl Iterator<Item = &[Task]> {
        self.tasks.chunk_by(|one, next| one.thread == next.thread)
    }
}

/// What tasks of a type are called.
pub(super) fn kind_name(export: &Export<'_>, kind: u64) -> String {
    use msprof_agent_core::records::level;
    match u32::try_from(kind) {
        Ok(kind) => export.source.type_name(level::RUNTIME, kind).into_owned(),
        Err(_) => kind.to_string(),
    }
}

fn flips_are_reported(export: &Export<'_>) -> bool {
    let profile = export.source.profile();
    let info = profile.control_json(Place::Host, Control::Info);
    let info = info.ok().flatten().unwrap_or_default();
    let driver = info.get("drvVersion").and_then(|version| version.as_u64());
    let known = !matches!(platform(profile, Place::Host), None | Some(0 | 2 | 11));
    known && driver.unwrap_or(0) >= FLIPS_SINCE
}
