//! The process that a file without its name belongs to, as the name says it: boot, process id and start of the process.

use std::fmt;
use std::fs::read_to_string;
use std::io::ErrorKind;

/// Characters of a boot's id that are told: enough, and names stay short.
const BOOT_CHARS: usize = 8;
/// What stands for a boot that is not known.
const NO_BOOT: &str = "00000000";
/// Place of the start of a process, in ticks since the boot, behind its name in /proc/<pid>/stat (proc_pid_stat(5): field 22).
const START_FIELD: usize = 19;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    boot: String,
    pid: u32,
    /// 0 where it is not known.
    start: u64,
}

impl fmt::Display for Owner {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        write!(to, "{}_{}_{}", self.boot, self.pid, self.start)
    }
}

/// What /proc says of a process id.
enum Seen {
    Runs { start: u64 },
    Gone,
    Unknown,
}

impl Owner {
    /// This process.
    pub(super) fn this() -> Owner {
        let boot = read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot: String = boot.chars().take(BOOT_CHARS).collect();
        let pid = std::process::id();
        Owner {
            boot: if is_boot(&boot) {
                boot
            } else {
                NO_BOOT.to_owned()
            },
            pid,
            start: match seen(pid) {
                Seen::Runs { start } => start,
                Seen::Gone | Seen::Unknown => 0,
            },
        }
    }

    /// Reads what [`Display`](fmt::Display) writes, and nothing that is only alike.
    pub(super) fn parse(text: &str) -> Option<Owner> {
        let mut parts = text.split('_');
        let owner = Owner {
            boot: parts.next().filter(|boot| is_boot(boot))?.to_owned(),
            pid: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        (parts.next().is_none() && owner.to_string() == text).then_some(owner)
    }

    /// Whether it has ended, as `here`, this process, sees it. What cannot be known is not gone.
    pub(super) fn is_gone(&self, here: &Owner) -> bool {
        if self.boot == NO_BOOT || here.boot == NO_BOOT {
            return false;
        }
        if self.boot != here.boot {
            return true;
        }
        match seen(self.pid) {
            Seen::Runs { start } => self.start != 0 && start != self.start,
            Seen::Gone => true,
            Seen::Unknown => false,
        }
    }
}

fn is_boot(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == BOOT_CHARS && text.bytes().all(is_hex)
}

fn seen(pid: u32) -> Seen {
    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => {
            let stat = String::from_utf8_lossy(&stat).into_owned();
            // The name before that may hold anything.
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let mut fields = rest.split_ascii_whitespace();
            match (
                fields.next(),
                fields.nth(START_FIELD - 1).map(str::parse::<u64>),
            ) {
                // Ended, and only its parent has not asked for the outcome.
                (Some("Z" | "X"), _) => Seen::Gone,
                (_, Some(Ok(start))) => Seen::Runs { start },
                _ => Seen::Unknown,
            }
        }
        // Without /proc every process would be gone.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match std::fs::exists("/proc/self/stat") {
                Ok(true) => Seen::Gone,
                _ => Seen::Unknown,
            }
        }
        Err(_) => Seen::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_told_from_others_that_had_or_have_its_number() {
        let this = Owner::this();
        assert!(this.start > 0 && this.boot != NO_BOOT, "{this}");
        assert_eq!(Owner::parse(&this.to_string()), Some(this.clone()));
        assert!(!this.is_gone(&this));
        let with = |boot: &str, start: u64| Owner {
            boot: boot.to_owned(),
            start,
            ..this.clone()
        };
        assert!(with(&this.boot, this.start + 1).is_gone(&this));
        assert!(!with(&this.boot, 0).is_gone(&this));
        let other = if this.boot == "00000001" {
            "00000002"
        } else {
            "00000001"
        };
        assert!(with(other, this.start).is_gone(&this));
        assert!(!with(NO_BOOT, this.start + 1).is_gone(&this));
        assert!(!with(other, 1).is_gone(&with(NO_BOOT, 1)));
    }

    #[test]
    fn a_process_that_has_ended_is_gone_also_while_its_parent_does_not_ask() {
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("started");
        let this = Owner::this();
        let Seen::Runs { start } = seen(child.id()) else {
            panic!("not seen");
        };
        let owner = Owner {
            pid: child.id(),
            start,
            ..this.clone()
        };
        assert!(!owner.is_gone(&this));
        // It ends with its input, and is a zombie until it is waited for.
        drop(child.stdin.take());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !owner.is_gone(&this) {
            assert!(std::time::Instant::now() < until, "it does not end");
            std::thread::yield_now();
        }
        child.wait().expect("waited for");
        assert!(owner.is_gone(&this));
    }

    #[test]
    fn only_what_is_written_is_read() {
        for text in [
            "",
            "0123abcd_1",
            "0123abcd_1_2_3",
            "0123ABCD_1_2",
            "0123abc_1_2",
            "0123abcd_+1_2",
            "0123abcd_01_2",
            "0123abcd_-1_2",
            "0123abcd_99999999999_2",
        ] {
            assert_eq!(Owner::parse(text), None, "{text:?}");
        }
    }
}
