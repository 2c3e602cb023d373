//! What becomes of events and of models' names, up to the files.

use super::super::account::Account;
use super::super::output::Output;
use super::*;
use crate::clock;
use crate::lanes::RingKey;
use crate::params::Params;
use crate::profdir::Setup;
use crate::profdir::reader::Profile;
use crate::records::{EventKey, GraphIdMap};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const API: RingKey = RingKey {
    size: RecordSize::Api,
    aging: true,
};
const ADDITIONAL: RingKey = RingKey {
    size: RecordSize::Additional,
    aging: false,
};
const EXECUTE: u32 = 1;

/// One capture without a drain thread.
struct Capture {
    output: Output,
    path: PathBuf,
    account: Account,
    models: Arc<Mutex<Models>>,
}

impl Capture {
    fn start(parent: &Path, limit: Option<u64>, models: Arc<Mutex<Models>>) -> Capture {
        let start = clock::anchor();
        let dir = ProfDir::create(Setup {
            parent: parent.to_owned(),
            start,
            storage_limit: limit,
            ..Setup::default()
        })
        .expect("a directory");
        let path = dir.path().to_owned();
        // A number of no other test's, whose gate an error would close.
        let mut output = Output::new(1 << 50, dir, Arc::default(), Params::default(), start);
        output.know_models(models.clone());
        output.write_all_names();
        output.name_known_models();
        Capture {
            output,
            path,
            account: Account::default(),
            models,
        }
    }

    fn write(&mut self, ring: RingKey, records: &[u8]) {
        let mut rest = records;
        while !rest.is_empty() {
            let done = self
                .output
                .write_records(ring, rest, &mut self.account, None);
            rest = &rest[done as usize * ring.size.bytes()..];
        }
    }

    fn write_apis(&mut self, records: &[ApiRecord]) {
        self.write(API, records.as_bytes());
    }

    /// Records that the storage limit has deleted.
    fn aged_out(&self) -> u64 {
        let mut ledger = Ledger::default();
        self.output.complete(&mut ledger);
        ledger.aged_out.total()
    }

    fn finish(mut self, has_losses: bool) -> (Profile, Ledger) {
        self.output.name_models(true);
        self.output.settle_events(has_losses);
        self.output.finish(clock::anchor());
        let mut ledger = Ledger::default();
        self.output.complete(&mut ledger);
        (Profile::open(&self.path).expect("a directory"), ledger)
    }
}

fn capture(limit: Option<u64>) -> (TempDir, Capture) {
    let temp = tempfile::tempdir().expect("temporary directory");
    let capture = Capture::start(temp.path(), limit, Arc::default());
    (temp, capture)
}

fn event(thread: u32, run: u32, time: u64) -> ApiRecord {
    ApiRecord {
        magic: MAGIC,
        level: level::MODEL,
        kind: EXECUTE,
        thread_id: thread,
        request_id: run,
        begin: time,
        end: ApiRecord::EVENT_END,
        item_id: 7,
    }
}

fn call(time: u64) -> ApiRecord {
    ApiRecord {
        level: level::RUNTIME,
        kind: 1000,
        end: time + 1,
        ..event(1, 0, time)
    }
}

fn name_of(model: u32, name: u64, thread: u32, time: u64) -> AdditionalRecord {
    let map = GraphIdMap {
        model_name: name,
        graph_id: 0,
        model_id: model,
    };
    let mut record = AdditionalRecord::repeated(map, thread, time);
    record.payload[16..].fill(0);
    assert!(!record.is_repeated());
    record
}

fn cuts(ledger: &Ledger) -> Vec<(u32, u32, Cut)> {
    let calls = ledger.partial_calls.iter();
    calls
        .map(|call| (call.thread, call.run, call.cut))
        .collect()
}

/// Records of the capture by kind: whole events, neutral records, api records.
fn kinds(profile: &Profile) -> [usize; 3] {
    let mut kinds = [0; 3];
    for record in profile.api() {
        let record = record.expect("readable");
        let kind = match (record.is_event(), record.is_neutral()) {
            (true, _) => 0,
            (_, true) => 1,
            _ => 2,
        };
        kinds[kind] += 1;
    }
    kinds
}

fn aside(profile: &Profile) -> Vec<ApiRecord> {
    let family = profile
        .families()
        .iter()
        .find(|family| family.name == PARTIAL_FAMILY);
    let slices = family
        .map(|family| family.slices.clone())
        .unwrap_or_default();
    let bytes: Vec<u8> = slices
        .iter()
        .flat_map(|slice| std::fs::read(&slice.path).expect("readable"))
        .collect();
    let records = bytes.chunks_exact(size_of::<ApiRecord>());
    records
        .map(|bytes| ApiRecord::read_from_bytes(bytes).expect("whole"))
        .collect()
}

#[test]
fn each_lone_event_is_neutral_and_kept_aside_and_the_edges_are_told_apart() {
    let (_temp, mut capture) = capture(None);
    capture.write_apis(&[
        event(1, 1, 10),
        call(11),
        event(1, 2, 20),
        event(2, 9, 25),
        event(1, 2, 30),
        event(1, 3, 40),
    ]);
    capture.write_apis(&[event(3, ApiRecord::SINGLE_EVENT, 50), call(51)]);
    let (profile, ledger) = capture.finish(false);
    assert_eq!(
        cuts(&ledger),
        [(1, 1, Cut::Start), (2, 9, Cut::Edge), (1, 3, Cut::Stop)]
    );
    assert_eq!(ledger.partial_events, 3);
    // The run of two events, and the one that stands alone.
    assert_eq!(kinds(&profile), [3, 3, 2]);
    let mut kept = aside(&profile);
    kept.sort_by_key(|event| event.begin);
    assert_eq!(kept, [event(1, 1, 10), event(2, 9, 25), event(1, 3, 40)]);
}

