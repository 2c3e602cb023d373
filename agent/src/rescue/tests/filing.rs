//! Which files rescued records go to: those in which the drain would have put them.

use super::*;
use crate::capture::router::{RouteKey, Router, family_of};
use crate::dictionary::Dictionary;
use crate::profdir::type_line;
use crate::records::{AdditionalRecord, CompactRecord, HEAD_SIZE, RecordHead};
use std::collections::BTreeMap;

/// Compact or additional record number `number`.
fn described<const N: usize>(lvl: u16, kind: u32, number: u64) -> [u8; N] {
    let mut bytes = [0; N];
    let head = RecordHead {
        magic: MAGIC,
        level: lvl,
        kind,
        thread_id: 1,
        data_len: 8,
        time: number,
    };
    bytes[..HEAD_SIZE].copy_from_slice(head.as_bytes());
    bytes
}

fn numbers<const N: usize>(path: &Path, file: &str) -> Vec<u64> {
    let bytes = std::fs::read(path.join(file)).unwrap_or_default();
    let heads = bytes
        .chunks_exact(N)
        .map(|record| RecordHead::read_from_prefix(record).expect("a head").0);
    heads.map(|head| head.time).collect()
}

#[test]
fn records_go_where_the_drain_would_have_put_them() {
    let mut scene = Scene::new();
    let mut lines = Vec::new();
    type_line(&mut lines, level::NODE, 1, b"node_basic_info");
    type_line(&mut lines, level::NODE, 2, b"../../../etc/passwd");
    lines.extend_from_slice(b"10000_3:torn");
    let types = scene
        .dir
        .family(Place::Host, "unaging.additional.type_info_dic", None);
    scene
        .dir
        .append(types, &lines, &TraceCounts::default())
        .expect("written");
    let word = Word::capturing(CAPTURE, 0xFF);
    let compact = RingKey {
        size: RecordSize::Compact,
        aging: false,
    };
    let additional = RingKey {
        size: RecordSize::Additional,
        aging: true,
    };
    for number in 0..40u64 {
        let record: [u8; 64] = described(level::NODE, (number % 4) as u32, number);
        // SAFETY: a record of 64 bytes.
        unsafe {
            scene
                .lanes
                .push::<64>(word, compact, Trace::Task, record.as_ptr())
        }
        .expect("room");
        let mut record: [u8; 256] = described(level::AICPU, 0, number);
        record[92..96].copy_from_slice(&((number % 2) as u32).to_le_bytes());
        // SAFETY: a record of 256 bytes.
        unsafe {
            scene
                .lanes
                .push::<256>(word, additional, Trace::Aicpu, record.as_ptr())
        }
        .expect("room");
    }
    let killed = scene.kill();
    let (rescued, _) = killed.rescue().expect("rescued");
    assert_eq!(rescued.records, 80);
    let of = |rest: u64, by: u64| (0..40).filter(|n| n % by == rest).collect::<Vec<u64>>();
    let path = &killed.path;
    let host =
        |name: &str| numbers::<64>(path, &format!("host/data/unaging.compact.{name}.slice_0"));
    assert_eq!(host("node_basic_info"), of(1, 4));
    assert_eq!(host("---------etc-passwd"), of(2, 4));
    let unnamed: Vec<u64> = (0..40).filter(|n| n % 4 == 0 || n % 4 == 3).collect();
    let mut invalid = host("invalid");
    invalid.sort_unstable();
    assert_eq!(invalid, unnamed);
    for device in [0, 1] {
        let file = format!("device_{device}/data/aicpu.data.{device}.slice_0");
        assert_eq!(numbers::<256>(path, &file), of(device, 2));
    }
    assert_eq!(killed.complaints(), [] as [String; 0]);
    const _: () = assert!(size_of::<CompactRecord>() == 64 && size_of::<AdditionalRecord>() == 256);
}

#[test]
fn a_type_by_an_odd_name_has_one_file_whether_its_records_were_drained_or_rescued() {
    let names = [
        &b"comma,in,it"[..],
        b"'quoted' \"twice\" `thrice`",
        b"comma_in_it",
        b"line\nfeed\r\n",
        b" \t",
        b"not \xFF\xFE utf-8 \xC3",
        "gr\u{f6}\u{df}e \u{2028}\u{85} \u{1F680}".as_bytes(),
        b"hash_dic",
        b"task_track.slice_0",
        &[0xC3, 0xB6].repeat(200),
    ];
    let mut scene = Scene::new();
    let dictionary = Dictionary::default();
    let types = scene
        .dir
        .family(Place::Host, "unaging.additional.type_info_dic", None);
    let kinds = 7000..7000 + names.len() as u32;
    for (kind, name) in kinds.clone().zip(names) {
        dictionary.name_type(level::NODE, kind, name);
        let mut lines = Vec::new();
        type_line(&mut lines, level::NODE, kind, name);
        scene
            .dir
            .append(types, &lines, &TraceCounts::default())
            .expect("written");
    }
    let ring = RingKey {
        size: RecordSize::Compact,
        aging: false,
    };
    let word = Word::capturing(CAPTURE, 0xFF);
    let mut router = Router::default();
    let mut expected: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for kind in kinds.clone() {
        let drained: [u8; 64] = described(level::NODE, kind, u64::from(kind));
        let key = RouteKey::of(ring, &drained, None);
        let family = router.family(key, &dictionary, &mut scene.dir);
        let counts = TraceCounts::of_records(&drained, 64);
        scene
            .dir
            .append(family, &drained, &counts)
            .expect("written");
        let late = u64::from(kind) + 1000;
        let rescued: [u8; 64] = described(level::NODE, kind, late);
        // SAFETY: a record of 64 bytes.
        unsafe {
            scene
                .lanes
                .push::<64>(word, ring, Trace::Task, rescued.as_ptr())
        }
        .expect("room");
        let name = dictionary.type_name(level::NODE, kind).unwrap_or_default();
        let (_, family) = family_of(key, &name);
        expected
            .entry(family)
            .or_default()
            .extend([u64::from(kind), late]);
    }
    let killed = scene.kill();
    let (rescued, _) = killed.rescue().expect("rescued");
    assert_eq!((rescued.records, rescued.error), (kinds.len() as u64, None));
    assert_eq!(expected.len(), names.len(), "{expected:?}");
    for (family, times) in expected {
        let file = format!("host/data/{family}.slice_0");
        assert_eq!(numbers::<64>(&killed.path, &file), times, "{family}");
    }
    assert_eq!(killed.complaints(), [] as [String; 0]);
}
