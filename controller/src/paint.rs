//! Colours and the width of a terminal; neither in a pipe.

use rustix::termios::tcgetwinsize;
use std::io::IsTerminal;

/// How results look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    /// Whether text has colours.
    pub colours: bool,
    /// Columns of the terminal; `None` where there is none.
    pub width: Option<usize>,
}

/// What a piece of text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Head of a table, or what matters most in a row.
    Strong,
    /// What gives a row its place.
    Label,
    /// As it should be.
    Good,
    /// Something is missing or wrong.
    Bad,
}

impl Paint {
    /// What stdout takes: colours only on a terminal, and not where `NO_COLOR` says so or the terminal is a dumb one.
    pub fn of_stdout() -> Paint {
        let out = std::io::stdout();
        if !out.is_terminal() {
            return Paint::default();
        }
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = tcgetwinsize(&out).map_or(0, |size| size.ws_col.into());
        Paint {
            colours: !refused && !dumb,
            width: Some(columns).filter(|columns| *columns > 0),
        }
    }

    /// The text in the colour of its meaning.
    pub fn tone(&self, tone: Tone, text: &str) -> String {
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Strong => "1",
            Tone::Label => "36",
            Tone::Good => "32",
            Tone::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
