//! The reader against a driver that does as it is told.

use super::driver::{CHANNELS, Call, Driver, Fact, code};
use super::queue::BYTES_MAX;
use super::reader;
use super::shared::{Order, Shared, Want};
use super::stream::RECORD;
use super::{Devices, Reading};
use crate::clock::Moment;
use crate::ledger::ChannelLedger;
use crate::waiting::{self, Bell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// What one channel of the driver does.
#[derive(Debug, Default)]
struct Script {
    /// Answers of the next reads: bytes, or a code.
    reads: Vec<Result<Vec<u8>, i32>>,
    /// Then it hands over one record at each read, without end; how many so far.
    endless: Option<u64>,
    /// Answer of further reads.
    empty: i32,
    start: i32,
    stop: i32,
    /// Handed over when it is flushed.
    kept_back: Vec<u8>,
    started: u32,
    stopped: u32,
}

#[derive(Debug, Default)]
struct Scene {
    offered: BTreeMap<u32, Vec<u32>>,
    scripts: BTreeMap<(u32, u32), Script>,
    facts: BTreeMap<i64, i64>,
    hangs: BTreeSet<String>,
    calls: u64,
    looks: u64,
}

/// A driver whose scene the test looks at and changes.
#[derive(Clone, Debug, Default)]
struct Actor {
    scene: Arc<Mutex<Scene>>,
    let_go: Arc<Bell>,
}

impl Actor {
    fn with<R>(&self, look: impl FnOnce(&mut Scene) -> R) -> R {
        look(&mut self.scene.lock().expect("no panic"))
    }

    fn script<R>(&self, of: (u32, u32), look: impl FnOnce(&mut Script) -> R) -> R {
        self.with(|scene| look(scene.scripts.entry(of).or_default()))
    }

    fn enter(&self, call: Call) {
        let count = self.let_go.count();
        let hangs = self.with(|scene| {
            scene.calls += 1;
            scene.hangs.contains(&call.to_string())
        });
        while hangs && self.let_go.count() == count {
            self.let_go.wait(count, PATIENCE);
        }
    }
}

impl Driver for Actor {
    fn channels(&self, device: u32) -> Result<Vec<u32>, i32> {
        self.enter(Call::Channels);
        self.with(|scene| {
            scene.looks += 1;
            scene.offered.get(&device).cloned().ok_or(-1)
        })
    }

    fn start(&self, device: u32, channel: u32) -> i32 {
        self.enter(Call::Start);
        self.script((device, channel), |script| {
            script.started += 1;
            script.start
        })
    }

    fn read(&self, device: u32, channel: u32, buffer: &mut [u8]) -> i32 {
        self.enter(Call::Read);
        self.script((device, channel), |script| {
            if script.reads.is_empty() {
                if let Some(number) = &mut script.endless {
                    buffer[..RECORD].copy_from_slice(&records(*number..*number + 1));
                    *number += 1;
                    return RECORD as i32;
                }
                return script.empty;
            }
            match script.reads.remove(0) {
                Ok(bytes) => {
                    buffer[..bytes.len()].copy_from_slice(&bytes);
                    bytes.len() as i32
                }
                Err(code) => code,
            }
        })
    }

    fn flush(&self, device: u32, channel: u32) -> Option<i32> {
        self.enter(Call::Flush);
        self.script((device, channel), |script| {
            let kept_back = std::mem::take(&mut script.kept_back);
            if !kept_back.is_empty() {
                script.reads.push(Ok(kept_back));
            }
            Some(code::OK)
        })
    }

    fn stop(&self, device: u32, channel: u32) -> i32 {
        self.enter(Call::Stop);
        self.script((device, channel), |script| {
            script.stopped += 1;
            script.stop
        })
    }

    fn fact(&self, _: u32, fact: Fact) -> Option<i64> {
        self.enter(Call::Fact);
        self.with(|scene| scene.facts.get(&(fact as i64)).copied())
    }
}

fn records(numbers: std::ops::Range<u64>) -> Vec<u8> {
    let record = |number: u64| {
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&[0x5A, 0x5A, 0x70, 0x17]);
        record[112..120].copy_from_slice(&number.to_le_bytes());
        record
    };
    numbers.flat_map(record).collect()
}

