//! Names: of strings and of types, as files of the host.

use super::{Account, FamilyId, Output, TraceCounts, profdir};

/// Names that are written at a time: a few milliseconds' work, in which the rings fill.
const NAMES_AT_ONCE: usize = 8192;
/// The same in bytes.
const TEXT_AT_ONCE: usize = 1024 * 1024;

impl Output {
    /// Writes names that were registered since the last time, as many as the rings can wait for; whether more are
    /// to be written.
    pub fn write_names(&mut self) -> bool {
        let mut lines = Vec::new();
        let types = self.dictionary.types_from(self.types.1, NAMES_AT_ONCE);
        if !types.is_empty() {
            self.router.forget();
        }
        let mut done = 0;
        for entry in &types {
            profdir::type_line(&mut lines, entry.level, entry.kind, &entry.name);
            done += 1;
            if lines.len() >= TEXT_AT_ONCE {
                break;
            }
        }
        self.types.1 += done;
        self.write_text(self.types.0, &lines);
        let mut more = done < types.len() || types.len() == NAMES_AT_ONCE;
        lines.clear();
        let strings = self.dictionary.strings_from(self.strings.1, NAMES_AT_ONCE);
        done = 0;
        for entry in &strings {
            profdir::hash_line(&mut lines, entry.id, entry.text.to_bytes());
            done += 1;
            if lines.len() >= TEXT_AT_ONCE {
                break;
            }
        }
        self.strings.1 += done;
        self.write_text(self.strings.0, &lines);
        more |= done < strings.len() || strings.len() == NAMES_AT_ONCE;
        more
    }

    /// Writes all names that there are. What is registered meanwhile may have to wait: it could come faster than
    /// the disk takes it.
    pub fn write_all_names(&mut self) {
        let (strings, types) = self.dictionary.counts();
        while self.write_names() && (self.strings.1 < strings || self.types.1 < types) {}
    }

    fn write_text(&mut self, family: FamilyId, lines: &[u8]) {
        let mut account = Account::default();
        self.write(family, lines, &TraceCounts::default(), &mut account, None);
    }
}
