//! Messages of the agent: to stderr of the program or to a file, one write per line.
//!
//! `MSPROF_AGENT_LOG` chooses the level (off, error, warn, info, debug; warn when not set),
//! `MSPROF_AGENT_LOG_FILE` the file. Nothing is ever written to stdout.

#![forbid(unsafe_code)]

use crate::process::environment::Environment;
use crate::process::fd::keep_above_standard;
use crate::process::guarded::Guarded;
use crate::visible::is_harmful;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span;
use tracing::{Event, Metadata, Subscriber};

/// Longest line; longer ones are cut.
const LINE_MAX: usize = 4096;

/// Sends the messages of this library where the environment says. The first call counts.
pub fn init(environment: &Environment) {
    let word = environment.log.as_ref().and_then(|word| word.to_str());
    let level = match word {
        Some("off") => return,
        Some("error") => LevelFilter::ERROR,
        Some("info") => LevelFilter::INFO,
        Some("debug") => LevelFilter::DEBUG,
        _ => LevelFilter::WARN,
    };
    let file = environment.log_file.as_ref().and_then(|path| {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o640);
        let file = options.open(path).ok()?;
        let file = keep_above_standard(file.into()).ok()?;
        Some(Guarded::new(File::from(file)))
    });
    // A second agent in a forked child finds the first one's subscriber, which serves it as well.
    let _ = tracing::subscriber::set_global_default(Lines { level, file });
}

/// Writes each event as one line.
struct Lines {
    level: LevelFilter,
    file: Option<Guarded>,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = format!(
            "msprof-agent[{}] {}: ",
            crate::process::current_pid(),
            event.metadata().level()
        );
        event.record(&mut LineFields(&mut line));
        let line = as_line(line);
        let bytes = line.as_bytes();
        // A log that cannot be written must not disturb the program.
        let _ = match &self.file {
            Some(file) => file.get().and_then(|mut file| file.write_all(bytes)),
            // A pipe that nobody reads must not hold anybody up: the line is dropped.
            None if !has_room(rustix::stdio::stderr()) => Ok(()),
            // Not through std, whose lock a fork may leave held.
            None => rustix::io::write(rustix::stdio::stderr(), bytes)
                .map(drop)
                .map_err(Into::into),
        };
    }

    // Spans are not used.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// One bounded line. A name from the wire must not make lines of its own, or command the terminal that shows it.
fn as_line(mut text: String) -> String {
    let mut end = text.len().min(LINE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.replace(is_harmful, " ") + "\n"
}

fn has_room(fd: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().contains(PollFlags::OUT)
}

/// Appends the fields of an event: the message as it is, others as `name=value`.
struct LineFields<'a>(&'a mut String);

impl Visit for LineFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String cannot fail.
        let _ = if field.name() == "message" {
            write!(self.0, "{value:?}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_message_holds_it_is_one_bounded_line_of_what_can_be_seen() {
        let said = as_line("no\u{1b}[2J\r\ndevice\u{9b}1m \u{202e}txt 算子".to_owned());
        assert_eq!(said, "no [2J  device 1m  txt 算子\n");
        let long = as_line("é".repeat(LINE_MAX));
        assert_eq!((long.len(), long.lines().count()), (LINE_MAX + 1, 1));
        let odd = as_line(format!("a{}", "é".repeat(LINE_MAX)));
        assert_eq!(odd.len(), LINE_MAX);
    }
}