/// A reader at work, and what it has read.
struct Run {
    actor: Actor,
    reading: Reading,
    thread: JoinHandle<()>,
    taken: Vec<(u32, Vec<u8>)>,
}

impl Run {
    fn begin(actor: &Actor, open: &[u32]) -> Run {
        let shared = Arc::<Shared>::default();
        shared.set_started();
        for &device in open {
            shared.give(Order::Open(device));
        }
        let (theirs, driver) = (shared.clone(), actor.clone());
        let find = move || Some(Box::new(driver) as Box<dyn Driver>);
        let thread = std::thread::spawn(move || reader::run(theirs, find));
        let reading = Reading {
            devices: Arc::<Devices>::default(),
            shared,
            started: true,
            refused: None,
            open: open.iter().copied().collect(),
            platform: super::PLATFORM_DEFAULT,
            end: Vec::new(),
            ended: false,
        };
        Run {
            actor: actor.clone(),
            reading,
            thread,
            taken: Vec::new(),
        }
    }

    /// Waits until the driver's reads of a channel are used up.
    fn until_read(&mut self, of: (u32, u32)) {
        let actor = self.actor.clone();
        let begin = std::time::Instant::now();
        while !actor.script(of, |script| script.started > 0 && script.reads.is_empty()) {
            take(&self.reading, &mut self.taken);
            assert!(begin.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    }

    fn end(&mut self, calls: bool) {
        let taken = &mut self.taken;
        self.reading.end(calls, |reading| take(reading, taken));
    }

    /// Ends it; returns what was read of a device, and what is said.
    fn finish(mut self, device: u32) -> (Vec<u8>, Vec<ChannelLedger>, Vec<String>) {
        self.end(true);
        self.thread.join().expect("no panic");
        let of_device = self.taken.iter().filter(|(of, _)| *of == device);
        let bytes = of_device.flat_map(|(_, bytes)| bytes.clone()).collect();
        (bytes, self.reading.channels(), self.reading.notes())
    }
}

/// Waits until that is so.
#[track_caller]
fn until(look: impl Fn() -> bool) {
    let found = waiting::until(Moment::now() + PATIENCE, || look().then_some(()));
    assert!(found.is_some(), "waited in vain");
}

fn take(reading: &Reading, taken: &mut Vec<(u32, Vec<u8>)>) -> bool {
    let before = taken.len();
    while let Some(batch) = reading.take() {
        taken.push((batch.device, batch.bytes));
    }
    taken.len() > before
}

const AICPU: (u32, u32) = (0, CHANNELS[0]);

fn with_channel(reads: Vec<Result<Vec<u8>, i32>>) -> Actor {
    let actor = Actor::default();
    actor.with(|scene| scene.offered.insert(0, vec![1, CHANNELS[0]]));
    actor.script(AICPU, |script| script.reads = reads);
    actor
}

#[test]
fn what_the_driver_hands_over_comes_whole_and_in_order() {
    let bytes = records(0..10);
    let (one, two) = bytes.split_at(700);
    let actor = with_channel(vec![Ok(one.to_vec()), Ok(two.to_vec())]);
    actor.script(AICPU, |script| script.kept_back = records(10..12));
    let mut run = Run::begin(&actor, &[0]);
    run.until_read(AICPU);
    let (read, channels, notes) = run.finish(0);
    assert_eq!(read, records(0..12));
    assert_eq!((channels[0].records, channels[0].offered), (12, true));
    assert_eq!((channels[1].records, channels[1].offered), (0, false));
    assert_eq!(notes, [] as [String; 0]);
    assert_eq!(actor.script(AICPU, |s| (s.started, s.stopped)), (1, 1));
}

#[test]
fn a_channel_that_comes_later_is_read_from_then_on_and_one_that_never_comes_is_named() {
    let actor = Actor::default();
    actor.script(AICPU, |script| script.reads = vec![Ok(records(0..3))]);
    let mut run = Run::begin(&actor, &[0, 1]);
    assert!(run.reading.shared.wait_answered(PATIENCE));
    actor.with(|scene| scene.offered.insert(0, vec![CHANNELS[0]]));
    run.until_read(AICPU);
    let (read, _, notes) = run.finish(0);
    assert_eq!(read, records(0..3));
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("device 1: the driver offered no AICPU channel"));
}

#[test]
fn the_drivers_loss_and_what_is_no_record_are_said() {
    let mut garbage = records(0..1);
    garbage.extend([9; 100]);
    garbage.extend(records(1..2));
    let actor = with_channel(vec![Ok(garbage)]);
    actor.script(AICPU, |script| script.stop = code::LOST_DATA);
    let mut run = Run::begin(&actor, &[0]);
    run.until_read(AICPU);
    let (read, channels, notes) = run.finish(0);
    assert_eq!(read, records(0..2));
    assert!(channels[0].driver_lost);
    assert_eq!(channels[0].skipped_bytes, 100);
    assert!(
        notes[0].contains("lost aicpu records of channel 143"),
        "{notes:?}"
    );
    assert!(notes[1].contains("100 bytes"), "{notes:?}");
}

#[test]
fn a_channel_of_another_profiler_is_left_alone() {
    let actor = with_channel(vec![Ok(records(0..1))]);
    actor.script(AICPU, |script| script.start = code::STARTED_ALREADY);
    let run = Run::begin(&actor, &[0]);
    assert!(run.reading.shared.wait_answered(PATIENCE));
    until(|| actor.script(AICPU, |script| script.started) > 0);
    let (read, _, notes) = run.finish(0);
    assert_eq!(read, [] as [u8; 0]);
    assert!(notes[0].contains("in use by another profiler"), "{notes:?}");
    assert_eq!(actor.script(AICPU, |script| script.stopped), 0);
}

#[test]
fn a_device_that_goes_away_and_comes_back_is_read_again() {
    let torn = records(2..3)[..100].to_vec();
    let actor = with_channel(vec![Ok(records(0..2)), Ok(torn)]);
    actor.script(AICPU, |script| script.empty = code::STOPPED_ALREADY);
    let mut run = Run::begin(&actor, &[0]);
    run.until_read(AICPU);
    actor.with(|scene| scene.offered.insert(0, vec![1]));
    // The second look from now on has seen that list, and what came of it is done.
    let looks = actor.with(|scene| scene.looks);
    until(|| actor.with(|scene| scene.looks) >= looks + 2);
    actor.script(AICPU, |script| script.reads.push(Ok(records(3..4))));
    actor.with(|scene| scene.offered.insert(0, vec![1, CHANNELS[0]]));
    run.until_read(AICPU);
    let (read, channels, notes) = run.finish(0);
    assert_eq!(read, [records(0..2), records(3..4)].concat());
    assert_eq!(channels[0].skipped_bytes, 100);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(actor.script(AICPU, |script| script.started), 2);
}

#[test]
fn an_empty_channel_may_be_called_stopped() {
    let one = |number| [Ok(records(number..number + 1)), Err(code::STOPPED_ALREADY)];
    let actor = with_channel((0..30).flat_map(one).collect());
    let mut run = Run::begin(&actor, &[0]);
    run.until_read(AICPU);
    let (read, _, notes) = run.finish(0);
    assert_eq!(read, records(0..30));
    assert_eq!(notes, [] as [String; 0]);
    assert_eq!(actor.script(AICPU, |script| script.started), 1);
}

#[test]
fn a_channel_that_only_fails_is_given_up_and_stopped() {
    const UNKNOWN: i32 = -77;
    let actor = with_channel(vec![Err(UNKNOWN); 20]);
    let run = Run::begin(&actor, &[0]);
    until(|| actor.script(AICPU, |script| script.stopped) > 0);
    let (read, _, notes) = run.finish(0);
    assert_eq!(read, [] as [u8; 0]);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[1].contains("given up after 10 reads"), "{notes:?}");
    assert!(
        notes[0].ends_with("prof_channel_read answered code -77"),
        "{notes:?}"
    );
    let (started, stopped) = actor.script(AICPU, |script| (script.started, script.stopped));
    assert_eq!((started, stopped), (10, 1));
}

