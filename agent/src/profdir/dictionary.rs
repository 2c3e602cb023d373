//! Lines of the two text dictionaries (spec 3 section 5).
//!
//! `hash_dic` turns ids into strings, `type_info_dic` (level, type) into names. Both are read line by
//! line, so that what would end a line, or upset a table made from it, is replaced here.

#![forbid(unsafe_code)]

use crate::records::level;
use std::io::Write as _;

/// Appends `<id>:<text>\n`. Control characters become spaces, invalid UTF-8 the replacement character.
pub fn hash_line(buffer: &mut Vec<u8>, id: u64, text: &[u8]) {
    // A vector takes everything.
    let _ = write!(buffer, "{id}:");
    // Nearly every one, of which there can be hundreds of thousands.
    if text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        buffer.extend_from_slice(text);
    } else {
        push_clean(buffer, text, |_| None);
    }
    buffer.push(b'\n');
}

/// Appends `<level>_<type>:<name>\n` and returns true; appends nothing for a level that the parser
/// does not read, and for a name of nothing but blanks: the type's number says more.
pub fn type_line(buffer: &mut Vec<u8>, lvl: u16, kind: u32, name: &[u8]) -> bool {
    let name = written_type_name(name);
    if !level::READABLE.contains(&lvl) || name.trim_ascii().is_empty() {
        return false;
    }
    buffer.extend_from_slice(format!("{lvl}_{kind}:{name}\n").as_bytes());
    true
}

/// A type's name as the dictionary has it. Beside what [`hash_line`] replaces, commas and quotes become `-`:
/// these names are columns of csv files that one exporter writes without quoting. Not `_`, which would turn
/// some into names that the parser knows. A name that was written stays the same.
pub(super) fn written_type_name(name: &[u8]) -> String {
    let mut clean = Vec::with_capacity(name.len());
    push_clean(&mut clean, name, |c| {
        matches!(c, ',' | '"' | '\'' | '`').then_some('-')
    });
    String::from_utf8_lossy(&clean).into_owned()
}

/// Pushes text as UTF-8 without anything that ends a line or is invisible in a terminal.
fn push_clean(buffer: &mut Vec<u8>, text: &[u8], replace: impl Fn(char) -> Option<char>) {
    let mut utf8 = [0u8; 4];
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let clean = match c {
                // Line and paragraph separators end a line for some readers.
                c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => ' ',
                c => replace(c).unwrap_or(c),
            };
            buffer.extend_from_slice(clean.encode_utf8(&mut utf8).as_bytes());
        }
        if !chunk.invalid().is_empty() {
            buffer.extend_from_slice("\u{FFFD}".as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profdir::dictionaries::TypeNames;
    use crate::profdir::family_file_name;
    use proptest::prelude::*;

    fn hash(id: u64, text: &[u8]) -> String {
        let mut buffer = Vec::new();
        hash_line(&mut buffer, id, text);
        String::from_utf8(buffer).expect("lines are UTF-8")
    }

    #[test]
    fn a_hash_line_is_one_line_whatever_the_text() {
        assert_eq!(hash(7, b"Add_1:0"), "7:Add_1:0\n");
        assert_eq!(hash(u64::MAX, b""), "18446744073709551615:\n");
        assert_eq!(hash(1, b"a\nb\rc\0d\te\x1b"), "1:a b c d e \n");
        assert_eq!(hash(1, "a\u{85}b\u{2028}c".as_bytes()), "1:a b c\n");
        assert_eq!(hash(1, b"\xffx\xc3"), "1:\u{FFFD}x\u{FFFD}\n");
        assert_eq!(hash(1, "算子,\"q\"".as_bytes()), "1:算子,\"q\"\n");
        assert_eq!(hash(1, &[b'n'; 65_536]).len(), 65_536 + 3);
    }

    #[test]
    fn a_type_line_is_safe_in_a_csv_column() {
        let mut buffer = Vec::new();
        assert!(type_line(&mut buffer, 20000, 196_609, b"aclrtMalloc"));
        assert!(type_line(&mut buffer, 5000, 1, b"a,b\"c'd\n"));
        for (lvl, name) in [(4500, &b"dropped"[..]), (5000, b""), (5000, b" \t\n")] {
            assert!(!type_line(&mut buffer, lvl, 1, name));
        }
        assert_eq!(buffer, b"20000_196609:aclrtMalloc\n5000_1:a-b-c-d \n");
    }

    proptest! {
        /// A rescue has the written name alone, the drain the registered one.
        #[test]
        fn a_type_has_one_family_by_its_registered_and_by_its_written_name(
            name in prop_oneof![any::<String>().prop_map(String::into_bytes), any::<Vec<u8>>()],
        ) {
            let mut lines = Vec::new();
            type_line(&mut lines, level::NODE, 1, &name);
            let mut names = TypeNames::default();
            names.add_lines(&lines);
            let written = names.get(level::NODE, 1).unwrap_or_default();
            prop_assert_eq!(family_file_name(written.as_bytes()), family_file_name(&name));
        }
    }
}
