//! Tasks that were sent to devices whose logs say when they ran.

use super::{Task, TaskKey, flips_are_reported};
use crate::db::Export;
use crate::db::session::platform;
use msprof_agent_core::profdir::Place;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The platform whose logs are read. Those of others are of other forms.
const PLATFORM: u16 = 5;

/// What the host knows of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Number of what its type is called.
    pub(super) kind: usize,
    /// Number of the call in which it was sent; -1 outside calls.
    pub(super) connection: i64,
    /// The model that runs; all ones for none.
    pub(super) model: u32,
    pub(super) communicates: bool,
    /// How many there are of one key: of several nothing is known.
    pub(super) count: u32,
}

/// All of them.
#[derive(Default)]
pub(in crate::db) struct SentTasks {
    pub(super) devices: Vec<u32>,
    kinds: Vec<Rc<str>>,
    numbers: HashMap<Rc<str>, usize>,
    tasks: HashMap<TaskKey, Sent>,
    computing: HashSet<TaskKey>,
}

impl SentTasks {
    /// None yet, of the devices that have such logs.
    pub(super) fn new(export: &Export<'_>) -> SentTasks {
        // Without them, tasks of one number are not told apart; the parser has nothing of such devices either.
        if !flips_are_reported(export) {
            return SentTasks::default();
        }
        let profile = export.source.profile();
        let devices = profile.devices().filter(|device| {
            platform(profile, Place::Device(*device)) == Some(PLATFORM)
                && export.source.has_task_logs(*device)
        });
        SentTasks {
            devices: devices.collect(),
            ..SentTasks::default()
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Whether tasks of this one's device are wanted.
    pub(super) fn wants(&self, task: &Task) -> bool {
        self.devices.contains(&task.device.into())
    }

    /// The number of what a type is called.
    pub(super) fn kind(&mut self, name: Rc<str>) -> usize {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.kinds.len();
        self.kinds.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// What a type of this number is called.
    pub(super) fn kind_name(&self, number: usize) -> &str {
        self.kinds.get(number).map_or("", |name| name)
    }

    pub(super) fn add(&mut self, key: TaskKey, sent: Sent) {
        self.tasks.entry(key).or_insert(sent).count += 1;
    }

    pub(super) fn get(&self, key: TaskKey) -> Option<&Sent> {
        self.tasks.get(&key)
    }

    /// Whether any were sent to a device.
    pub(super) fn any(&self, device: u32) -> bool {
        self.tasks.keys().any(|key| u32::from(key.device) == device)
    }

    /// A task computes.
    pub(super) fn computes(&mut self, key: TaskKey) {
        self.computing.insert(key);
    }

    /// Whether it does.
    pub(super) fn is_computing(&self, key: TaskKey) -> bool {
        self.computing.contains(&key)
    }
}