#[test]
fn a_driver_that_claims_more_than_it_was_given_room_for_is_not_believed() {
    let actor = with_channel(vec![Ok(records(0..1)), Err(i32::MAX)]);
    let mut run = Run::begin(&actor, &[0]);
    run.until_read(AICPU);
    let (read, _, notes) = run.finish(0);
    assert_eq!(read, records(0..1));
    assert!(notes[0].contains("was given up"), "{notes:?}");
}

#[test]
fn a_closed_device_is_emptied_and_stopped_at_once() {
    let actor = with_channel(vec![Ok(records(0..1))]);
    actor.script(AICPU, |script| script.kept_back = records(1..2));
    let mut run = Run::begin(&actor, &[0]);
    run.until_read(AICPU);
    run.reading.close(0);
    until(|| actor.script(AICPU, |script| script.stopped) > 0);
    let (read, channels, _) = run.finish(0);
    assert_eq!(read, records(0..2));
    assert_eq!(channels[0].records, 2);
}

#[test]
fn a_device_that_never_stops_sending_is_ended_in_time_and_loses_nothing_that_was_read() {
    let actor = with_channel(Vec::new());
    actor.script(AICPU, |script| script.endless = Some(0));
    let mut run = Run::begin(&actor, &[0]);
    until(|| actor.script(AICPU, |script| script.endless) > Some(0));
    run.end(true);
    let ended_by_itself = run.reading.shared.wait_done(Duration::ZERO);
    assert!(ended_by_itself);
    let (read, channels, notes) = run.finish(0);
    let handed_over = actor.script(AICPU, |script| script.endless).expect("some");
    assert!(read == records(0..handed_over));
    assert_eq!(channels[0].records, handed_over);
    assert_eq!(actor.script(AICPU, |script| script.stopped), 1);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].contains("channel 143 was still sending"),
        "{notes:?}"
    );
}

