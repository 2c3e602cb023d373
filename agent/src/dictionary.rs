//! String ids and type names, for the life of the process.
//!
//! Names are registered by components at any time, from any thread, and are written into every
//! capture. A known name costs a look-up under a shared lock; a new one allocates. Strings are never
//! freed: the ABI promises that returned strings stay valid.
//!
//! Nothing here waits for ever, in a signal handler neither: a name is not kept when its handler has come upon
//! another of these calls of its thread, when another thread keeps the lock for 100 ms, or when the process has
//! no memory left.

#![forbid(unsafe_code)]

use crate::process::reserve::{grow_map, grow_vec, system_has};
use crate::records::level;
use crate::section::{Section, SectionLock};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};

/// Id of the empty string and of a null pointer.
pub const EMPTY_ID: u64 = u64::MAX;
/// First acl type number for names of named ranges: class 4 ("others") in the high half, numbers
/// beyond those of real API calls in the low half.
const RANGE_TYPE_BASE: u32 = 4 << 16 | 0x4000;
/// Most distinct names of named ranges.
const RANGE_TYPES_MAX: u32 = 0x8000;

/// The id of a string: two 32-bit polynomial hashes (spec 2 section 2.3). Bytes are taken as plain C
/// `char`, signed on x86-64 and unsigned on aarch64, as the stock library takes them.
pub fn hash(text: &[u8]) -> u64 {
    let (mut high, mut low) = (0u32, 0u32);
    for &byte in text {
        let c = byte as c_char as u32;
        high = high.wrapping_mul(29).wrapping_add(c);
        low = low.wrapping_mul(131).wrapping_add(c);
    }
    u64::from(high) << 32 | u64::from(low)
}

/// A string and its id. `text` is without the terminating NUL; an inner NUL cannot occur.
#[derive(Clone, Copy, Debug)]
pub struct StringEntry {
    /// Unique id.
    pub id: u64,
    /// The string.
    pub text: &'static CStr,
}

/// A name of a (level, type).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeEntry {
    /// Level of the records.
    pub level: u16,
    /// Type within the level.
    pub kind: u32,
    /// Name as registered.
    pub name: Box<[u8]>,
}

#[derive(Clone, Debug, Default)]
struct Strings {
    by_id: HashMap<u64, &'static CStr>,
    in_order: Vec<StringEntry>,
}

#[derive(Clone, Debug, Default)]
struct Types {
    by_key: HashMap<(u16, u32), usize>,
    /// Every registration that said something new; a later one of the same key replaces an earlier.
    in_order: Vec<TypeEntry>,
    ranges: HashMap<Box<[u8]>, u32>,
}

/// All names of the process.
#[derive(Debug)]
pub struct Dictionary {
    strings: SectionLock<Strings>,
    types: SectionLock<Types>,
}

/// Types that the stock library names by itself (spec 3 section 3).
const DEFAULT_TYPES: [(u16, u32, &str); 14] = [
    (level::NODE, 0, "node_basic_info"),
    (level::NODE, 1, "tensor_info"),
    (level::NODE, 2, "fusion_op_info"),
    (level::NODE, 4, "context_id_info"),
    (level::NODE, 5, "launch"),
    (level::NODE, 6, "task_memory_info"),
    (level::NODE, 9, "node_attr_info"),
    (level::NODE, 11, "static_op_mem"),
    (level::MODEL, 0, "graph_id_map"),
    (level::MODEL, 7, "logic_stream_info"),
    (level::MODEL, 8, "model_exeom"),
    (level::HCCL, 0x10001, "master"),
    (level::HCCL, 0x10002, "slave"),
    (level::TX, 0, "msproftx"),
];

/// Model-level types that have fixed names; GE registers them when it starts, but a capture in which
/// it could not be told to start must not show numbers (spec 3 section 6.1).
const MODEL_TYPES: [(u16, u32, &str); 4] = [
    (level::MODEL, 1, "ModelExecute"),
    (level::MODEL, 2, "ModelLoad"),
    (level::MODEL, 3, "InputCopy"),
    (level::MODEL, 4, "OutputCopy"),
];

/// Types of records that the runtime and HCCL name when they are started. A thread of theirs may report one before
/// the name is there, and without it the record would be in no file that the parser reads (spec 3 section 3).
const COMPONENT_TYPES: [(u16, u32, &str); 7] = [
    (level::RUNTIME, 801, "memcpy_info"),
    (level::RUNTIME, 802, "task_track"),
    (level::RUNTIME, 803, "capture_stream_info"),
    (level::RUNTIME, 804, "expand_stream_spec"),
    (level::RUNTIME, 805, "capture_op_info"),
    (level::NODE, 10, "hccl_op_info"),
    (level::NODE, 12, "mc2_comm_info"),
];

