//! Memories that no agent has made.

use super::*;
use crate::arena::SEGMENTS_OFFSET;
use crate::board::{BoardImage, NAME_MAX};
use crate::ring::SegmentImage;
use proptest::prelude::*;
use std::mem::offset_of;
use std::os::fd::AsFd;
use zerocopy::FromZeros;

#[test]
fn what_is_no_memory_of_an_agent_is_refused_and_the_directory_is_recovered_all_the_same() {
    let scene = Scene::new();
    scene.push_api(CAPTURE, 0..10);
    let mut killed = scene.kill();
    killed.memory = tempfile::tempfile().expect("a file");
    let refused = killed.rescue();
    assert!(matches!(refused, Err(ImageError::Foreign)), "{refused:?}");
    killed.memory = fd::memfd("short", 100).expect("memory");
    assert!(killed.rescue().is_ok(), "it is complete by now");
    let killed = scene.kill();
    let layout = offset_of!(BoardImage, layout) as u64;
    killed.memory.write_all_at(&[99], layout).expect("written");
    let refused = killed.rescue();
    assert!(matches!(refused, Err(ImageError::Foreign)), "{refused:?}");
    assert!(fd::is_fixed_memory(killed.memory.as_fd()));
}

/// A word somewhere in the board or in a segment's header.
#[derive(Clone, Copy, Debug)]
struct Patch {
    at: u64,
    value: u64,
}

fn patch() -> impl Strategy<Value = Patch> {
    let board = 0..(size_of::<BoardImage>() as u64 / 4);
    let board = board.prop_map(|word| word * 4);
    let header = (0..6u64, 0..(size_of::<SegmentImage>() as u64 / 4));
    let header = header.prop_map(|(segment, word)| {
        SEGMENTS_OFFSET as u64 + segment * SEGMENT_BYTES as u64 + word * 4
    });
    let value = prop_oneof![
        4 => 0u64..12,
        2 => any::<u64>(),
        1 => Just(CAPTURE),
        1 => Just(capacity(RecordSize::Api)),
        1 => Just(u64::from(u32::MAX)),
        1 => Just(u64::from_le_bytes(*b"../../x/")),
    ];
    let at = prop_oneof![1 => 36..(36 + 8 * 5u64), 1 => board, 4 => header];
    (at, value).prop_map(|(at, value)| Patch { at, value })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_memory_makes_it_panic_loop_or_write_outside_the_directory(
        patches in prop::collection::vec(patch(), 1..25),
        present in any::<bool>(),
    ) {
        let scene = Scene::new();
        scene.push_api(CAPTURE, 0..2 * capacity(RecordSize::Api) + 5);
        if present {
            let stretch = scene.arena().board().stretch(0, 0);
            stretch.begin(5);
            stretch.note(crate::board::Target {
                place: Place::Host,
                family: &"aging.api_event.data".chars().chain("x".chars()).take(NAME_MAX).collect::<String>(),
                slice: 0,
                length: 0,
            });
        }
        let killed = scene.kill();
        for Patch { at, value } in patches {
            killed.memory.write_all_at(&value.to_le_bytes(), at).expect("inside");
        }
        let _ = killed.rescue();
        let beside = std::fs::read_dir(killed.path.parent().expect("a parent")).expect("read");
        prop_assert_eq!(beside.count(), 1);
        for entry in std::fs::read_dir(&killed.path).expect("read") {
            let name = entry.expect("entry").file_name().into_string().expect("text");
            let known = name == "host" || name.starts_with("device_") || name == "msprof_agent.json";
            prop_assert!(known || name.starts_with(".msprof_agent"), "{name}");
        }
    }

    #[test]
    fn random_bytes_are_no_board(bytes in prop::collection::vec(any::<u8>(), size_of::<BoardImage>())) {
        let memory = fd::memfd("random", (SEGMENTS_OFFSET + 2 * SEGMENT_BYTES) as u64).expect("memory");
        memory.write_all_at(&bytes, 0).expect("written");
        prop_assert!(matches!(Image::open(&memory, CAPTURE), Err(ImageError::Foreign)));
        let mut board = BoardImage::new_zeroed();
        board.as_mut_bytes().copy_from_slice(&bytes);
        for note in board.intent.notes {
            let _ = (note.place(), note.family());
        }
    }
}
