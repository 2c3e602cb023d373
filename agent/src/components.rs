//! Registered component handlers, open devices, and the commands sent to them.
//!
//! Every handler has a queue of its own: commands are put in under the registry's lock, in the order
//! in which they were decided, and are taken out and run one by one outside of it. So no lock is held
//! across a foreign call, a handler may call back into the ABI, and a handler that hangs delays only
//! itself (spec 2 section 2.3, design 2).

mod command;
mod delivery;

pub use command::{Command, DEVICES_MAX, Kind};
pub use delivery::{Delivery, Undelivered};

use crate::params::Switches;
use delivery::{Call, Outbox};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A component's callback: `h(1, &command, 5424)`; its result is ignored.
pub type Handler = unsafe extern "C" fn(u32, *mut c_void, u32) -> i32;

/// Module ids that have a place in the order of commands.
mod module {
    pub const HCCL: u32 = 3;
    pub const FMK: u32 = 4;
    pub const RUNTIME: u32 = 7;
    pub const CCECPU: u32 = 25;
    pub const PROFILING: u32 = 31;
    pub const AICPU: u32 = 36;
    pub const GE: u32 = 45;
    pub const ASCENDCL: u32 = 48;
}

/// A module's name for messages.
pub fn module_name(id: u32) -> String {
    let name = match id {
        module::HCCL => "HCCL",
        module::FMK => "FMK",
        module::RUNTIME => "RUNTIME",
        module::CCECPU => "CCECPU",
        module::PROFILING => "PROFILING",
        module::AICPU => "AICPU",
        module::GE => "GE",
        module::ASCENDCL => "ASCENDCL",
        _ => return format!("module {id}"),
    };
    format!("{name} ({id})")
}

/// Place of a module in the order of init and start; stop and finalize run the first three backwards.
fn rank(module_id: u32) -> u64 {
    match module_id {
        module::RUNTIME => 0,
        module::ASCENDCL => 1,
        module::GE => 2,
        other => 3 + u64::from(other),
    }
}

fn stop_rank(module_id: u32) -> u64 {
    match rank(module_id) {
        first @ 0..=2 => 2 - first,
        other => other,
    }
}

/// What the components are told while a capture runs.
#[derive(Clone, Debug)]
pub struct Session {
    /// Number of the capture.
    pub number: u64,
    /// Switch words of START and, the same, of STOP.
    pub switches: Switches,
    /// JSON text for the command's params, at most 4095 bytes.
    pub params: String,
}

/// One registered handler and what it was told.
#[derive(Debug)]
struct Component {
    module: u32,
    handler: Handler,
    outbox: Arc<Outbox>,
    inited: BTreeSet<u32>,
    /// Devices it was told to start, with the switches of that START.
    started: BTreeMap<u32, Switches>,
}

#[derive(Debug, Default)]
struct State {
    components: Vec<Component>,
    devices: BTreeSet<u32>,
    session: Option<Session>,
    /// JSON of the last capture, for commands outside of one.
    last_params: Option<String>,
}

/// The registry.
#[derive(Debug, Default)]
pub struct Components {
    state: Mutex<State>,
    /// Bit per open device: a repeated set-device, which comes hundreds of times a second, costs a load.
    open_devices: AtomicU64,
}

/// Why a registration or notification is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComponentError {
    /// Device ids are 0..64.
    #[error("device id {0} is not in 0..{DEVICES_MAX}")]
    Device(u32),
}

/// Device ids with this bit are not NPUs: never commanded.
const NOT_AN_NPU: u32 = 1 << 31;

impl Components {
    /// Registers a handler; the same pair twice is one. While a capture runs and devices are open, the
    /// returned delivery tells the handler what it missed; the caller runs it.
    pub fn register(&self, module: u32, handler: Handler) -> Delivery {
        let mut state = self.state.lock();
        let known = state
            .components
            .iter()
            .any(|known| known.module == module && known.handler as usize == handler as usize);
        if known {
            return Delivery::default();
        }
        state.components.push(Component {
            module,
            handler,
            outbox: Arc::default(),
            inited: BTreeSet::new(),
            started: BTreeMap::new(),
        });
        let index = state.components.len() - 1;
        let mut delivery = Delivery::default();
        if state.session.is_some() {
            for device in state.devices.clone() {
                state.tell_start(index, device, &mut delivery);
            }
        }
        delivery
    }

    /// Notes that a device was opened or closed. Only a device's first open, and its close, command
    /// anything. Returns whether the set of open devices changed, and the delivery to run.
    pub fn set_device(&self, device: u32, open: bool) -> Result<(bool, Delivery), ComponentError> {
        if device & NOT_AN_NPU != 0 {
            return Ok((false, Delivery::default()));
        }
        if device >= DEVICES_MAX as u32 {
            return Err(ComponentError::Device(device));
        }
        let bit = 1u64 << device;
        if (self.open_devices.load(Ordering::Acquire) & bit != 0) == open {
            return Ok((false, Delivery::default()));
        }
        let mut state = self.state.lock();
        let mut delivery = Delivery::default();
        let changed = if open {
            state.devices.insert(device)
        } else {
            state.devices.remove(&device)
        };
        if changed && open {
            self.open_devices.fetch_or(bit, Ordering::Release);
            for index in state.in_order(rank) {
                if state.session.is_some() {
                    state.tell_start(index, device, &mut delivery);
                } else {
                    state.tell_init(index, device, &mut delivery);
                }
            }
        } else if changed {
            self.open_devices.fetch_and(!bit, Ordering::Release);
            for index in state.in_order(stop_rank) {
                state.tell_stop(index, device, &mut delivery);
                state.components[index].inited.remove(&device);
            }
        }
        Ok((changed, delivery))
    }

