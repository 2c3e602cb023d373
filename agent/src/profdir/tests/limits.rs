//! The storage limit.

use super::*;
use crate::records::Trace;

const LIMIT: u64 = 4 * 1024 * 1024;

fn limited(parent: &Path) -> ProfDir {
    let setup = Setup {
        storage_limit: Some(LIMIT),
        ..setup(parent)
    };
    ProfDir::create(setup).expect("directory is created")
}

fn on_disk(root: &Path) -> u64 {
    tree(root)
        .iter()
        .filter(|file| !file.starts_with(".msprof_agent.reserve"))
        .map(|file| std::fs::metadata(root.join(file)).expect("there").len())
        .sum()
}

#[test]
fn the_oldest_aging_slices_go_and_are_counted_exactly() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = limited(temp.path());
    let aging = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let kept = dir.family(Place::Host, "unaging.api_event.data", Some(40));
    let batch = 500;
    let mut written = TraceCounts::default();
    for number in 0..1_000 {
        let (bytes, counts) = api_batch(number * batch, batch);
        dir.append(aging, &bytes, &counts).expect("appended");
        written.merge(&counts);
        if number % 100 == 0 {
            dir.append(kept, &bytes, &counts).expect("appended");
            written.merge(&counts);
        }
        assert!(on_disk(dir.path()) <= LIMIT + LIMIT / 20);
    }
    let size = on_disk(dir.path());
    assert!(size > LIMIT - LIMIT / 10, "the limit is used: {size}");
    let records: u64 = slices(dir.path())
        .iter()
        .map(|(_, length)| length / 40)
        .sum();
    let aged = dir.aged_out();
    assert_eq!(
        records + aged.get(Trace::RuntimeApi),
        written.get(Trace::RuntimeApi)
    );
    assert_eq!(aged.total(), aged.get(Trace::RuntimeApi));
    assert_eq!(dir.bytes(), records * 40);
    let unaging: u64 = slices(dir.path())
        .iter()
        .filter(|(file, _)| file.contains("unaging."))
        .map(|(_, length)| length / 40)
        .sum();
    assert_eq!(unaging, 10 * batch, "unaging records are never deleted");
    // What is left of the aging family is its end, without a gap.
    let mut numbers: Vec<u32> = slices(dir.path())
        .iter()
        .filter(|(file, _)| file.contains("data/aging."))
        .filter_map(|(file, _)| parse_slice_name(file).map(|(_, number)| number))
        .collect();
    numbers.sort();
    assert!(numbers[0] > 0 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    dir.finish(anchor(9)).expect("finished");
    assert!(on_disk(dir.path()) <= LIMIT + LIMIT / 20);
}

#[test]
fn many_open_aging_families_do_not_break_the_limit() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = limited(temp.path());
    let families: Vec<FamilyId> = (0..100)
        .map(|n| dir.family(Place::Host, &format!("aging.compact.kind_{n}"), Some(64)))
        .collect();
    for _ in 0..40 {
        for family in &families {
            dir.append(*family, &[0; 64 * 64], &TraceCounts::default())
                .expect("appended");
        }
    }
    assert!(on_disk(dir.path()) <= LIMIT + LIMIT / 20);
    assert!(
        slices(dir.path())
            .iter()
            .all(|(_, length)| length % 64 == 0 && *length > 0)
    );
}

#[test]
fn unaging_data_alone_fills_the_limit_and_then_is_refused_but_names_still_fit() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let mut dir = limited(temp.path());
    let aging = dir.family(Place::Host, "aging.api_event.data", Some(40));
    let unaging = dir.family(Place::Host, "unaging.api_event.data", Some(40));
    let names = dir.family(Place::Host, "unaging.additional.hash_dic", None);
    let (bytes, counts) = api_batch(0, 1_000);
    dir.append(aging, &bytes, &counts).expect("appended");
    let error = (0..1_000)
        .find_map(|_| dir.append(unaging, &bytes, &counts).err())
        .expect("the limit is reached");
    assert!(error.is_limit(), "{error}");
    assert!(error.to_string().contains("storage-limit"), "{error}");
    assert_eq!(dir.aged_out(), counts, "the aging data went first");
    assert!(
        dir.append(unaging, &bytes, &counts)
            .is_err_and(|error| error.is_limit())
    );
    for _ in 0..10 {
        dir.append(
            names,
            &[b"1:", &[b'n'; 8_000][..], b"\n"].concat(),
            &TraceCounts::default(),
        )
        .expect("names are written beyond the limit");
    }
    dir.finish(anchor(9)).expect("finished");
    let size = on_disk(dir.path());
    assert!(
        size > LIMIT - LIMIT / 20 && size <= LIMIT + LIMIT / 20,
        "{size}"
    );
}
