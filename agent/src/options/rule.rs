//! What values an option takes, and the words in which that is said.

use super::OptionError;

/// Characters that a path given to `--output` must not hold (spec 4 section 4.1).
const REFUSED_IN_PATH: &[char] = &[
    '\n', '\u{c}', '\r', '\u{8}', '\t', '\u{b}', '\u{7f}', '"', '\'', '\\', '%', '>', '<', '|',
    '&', '$', ';', '`', '\0',
];
/// Longest path that the kernel takes, without the final NUL.
const PATH_BYTES: usize = 4095;
/// Most registers that `Custom:` may name.
const CUSTOM_REGISTERS: usize = 8;
/// Smallest `--storage-limit`, MB.
pub const STORAGE_LIMIT_MIN_MB: u32 = 200;

/// The rule that a value is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `on` or `off`.
    OnOff,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of these words, comma-separated, each at most once.
    SomeOf(&'static [&'static str]),
    /// A decimal number within these bounds.
    Number {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// `<n>MB`, n from [`STORAGE_LIMIT_MIN_MB`].
    StorageLimit,
    /// A path without the characters that the stock tool refuses.
    Path,
    /// One of these words, or `Custom:` and up to eight register numbers.
    Metrics(&'static [&'static str]),
    /// Any text that is not empty.
    Text,
}

impl Rule {
    /// Checks a value of the option `name` (without dashes).
    pub fn check(self, name: &str, value: &str) -> Result<(), OptionError> {
        let good = match self {
            Rule::OnOff => matches!(value, "on" | "off"),
            Rule::OneOf(words) => words.contains(&value),
            Rule::SomeOf(words) => some_of(words, value),
            Rule::Number { min, max } => number(value).is_some_and(|n| (min..=max).contains(&n)),
            Rule::StorageLimit => storage_limit_mb(value).is_some(),
            Rule::Path => {
                !value.is_empty() && value.len() <= PATH_BYTES && !value.contains(REFUSED_IN_PATH)
            }
            Rule::Metrics(words) => {
                words.contains(&value) || value.strip_prefix("Custom:").is_some_and(registers)
            }
            Rule::Text => !value.is_empty() && !value.chars().any(char::is_control),
        };
        if good {
            return Ok(());
        }
        Err(OptionError::Value {
            option: name.to_owned(),
            value: value.to_owned(),
            valid: self.to_string(),
        })
    }
}

/// The valid range in words, on one line.
impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rule::OnOff => f.write_str("on, off"),
            Rule::OneOf(words) => f.write_str(&words.join(", ")),
            Rule::SomeOf(words) => {
                write!(f, "one or more of {}, comma-separated", words.join(", "))
            }
            Rule::Number { min, max } => write!(f, "{min}~{max}"),
            Rule::StorageLimit => write!(f, "{STORAGE_LIMIT_MIN_MB}MB~{}MB", u32::MAX),
            Rule::Path => f.write_str(
                "a path without line breaks, tabs and control characters and without any of \" ' \\ % > < | & $ ; `",
            ),
            Rule::Metrics(words) => write!(
                f,
                "{}, Custom:<up to {CUSTOM_REGISTERS} register numbers, 0x1~0xffff, comma-separated>",
                words.join(", ")
            ),
            Rule::Text => f.write_str("a text that is not empty"),
        }
    }
}

fn some_of(words: &[&str], value: &str) -> bool {
    let mut seen = Vec::new();
    value.split(',').all(|word| {
        let fresh = words.contains(&word) && !seen.contains(&word);
        seen.push(word);
        fresh
    })
}

/// Reads a decimal number; no sign, no blanks.
pub fn number(value: &str) -> Option<u32> {
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    value.parse().ok()
}

/// Reads `<n>MB`; `None` when it is not that or n is out of range.
pub fn storage_limit_mb(value: &str) -> Option<u32> {
    number(value.strip_suffix("MB")?).filter(|&mb| mb >= STORAGE_LIMIT_MIN_MB)
}

fn registers(list: &str) -> bool {
    let mut count = 0;
    let all_good = list.split(',').all(|word| {
        count += 1;
        let register = match word.strip_prefix("0x") {
            Some(hex) => u16::from_str_radix(hex, 16).ok(),
            None => number(word).and_then(|n| u16::try_from(n).ok()),
        };
        register.is_some_and(|r| r > 0)
    });
    all_good && count <= CUSTOM_REGISTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(rule: Rule, value: &str) -> bool {
        rule.check("x", value).is_ok()
    }

    #[test]
    fn storage_limits_are_whole_megabytes_from_200() {
        for good in ["200MB", "4294967295MB", "0200MB"] {
            assert!(takes(Rule::StorageLimit, good), "{good}");
        }
        for bad in [
            "",
            "MB",
            "199MB",
            "4294967296MB",
            "200",
            "200mb",
            "+200MB",
            "200 MB",
            "2e2MB",
        ] {
            assert!(!takes(Rule::StorageLimit, bad), "{bad}");
        }
    }

    #[test]
    fn paths_with_any_refused_character_are_refused() {
        for good in [".", "/a b/c_d-e", "/\u{fc}/\u{4e2d}"] {
            assert!(takes(Rule::Path, good), "{good}");
        }
        for c in REFUSED_IN_PATH {
            assert!(!takes(Rule::Path, &format!("/a{c}b")), "{c:?}");
        }
        assert!(!takes(Rule::Path, ""));
    }

    #[test]
    fn numbers_keep_their_bounds() {
        let rule = Rule::Number { min: 1, max: 100 };
        for good in ["1", "100", "007"] {
            assert!(takes(rule, good), "{good}");
        }
        for bad in ["0", "101", "", "-1", "+1", "1.5", "1 ", "99999999999999"] {
            assert!(!takes(rule, bad), "{bad}");
        }
    }

    #[test]
    fn lists_take_known_words_once_each() {
        let rule = Rule::SomeOf(&["cpu", "mem"]);
        assert!(takes(rule, "cpu") && takes(rule, "mem,cpu"));
        for bad in ["", "cpu,", "cpu,cpu", "disk", "cpu;mem"] {
            assert!(!takes(rule, bad), "{bad}");
        }
    }

    #[test]
    fn metrics_are_named_or_a_short_list_of_registers() {
        let rule = Rule::Metrics(&["Memory"]);
        for good in [
            "Memory",
            "Custom:0x1",
            "Custom:0x49,8,0x15,0x1b,0x64,0x10,1,2",
        ] {
            assert!(takes(rule, good), "{good}");
        }
        for bad in [
            "memory",
            "Custom",
            "Custom:",
            "Custom:0x0",
            "Custom:1,2,3,4,5,6,7,8,9",
            "Custom:0x10000",
        ] {
            assert!(!takes(rule, bad), "{bad}");
        }
    }
}
