//! The command that a component's handler receives, 5424 bytes (spec 2 section 2.3).

#![forbid(unsafe_code)]

use crate::params::Switches;
use zerocopy::{FromZeros, Immutable, IntoBytes, KnownLayout};

/// Devices that one command can name; device ids are below it too.
pub const DEVICES_MAX: usize = 64;
/// Room for the params text.
pub const PARAMS_ROOM: usize = 4096;

/// Field `model_id` where no model is meant.
const NO_MODEL: u32 = u32::MAX;

/// What the component is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A device was opened.
    Init = 0,
    /// Report from now on what the switches say.
    Start = 1,
    /// Report no longer.
    Stop = 2,
    /// The application finalizes.
    Finalize = 3,
}

/// The command's layout.
#[repr(C)]
#[derive(Debug, FromZeros, IntoBytes, Immutable, KnownLayout)]
pub struct Command {
    /// Bits of what is to be reported.
    pub switch: u64,
    /// More of them.
    pub switch_hi: u64,
    /// Number of valid device ids.
    pub device_count: u32,
    /// Devices.
    pub device_ids: [u32; DEVICES_MAX],
    /// All ones except in model commands.
    pub model_id: u32,
    /// A [`Kind`].
    pub kind: u32,
    /// 0.
    pub cache_flag: u32,
    /// 0 in dynamic mode.
    pub path_len: u32,
    /// 0 in dynamic mode.
    pub storage_limit_mb: u32,
    /// Bytes of params text.
    pub params_len: u32,
    /// Empty in dynamic mode.
    pub path: [u8; 1024],
    /// The capture's JSON, NUL terminated.
    pub params: [u8; PARAMS_ROOM],
    /// Tail padding of the C struct.
    pub fill: [u8; 4],
}

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<Command>() == 5424);
    assert!(offset_of!(Command, device_ids) == 20);
    assert!(offset_of!(Command, model_id) == 276);
    assert!(offset_of!(Command, kind) == 280);
    assert!(offset_of!(Command, params_len) == 296);
    assert!(offset_of!(Command, path) == 300);
    assert!(offset_of!(Command, params) == 1324);
};

impl Command {
    /// Makes a command. `devices` beyond 64 and `params` beyond 4095 bytes are cut off.
    pub fn new(kind: Kind, switches: Switches, devices: &[u32], params: &str) -> Box<Command> {
        let mut command = Box::new(Command::new_zeroed());
        command.switch = switches.switch;
        command.switch_hi = switches.switch_hi;
        command.model_id = match kind {
            Kind::Start | Kind::Stop => NO_MODEL,
            Kind::Init | Kind::Finalize => 0,
        };
        command.kind = kind as u32;
        let count = devices.len().min(DEVICES_MAX);
        command.device_count = count as u32;
        command.device_ids[..count].copy_from_slice(&devices[..count]);
        let text = params.as_bytes();
        let text = &text[..text.len().min(PARAMS_ROOM - 1)];
        command.params_len = text.len() as u32;
        command.params[..text.len()].copy_from_slice(text);
        command
    }
}
