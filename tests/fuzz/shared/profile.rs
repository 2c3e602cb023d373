//! Reading, checking and summing up a directory in any state.

use super::directory;
use msprof_agent_core::profdir::check::check;
use msprof_agent_core::profdir::reader::{Control, Profile};
use msprof_export::source::Source;
use msprof_export::statistics::Statistics;
use msprof_export::view::{LIMIT, View};

pub fn run(data: &[u8]) {
    let dir = directory::make(data);
    read(&dir.path);
}

/// Everything that a reader does.
pub fn read(path: &std::path::Path) {
    for violation in check(path) {
        assert!(!violation.to_string().is_empty());
    }
    let Ok(profile) = Profile::open(path) else {
        return;
    };
    let source = Source::open(path);
    if let Ok(source) = &source {
        for limit in [3, LIMIT] {
            if let Ok(view) = View::of(source, limit) {
                assert!(view.shown() <= limit.min(view.total()));
                let mut page = Vec::new();
                view.write(&mut page).expect("a vector takes everything");
                // Nothing in the directory is an element of the page.
                assert_eq!(page.windows(7).filter(|part| part == b"<script").count(), 6);
            }
        }
    }
    if let Ok(Ok(statistics)) = source.map(|source| Statistics::of(&source)) {
        for row in &statistics.calls {
            let times = &row.times;
            assert!(times.count > 0 && times.min_ns <= times.max_ns, "{row:?}");
            assert!(
                times.mean_ns.is_finite() && times.p50_ns <= times.p99_ns,
                "{row:?}"
            );
        }
    }
    if let Ok(Some(ledger)) = profile.ledger() {
        // As the summary adds them up.
        for counts in [
            ledger.reported,
            ledger.written,
            ledger.lost,
            ledger.aged_out,
        ] {
            counts.total();
        }
    }
    for section in profile.sections() {
        let place = section.place;
        for control in Control::ALL {
            let _ = profile.control(place, control);
        }
        profile.start(place);
        profile.stop(place);
    }
    let size = profile.bytes();
    let variable: usize = profile
        .variable("capture_op_info")
        .filter_map(|record| record.ok().map(|(_, bytes)| bytes.len()))
        .sum();
    assert!(variable as u64 <= size);
    assert!(profile.aicpu(0).count() as u64 * 256 <= size);
}
