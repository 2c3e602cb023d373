//! A process that is killed between any two steps of a write, and what comes of its memory.

mod filing;
mod hostile;

use super::*;
use crate::arena::{Arena, SEGMENT_BYTES};
use crate::board::Stretch;
use crate::clock;
use crate::gate::Word;
use crate::lanes::{Lanes, RingKey};
use crate::ledger::Ledger;
use crate::process::fd;
use crate::profdir::{Place, ProfDir, Setup};
use crate::records::{ApiRecord, MAGIC, RecordSize, Trace, level};
use crate::ring::capacity;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use zerocopy::{FromBytes, IntoBytes};

const CAPTURE: u64 = 7;
const SEGMENTS: usize = 16;
const API: RingKey = RingKey {
    size: RecordSize::Api,
    aging: true,
};
const API_SLICE: &str = "host/data/aging.api_event.data.slice_0";

/// A process in the midst of a capture, all in this thread.
struct Scene {
    _temp: tempfile::TempDir,
    lanes: Lanes,
    dir: ProfDir,
}

impl Scene {
    fn new() -> Scene {
        let temp = tempfile::tempdir().expect("temporary directory");
        let start = clock::anchor();
        let setup = Setup {
            parent: temp.path().to_owned(),
            start,
            ..Setup::default()
        };
        let mut dir = ProfDir::create(setup).expect("made");
        let ledger = Ledger {
            pid: 1,
            start,
            ..Ledger::default()
        };
        dir.write_ledger(&ledger).expect("written");
        // Each scene is a process of its own: a thread that has a lane in an earlier one makes another.
        static GENERATION: AtomicU32 = AtomicU32::new(1);
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        let lanes = Lanes::new(SEGMENTS * SEGMENT_BYTES, generation);
        lanes.prepare().expect("memory");
        let scene = Scene {
            _temp: temp,
            lanes,
            dir,
        };
        scene.arena().board().begin(CAPTURE);
        scene
    }

    fn arena(&self) -> &Arena {
        self.lanes.arena().expect("prepared")
    }

    fn push_api(&self, capture: u64, numbers: std::ops::Range<u64>) {
        for item_id in numbers {
            let record = ApiRecord {
                magic: MAGIC,
                level: level::RUNTIME,
                kind: 1,
                thread_id: 1,
                request_id: 0,
                begin: 1,
                end: 2,
                item_id,
            };
            let word = Word::capturing(capture, 0xFF);
            let pointer = record.as_bytes().as_ptr();
            // SAFETY: a record of 40 bytes.
            unsafe { self.lanes.push::<40>(word, API, Trace::RuntimeApi, pointer) }.expect("room");
        }
    }

    /// Memory and directory as they are now, and what a controller makes of them.
    fn kill(&self) -> Killed {
        let temp = tempfile::tempdir().expect("temporary directory");
        let path = temp.path().join("PROF_1");
        copy(self.dir.path(), &path);
        let memory = memory_of(self.arena());
        Killed {
            _temp: temp,
            path,
            memory,
        }
    }
}

/// Memory and directory of a process that was killed.
#[derive(Debug)]
struct Killed {
    _temp: tempfile::TempDir,
    path: PathBuf,
    memory: File,
}

impl Killed {
    fn rescue(&self) -> Result<(Rescued, Recovery), ImageError> {
        let directory = File::open(&self.path).expect("there");
        let memory = self.memory.try_clone().expect("a descriptor");
        let descriptors = vec![memory.into(), directory.into()];
        let lifeline = Lifeline::new(descriptors, CAPTURE).expect("two");
        let finished = lifeline.rescue(&self.path, None).expect("finished");
        Ok((finished.rescued?, finished.recovery))
    }

    fn items(&self) -> Vec<u64> {
        let bytes = std::fs::read(self.path.join(API_SLICE)).unwrap_or_default();
        assert!(bytes.len().is_multiple_of(40));
        let records = bytes
            .chunks(40)
            .map(|bytes| ApiRecord::read_from_bytes(bytes).expect("40"));
        records.map(|record| record.item_id).collect()
    }

    /// Whole records that were on disk at the kill.
    fn items_before(&self) -> u64 {
        let meta = std::fs::metadata(self.path.join(API_SLICE));
        meta.map_or(0, |meta| meta.len() / 40)
    }

    fn complaints(&self) -> Vec<String> {
        use crate::profdir::check::{Severity, check};
        let found = check(&self.path).into_iter();
        let found = found.filter(|one| one.severity > Severity::Note && one.rule != "type-unnamed");
        found.map(|one| one.to_string()).collect()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("read") {
        let entry = entry.expect("entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("copied")),
        }
    }
}

fn memory_of(arena: &Arena) -> File {
    let shared = File::from(arena.share().expect("a memory file"));
    let length = shared.metadata().expect("there").len();
    let copied = fd::memfd("copy", length).expect("memory");
    let mut bytes = vec![0; SEGMENT_BYTES];
    for at in (0..length).step_by(bytes.len()) {
        shared.read_exact_at(&mut bytes, at).expect("read");
        if bytes.iter().any(|byte| *byte != 0) {
            copied.write_all_at(&bytes, at).expect("written");
        }
    }
    copied
}

fn appended(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let file = File::options().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(bytes))
        .expect("written");
}

