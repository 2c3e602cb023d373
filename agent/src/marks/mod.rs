//! Marks and ranges that the program sets itself: msproftx stamps and mstx.
//!
//! They are recorded whenever something is captured, whatever the options say: the program would not set
//! them otherwise. A range that began before the capture, or ends after it, is not recorded. All may be
//! called from any thread; while nothing is captured a call costs a load and a branch, else a lock that is
//! held for some moves. A signal handler may call them too: one that has come upon another of these calls of its
//! own thread is refused, never left waiting.

#![forbid(unsafe_code)]

mod domains;
mod open;
mod record;
mod stamps;

pub use domains::Domains;

use crate::agent::Agent;
use crate::process::reserve;
use crate::records::Trace;
use crate::report::{BAD_ARGUMENT, SUCCESS};
use crate::section::{Section, SectionLock};
use crate::{clock, process, report};
use open::{OpenRange, OpenRanges};
use record::{Event, Mark, Source, clean};
use stamps::{Stamp, Stamps, turn_of};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use zerocopy::transmute;

/// Longest message of mstx that is recorded, bytes; the rest is cut off.
const MESSAGE_MAX: usize = 8192;
/// Too many ranges are open, there is no memory, or the call is a signal handler's that has come upon another of
/// its thread.
pub const REFUSED: i32 = 5;

/// Another thread keeps a lock for longer than anybody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// What a program has made to mark with, and what is open.
#[derive(Debug, Default)]
pub struct Marks {
    stamps: SectionLock<Stamps>,
    /// Largest turn in the number of a stamp; no part of `stamps`, so that a forked child has it in any case.
    last_turn: AtomicU32,
    open: OpenRanges,
    domains: Domains,
    /// Last range of a stamp that was begun by its id.
    last_range: AtomicU32,
    /// Last numbered mark. Ids are never given twice, so that those of an earlier capture mean nothing.
    last_id: AtomicU64,
}

/// Where and in which capture something is marked.
struct Now {
    agent: &'static Agent,
    capture: u64,
    thread_id: u32,
    time: u64,
    section: Section,
}

/// Does what is to be done while something is captured; `if_not` while nothing is, `refused` where it cannot be
/// done. `records` says whether a record is lost by that.
fn now<R>(if_not: R, refused: R, records: bool, mark: impl FnOnce(&Now) -> Result<R, Busy>) -> R {
    let Some((agent, capture)) = report::capture_of_marks() else {
        return if_not;
    };
    let Some(section) = Section::enter() else {
        if records {
            agent.lanes.lose_nested(Trace::Task);
        }
        return refused;
    };
    let now = Now {
        agent,
        capture,
        thread_id: agent.lanes.thread_id(),
        time: clock::now(),
        section,
    };
    if !reserve::is_low()
        && let Ok(result) = mark(&now)
    {
        return result;
    }
    if records {
        agent.lanes.lose_homeless(Trace::Task, 1);
    }
    refused
}

impl Marks {
    /// For a forked child: the parent's stamps and domains, none of its open ranges. Leaves out what another
    /// thread of the parent was about to change at the fork; the numbers of that are not given again.
    pub fn copy_in_child(&self) -> Marks {
        let last_turn = self.last_turn.load(Ordering::Relaxed);
        let stamps = self.stamps.copy_in_child();
        Marks {
            stamps: SectionLock::new(stamps.unwrap_or_else(|| Stamps::after(last_turn))),
            last_turn: AtomicU32::new(last_turn),
            domains: self.domains.copy_in_child(),
            last_range: AtomicU32::new(self.last_range.load(Ordering::Relaxed)),
            last_id: AtomicU64::new(self.last_id.load(Ordering::Relaxed)),
            ..Marks::default()
        }
    }

    /// Makes a stamp; 0 when there are too many, or it cannot be done now.
    pub fn create_stamp(&self) -> u64 {
        let create = |section: Section| {
            let stamp = self.stamps.write(&section)?.create()?;
            self.last_turn.fetch_max(turn_of(stamp), Ordering::Relaxed);
            Some(stamp)
        };
        Section::enter().and_then(create).unwrap_or(0)
    }

    /// Ends a stamp; one that there is not is left alone, and so is one that cannot be ended now.
    pub fn destroy_stamp(&self, stamp: u64) {
        if let Some(section) = Section::enter()
            && let Some(mut stamps) = self.stamps.write(&section)
        {
            stamps.destroy(stamp);
        }
    }

    /// Sets the category of a stamp.
    pub fn set_category(&self, stamp: u64, category: u32) -> i32 {
        self.with_stamp(stamp, |stamp| {
            stamp.attributes.category = category;
            true
        })
    }

