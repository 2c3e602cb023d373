//! Text of a directory as people may be shown it: whoever wrote it may have meant harm.

pub use msprof_agent_core::visible::is_harmful;

/// The text with a blank in the place of each such character.
pub fn clean(text: &str) -> String {
    let clean = |c: char| if is_harmful(c) { ' ' } else { c };
    text.chars().map(clean).collect()
}

/// The same, cut to so many characters, which "..." says.
pub fn cut(text: &str, longest: usize) -> String {
    const DOTS: &str = "...";
    let mut kept: String = text.chars().take(longest + 1).collect();
    if kept.chars().count() > longest {
        let room = longest.saturating_sub(DOTS.len());
        kept = kept.chars().take(room).chain(DOTS.chars()).collect();
    }
    clean(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_or_turns_text_round_becomes_a_blank() {
        assert_eq!(clean("a\u{1b}[2J\r\n\u{9b}1mb"), "a [2J   1mb");
        // "exe.txt" shown as "txt.exe" and the like.
        for c in "\u{202e}\u{202d}\u{2066}\u{2067}\u{2069}\u{200f}\u{61c}\u{2028}\u{feff}\u{e0041}"
            .chars()
        {
            assert_eq!(clean(&format!("a{c}b")), "a b", "{c:?}");
        }
        let fine = "Conv2D/算子 مثال a\u{200d}b e\u{301} <b>";
        assert_eq!(clean(fine), fine);
    }

    #[test]
    fn long_text_is_cut_by_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abc...");
        assert_eq!(cut("ééééééé\u{7}", 6), "ééé...");
        assert_eq!(cut("", 0), "");
    }
}
