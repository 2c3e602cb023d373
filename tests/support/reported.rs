//! The program that reports a record of every kind (tests/c/families.c), and its account of what it reported.

use super::builder::{Linkage, build};
use super::home::{Home, only_prof_dir};
use super::prof::{Families, Prof};
use super::rules::{lost, open_complete};
use std::collections::{BTreeMap, BTreeSet};

/// What a program says that it has reported.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    /// Bytes of each family's records, in the order of their reports, by directory and family.
    pub records: BTreeMap<(String, String), Vec<u8>>,
    /// Names of types by level and type.
    pub types: BTreeMap<(u16, u64), String>,
    /// Strings by their ids.
    pub strings: BTreeMap<u64, String>,
    /// What times of records count from.
    pub base: u64,
    pub thread: u32,
    pub pid: u32,
}

impl Reported {
    /// Reads an account.
    pub fn from_text(text: &str) -> Reported {
        let mut reported = Reported::default();
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').expect("a kind");
            let words: Vec<&str> = rest.splitn(3, ' ').collect();
            match kind {
                "record" => {
                    let key = (words[0].to_owned(), words[1].to_owned());
                    let bytes = reported.records.entry(key).or_default();
                    bytes.extend(bytes_of(words[2]));
                }
                "type" => {
                    let key = (number(words[0]), number(words[1]));
                    reported.types.insert(key, words[2].to_owned());
                }
                "string" => {
                    let (id, text) = rest.split_once(' ').expect("a string");
                    reported.strings.insert(number(id), text.to_owned());
                }
                "base" => {
                    let words: Vec<&str> = rest.split(' ').collect();
                    reported.base = number(words[0]);
                    reported.thread = number(words[2]);
                    reported.pid = number(words[4]);
                }
                other => panic!("{other} in the account"),
            }
        }
        reported
    }

    /// Records of a family of the host, each of so many bytes.
    pub fn host(&self, family: &str, size: usize) -> Vec<&[u8]> {
        let key = ("host".to_owned(), family.to_owned());
        self.records[&key].chunks_exact(size).collect()
    }

    /// The text of an id.
    #[track_caller]
    pub fn text(&self, id: u64) -> &str {
        &self.strings[&id]
    }

    /// Every file holds the records that were reported for it, byte by byte and in their order, and there is no other
    /// file; every name says what it was given for.
    #[track_caller]
    pub fn assert_written(&self, prof: &Prof) {
        let mut found = BTreeMap::new();
        let mut gather = |place: &str, families: &Families| {
            for (family, slices) in families {
                let bytes: Vec<u8> = slices.values().flatten().copied().collect();
                found.insert((place.to_owned(), family.clone()), bytes);
            }
        };
        gather("host", &prof.host);
        for (device, families) in &prof.devices {
            gather(&format!("device_{device}"), families);
        }
        let dictionary = |name| ("host".to_owned(), format!("unaging.additional.{name}"));
        assert!(found.remove(&dictionary("type_info_dic")).is_some());
        let has_strings = found.remove(&dictionary("hash_dic")).is_some();
        assert_eq!(has_strings, !self.strings.is_empty());
        let names = |of: &BTreeMap<(String, String), Vec<u8>>| -> BTreeSet<String> {
            let names = of.keys().map(|(place, family)| format!("{place}/{family}"));
            names.collect()
        };
        assert_eq!(names(&found), names(&self.records));
        for (key, bytes) in &self.records {
            assert!(found[key] == *bytes, "{key:?} differs");
        }
        for (id, text) in &self.strings {
            assert_eq!(prof.hashes.get(id), Some(text));
        }
        for (key, name) in &self.types {
            assert_eq!(prof.types.get(key), Some(name), "{key:?}");
        }
    }
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    let parsed = word.parse().ok();
    parsed.unwrap_or_else(|| panic!("{word} is no number"))
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("hexadecimal") as u8;
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// Runs a program of tests/c that captures itself into its first argument and accounts for it in the file of its
/// second: what it captured, and its account. Nothing is lost.
#[track_caller]
pub fn capture(home: &Home, source: &str) -> (Prof, Reported) {
    let reported = run(home, source);
    let prof = open_complete(&only_prof_dir(&home.output()));
    assert_eq!(lost(&prof.ledger()), 0);
    (prof, reported)
}

/// Runs such a program: its account.
#[track_caller]
pub fn run(home: &Home, source: &str) -> Reported {
    let account = home.path().join("account");
    let program = home.plain(build(source, Linkage::Shared));
    let finished = program.arg(home.output()).arg(&account).run();
    finished.line_with("wrong 0");
    finished.expect_code(0);
    let text = std::fs::read_to_string(&account).expect("the account");
    Reported::from_text(&text)
}
