//! One channel of a device: started when the driver offers it, read until it is empty, stopped.

#![forbid(unsafe_code)]

use super::driver::{Call, Driver, code, explain};
use super::queue::{Batch, Queue};
use super::shared::{Shared, Want};
use super::stream::{RECORD, Stream};
use crate::clock::Moment;
use crate::process::reserve;
use std::time::Duration;

/// Bytes of one read.
const READ_BYTES: usize = 512 << 10;
/// What the system must have for a read: its room and the batch that becomes of it.
const NEEDED_BYTES: usize = 3 * READ_BYTES;
/// Bytes that are taken of a channel before the others have their turn.
const TURN_BYTES: usize = 4 << 20;
/// The same by time: a driver may hand over little at a time, and slowly.
const TURN_TIME: Duration = Duration::from_millis(20);
/// How often in a row a channel that failed is begun anew.
const FAILURES_MAX: u32 = 10;
/// How often a channel that the driver calls stopped, and offers, is started in case that it is.
const RESTART_INTERVAL: Duration = Duration::from_secs(1);
/// Until a start that failed is tried again: at first, and at most.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_secs(1);
/// How much longer than its time a channel is read that is never found empty for a moment.
const BACKLOG_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait for room in the queue before looking whether anybody still takes what is read.
const ROOM_WAIT: Duration = Duration::from_millis(10);

/// Where a channel stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not offered yet, or gone again.
    Missing,
    /// Started by us.
    Running,
    /// Not ours, or given up.
    Left,
}

/// One channel.
#[derive(Debug)]
pub struct Channel {
    device: u32,
    number: u32,
    state: State,
    stream: Stream,
    failures: u32,
    /// It was started at least once.
    ran: bool,
    /// We have started it, and not stopped it.
    is_ours: bool,
    /// The driver calls it stopped: it has nothing for us, or the device is gone. Since when, or since we last made sure.
    stopped: Option<Moment>,
    /// A start that failed is tried again then, and the next time after so long.
    retry: (Option<Moment>, Duration),
    /// The last read filled the room that it had: there may be more from before it.
    is_behind: bool,
}

/// What a channel needs to work.
#[derive(Debug)]
pub struct Tools<'a> {
    /// The driver.
    pub driver: &'a dyn Driver,
    /// Who is told what came of it.
    pub shared: &'a Shared,
    /// Room for a read.
    pub buffer: &'a mut Vec<u8>,
}

impl Tools<'_> {
    /// Makes a call of the driver's, unless none may be made any more.
    pub fn call<R>(
        &self,
        call: Call,
        of: (u32, u32),
        make: impl FnOnce(&dyn Driver) -> R,
    ) -> Option<R> {
        self.shared.call(call, Some(of), || make(self.driver))
    }
}

impl Channel {
    /// A channel that was not seen yet.
    pub fn new(device: u32, number: u32) -> Channel {
        Channel {
            device,
            number,
            state: State::Missing,
            stream: Stream::default(),
            failures: 0,
            ran: false,
            is_ours: false,
            stopped: None,
            retry: (None, RETRY_FIRST),
            is_behind: false,
        }
    }

    fn of(&self) -> (u32, u32) {
        (self.device, self.number)
    }

    /// The driver's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether it is to be looked for.
    fn is_missing(&self) -> bool {
        self.state == State::Missing
    }

    /// Whether the driver's list has something to say of it.
    pub fn is_doubtful(&self) -> bool {
        self.is_missing() || self.stopped.is_some()
    }

    /// Whether it is to be read.
    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    fn note(&self, tools: &Tools<'_>, what: &str) {
        let (device, number) = self.of();
        tools
            .shared
            .note(format!("device {device}: channel {number} {what}"));
    }

    /// What the driver's list says of it, when that was in doubt.
    pub fn look(&mut self, tools: &Tools<'_>, is_offered: bool) {
        let long = |since: Moment| since.elapsed() >= RESTART_INTERVAL;
        match self.state {
            State::Missing if is_offered && self.retry.0.is_none_or(Moment::has_come) => {
                self.start(tools);
            }
            State::Running if !is_offered && self.stopped.is_some() => {
                // The device has gone, and what it was sending does not go on when it comes back.
                self.state = State::Missing;
                self.stopped = None;
                self.stream.end();
            }
            State::Running if self.stopped.is_some_and(long) => self.start(tools),
            _ => {}
        }
    }

    /// The driver offers it.
    fn start(&mut self, tools: &Tools<'_>) {
        let (device, number) = self.of();
        tools.shared.account(device, number, |a| a.offered = true);
        let Some(answer) = tools.call(Call::Start, self.of(), |d| d.start(device, number)) else {
            return;
        };
        match answer {
            code::OK => {
                self.stream.end();
                self.state = State::Running;
                (self.ran, self.is_ours, self.stopped) = (true, true, None);
                self.retry = (None, RETRY_FIRST);
            }
            code::STARTED_ALREADY if self.ran => {
                self.state = State::Running;
                (self.is_ours, self.stopped) = (true, None);
            }
            code::STARTED_ALREADY => {
                self.note(tools, "is in use by another profiler and was not read");
                self.state = State::Left;
            }
            other => {
                self.note_failure(tools, Call::Start, other);
                self.state = State::Missing;
                let (_, pause) = self.retry;
                self.retry = (Some(Moment::now() + pause), (pause * 2).min(RETRY_LAST));
            }
        }
    }