#[test]
fn a_call_that_hangs_is_named_and_no_call_follows_it() {
    let actor = with_channel(vec![Ok(records(0..1))]);
    let mut run = Run::begin(&actor, &[0]);
    run.until_read(AICPU);
    actor.with(|scene| scene.hangs.insert(Call::Flush.to_string()));
    run.end(true);
    let notes = run.reading.notes();
    let named = "the driver has not returned from halProfDataFlush (device 0, channel 143)";
    assert!(notes[0].contains(named), "{notes:?}");
    assert_eq!(run.taken, [(0, records(0..1))]);
    // The thread ends by itself when the driver comes back, and stops what it has started.
    actor.with(|scene| scene.hangs.clear());
    actor.let_go.ring();
    run.thread.join().expect("no panic");
    assert_eq!(actor.script(AICPU, |script| script.stopped), 1);
}

#[test]
fn at_exit_no_further_call_is_made() {
    let actor = with_channel(vec![Ok(records(0..1))]);
    let mut run = Run::begin(&actor, &[0]);
    run.until_read(AICPU);
    run.reading.shared.want(Want::Halt);
    run.end(false);
    run.thread.join().expect("no panic");
    assert_eq!(actor.script(AICPU, |script| script.stopped), 0);
    assert_eq!(run.taken, [(0, records(0..1))]);
    let notes = run.reading.notes();
    assert!(notes[0].contains("the process ended"), "{notes:?}");
}

