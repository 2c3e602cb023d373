//! Characters that play with whoever reads a line. Both ends keep them out of what they say.

#![forbid(unsafe_code)]

/// Whether a character does something other than to be seen: commands a terminal, ends the line, or makes the rest of the
/// line come in another order, so that a name shows as what it is not.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Direction: Arabic letter mark, marks, embeddings, overrides, isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            // Ends of lines and paragraphs.
            | '\u{2028}' | '\u{2029}'
            // What takes no place at all and belongs to no script.
            | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_more_than_to_be_seen_is_harmful_and_no_letter_of_any_script() {
        for c in
            "\n\u{1b}\u{7f}\u{9b}\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{feff}\u{e0041}".chars()
        {
            assert!(is_harmful(c), "{c:?}");
        }
        // A joiner belongs to the scripts that need it.
        for c in "a ~算مe\u{301}\u{200d}<\u{a0}".chars() {
            assert!(!is_harmful(c), "{c:?}");
        }
    }
}
