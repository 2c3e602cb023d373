//! Words of a command line: splitting a string as a shell does, and telling `--name=value` apart.
//!
//! No shell is run and nothing is expanded: `$HOME`, `*`, `~`, `;` and `|` are ordinary characters.

use super::OptionError;

/// Splits a string into words as a POSIX shell does.
///
/// Blanks, tabs and newlines separate words. Single quotes keep everything up to the next single
/// quote. Double quotes keep everything but `\` before `"`, `\`, `$` and a backtick. Outside quotes
/// a `\` keeps the next character. An empty pair of quotes is an empty word.
///
/// Errors: a quote that is never closed, and a `\` at the very end.
pub fn split_words(text: &str) -> Result<Vec<String>, OptionError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err(OptionError::OpenQuote { quote: '\'' }),
                    }
                }
            }
            '"' => quoted(&mut rest, word.get_or_insert_default())?,
            '\\' => match rest.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err(OptionError::TrailingBackslash),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the closing double quote.
fn quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), OptionError> {
    const OPEN: OptionError = OptionError::OpenQuote { quote: '"' };
    loop {
        match rest.next().ok_or(OPEN)? {
            '"' => return Ok(()),
            '\\' => match rest.next().ok_or(OPEN)? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

/// Takes an option word apart: `--name=value` or `--name`; `None` when it is no option.
///
/// The name is without the dashes. A single dash, a double dash alone and short options are none.
pub fn split_option(word: &str) -> Option<(&str, Option<&str>)> {
    let body = word.strip_prefix("--")?;
    if body.is_empty() {
        return None;
    }
    Some(match body.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (body, None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn splits(text: &str, expected: &[&str]) {
        assert_eq!(split_words(text).expect("splits"), expected, "{text}");
    }

    #[test]
    fn words_are_split_at_blanks_and_quotes_are_honoured() {
        splits("", &[]);
        splits("  \t ", &[]);
        splits("main arg1  arg2 ", &["main", "arg1", "arg2"]);
        splits("'a b' \"c d\" e\\ f", &["a b", "c d", "e f"]);
        splits("pre'mid 1'\"mid 2\"post", &["premid 1mid 2post"]);
        splits("a '' \"\" b", &["a", "", "", "b"]);
        splits(
            r#"python -c 'print("hi")'"#,
            &["python", "-c", r#"print("hi")"#],
        );
        splits(r#""a \"q\" \\ \n""#, &[r#"a "q" \ \n"#]);
    }

    #[test]
    fn nothing_is_expanded() {
        splits(
            "echo $HOME ~ *.c `id` a;b|c",
            &["echo", "$HOME", "~", "*.c", "`id`", "a;b|c"],
        );
    }

    #[test]
    fn an_open_quote_is_an_error() {
        for text in ["a 'b", "a \"b", "\"b\\"] {
            assert!(
                matches!(split_words(text), Err(OptionError::OpenQuote { .. })),
                "{text}"
            );
        }
        assert_eq!(split_words("a\\"), Err(OptionError::TrailingBackslash));
    }

    #[test]
    fn an_option_word_is_told_from_other_words() {
        assert_eq!(split_option("--a=b=c"), Some(("a", Some("b=c"))));
        assert_eq!(split_option("--a="), Some(("a", Some(""))));
        assert_eq!(split_option("--a"), Some(("a", None)));
        assert_eq!(split_option("--"), None);
        assert_eq!(split_option("-a"), None);
        assert_eq!(split_option("a"), None);
    }
}