#[test]
fn more_than_the_queue_takes_waits_in_the_driver_and_is_not_lost() {
    let block = records(0..2000);
    let blocks = 3 * BYTES_MAX / block.len();
    let actor = with_channel(vec![Ok(block.clone()); blocks]);
    let run = Run::begin(&actor, &[0]);
    assert!(run.reading.shared.wait_answered(PATIENCE));
    until(|| run.reading.shared.queue.bytes() + block.len() > BYTES_MAX);
    let (read, channels, _) = run.finish(0);
    assert_eq!(read.len(), blocks * block.len());
    assert_eq!(channels[0].records as usize * RECORD, read.len());
}

#[test]
fn the_clock_of_a_device_is_what_the_driver_says_or_the_hosts() {
    let actor = with_channel(Vec::new());
    let facts = [
        (Fact::CounterKilohertz, 50_000),
        (Fact::Counter, 123_456),
        (Fact::MonotonicRaw, 777),
        (Fact::Version, 5 << 8),
    ];
    for (fact, value) in facts {
        actor.with(|scene| scene.facts.insert(fact as i64, value));
    }
    let run = Run::begin(&actor, &[0]);
    let clock = run.reading.clocks().of(0).expect("a clock");
    assert_eq!(clock.megahertz, "50.000");
    assert_eq!((clock.device_ticks, clock.device_ns), (123_456, 777));
    assert_eq!(run.reading.shared.platform(), Some(5));
    run.finish(0);

    let actor = with_channel(Vec::new());
    let run = Run::begin(&actor, &[0]);
    assert_eq!(run.reading.clocks().of(0), None);
    run.finish(0);
}

#[test]
fn a_device_that_is_not_open_is_not_asked_for_and_not_read_with_the_hosts_time() {
    let actor = with_channel(Vec::new());
    actor.with(|scene| scene.offered.insert(7, vec![CHANNELS[0]]));
    let run = Run::begin(&actor, &[0]);
    let begin = Moment::now();
    assert_eq!(run.reading.clocks().of(7), None);
    assert!(begin.elapsed() < super::ANSWER_LIMIT);
    assert_eq!(run.reading.notes(), [] as [String; 0]);
    run.reading.shared.give(Order::Open(7));
    let (_, channels, notes) = run.finish(0);
    assert!(channels.iter().all(|channel| channel.device == 0));
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("device 7: the host reported records of it"));
}

#[test]
fn a_start_that_fails_is_tried_again_at_longer_intervals() {
    const BUSY: i32 = -10;
    let actor = with_channel(vec![Ok(records(0..1))]);
    actor.script(AICPU, |script| script.start = BUSY);
    let mut run = Run::begin(&actor, &[0]);
    until(|| actor.script(AICPU, |script| script.started) >= 3);
    actor.script(AICPU, |script| script.start = code::OK);
    run.until_read(AICPU);
    let (read, _, notes) = run.finish(0);
    assert_eq!(read, records(0..1));
    assert!(
        notes[0].contains("prof_drv_start answered code -10"),
        "{notes:?}"
    );
}

#[test]
fn a_clock_that_comes_too_late_keeps_its_device_from_being_read() {
    let actor = with_channel(vec![Ok(records(0..1))]);
    actor.with(|scene| scene.hangs.insert(Call::Fact.to_string()));
    let run = Run::begin(&actor, &[0]);
    assert_eq!(run.reading.clocks().of(0), None);
    actor.with(|scene| scene.hangs.clear());
    actor.let_go.ring();
    let (read, _, notes) = run.finish(0);
    assert_eq!(read, [] as [u8; 0]);
    assert!(
        notes[0].contains("too slow to say what its time is"),
        "{notes:?}"
    );
}
