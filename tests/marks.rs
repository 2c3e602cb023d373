//! Marks that a program sets itself, msproftx and mstx: each is in the capture with its times, thread and text.

mod support;

use std::collections::BTreeMap;
use support::builder::{Linkage, build};
use support::home::{Home, only_prof_dir};
use support::parser::{export, exported, rows, stock_parser};
use support::prof::{Prof, u16_at, u32_at, u64_at};
use support::rules::{lost, open_complete};

/// The fields of a mark's record (spec 3 section 6.3).
#[derive(Debug)]
struct Mark {
    numbered: bool,
    segment: u16,
    category: u32,
    event: u32,
    payload_kind: i32,
    begin: u64,
    end: u64,
    id: u64,
    domain: u64,
    message: String,
}

fn mark(bytes: &[u8]) -> Mark {
    let text = &bytes[100..256];
    let end = text.iter().position(|&byte| byte == 0).expect("a NUL");
    assert_eq!(
        (u16_at(bytes, 0), u16_at(bytes, 2), u32_at(bytes, 4)),
        (0x5A5A, 20500, 0)
    );
    Mark {
        numbered: u16_at(bytes, 24) == 1,
        segment: u16_at(bytes, 26),
        category: u32_at(bytes, 44),
        event: u32_at(bytes, 48),
        payload_kind: u32_at(bytes, 52) as i32,
        begin: u64_at(bytes, 64),
        end: u64_at(bytes, 72),
        id: u64_at(bytes, 80),
        domain: u64_at(bytes, 88),
        message: String::from_utf8(text[..end].to_vec()).expect("UTF-8"),
    }
}

/// What the program of this test marked, by its own capture.
fn capture(home: &Home) -> Prof {
    let program = home.plain(build("tests/c/marks.c", Linkage::Shared));
    let finished = program.arg(home.output()).run();
    finished.line_with("wrong 0");
    finished.expect_code(0);
    finished.line_with("start 0");
    finished.line_with("stop 0");
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(lost(&prof.ledger()), 0);
    prof
}

const STAMPS: [(&str, u32); 4] = [("a mark", 0), ("'=inner", 1), ("outer", 1), ("a range", 2)];
/// In the order in which they ended: message, kind of event, domain.
const NUMBERED: [(&str, u32, &str); 5] = [
    ("on a stream", 3, "default"),
    ("an instant", 0, "default"),
    ("block", 0, "io"),
    ("load", 2, "io"),
    ("for us again", 0, "both"),
];
const LONG: usize = 600;

#[test]
fn every_mark_of_a_program_is_in_its_capture() {
    let home = Home::new();
    let prof = capture(&home);
    let bytes = prof.host["unaging.additional.msproftx"].values().flatten();
    let bytes: Vec<u8> = bytes.copied().collect();
    let marks: Vec<Mark> = bytes.chunks(256).map(mark).collect();

    let stamps: Vec<&Mark> = marks.iter().filter(|mark| !mark.numbered).collect();
    let told: Vec<(&str, u32)> = stamps.iter().map(|m| (&*m.message, m.event)).collect();
    assert_eq!(told.len(), STAMPS.len());
    for stamp in STAMPS {
        assert!(told.contains(&stamp), "{stamp:?} in {told:?}");
    }
    let of = |message: &str| stamps.iter().find(|m| m.message == message).expect("there");
    let first = of("a mark");
    assert_eq!((first.category, first.payload_kind), (7, 2));
    assert_eq!(first.begin, first.end);
    let (outer, inner) = (of("outer"), of("'=inner"));
    assert!(outer.begin < inner.begin && inner.begin < inner.end && inner.end < outer.end);

    let numbered = || marks.iter().filter(|mark| mark.numbered);
    let short = numbered().filter(|mark| !mark.message.starts_with("xx"));
    let names: Vec<(&str, u32, &str)> = short
        .map(|mark| (&*mark.message, mark.event, &*prof.hashes[&mark.domain]))
        .collect();
    assert_eq!(names, NUMBERED);
    let long: Vec<&Mark> = numbered()
        .filter(|mark| mark.message.starts_with("xx"))
        .collect();
    let segments: Vec<u16> = long.iter().map(|mark| mark.segment).collect();
    assert_eq!(segments, [0, 1, 2, 3]);
    assert_eq!(
        long.iter().map(|mark| mark.message.len()).sum::<usize>(),
        LONG
    );
    // One id for all pieces of a message, else each its own.
    let mut by_id: BTreeMap<u64, usize> = BTreeMap::new();
    for mark in numbered() {
        *by_id.entry(mark.id).or_default() += 1;
    }
    assert_eq!(by_id.len(), NUMBERED.len() + 1);
    assert_eq!(by_id[&long[0].id], long.len());
}

#[test]
fn the_stock_parser_shows_every_mark() {
    let Some(parser) = stock_parser() else {
        return;
    };
    let home = Home::new();
    let prof = capture(&home);
    export(&parser, &prof.path);
    let csv = exported(&prof.path, "msprof_tx_", ".csv").expect("msprof_tx csv");
    let rows = rows(&csv);
    assert_eq!(rows.len(), STAMPS.len() + NUMBERED.len() + 1);
    for (message, event, domain) in NUMBERED {
        let row = rows
            .iter()
            .find(|row| row["message"] == message)
            .expect(message);
        let event = ["marker", "push/pop", "start/end", "marker_ex"][event as usize];
        assert_eq!((&*row["event_type"], &*row["domain"]), (event, domain));
    }
    let longest = "x".repeat(LONG);
    assert!(rows.iter().any(|row| row["message"] == longest));
    let text = exported(&prof.path, "msprof_tx_", ".json").expect("msprof_tx json");
    for (message, _) in STAMPS {
        assert!(
            text.contains(&format!("\"{message}\"")),
            "{message} in {text}"
        );
    }
}