    /// Sets the kind of a stamp's payload; the value is not recorded, as its size is not known.
    pub fn set_payload_kind(&self, stamp: u64, kind: i32) -> i32 {
        self.with_stamp(stamp, |stamp| {
            stamp.attributes.payload_kind = kind;
            true
        })
    }

    /// Sets the message of a stamp.
    pub fn set_message(&self, stamp: u64, message: &[u8]) -> i32 {
        self.with_stamp(stamp, |stamp| stamp.set_message(message))
    }

    fn with_stamp(&self, stamp: u64, change: impl FnOnce(&mut Stamp) -> bool) -> i32 {
        let Some(section) = Section::enter() else {
            return REFUSED;
        };
        let Some(mut stamps) = self.stamps.write(&section) else {
            return REFUSED;
        };
        match stamps.get(stamp) {
            Some(stamp) => {
                let changed = change(stamp);
                if changed { SUCCESS } else { REFUSED }
            }
            None => BAD_ARGUMENT,
        }
    }

    fn stamp(&self, section: &Section, stamp: u64) -> Result<Option<Stamp>, Busy> {
        let mut stamps = self.stamps.write(section).ok_or(Busy)?;
        Ok(stamps.get(stamp).cloned())
    }

    /// Frees the open ranges of a capture that ends.
    pub fn forget_open(&self) {
        if let Some(section) = Section::enter() {
            self.open.forget(&section);
        }
    }

    fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Domains of mstx.
    pub fn domains(&self) -> &Domains {
        &self.domains
    }
}

impl Now {
    fn stamp(&self, stamp: u64) -> Result<Option<Stamp>, Busy> {
        self.agent.marks.stamp(&self.section, stamp)
    }

    fn push(&self, range: OpenRange) -> bool {
        let open = &self.agent.marks.open;
        open.push(&self.section, self.capture, range)
    }

    fn pop(&self) -> Result<Option<OpenRange>, Busy> {
        let open = &self.agent.marks.open;
        open.pop(&self.section, self.capture, self.thread_id)
    }

    fn keep(&self, id: u64, range: OpenRange) -> bool {
        let open = &self.agent.marks.open;
        open.keep(&self.section, self.capture, id, range)
    }

    fn take(&self, id: u64) -> Result<Option<OpenRange>, Busy> {
        let open = &self.agent.marks.open;
        open.take(&self.section, self.capture, id)
    }

    /// Dictionary id of the domain that a mark is in when the program names none.
    fn default_domain(&self) -> u64 {
        let dictionary = &self.agent.dictionary;
        dictionary.id_within(&self.section, b"default")
    }

    fn open(&self, stamp: Stamp) -> OpenRange {
        OpenRange {
            begin: self.time,
            thread_id: self.thread_id,
            attributes: stamp.attributes,
            domain: 0,
            message: stamp.message,
        }
    }

    /// Records what began then and ends now.
    fn report(&self, source: Source, event: Event, id: u64, range: OpenRange) -> i32 {
        let mark = Mark {
            source,
            event,
            process_id: process::current_pid(),
            thread_id: range.thread_id,
            attributes: range.attributes,
            begin: range.begin,
            end: self.time,
            id,
            domain: range.domain,
            message: range.message,
        };
        let results = mark
            .records()
            .map(|record| report::own_additional(&transmute!(record)));
        results.fold(
            SUCCESS,
            |worst, result| if worst == SUCCESS { result } else { worst },
        )
    }
}

// ---- msproftx ---------------------------------------------------------------

/// Marks an instant with a stamp.
pub fn mark(stamp: u64) -> i32 {
    now(SUCCESS, REFUSED, true, |now| {
        Ok(match now.stamp(stamp)? {
            Some(stamp) => now.report(Source::Stamp, Event::Marker, 0, now.open(stamp)),
            None => BAD_ARGUMENT,
        })
    })
}

/// Marks an instant with a message. The mark on the stream itself, which needs the driver, is not made.
pub fn mark_ex(message: &[u8]) -> i32 {
    now(SUCCESS, REFUSED, true, |now| {
        let range = OpenRange {
            domain: now.default_domain(),
            message: clean(message, MESSAGE_MAX),
            ..now.open(Stamp::default())
        };
        let id = now.agent.marks.next_id();
        Ok(now.report(Source::Numbered, Event::MarkerEx, id, range))
    })
}

/// Opens a range on the calling thread, with what its stamp says now.
pub fn push(stamp: u64) -> i32 {
    now(SUCCESS, REFUSED, false, |now| {
        let Some(stamp) = now.stamp(stamp)? else {
            return Ok(BAD_ARGUMENT);
        };
        let pushed = now.push(now.open(stamp));
        Ok(if pushed { SUCCESS } else { REFUSED })
    })
}

