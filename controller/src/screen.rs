//! Everything that is printed: results on stdout, errors on stderr, one progress line on a terminal.
//!
//! Used by the main thread only. While the prompt waits for input on a terminal, lines are put above
//! it and the prompt is drawn again; the line editor draws the half-typed command at the next key.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Text of a directory as a terminal may show it: whoever wrote it may have meant harm.
pub use msprof_export::visible::clean;

/// Go to the start of the line and erase it.
const ERASE_LINE: &str = "\r\x1b[K";

/// The terminal or pipes that the user reads.
#[derive(Debug)]
pub struct Screen {
    errors_on_terminal: bool,
    /// Terminal settings before the line editor changed them.
    settings: Option<Termios>,
    /// What the line editor shows in front of its input; `None` when there is no editor.
    editor_prompt: Option<&'static str>,
    at_prompt: bool,
    progress_shown: bool,
    closed: bool,
}

/// Something was to be said on stdout and could not be.
static LOST: AtomicBool = AtomicBool::new(false);

/// Remembers that stdout was not written. A reader that has gone away has seen what it wanted.
pub fn note_lost(error: &std::io::Error) {
    if error.kind() != std::io::ErrorKind::BrokenPipe {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Whether something is missing on stdout.
pub fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

impl Screen {
    /// The screen of this process.
    pub fn new() -> Screen {
        Screen {
            errors_on_terminal: std::io::stderr().is_terminal(),
            settings: tcgetattr(std::io::stdin()).ok(),
            editor_prompt: None,
            at_prompt: false,
            progress_shown: false,
            closed: false,
        }
    }

    /// Says that a line editor reads the input and shows this prompt.
    pub fn set_editor(&mut self, prompt: &'static str) {
        self.editor_prompt = Some(prompt);
    }

    /// Whether the prompt is shown, waiting for input.
    pub fn set_at_prompt(&mut self, at_prompt: bool) {
        self.clear_progress();
        self.at_prompt = at_prompt;
    }

    /// Whether nobody reads stdout any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Prints a result.
    pub fn say(&mut self, text: &str) {
        self.clear_progress();
        if self.above_prompt(text) {
            return;
        }
        let mut out = std::io::stdout().lock();
        let written = writeln!(out, "{text}").and_then(|()| out.flush());
        if let Err(error) = written {
            note_lost(&error);
            self.closed = true;
        }
    }

    /// Prints an error or a remark that is no result.
    pub fn warn(&mut self, text: &str) {
        self.clear_progress();
        if self.errors_on_terminal && self.above_prompt(text) {
            return;
        }
        // Where stderr is closed there is nobody to tell.
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// Shows a line that the next one replaces; only on a terminal.
    pub fn progress(&mut self, text: &str) {
        if self.errors_on_terminal && !self.at_prompt {
            let _ = write!(std::io::stderr().lock(), "{ERASE_LINE}{text}");
            self.progress_shown = true;
        }
    }

    fn clear_progress(&mut self) {
        if self.progress_shown {
            let _ = write!(std::io::stderr().lock(), "{ERASE_LINE}");
            self.progress_shown = false;
        }
    }

    /// Gives the terminal back although the line editor still reads; what is typed is dropped.
    pub fn leave_prompt(&mut self) {
        if !self.at_prompt {
            return;
        }
        self.at_prompt = false;
        if self.editor_prompt.take().is_some() {
            self.restore();
            let _ = write!(std::io::stdout().lock(), "{ERASE_LINE}");
        }
    }

    /// Sets the terminal as it was.
    pub fn restore(&mut self) {
        if let Some(settings) = &self.settings {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, settings);
        }
    }

    fn above_prompt(&mut self, text: &str) -> bool {
        let Some(prompt) = self.editor_prompt.filter(|_| self.at_prompt) else {
            return false;
        };
        // The editor has the terminal in a mode in which a line feed alone may not return.
        let text = text.replace('\n', "\r\n");
        let mut out = std::io::stdout().lock();
        let written = write!(out, "{ERASE_LINE}{text}\r\n{prompt}").and_then(|()| out.flush());
        self.closed |= written.is_err();
        true
    }
}