impl Default for Dictionary {
    fn default() -> Self {
        Dictionary {
            strings: SectionLock::default(),
            types: SectionLock::new(Types::known()),
        }
    }
}

impl Types {
    /// Those that have their names from the beginning.
    fn known() -> Types {
        let mut types = Types::default();
        let fixed = DEFAULT_TYPES.into_iter().chain(MODEL_TYPES);
        for (level, kind, name) in fixed.chain(COMPONENT_TYPES) {
            types.add(level, kind, name.as_bytes());
        }
        types
    }

    fn has(&self, level: u16, kind: u32, name: &[u8]) -> bool {
        let index = self.by_key.get(&(level, kind));
        index.is_some_and(|&index| &*self.in_order[index].name == name)
    }

    /// False when there is no memory for it.
    fn add(&mut self, level: u16, kind: u32, name: &[u8]) -> bool {
        if !grow_map(&mut self.by_key) || !grow_vec(&mut self.in_order) || !system_has(name.len()) {
            return false;
        }
        self.by_key.insert((level, kind), self.in_order.len());
        self.in_order.push(TypeEntry {
            level,
            kind,
            name: name.into(),
        });
        true
    }
}

impl Strings {
    /// False when there is no memory for it.
    fn add(&mut self, id: u64, text: &[u8]) -> bool {
        if !grow_map(&mut self.by_id) || !grow_vec(&mut self.in_order) || !system_has(text.len()) {
            return false;
        }
        let owned = CString::new(text).unwrap_or_default();
        let text: &'static CStr = Box::leak(owned.into_boxed_c_str());
        self.by_id.insert(id, text);
        self.in_order.push(StringEntry { id, text });
        true
    }
}

impl Dictionary {
    /// The id of a string, which is remembered. Text behind a NUL is ignored. Two strings never share
    /// an id: when the hash of a new one is taken, it gets the next free number. A string that cannot be
    /// remembered has its hash for an id.
    pub fn id_of(&self, text: &[u8]) -> u64 {
        match Section::enter() {
            Some(section) => self.id_within(&section, text),
            None => Wanted::of(text).plain(),
        }
    }

    /// [`Dictionary::id_of`] for who is in a section.
    pub(crate) fn id_within(&self, section: &Section, text: &[u8]) -> u64 {
        let wanted = Wanted::of(text);
        if wanted.text.is_empty() {
            return EMPTY_ID;
        }
        let Some(strings) = self.strings.read(section) else {
            return wanted.plain();
        };
        if let Some(id) = find(&strings, &wanted) {
            return id;
        }
        drop(strings);
        let Some(mut strings) = self.strings.write(section) else {
            return wanted.plain();
        };
        if let Some(id) = find(&strings, &wanted) {
            return id;
        }
        let mut id = wanted.plain();
        // 0 means "no name" to the parser.
        while id == 0 || id == EMPTY_ID || strings.by_id.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        if strings.add(id, wanted.text) {
            id
        } else {
            wanted.plain()
        }
    }

