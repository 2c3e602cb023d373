//! String ids and type names, for the life of the process.
//!
//! Names are registered by components at any time, from any thread, and are written into every
//! capture. A known name costs a look-up under a shared lock; a new one allocates. Strings are never
//! freed: the ABI promises that returned strings stay valid.

use crate::records::level;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
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

#[derive(Debug, Default)]
struct Strings {
    by_id: HashMap<u64, &'static CStr>,
    in_order: Vec<StringEntry>,
}

#[derive(Debug, Default)]
struct Types {
    by_key: HashMap<(u16, u32), usize>,
    /// Every registration that said something new; a later one of the same key replaces an earlier.
    in_order: Vec<TypeEntry>,
    ranges: HashMap<Box<[u8]>, u32>,
}

/// All names of the process.
#[derive(Debug)]
pub struct Dictionary {
    strings: RwLock<Strings>,
    types: RwLock<Types>,
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

impl Default for Dictionary {
    fn default() -> Self {
        let dictionary = Dictionary {
            strings: RwLock::default(),
            types: RwLock::default(),
        };
        for (level, kind, name) in DEFAULT_TYPES.into_iter().chain(MODEL_TYPES) {
            dictionary.name_type(level, kind, name.as_bytes());
        }
        dictionary
    }
}

impl Dictionary {
    /// The id of a string, which is remembered. Text behind a NUL is ignored. Two strings never share
    /// an id: when the hash of a new one is taken, it gets the next free number.
    pub fn id_of(&self, text: &[u8]) -> u64 {
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        if text.is_empty() {
            return EMPTY_ID;
        }
        let first = hash(text);
        if let Some(id) = find(&self.strings.read(), first, text) {
            return id;
        }
        let mut strings = self.strings.write();
        if let Some(id) = find(&strings, first, text) {
            return id;
        }
        let mut id = first;
        // 0 means "no name" to the parser.
        while id == 0 || id == EMPTY_ID || strings.by_id.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        let owned = CString::new(text).unwrap_or_default();
        let text: &'static CStr = Box::leak(owned.into_boxed_c_str());
        strings.by_id.insert(id, text);
        strings.in_order.push(StringEntry { id, text });
        id
    }

    /// The string of an id that [`Dictionary::id_of`] gave out.
    pub fn text_of(&self, id: u64) -> Option<&'static CStr> {
        self.strings.read().by_id.get(&id).copied()
    }

    /// Names a type. The last name given counts.
    pub fn name_type(&self, level: u16, kind: u32, name: &[u8]) {
        if self.is_type_named(level, kind, name) {
            return;
        }
        let mut types = self.types.write();
        let index = types.in_order.len();
        match types.by_key.entry((level, kind)) {
            MapEntry::Occupied(mut known) => {
                known.insert(index);
            }
            MapEntry::Vacant(new) => {
                new.insert(index);
            }
        }
        types.in_order.push(TypeEntry {
            level,
            kind,
            name: name.into(),
        });
    }

    fn is_type_named(&self, level: u16, kind: u32, name: &[u8]) -> bool {
        let types = self.types.read();
        let index = types.by_key.get(&(level, kind));
        index.is_some_and(|&index| &*types.in_order[index].name == name)
    }

    /// The name of a type.
    pub fn type_name(&self, level: u16, kind: u32) -> Option<Box<[u8]>> {
        let types = self.types.read();
        let index = *types.by_key.get(&(level, kind))?;
        Some(types.in_order[index].name.clone())
    }

    /// The acl-level type of a named range, which is made for a new name; `None` when there are too
    /// many names.
    pub fn range_type(&self, name: &[u8]) -> Option<u32> {
        if let Some(&kind) = self.types.read().ranges.get(name) {
            return Some(kind);
        }
        let kind = {
            let mut types = self.types.write();
            let count = types.ranges.len() as u32;
            if count >= RANGE_TYPES_MAX {
                return None;
            }
            let fresh = RANGE_TYPE_BASE + count;
            *types.ranges.entry(name.into()).or_insert(fresh)
        };
        self.name_type(level::ACL, kind, name);
        Some(kind)
    }

    /// Strings from number `from` on, in the order of their first use.
    pub fn strings_from(&self, from: usize) -> Vec<StringEntry> {
        let strings = self.strings.read();
        strings.in_order.get(from..).unwrap_or_default().to_vec()
    }

    /// Type names from number `from` on, in the order of registration.
    pub fn types_from(&self, from: usize) -> Vec<TypeEntry> {
        let types = self.types.read();
        types.in_order.get(from..).unwrap_or_default().to_vec()
    }

    /// A copy for a forked child, without what is locked by a thread that does not exist there.
    pub fn copy_in_child(&self) -> Dictionary {
        let copy = Dictionary::default();
        if let Some(strings) = self.strings.try_read() {
            let mut mine = copy.strings.write();
            mine.by_id.clone_from(&strings.by_id);
            mine.in_order.clone_from(&strings.in_order);
        }
        if let Some(types) = self.types.try_read() {
            let mut mine = copy.types.write();
            mine.by_key.clone_from(&types.by_key);
            mine.in_order.clone_from(&types.in_order);
            mine.ranges.clone_from(&types.ranges);
        }
        copy
    }
}

/// The id under which `text` is known, looking on from its hash as `id_of` does when it is taken.
fn find(strings: &Strings, first: u64, text: &[u8]) -> Option<u64> {
    let mut id = first;
    loop {
        if id != 0 && id != EMPTY_ID {
            let known = strings.by_id.get(&id)?;
            if known.to_bytes() == text {
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
        assert_eq!(dictionary.strings_from(0).len(), 1);
        assert_eq!(dictionary.id_of(b""), EMPTY_ID);
    }

    #[test]
    fn two_strings_with_one_hash_get_two_ids() {
        // One step of the first byte is worth 29 and 131 of the second: both halves collide when a
        // difference is divisible by both moduli of the wrap, which needs long strings; force it
        // instead by taking the id of the second string for another one first.
        let dictionary = Dictionary::default();
        let taken = hash(b"second");
        let other: &'static CStr = c"first";
        dictionary.strings.write().by_id.insert(taken, other);
        let id = dictionary.id_of(b"second");
        assert_ne!(id, taken);
        assert_eq!(dictionary.id_of(b"second"), id);
        assert_eq!(dictionary.text_of(id), Some(c"second"));
        assert_eq!(dictionary.text_of(taken), Some(c"first"));
    }

    #[test]
    fn the_last_name_of_a_type_counts_and_repeats_are_free() {
        let dictionary = Dictionary::default();
        let before = dictionary.types_from(0).len();
        dictionary.name_type(level::RUNTIME, 1000, b"A");
        dictionary.name_type(level::RUNTIME, 1000, b"A");
        assert_eq!(dictionary.types_from(before).len(), 1);
        dictionary.name_type(level::RUNTIME, 1000, b"B");
        assert_eq!(
            dictionary.type_name(level::RUNTIME, 1000).as_deref(),
            Some(&b"B"[..])
        );
        assert_eq!(dictionary.types_from(before).len(), 2);
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