    /// Hands over what has come; returns whether there is more.
    pub fn read(&mut self, tools: &mut Tools<'_>) -> bool {
        let (mut taken, end) = (0, Moment::now() + TURN_TIME);
        while taken < TURN_BYTES && !end.has_come() {
            match self.read_once(tools) {
                Some(bytes) => taken += bytes,
                None => return false,
            }
            if tools.shared.wanted() > Want::Finish {
                return false;
            }
        }
        true
    }

    /// One read; `None` when nothing was there, or no memory for it: then it waits in the driver.
    fn read_once(&mut self, tools: &mut Tools<'_>) -> Option<usize> {
        let (device, number) = self.of();
        if !reserve::system_has(NEEDED_BYTES) {
            self.note(tools, "was not always read: there was no memory left");
            return None;
        }
        // Zero pages until they are used.
        let mut buffer = std::mem::take(tools.buffer);
        buffer.resize(READ_BYTES + RECORD, 0);
        let at = self.stream.begin(&mut buffer);
        let room = &mut buffer[at..][..READ_BYTES];
        let answer = tools.call(Call::Read, self.of(), |d| d.read(device, number, room));
        let bytes = answer.map(|answer| (answer, usize::try_from(answer).unwrap_or(0)));
        let taken = match bytes {
            Some((_, bytes @ 1..)) if bytes <= READ_BYTES => {
                (self.stopped, self.failures) = (None, 0);
                self.is_behind = bytes == READ_BYTES;
                let whole = self.stream.whole(&mut buffer, at + bytes);
                self.count_skipped(tools);
                self.hand_over(tools, &buffer[..whole]);
                Some(bytes)
            }
            Some((answer, 1..)) => {
                let what = format!(
                    "was given up: the driver says that it has read {answer} bytes into {READ_BYTES}"
                );
                self.note(tools, &what);
                self.give_up(tools);
                None
            }
            None => None,
            Some((code::OK, _)) => {
                self.stopped = None;
                None
            }
            // Some drivers say so of a channel that is only empty.
            Some((code::STOPPED_ALREADY, _)) => {
                self.stopped.get_or_insert_with(Moment::now);
                None
            }
            Some((answer, _)) => {
                self.fail(tools, answer);
                None
            }
        };
        *tools.buffer = buffer;
        taken
    }

    fn note_failure(&self, tools: &Tools<'_>, call: Call, answer: i32) {
        let what = format!("could not be used: {call} answered {}", explain(answer));
        self.note(tools, &what);
    }

    /// A read went wrong: begun anew when the driver offers it again, some times.
    fn fail(&mut self, tools: &Tools<'_>, answer: i32) {
        self.failures += 1;
        self.note_failure(tools, Call::Read, answer);
        self.state = State::Missing;
        if self.failures == FAILURES_MAX {
            let what = format!("was given up after {FAILURES_MAX} reads in a row that failed");
            self.note(tools, &what);
            self.give_up(tools);
        }
    }

    /// It is not read any more, and the next capture may start it.
    fn give_up(&mut self, tools: &Tools<'_>) {
        self.state = State::Left;
        if self.is_ours {
            self.stop(tools);
        }
    }

    fn hand_over(&self, tools: &Tools<'_>, records: &[u8]) {
        if records.is_empty() {
            return;
        }
        let (device, number) = self.of();
        let count = (records.len() / RECORD) as u64;
        let bytes = records.to_vec();
        if push(&tools.shared.queue, Batch { device, bytes }, tools.shared) {
            tools.shared.account(device, number, |a| a.records += count);
        }
    }

    /// Takes what the driver has, and ends it. A device that goes on sending is never empty: it is read until `by`, and
    /// as long as it is behind for a while longer, which is said if it was not enough. Always one turn.
    pub fn finish(&mut self, tools: &mut Tools<'_>, by: Moment) {
        let (device, number) = self.of();
        if self.is_ours {
            let _ = tools.call(Call::Flush, self.of(), |d| d.flush(device, number));
            while self.read(tools) {
                // One that is not behind has only what was sent after it had been asked to end, as far as can be told.
                let limit = if self.is_behind {
                    by + BACKLOG_LIMIT
                } else {
                    by
                };
                if limit.has_come() {
                    self.note(
                        tools,
                        "was still sending when there was no more time to read it: what it sent last is not in this capture",
                    );
                    break;
                }
            }
        }
        // A read that failed may have given it up.
        if self.is_ours {
            self.stop(tools);
            self.state = State::Missing;
        }
        self.stream.end();
        self.count_skipped(tools);
    }

    fn count_skipped(&mut self, tools: &Tools<'_>) {
        let skipped = std::mem::take(&mut self.stream.skipped);
        if skipped > 0 {
            let (device, number) = self.of();
            tools
                .shared
                .account(device, number, |a| a.skipped_bytes += skipped);
        }
    }

    fn stop(&mut self, tools: &Tools<'_>) {
        let (device, number) = self.of();
        self.is_ours = false;
        match tools.call(Call::Stop, self.of(), |d| d.stop(device, number)) {
            None | Some(code::OK | code::STOPPED_ALREADY) => {}
            Some(code::LOST_DATA) => {
                tools
                    .shared
                    .account(device, number, |a| a.driver_lost = true);
            }
            Some(answer) => {
                let what = format!("could not be stopped: {}", explain(answer));
                self.note(tools, &what);
            }
        }
    }
}

/// Waits until there is room, as long as somebody takes what waits; false if nobody does.
fn push(queue: &Queue, mut batch: Batch, shared: &Shared) -> bool {
    loop {
        let count = queue.count();
        match queue.push(batch) {
            Ok(()) => return true,
            Err(refused) => batch = refused,
        }
        if shared.wanted() > Want::Finish {
            return false;
        }
        queue.wait_for_room(count, ROOM_WAIT);
    }
}