/// Drains one segment step by step; `look` sees the state after each.
fn drain_in_steps(scene: &mut Scene, mut look: impl FnMut(&Scene, &str)) {
    let ring = scene.lanes.snapshot()[0].ring(0).expect("made");
    // SAFETY: the ring's only consumer.
    let mut consumer = unsafe { ring.consumer() };
    let readable = consumer.readable(scene.arena(), CAPTURE);
    let bytes = readable.bytes.to_vec();
    let count = (bytes.len() / 40) as u64;
    assert!(count > 0);
    let (segment, tail) = (consumer.number(), consumer.tail());
    let family = scene
        .dir
        .family(Place::Host, "aging.api_event.data", Some(40));
    let (slice, length) = scene.dir.position(family);
    let path = scene.dir.path().join(API_SLICE);
    let stretch = |scene: &Scene, step: &dyn Fn(&Stretch<'_>)| {
        step(&scene.arena().board().stretch(segment, tail));
    };
    look(scene, "before");
    stretch(scene, &|stretch| stretch.begin(count));
    look(scene, "the range is said");
    stretch(scene, &|stretch| {
        stretch.note(crate::board::Target {
            place: Place::Host,
            family: "aging.api_event.data",
            slice,
            length,
        });
    });
    look(scene, "the slice is said");
    for part in [40 * 3, bytes.len() / 2 + 13, bytes.len()] {
        let before = std::fs::read(&path).unwrap_or_default();
        appended(&path, &bytes[..part]);
        look(scene, "part is written");
        match length {
            0 => std::fs::remove_file(&path).expect("removed"),
            _ => std::fs::write(&path, before).expect("as before"),
        }
    }
    let counts = TraceCounts::of_records(&bytes, 40);
    scene.dir.append(family, &bytes, &counts).expect("written");
    look(scene, "all is written");
    consumer.release(scene.arena(), count);
    look(scene, "the ring says so");
    stretch(scene, &|stretch| stretch.end());
    look(scene, "the intent has ended");
    consumer.readable(scene.arena(), CAPTURE);
    look(scene, "the consumer has gone on");
    ring.put_back(&consumer);
}

#[test]
fn a_kill_between_any_two_steps_of_a_write_loses_doubles_and_tears_nothing() {
    let mut scene = Scene::new();
    // An earlier capture has left some; three segments are full, one is not.
    scene.push_api(CAPTURE - 1, 900_000..900_010);
    let count = 3 * capacity(RecordSize::Api) + 17;
    scene.push_api(CAPTURE, 0..count);
    let expected: Vec<u64> = (0..count).collect();
    let mut looks = 0;
    for _ in 0..4 {
        drain_in_steps(&mut scene, |scene, step| {
            looks += 1;
            let killed = scene.kill();
            let before = killed.items_before();
            let (rescued, recovery) = killed.rescue().expect("rescued");
            assert_eq!(killed.items(), expected, "{step}");
            assert_eq!(rescued.error, None);
            assert_eq!(recovery.kept.total(), count, "{step}");
            assert!(
                rescued.records <= count && rescued.records + before >= count,
                "{step}"
            );
            assert_eq!(killed.complaints(), [] as [String; 0], "{step}");
        });
    }
    assert!(looks >= 40);
}

#[test]
fn nothing_comes_of_a_capture_that_has_ended_or_was_rescued_before() {
    let scene = Scene::new();
    scene.push_api(CAPTURE, 0..10);
    let killed = scene.kill();
    killed.rescue().expect("rescued");
    let (again, recovery) = killed.rescue().expect("nothing to do");
    assert_eq!(
        (again, recovery.done),
        (Rescued::default(), crate::profdir::recover::Done::Nothing)
    );
    assert_eq!(killed.items().len(), 10);
    scene.arena().board().end();
    let killed = scene.kill();
    let (rescued, _) = killed.rescue().expect("recovered");
    assert_eq!(rescued, Rescued::default());
    assert_eq!(killed.items(), [] as [u64; 0]);
}

#[test]
fn another_users_directory_is_left_alone() {
    let scene = Scene::new();
    scene.push_api(CAPTURE, 0..10);
    let killed = scene.kill();
    let directory = File::open(&killed.path).expect("there");
    let memory = killed.memory.try_clone().expect("a descriptor");
    let lifeline = Lifeline::new(vec![memory.into(), directory.into()], CAPTURE).expect("two");
    let owner = rustix::process::geteuid().as_raw();
    let refused = lifeline.rescue(&killed.path, Some(owner + 1));
    assert!(matches!(refused, Err(RescueError::Foreign { uid, .. }) if uid == owner));
    assert_eq!(killed.items(), [] as [u64; 0]);
}