#[test]
fn where_records_were_lost_the_edges_are_not_blamed() {
    let (_temp, mut capture) = capture(None);
    capture.write_apis(&[event(1, 1, 10), event(1, 2, 20), event(1, 2, 30)]);
    let (_, ledger) = capture.finish(true);
    assert_eq!(cuts(&ledger), [(1, 1, Cut::Lost)]);
    let note = ledger.notes.first().expect("a note");
    assert!(note.contains("whose other event is missing"), "{note}");
}

#[test]
fn a_key_that_comes_again_makes_pairs_in_order() {
    let (_temp, mut capture) = capture(None);
    let times = [10, 20, 30, 40, 50];
    capture.write_apis(&times.map(|time| event(1, 0, time)));
    let (profile, ledger) = capture.finish(false);
    // Whether the first one is an end that has no begin, nobody knows.
    assert_eq!(cuts(&ledger), [(1, 0, Cut::Edge)]);
    assert_eq!(aside(&profile), [event(1, 0, 50)]);
}

#[test]
fn an_event_whose_partner_the_storage_limit_has_deleted_is_neutral_and_deleted_ones_are_not_told_of()
 {
    let (_temp, mut capture) = capture(Some(60 << 10));
    capture.write_apis(&[event(1, 1, 10), event(1, 2, 15)]);
    for number in 0..40u64 {
        capture.write_apis(&[call(20 + number); 60]);
    }
    capture.write_apis(&[event(1, 1, 90), event(1, 3, 95), event(1, 3, 96)]);
    let aged = capture.aged_out();
    assert!(aged > 100, "{aged}");
    let (profile, ledger) = capture.finish(false);
    assert_eq!(cuts(&ledger), [(1, 1, Cut::Limit)]);
    assert_eq!(aside(&profile), [event(1, 1, 90)]);
    let [events, neutral, _] = kinds(&profile);
    assert_eq!((events, neutral), (2, 1));
}

#[test]
fn a_name_follows_the_first_whole_run_unless_the_program_says_it_within_that() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let models = Arc::<Mutex<Models>>::default();
    let mut first = Capture::start(temp.path(), None, models.clone());
    first.write(ADDITIONAL, name_of(7, 77, 1, 15).as_bytes());
    first.write_apis(&[event(1, 1, 10), event(1, 1, 20)]);
    let (profile, ledger) = first.finish(false);
    assert_eq!(
        (
            ledger.repeated_names,
            profile.additional("graph_id_map").count()
        ),
        (0, 1)
    );

    let mut second = Capture::start(temp.path(), None, models);
    // Of another thread, so not for the parser.
    second.write(ADDITIONAL, name_of(7, 77, 2, 115).as_bytes());
    second.write_apis(&[event(1, 2, 110)]);
    second.output.name_models(false);
    second.write_apis(&[event(1, 2, 120)]);
    // What lies in the run may come through the other ring yet.
    second.output.name_models(false);
    second.output.name_models(false);
    second.write_apis(&[event(1, 3, 130), event(1, 3, 140)]);
    assert_eq!(
        second.models.lock().get(7).map(|model| model.thread_id),
        Some(2)
    );
    let (profile, ledger) = second.finish(false);
    assert_eq!(ledger.repeated_names, 2);
    let records: Vec<AdditionalRecord> = profile
        .additional("graph_id_map")
        .map(|record| record.expect("readable"))
        .collect();
    let of: Vec<(bool, u32, u64)> = records
        .iter()
        .map(|record| {
            (
                record.is_repeated(),
                record.head.thread_id,
                record.head.time,
            )
        })
        .collect();
    assert_eq!(of.len(), 3);
    assert!(of[0].0 && of[0].1 == 1, "{of:?}");
    assert_eq!(of[1..], [(false, 2, 115), (true, 1, 111)]);
    assert!(
        records
            .iter()
            .all(|record| record.graph_id_map().model_name == 77)
    );
}

#[test]
fn models_that_were_named_last_are_remembered() {
    let mut models = Models::default();
    let most = 5000;
    for id in 0..most {
        models.take(&name_of(id, u64::from(id), 1, 1));
        // One that comes again and again stays.
        models.take(&name_of(3, 33, 1, 1));
    }
    let known: Vec<u32> = models.iter().map(|model| model.map.model_id).collect();
    assert_eq!(known.len(), 4096);
    assert_eq!(
        (known[known.len() - 2], known[known.len() - 1]),
        (most - 1, 3)
    );
    assert!(models.get(4).is_none());
    assert_eq!(models.get(3).map(|model| model.map.model_name), Some(33));
}

#[test]
fn keys_of_events_are_those_of_the_parser() {
    let one = event(1, 1, 10);
    for other in [
        ApiRecord {
            level: level::NODE,
            ..one
        },
        ApiRecord { kind: 2, ..one },
        ApiRecord {
            thread_id: 2,
            ..one
        },
        ApiRecord {
            request_id: 2,
            ..one
        },
        ApiRecord { item_id: 2, ..one },
    ] {
        assert_ne!(EventKey::of(&one), EventKey::of(&other));
    }
    assert_eq!(
        EventKey::of(&one),
        EventKey::of(&ApiRecord { begin: 99, ..one })
    );
}