    /// The string of an id that [`Dictionary::id_of`] gave out.
    pub fn text_of(&self, id: u64) -> Option<&'static CStr> {
        let section = Section::enter()?;
        self.strings.read(&section)?.by_id.get(&id).copied()
    }

    /// Names a type. The last name given counts, but for one in which there is nothing to see. False when the
    /// name could not be kept.
    pub fn name_type(&self, level: u16, kind: u32, name: &[u8]) -> bool {
        let named = |section: Section| self.name_within(&section, level, kind, name);
        is_blank(name) || Section::enter().and_then(named).is_some()
    }

    fn name_within(&self, section: &Section, level: u16, kind: u32, name: &[u8]) -> Option<()> {
        if self.types.read(section)?.has(level, kind, name) {
            return Some(());
        }
        let mut types = self.types.write(section)?;
        types.add(level, kind, name).then_some(())
    }

    /// The name of a type.
    pub fn type_name(&self, level: u16, kind: u32) -> Option<Box<[u8]>> {
        let section = Section::enter()?;
        let types = self.types.read(&section)?;
        let index = *types.by_key.get(&(level, kind))?;
        Some(types.in_order[index].name.clone())
    }

    /// The acl-level type of a named range, which is made for a new name; `None` when there are too
    /// many names, or it could not be kept.
    pub fn range_type(&self, name: &[u8]) -> Option<u32> {
        let section = Section::enter()?;
        if let Some(&kind) = self.types.read(&section)?.ranges.get(name) {
            return Some(kind);
        }
        let mut types = self.types.write(&section)?;
        if let Some(&kind) = types.ranges.get(name) {
            return Some(kind);
        }
        let count = types.ranges.len() as u32;
        if count >= RANGE_TYPES_MAX || !grow_map(&mut types.ranges) || !system_has(name.len()) {
            return None;
        }
        let kind = RANGE_TYPE_BASE + count;
        if !is_blank(name) && !types.add(level::ACL, kind, name) {
            return None;
        }
        types.ranges.insert(name.into(), kind);
        Some(kind)
    }

    /// Strings from number `from` on, at most `most`, in the order of their first use; none when they cannot be
    /// had now.
    pub fn strings_from(&self, from: usize, most: usize) -> Vec<StringEntry> {
        let strings = |section: Section| {
            let strings = self.strings.read(&section)?;
            some_from(&strings.in_order, from, most)
        };
        Section::enter().and_then(strings).unwrap_or_default()
    }

    /// Type names from number `from` on, at most `most`, in the order of registration; none when they cannot be
    /// had now.
    pub fn types_from(&self, from: usize, most: usize) -> Vec<TypeEntry> {
        let types = |section: Section| {
            let types = self.types.read(&section)?;
            some_from(&types.in_order, from, most)
        };
        Section::enter().and_then(types).unwrap_or_default()
    }

    /// Numbers of strings and of type names there are; none when that cannot be said now.
    pub fn counts(&self) -> (usize, usize) {
        let counts = |section: Section| {
            let strings = self.strings.read(&section)?.in_order.len();
            Some((strings, self.types.read(&section)?.in_order.len()))
        };
        Section::enter().and_then(counts).unwrap_or_default()
    }

    /// A copy for a forked child, without what is locked by a thread that does not exist there.
    pub fn copy_in_child(&self) -> Dictionary {
        let strings = self.strings.copy_in_child().unwrap_or_default();
        let types = self.types.copy_in_child().unwrap_or_else(Types::known);
        Dictionary {
            strings: SectionLock::new(strings),
            types: SectionLock::new(types),
        }
    }
}

/// Nothing but blanks and control characters. A capture has no line for such a name (`profdir`), and its readers
/// would keep the type's earlier one.
fn is_blank(name: &[u8]) -> bool {
    std::str::from_utf8(name)
        .is_ok_and(|name| name.chars().all(|c| c.is_whitespace() || c.is_control()))
}

/// Copied under a lock that others wait for, so not too many at a time.
fn some_from<T: Clone>(all: &[T], from: usize, most: usize) -> Option<Vec<T>> {
    let rest = all.get(from..)?;
    Some(rest[..rest.len().min(most)].to_vec())
}

/// A string whose id is wanted, up to its first NUL.
struct Wanted<'a> {
    text: &'a [u8],
    hash: u64,
}