    /// Begins a capture: every handler is told to start on every open device.
    pub fn start(&self, session: Session) -> Delivery {
        let mut state = self.state.lock();
        state.last_params = Some(session.params.clone());
        state.session = Some(session);
        let mut delivery = Delivery::default();
        for device in state.devices.clone() {
            for index in state.in_order(rank) {
                state.tell_start(index, device, &mut delivery);
            }
        }
        delivery
    }

    /// Ends a capture: whoever was told to start is told to stop, with the same bits.
    pub fn stop(&self) -> Delivery {
        let mut state = self.state.lock();
        let mut delivery = Delivery::default();
        for index in state.in_order(stop_rank) {
            let devices: Vec<u32> = state.components[index].started.keys().copied().collect();
            for device in devices {
                state.tell_stop(index, device, &mut delivery);
            }
        }
        state.session = None;
        delivery
    }

    /// The application finalizes: every handler that was told init is told finalize.
    pub fn finalize(&self) -> Delivery {
        let mut state = self.state.lock();
        let mut delivery = Delivery::default();
        for index in state.in_order(stop_rank) {
            if state.components[index].inited.is_empty() {
                continue;
            }
            state.components[index].inited.clear();
            let command = Command::new(Kind::Finalize, Switches::default(), &[], state.params());
            state.push(index, command, &mut delivery);
        }
        delivery
    }

    /// Ends a capture without telling anybody: at exit the components may be half torn down.
    pub fn abandon(&self) {
        let mut state = self.state.lock();
        state.session = None;
        for component in &mut state.components {
            component.started.clear();
        }
    }

    /// Whether no handler is registered.
    pub fn is_empty(&self) -> bool {
        self.state.lock().components.is_empty()
    }

    /// Open devices, ascending.
    pub fn devices(&self) -> Vec<u32> {
        let open = self.open_devices.load(Ordering::Acquire);
        (0..DEVICES_MAX as u32)
            .filter(|&device| open >> device & 1 != 0)
            .collect()
    }

    /// A copy for a forked child, which has the same libraries loaded. Nothing was told to it yet.
    pub fn copy_in_child(&self) -> Components {
        let copy = Components::default();
        if let Some(state) = self.state.try_lock() {
            let mut mine = copy.state.lock();
            mine.components = state
                .components
                .iter()
                .map(|component| Component {
                    module: component.module,
                    handler: component.handler,
                    outbox: Arc::default(),
                    inited: BTreeSet::new(),
                    started: BTreeMap::new(),
                })
                .collect();
        }
        copy
    }
}

impl State {
    fn params(&self) -> &str {
        let running = self.session.as_ref().map(|session| &session.params);
        running
            .or(self.last_params.as_ref())
            .map_or("{}", String::as_str)
    }

    /// Numbers of all components in the order that `rank` gives their modules.
    fn in_order(&self, rank: fn(u32) -> u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.components.len()).collect();
        order.sort_by_key(|&index| rank(self.components[index].module));
        order
    }

    fn tell_init(&mut self, index: usize, device: u32, delivery: &mut Delivery) {
        let component = &self.components[index];
        if component.outbox.is_hung() {
            delivery.leave_out(component.module);
            return;
        }
        if self.components[index].inited.insert(device) {
            let command = Command::new(Kind::Init, Switches::default(), &[], self.params());
            self.push(index, command, delivery);
        }
    }

    fn tell_start(&mut self, index: usize, device: u32, delivery: &mut Delivery) {
        let Some(session) = self.session.clone() else {
            return;
        };
        let component = &self.components[index];
        if component.outbox.is_hung() {
            // Nothing piles up for it; a stop of what it was told before still waits in its outbox.
            delivery.leave_out(component.module);
            return;
        }
        if component.started.contains_key(&device) {
            return;
        }
        self.tell_init(index, device, delivery);
        self.components[index]
            .started
            .insert(device, session.switches);
        let command = Command::new(Kind::Start, session.switches, &[device], &session.params);
        self.push(index, command, delivery);
    }

    fn tell_stop(&mut self, index: usize, device: u32, delivery: &mut Delivery) {
        if let Some(switches) = self.components[index].started.remove(&device) {
            let command = Command::new(Kind::Stop, switches, &[device], self.params());
            self.push(index, command, delivery);
        }
    }

    /// Queues a command; the order of the queue is the order of decisions since the lock is held.
    fn push(&mut self, index: usize, command: Box<Command>, delivery: &mut Delivery) {
        let component = &self.components[index];
        component.outbox.push(command);
        delivery.add(Call {
            module: component.module,
            handler: component.handler,
            outbox: component.outbox.clone(),
        });
    }
}

#[cfg(test)]
mod tests;
