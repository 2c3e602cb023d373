//! What the stock parser calls the levels of calls, in its tables, its database and its timeline, and so do we everywhere.

use msprof_agent_core::records::level;
use std::borrow::Cow;

/// All that have a name, the outer ones first.
pub const NAMES: [(u16, &str); 9] = [
    (level::PYTORCH, "pytorch_tx"),
    (level::PTA, "pta"),
    (level::TX, "msproftx"),
    (level::ACL, "acl"),
    (level::MODEL, "model"),
    (level::NODE, "node"),
    (level::AICPU, "aicpu"),
    (level::HCCL, "communication"),
    (level::RUNTIME, "runtime"),
];

/// A level's name. One that has none has its number: the stock parser reads no file with such a record in it.
pub fn name(lvl: u16) -> Cow<'static, str> {
    match NAMES.iter().find(|(known, _)| *known == lvl) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(format!("level_{lvl}")),
    }
}

/// What stands before the `@` in the name of a timeline's event.
pub fn prefix(lvl: u16) -> Cow<'static, str> {
    if lvl == level::ACL {
        return Cow::Borrowed("AscendCL");
    }
    let mut name = name(lvl).into_owned();
    // ASCII, and never empty.
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Cow::Owned(name)
}

/// The class of a call at level acl, which the high bits of its type tell; the number of an unknown one.
pub fn acl_class(kind: u32) -> Cow<'static, str> {
    Cow::Borrowed(match kind >> 16 {
        1 => "ACL_OP",
        2 => "ACL_MODEL",
        3 => "ACL_RTS",
        4 => "ACL_OTHERS",
        5 => "ACL_NN",
        6 => "ACL_ASCENDC",
        7 => "HOST_HCCL",
        9 => "ACL_DVPP",
        10 => "ACL_GRAPH",
        11 => "ACL_ATB",
        other => return Cow::Owned(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_the_names_of_the_stock_parser_and_others_their_number() {
        for (lvl, expected) in [
            (30_000, "pytorch_tx"),
            (25_000, "pta"),
            (20_500, "msproftx"),
            (20_000, "acl"),
            (15_000, "model"),
            (10_000, "node"),
            (6_000, "aicpu"),
            (5_500, "communication"),
            (5_000, "runtime"),
            (7, "level_7"),
        ] {
            assert_eq!(name(lvl), expected);
        }
        assert_eq!(prefix(20_000), "AscendCL");
        assert_eq!(prefix(5_500), "Communication");
        assert_eq!(prefix(7), "Level_7");
    }

    #[test]
    fn the_page_has_a_hue_for_every_level_and_for_nothing_else() {
        let script = include_str!("view/script/timeline.js");
        let (_, hues) = script.split_once("const HUES = {").expect("there");
        let (hues, _) = hues.split_once('}').expect("an end");
        let hues = hues.split(',').filter_map(|hue| hue.split_once(':'));
        let mut hues: Vec<&str> = hues.map(|(name, _)| name.trim()).collect();
        let mut names = NAMES.map(|(_, name)| name);
        hues.sort_unstable();
        names.sort_unstable();
        assert_eq!(hues, names);
    }
}