impl<'a> Wanted<'a> {
    fn of(text: &'a [u8]) -> Wanted<'a> {
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        Wanted {
            text,
            hash: hash(text),
        }
    }

    /// What stands for it where nothing is remembered.
    fn plain(&self) -> u64 {
        if self.text.is_empty() {
            EMPTY_ID
        } else {
            self.hash
        }
    }
}

/// The id under which a string is known, looking on from its hash as `id_of` does when it is taken.
fn find(strings: &Strings, wanted: &Wanted<'_>) -> Option<u64> {
    let mut id = wanted.hash;
    loop {
        if id != 0 && id != EMPTY_ID {
            let known = strings.by_id.get(&id)?;
            if known.to_bytes() == wanted.text {
                return Some(id);
            }
        }
        id = id.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_documented_one() {
        // "ab": h0 = 97 * 29 + 98, h1 = 97 * 131 + 98.
        assert_eq!(hash(b"ab"), (97 * 29 + 98) << 32 | (97 * 131 + 98));
        assert_eq!(hash(b""), 0);
    }

    #[test]
    fn an_unknown_string_is_kept_and_found_again() {
        let dictionary = Dictionary::default();
        let id = dictionary.id_of(b"Add_1");
        assert_eq!(id, hash(b"Add_1"));
        assert_eq!(dictionary.id_of(b"Add_1"), id);
        assert_eq!(
            dictionary.text_of(id).map(CStr::to_bytes),
            Some(&b"Add_1"[..])
        );
        assert_eq!(dictionary.strings_from(0, 9).len(), 1);
        assert_eq!(dictionary.id_of(b""), EMPTY_ID);
    }

    /// Two of one hash, found by a search of the lattice of differences that both halves let through.
    const TWINS: [&CStr; 2] = [c"nnmnllnknkolnllloono", c"lmmlonmomololoonlllk"];

    #[test]
    fn two_strings_with_one_hash_get_two_ids_whoever_comes_first() {
        let [one, two] = TWINS.map(CStr::to_bytes);
        assert_eq!(hash(one), hash(two));
        for [first, second] in [[one, two], [two, one]] {
            let dictionary = Dictionary::default();
            let ids = [dictionary.id_of(first), dictionary.id_of(second)];
            assert_eq!(ids[0], hash(first));
            assert_ne!(ids[0], ids[1]);
            for (text, id) in [first, second].into_iter().zip(ids) {
                assert_eq!(dictionary.id_of(text), id);
                assert_eq!(dictionary.text_of(id).map(CStr::to_bytes), Some(text));
            }
            assert_eq!(dictionary.strings_from(0, 9).len(), 2);
        }
    }

    #[test]
    fn a_string_whose_hash_was_given_to_another_one_gets_one_that_is_free() {
        let dictionary = Dictionary::default();
        let [first, second] = TWINS.map(CStr::to_bytes);
        dictionary.id_of(first);
        let taken = dictionary.id_of(second);
        // One more in the last place is one more in both halves.
        let third = [&second[..second.len() - 1], b"l"].concat();
        let wanted = hash(&third);
        assert_eq!(wanted, hash(second) + (1 << 32 | 1));
        let section = Section::enter().expect("outside");
        let strings = dictionary.strings.write(&section);
        let mut strings = strings.expect("free");
        assert!(strings.add(wanted, b"squatter"));
        drop(strings);
        drop(section);
        let id = dictionary.id_of(&third);
        assert!(id != wanted && id != taken);
        assert_eq!(dictionary.id_of(&third), id);
        assert_eq!(dictionary.text_of(id).map(CStr::to_bytes), Some(&third[..]));
    }

    #[test]
    fn strings_are_handed_out_in_parts() {
        let dictionary = Dictionary::default();
        for number in 0..10 {
            dictionary.id_of(format!("op_{number}").as_bytes());
        }
        let parts = [0, 4, 8, 10, 11].map(|from| dictionary.strings_from(from, 4).len());
        assert_eq!(parts, [4, 4, 2, 0, 0]);
        assert_eq!(dictionary.counts().0, 10);
    }

    #[test]
    fn a_handler_within_a_call_of_its_thread_gets_the_hash_and_keeps_nothing() {
        let dictionary = Dictionary::default();
        let known = dictionary.types_from(0, 99).len();
        let interrupted = Section::enter();
        assert_eq!(dictionary.id_of(b"new\0er"), hash(b"new"));
        assert_eq!(dictionary.id_of(b""), EMPTY_ID);
        assert!(!dictionary.name_type(level::RUNTIME, 1000, b"A"));
        assert_eq!(dictionary.range_type(b"forward"), None);
        assert_eq!(dictionary.text_of(hash(b"new")), None);
        drop(interrupted);
        assert_eq!(dictionary.strings_from(0, 9).len(), 0);
        assert_eq!(dictionary.types_from(0, 99).len(), known);
        assert!(dictionary.name_type(level::RUNTIME, 1000, b"A"));
    }

    #[test]
    fn the_last_name_of_a_type_counts_and_repeats_are_free() {
        let dictionary = Dictionary::default();
        let before = dictionary.types_from(0, 99).len();
        dictionary.name_type(level::RUNTIME, 1000, b"A");
        dictionary.name_type(level::RUNTIME, 1000, b"A");
        assert_eq!(dictionary.types_from(before, 9).len(), 1);
        dictionary.name_type(level::RUNTIME, 1000, b"B");
        assert_eq!(
            dictionary.type_name(level::RUNTIME, 1000).as_deref(),
            Some(&b"B"[..])
        );
        for blank in ["", " ", "\n\x01", "\u{85}\u{2028}"] {
            dictionary.name_type(level::RUNTIME, 1000, blank.as_bytes());
            dictionary.name_type(level::RUNTIME, 1001, blank.as_bytes());
        }
        assert_eq!(dictionary.types_from(before, 9).len(), 2);
        assert_eq!(dictionary.type_name(level::RUNTIME, 1001), None);
    }

    #[test]
    fn a_range_name_keeps_its_type() {
        let dictionary = Dictionary::default();
        let forward = dictionary.range_type(b"forward").expect("room");
        let backward = dictionary.range_type(b"backward").expect("room");
        assert_ne!(forward, backward);
        assert_eq!(dictionary.range_type(b"forward"), Some(forward));
        assert_eq!(
            dictionary.type_name(level::ACL, forward).as_deref(),
            Some(&b"forward"[..])
        );
    }
}
