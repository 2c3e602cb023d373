//! Signals as events: none of them ends the controller by itself.

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The same signal within this time is one: `timeout`, and a shell whose terminal is closed, send it to the process and to
/// its group. Nobody types Ctrl-C twice as fast on purpose.
const TOGETHER: Duration = Duration::from_millis(200);

/// Starts the thread that tells of SIGINT, SIGTERM and SIGHUP, until `tell` says that nobody listens. One that is sent several
/// times at once is told of once.
///
/// Those in `ignored` (`nohup`, a shell's background job) stay so. Call it after the line editor is
/// made: the editor replaces the handler of SIGINT, while the one installed here calls the editor's.
pub fn watch(ignored: Ignored, tell: impl Fn(i32) -> bool + Send + 'static) -> std::io::Result<()> {
    let wanted = [SIGINT, SIGTERM, SIGHUP];
    let wanted = wanted.into_iter().filter(|signal| !ignored.has(*signal));
    // Where SIGCHLD is ignored, the exit status of a launched program would be lost.
    signal_hook::flag::register(SIGCHLD, Default::default())?;
    let mut signals = Signals::new(wanted)?;
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || {
        let mut last = None;
        for signal in signals.forever() {
            if is_another(&mut last, signal, Instant::now()) && !tell(signal) {
                return;
            }
        }
    })?;
    Ok(())
}

/// Whether a signal is not the one that was told of last, sent again with it.
fn is_another(last: &mut Option<(i32, Instant)>, signal: i32, now: Instant) -> bool {
    let repeats = |(told, at): (i32, Instant)| told == signal && now.duration_since(at) < TOGETHER;
    if last.is_some_and(repeats) {
        return false;
    }
    *last = Some((signal, now));
    true
}

/// Has a write beyond the limit of file size (`ulimit -f`) fail, and not end msprof in the midst of a file. A program that is
/// launched does not inherit it.
pub fn survive_file_size_limit(ignored: Ignored) {
    if !ignored.has(SIGXFSZ) {
        // Without it the signal ends msprof, as it would have.
        let _ = signal_hook::flag::register(SIGXFSZ, Default::default());
    }
}

/// The signals that this process was started with ignored, bit n - 1 for signal n.
#[derive(Clone, Copy, Debug)]
pub struct Ignored(u64);

impl Ignored {
    /// Read once, at the first call: before anything here has a handler.
    pub fn read() -> Ignored {
        static IGNORED: OnceLock<Ignored> = OnceLock::new();
        *IGNORED.get_or_init(Ignored::ask)
    }

    fn ask() -> Ignored {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        Ignored(mask.unwrap_or(0))
    }

    fn has(self, signal: i32) -> bool {
        self.0 & (1 << (signal - 1)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_signal_at_once_is_one_and_another_one_or_a_later_one_is_not() {
        let begin = Instant::now();
        let mut last = None;
        let mut tell =
            |signal, ms| is_another(&mut last, signal, begin + Duration::from_millis(ms));
        assert!(tell(SIGTERM, 0));
        assert!(!tell(SIGTERM, 1));
        assert!(!tell(SIGTERM, 199));
        // From the one that was told of: who keeps Ctrl-C pressed is heard.
        assert!(tell(SIGTERM, 200));
        assert!(tell(SIGINT, 201));
        assert!(tell(SIGTERM, 202));
        assert!(!tell(SIGTERM, 203));
    }
}
