//! Pages of captures that are made here.

use super::*;
use crate::decode::aicpu::Aicpu;
use crate::made::{Made, START_NS};
use msprof_agent_core::records::level;
use serde_json::Value;

const EVIL: &str = "</script><img src=x onerror=alert(1)>\u{202e}&amp;";

/// What is in an element of a page.
fn element<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, from) = page
        .split_once(&format!(" id=\"{id}\">"))
        .expect("an element");
    from.split_once("</script>").expect("an end").0
}

/// The numbers of a column, unpacked.
fn column(page: &str, id: &str) -> Vec<u64> {
    let text = element(page, id).trim_end_matches('=');
    let sign = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let bits = text
        .bytes()
        .flat_map(|c| (0..6).rev().map(move |bit| sign(c) >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    let bytes = bits
        .chunks_exact(8)
        .map(|bits| bits.iter().fold(0u8, |byte, bit| byte << 1 | bit));
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0u64, 0);
    for byte in bytes {
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

fn page(made: &mut Made, limit: u64) -> (String, Value) {
    let source = Source::open(&made.finish()).expect("opens");
    let view = View::of(&source, limit).expect("readable");
    assert!(view.shown() <= limit.min(view.total()));
    let mut page = Vec::new();
    view.write(&mut page).expect("written");
    let page = String::from_utf8(page).expect("UTF-8");
    let facts = serde_json::from_str(element(&page, "facts")).expect("JSON");
    (page, facts)
}

#[test]
fn intervals_lie_in_the_lanes_of_their_threads_and_devices_in_ns_since_the_earliest() {
    let mut made = Made::new();
    made.name(level::RUNTIME, 1, "Launch");
    made.name(level::MODEL, 1, "ModelExecute");
    made.string(77, "conv1");
    made.string(5, "mlp");
    made.model(3, 5);
    made.thread(9).item(level::RUNTIME, 1, 77, 2_000, 2_500);
    made.thread(9).call(level::RUNTIME, 2, 1_000, 4_000);
    made.thread(4321).run(1, 3, 1, 5_000, 9_000);
    made.device(0, 100, 1_000);
    // 100 ticks a us: 10 us after the start, for 5.
    made.aicpu(0, Aicpu::NODE, 2_000, 2_500);
    made.aicpu(0, Aicpu::DATA, 700, 0);
    made.aicpu(0, Aicpu::WAIT, START_NS / 1000 + 3, START_NS / 1000 + 4);
    made.aicpu(0, Aicpu::WAIT, 17, 19);
    let (page, facts) = page(&mut made, LIMIT);
    let lanes: Vec<_> = facts["lanes"].as_array().expect("lanes").iter().collect();
    let labels: Vec<_> = lanes.iter().map(|lane| lane["label"].as_str()).collect();
    let expected = [
        "thread 4321",
        "thread 9",
        "device 0: AICPU operators",
        "device 0: AICPU data queue",
    ];
    assert_eq!(labels, expected.map(Some));
    let shown: Vec<_> = lanes.iter().map(|lane| lane["shown"].as_u64()).collect();
    assert_eq!(shown, [1, 2, 1, 2].map(Some));
    // The second one of a lane is counted from the first.
    assert_eq!(
        column(&page, "begins"),
        [5_000, 1_000, 1_000, 10_000, 700, 2_300]
    );
    assert_eq!(
        column(&page, "durations"),
        [4_000, 3_000, 500, 5_000, 0, 1_000]
    );
    let name = |number: u64| facts["names"][number as usize].to_string();
    let names: Vec<String> = column(&page, "names").into_iter().map(name).collect();
    assert_eq!(
        names,
        [
            r#"["model","ModelExecute"]"#,
            r#"["runtime","2"]"#,
            r#"["runtime","Launch"]"#,
            r#"["aicpu","AICPU operator"]"#,
            r#"["aicpu",""]"#,
            r#"["aicpu","wait for data"]"#
        ]
    );
    let items: Vec<_> = column(&page, "items")
        .into_iter()
        .map(|number| facts["items"][number as usize].as_str().expect("text"))
        .collect();
    assert_eq!(
        items,
        ["model 3 mlp", "", "conv1", "stream 0 task 0", "", ""]
    );
    assert_eq!(facts["window"], serde_json::json!([0.0, 2.5e9]));
    assert_eq!(facts["total"], 6);
    let banners = facts["banners"].to_string();
    assert!(
        banners.contains("1 records of devices are not drawn"),
        "{banners}"
    );
}

#[test]
fn ranges_of_the_program_lie_in_the_lane_of_their_thread() {
    let mut made = Made::new();
    made.thread(9).call(level::RUNTIME, 1, 2_000, 3_000);
    made.thread(9).mark(0, "forward", 1_000, 9_000);
    made.thread(9).mark(1, "and the rest of it", 1_000, 9_000);
    made.thread(10).mark(0, "here", 5_000, 5_000);
    let (page, facts) = page(&mut made, LIMIT);
    assert_eq!(column(&page, "begins"), [1_000, 1_000, 5_000]);
    assert_eq!(column(&page, "durations"), [8_000, 1_000, 0]);
    let names = facts["names"].to_string();
    assert_eq!(
        names,
        r#"[["runtime","1"],["msproftx","forward"],["msproftx","here"]]"#
    );
    assert_eq!(facts["total"], 3);
}

#[test]
fn a_name_stays_text_wherever_it_stands() {
    let mut made = Made::new();
    made.line(&format!("{}_1:{EVIL}\n", level::RUNTIME));
    made.line(&format!(
        "{}_2:{{{{facts}}}}{{{{script}}}}\n",
        level::RUNTIME
    ));
    made.string(77, EVIL);
    made.item(level::RUNTIME, 1, 77, 0, 10);
    made.call(level::RUNTIME, 2, 0, 10);
    made.ledger.notes = vec![EVIL.to_owned()];
    let (page, facts) = page(&mut made, LIMIT);
    let clean = EVIL.replace('\u{202e}', " ");
    assert_eq!(facts["names"][0][1], clean);
    assert_eq!(facts["items"][1], clean);
    assert_eq!(facts["calls"][0][1], clean);
    assert_eq!(facts["names"][1][1], "{{facts}}{{script}}");
    assert!(!page.contains("<img"), "markup");
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt; &amp;amp;"));
    // Data of 5 elements and a script: nothing else begins or ends one.
    assert_eq!(page.matches("<script").count(), 6);
    assert_eq!(page.matches("</script").count(), 6);
    assert_eq!(page.matches("application/json").count(), 1);
    assert!(!page.contains("http://") && !page.contains("https://"));
}

#[test]
fn of_too_many_intervals_the_longest_are_shown_and_the_page_says_so() {
    let mut made = Made::new();
    for n in 0..10_000u64 {
        made.call(level::RUNTIME, 1, n * 1_000, n * 1_000 + 1 + n % 100);
    }
    for n in 0..100u64 {
        made.thread(9)
            .call(level::RUNTIME, 1, n * 1_000, n * 1_000 + 10);
    }
    // Absurd times of a third thread.
    made.thread(10)
        .call(level::RUNTIME, 1, 0, u64::MAX - START_NS - 1);
    made.thread(10).call(
        level::RUNTIME,
        1,
        u64::MAX - START_NS - 1,
        u64::MAX - START_NS - 1,
    );
    let (page, facts) = page(&mut made, 1_000);
    assert_eq!(facts["total"], 10_102);
    let durations = column(&page, "durations");
    assert!(
        durations.len() > 900 && durations.len() <= 1_000,
        "{}",
        durations.len()
    );
    let lane = facts["lanes"].as_array().expect("lanes")[0]["shown"]
        .as_u64()
        .expect("a count");
    let shortest = durations[..lane as usize].iter().min();
    // A tenth of them is kept, in pieces that do not lie alike in the pattern.
    assert!(shortest > Some(&70), "{shortest:?}");
    let lanes = facts["lanes"].as_array().expect("lanes").iter();
    assert!(
        lanes.clone().all(|lane| lane["shown"].as_u64() > Some(0)),
        "each lane has one"
    );
    let banners = facts["banners"].to_string();
    assert!(
        banners.contains("of 10102 intervals are drawn"),
        "{banners}"
    );
    assert_eq!(facts["calls"][0][2], 10_102, "the table counts all");
}

#[test]
fn more_threads_than_lanes_share_one() {
    let mut made = Made::new();
    for thread in 0..1_100 {
        made.thread(thread)
            .call(level::RUNTIME, 1, u64::from(thread), u64::from(thread) + 1);
    }
    let (page, facts) = page(&mut made, LIMIT);
    let lanes = facts["lanes"].as_array().expect("lanes");
    assert_eq!(lanes.len(), 1025);
    assert_eq!(lanes[1024]["label"], "further threads");
    assert_eq!(lanes[1024]["shown"], 76);
    assert_eq!(column(&page, "begins").len(), 1_100);
}

#[test]
fn losses_and_an_unfinished_capture_are_said_first() {
    let mut made = Made::new();
    made.call(level::RUNTIME, 1, 0, 10);
    made.ledger
        .lost
        .add(msprof_agent_core::records::Trace::RuntimeApi, 5);
    let (_, facts) = page(&mut made, LIMIT);
    assert_eq!(facts["banners"][0]["bad"], true);
    assert_eq!(
        facts["banners"][0]["text"],
        "Records were lost: 5 (runtime-api 5)."
    );

    let mut made = Made::new();
    made.call(level::RUNTIME, 1, 0, 10);
    let source = Source::open(&made.finish_as_it_is()).expect("opens");
    let view = View::of(&source, LIMIT).expect("readable");
    let banners = banner::banners(&view);
    assert!(
        banners[0].bad && banners[0].text.contains("it is not finished"),
        "{banners:?}"
    );

    let mut made = Made::new();
    let (page, facts) = page(&mut made, LIMIT);
    assert_eq!(facts["banners"], serde_json::json!([]));
    assert_eq!(column(&page, "begins").len(), 0);
}