/// Closes the calling thread's innermost range. [`BAD_ARGUMENT`] when none was opened in this capture.
pub fn pop() -> i32 {
    now(SUCCESS, REFUSED, true, |now| {
        Ok(match now.pop()? {
            Some(range) => now.report(Source::Stamp, Event::PushPop, 0, range),
            None => BAD_ARGUMENT,
        })
    })
}

/// Begins a range that [`end_range`] ends, on whatever thread; also tells its id, which is never 0.
pub fn begin_range(agent: &Agent, stamp: u64) -> (i32, u32) {
    let last = &agent.marks.last_range;
    let next = |last: u32| last.checked_add(1).unwrap_or(1);
    let id = last
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(next(last))
        })
        .map_or(1, next);
    let result = now(SUCCESS, REFUSED, false, |now| {
        let Some(stamp) = now.stamp(stamp)? else {
            return Ok(BAD_ARGUMENT);
        };
        let kept = now.keep(stamp_range(id), now.open(stamp));
        Ok(if kept { SUCCESS } else { REFUSED })
    });
    (result, id)
}

/// Ends a range. [`BAD_ARGUMENT`] for an id that was given for no range of this capture.
pub fn end_range(id: u32) -> i32 {
    now(SUCCESS, REFUSED, true, |now| {
        Ok(match now.take(stamp_range(id))? {
            Some(range) => now.report(Source::Stamp, Event::StartEnd, 0, range),
            None => BAD_ARGUMENT,
        })
    })
}

/// Where ranges of stamps are kept beside those of mstx, whose ids are small.
fn stamp_range(id: u32) -> u64 {
    1 << 63 | u64::from(id)
}

// ---- mstx -------------------------------------------------------------------

/// A range, or an instant, of mstx that begins now; `None` when the domain is none. `domain` is a number
/// that [`Domains::create`] gave.
fn mstx_range(now: &Now, domain: Option<u64>, message: &[u8]) -> Result<Option<OpenRange>, Busy> {
    let domain = match domain {
        Some(domain) => {
            let domains = &now.agent.marks.domains;
            match domains.get_within(&now.section, domain)? {
                Some(domain) => domain.name,
                None => return Ok(None),
            }
        }
        None => now.default_domain(),
    };
    Ok(Some(OpenRange {
        domain,
        message: clean(message, MESSAGE_MAX),
        ..now.open(Stamp::default())
    }))
}

/// Marks an instant.
pub fn mstx_mark(domain: Option<u64>, message: &[u8]) {
    now((), (), true, |now| {
        if let Some(range) = mstx_range(now, domain, message)? {
            let id = now.agent.marks.next_id();
            now.report(Source::Numbered, Event::Marker, id, range);
        }
        Ok(())
    });
}

/// Begins a range; its id, or 0 when it is not recorded.
pub fn mstx_begin(domain: Option<u64>, message: &[u8]) -> u64 {
    now(0, 0, false, |now| {
        let Some(range) = mstx_range(now, domain, message)? else {
            return Ok(0);
        };
        let id = now.agent.marks.next_id();
        Ok(if now.keep(id, range) { id } else { 0 })
    })
}

/// Ends a range, on whatever thread; nothing happens for an id of no range of this capture.
pub fn mstx_end(id: u64) {
    // 0 stands for a range that was not recorded.
    now((), (), id != 0, |now| {
        if let Some(range) = now.take(id)? {
            now.report(Source::Numbered, Event::StartEnd, id, range);
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_forked_amid_a_change_gives_no_stamps_number_again() {
        let marks = Marks::default();
        let old = [(); 3].map(|()| marks.create_stamp());
        marks.destroy_stamp(old[0]);
        let last = marks.create_stamp();
        assert_ne!(marks.copy_in_child().set_category(last, 1), BAD_ARGUMENT);
        let section = Section::enter().expect("outside");
        let held = marks.stamps.write(&section);
        let child = marks.copy_in_child();
        drop((held, section));
        let new = [(); 4].map(|()| child.create_stamp());
        for stamp in old.into_iter().chain([last]) {
            assert_eq!(child.set_category(stamp, 1), BAD_ARGUMENT);
            assert!(stamp != 0 && !new.contains(&stamp));
        }
    }

    #[test]
    fn a_handler_within_a_call_of_its_thread_is_refused() {
        let marks = Marks::default();
        let stamp = marks.create_stamp();
        let interrupted = Section::enter();
        assert_eq!(marks.create_stamp(), 0);
        assert_eq!(marks.set_category(stamp, 1), REFUSED);
        assert_eq!(marks.set_message(stamp, b"text"), REFUSED);
        marks.destroy_stamp(stamp);
        drop(interrupted);
        assert_eq!(marks.set_message(stamp, b"text"), SUCCESS, "it is there");
    }
}
