//! Names and items of the intervals, each once, in the order in which they were met.

use crate::calls::{Call, NameKey};
use crate::source::Source;
use crate::visible::cut;
use msprof_agent_core::records::level;
use std::borrow::Cow;
use std::collections::HashMap;

/// Names and items of which each has a number; more are called "others", and have no item.
const MOST: usize = 1 << 16;
/// Characters of a name in the page.
const LONGEST: usize = 300;
/// What further names of a level are called.
const OTHERS: &str = "others";

/// What gives an interval its name.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Call(NameKey),
    Text(u16, String),
}

/// All names and items.
#[derive(Default)]
pub(super) struct Names {
    known: HashMap<Key, u32>,
    /// Level and name.
    pub names: Vec<(u16, String)>,
    known_items: HashMap<(u16, u64), u32>,
    /// The first one is none.
    pub items: Vec<String>,
    /// What models are called.
    models: HashMap<u64, String>,
}

impl Names {
    /// Models have names of their own.
    pub(super) fn new(models: HashMap<u64, String>) -> Names {
        Names {
            models,
            items: vec![String::new()],
            ..Names::default()
        }
    }

    /// The number of a call's name.
    pub(super) fn call(&mut self, source: &Source, call: &Call) -> u32 {
        let key = call.name_key();
        self.number(Key::Call(key), call.level, || source.name(key))
    }

    /// The number of a name that the caller has.
    pub(super) fn text(&mut self, lvl: u16, name: &str) -> u32 {
        self.number(Key::Text(lvl, name.to_owned()), lvl, || name.into())
    }

    fn number<'a>(&mut self, key: Key, lvl: u16, name: impl Fn() -> Cow<'a, str>) -> u32 {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.names.len() >= MOST && key != Key::Text(lvl, OTHERS.to_owned()) {
            return self.text(lvl, OTHERS);
        }
        let number = self.names.len() as u32;
        self.names.push((lvl, cut(&name(), LONGEST)));
        self.known.insert(key, number);
        number
    }

    /// The number of what a call is about: 0 where it is not said.
    pub(super) fn item(&mut self, source: &Source, call: &Call) -> u32 {
        if call.level == level::MODEL {
            let name = self.models.get(&call.item).map_or("", String::as_str);
            let text = format!("model {} {name}", call.item);
            return self.item_text(call.level, call.item, || text.trim_end().to_owned());
        }
        match source.string(call.item) {
            // Its number says nothing.
            Cow::Owned(_) => 0,
            // It is the name already.
            Cow::Borrowed(_) if call.level == level::HCCL => 0,
            Cow::Borrowed(text) => self.item_text(0, call.item, || text.to_owned()),
        }
    }

    /// The number of an item by what tells it from others.
    pub(super) fn item_text(&mut self, of: u16, id: u64, text: impl FnOnce() -> String) -> u32 {
        if let Some(known) = self.known_items.get(&(of, id)) {
            return *known;
        }
        if self.items.len() >= MOST {
            return 0;
        }
        let number = self.items.len() as u32;
        self.items.push(cut(&text(), LONGEST));
        self.known_items.insert((of, id), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_share_one_and_items_have_none() {
        let mut names = Names::new(HashMap::new());
        for n in 0..MOST as u32 {
            assert_eq!(names.text(level::ACL, &n.to_string()), n);
        }
        let others = names.text(level::ACL, "one more");
        assert_eq!(others, MOST as u32);
        assert_eq!(names.text(level::ACL, "and another"), others);
        assert_eq!(names.text(level::ACL, "7"), 7);
        assert_ne!(names.text(level::RUNTIME, "x"), others);
        assert_eq!(names.names.len(), MOST + 2);

        for n in 1..MOST as u64 {
            assert_eq!(names.item_text(0, n, || n.to_string()), n as u32);
        }
        assert_eq!(names.item_text(0, 0, String::new), 0);
        assert_eq!(names.item_text(0, 9, String::new), 9);
    }

    #[test]
    fn names_are_cut_and_harmless() {
        let mut names = Names::new(HashMap::new());
        names.text(level::ACL, &"long".repeat(10_000));
        names.text(level::ACL, "a\u{202e}b\u{1b}");
        assert_eq!(names.names[0].1.chars().count(), LONGEST);
        assert_eq!(names.names[1].1, "a b ");
    }
}
