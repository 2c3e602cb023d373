//! What the tools of binutils say of a library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An ELF file, of any machine.
#[derive(Debug)]
pub struct Elf {
    path: PathBuf,
}

impl Elf {
    pub fn of(path: &Path) -> Elf {
        Elf {
            path: path.to_owned(),
        }
    }

    /// Dynamic symbols that it defines, without versions.
    pub fn exports(&self) -> BTreeSet<String> {
        let text = self.tell("nm", &["-D", "--defined-only"]);
        symbols(&text)
    }

    /// Symbols that other objects see, of an archive.
    pub fn globals(&self) -> BTreeSet<String> {
        symbols(&self.tell("nm", &["-g", "--defined-only"]))
    }

    /// Values of one tag of the dynamic section, as readelf words them.
    pub fn dynamic(&self, tag: &str) -> Vec<String> {
        let tag = format!("({tag})");
        let text = self.tell("readelf", &["-dW"]);
        text.lines()
            .filter_map(|line| Some(line.split_once(&tag)?.1.trim().to_owned()))
            .collect()
    }

    /// Names between brackets of a tag that names files.
    pub fn names(&self, tag: &str) -> BTreeSet<String> {
        let name = |value: String| Some(value.split_once('[')?.1.split_once(']')?.0.to_owned());
        self.dynamic(tag).into_iter().filter_map(name).collect()
    }

    /// Versions that it wants of other libraries' symbols.
    pub fn wanted_versions(&self) -> BTreeSet<String> {
        let text = self.tell("readelf", &["-VW"]);
        let needs = text.split("Version needs section").nth(1).unwrap_or("");
        needs
            .lines()
            .filter_map(|line| line.split_once("Name: ")?.1.split_whitespace().next())
            .map(str::to_owned)
            .collect()
    }

    /// A program header: its words.
    pub fn header(&self, kind: &str) -> Option<Vec<String>> {
        let text = self.tell("readelf", &["-lW"]);
        let words = |line: &str| -> Vec<String> {
            let words = line.split_whitespace();
            words.map(str::to_owned).collect()
        };
        text.lines()
            .map(words)
            .find(|words| words.first().is_some_and(|word| word == kind))
    }

    /// Bytes that it takes of every thread.
    pub fn thread_local_bytes(&self) -> u64 {
        const MEMORY_SIZE: usize = 5;
        let header = self.header("TLS").expect("thread locals");
        let digits = header[MEMORY_SIZE].trim_start_matches("0x");
        u64::from_str_radix(digits, 16).expect("a size")
    }

    fn tell(&self, tool: &str, words: &[&str]) -> String {
        let output = Command::new(tool).args(words).arg(&self.path).output();
        let output = output.unwrap_or_else(|error| panic!("{tool}, of binutils: {error}"));
        assert!(output.status.success(), "{tool} {words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

/// Last words of the lines that nm prints for symbols; an archive's other lines name its objects.
fn symbols(text: &str) -> BTreeSet<String> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.len() == 3)
        .map(|words| words[2].split('@').next().unwrap_or(words[2]).to_owned())
        .collect()
}
