//! Signals as events: none of them ends the controller by itself.

use crate::controller::Event;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::Sender;

/// Starts the thread that turns SIGINT, SIGTERM and SIGHUP into events.
///
/// Those in `ignored` (`nohup`, a shell's background job) stay so. Call it after the line editor is
/// made: the editor replaces the handler of SIGINT, while the one installed here calls the editor's.
pub fn watch(ignored: Ignored, events: Sender<Event>) -> std::io::Result<()> {
    let wanted = [SIGINT, SIGTERM, SIGHUP];
    let wanted = wanted
        .into_iter()
        .filter(|signal| ignored.0 & (1 << (signal - 1)) == 0);
    // Where SIGCHLD is ignored, the exit status of a launched program would be lost.
    signal_hook::flag::register(SIGCHLD, Default::default())?;
    let mut signals = Signals::new(wanted)?;
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// The signals that this process ignores, bit n - 1 for signal n.
#[derive(Clone, Copy, Debug)]
pub struct Ignored(u64);

impl Ignored {
    /// As it is now.
    pub fn read() -> Ignored {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        Ignored(mask.unwrap_or(0))
    }
}
