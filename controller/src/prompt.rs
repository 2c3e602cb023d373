//! Where commands come from: a line editor on a terminal, a bounded reader elsewhere.
//!
//! Both run in a thread of their own, since neither can be told to stop waiting, and read a line
//! only when the main thread asks for one: output of a command never runs into the next prompt.

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Editor, Helper};
use std::io::{BufRead, BufReader, ErrorKind, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What the user sees on a terminal.
pub const PROMPT: &str = "(msprof) ";
/// Longest command line, bytes; the rest of a longer one is thrown away.
const LINE_MAX: usize = 4096;
/// After so many errors in a row the terminal is given up; it would spin otherwise.
const ERRORS_MAX: u32 = 8;

/// What came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A line, without its end.
    Line(String),
    /// The end of the input.
    End,
    /// Ctrl-C, typed at the prompt.
    Interrupted,
}

/// The thread that reads commands.
#[derive(Debug)]
pub struct Prompt {
    requests: Sender<()>,
    asked: bool,
    has_editor: bool,
}

impl Prompt {
    /// Starts the thread; each line that is asked for goes to `report`.
    pub fn start(report: impl Fn(Input) + Send + 'static) -> std::io::Result<Prompt> {
        let (requests, asked) = channel();
        let stdin_on_terminal = std::io::stdin().is_terminal();
        let editor = (stdin_on_terminal && std::io::stdout().is_terminal())
            .then(editor)
            .flatten();
        let thread = std::thread::Builder::new().name("prompt".to_owned());
        let has_editor = editor.is_some();
        match editor {
            Some(editor) => {
                thread.spawn(move || edit_lines(editor, &asked, &report))?;
            }
            None => {
                // On a terminal whose output goes elsewhere the prompt is still wanted.
                let prompt = stdin_on_terminal && std::io::stderr().is_terminal();
                thread.spawn(move || read_lines(prompt, &asked, &report))?;
            }
        }
        Ok(Prompt {
            requests,
            asked: false,
            has_editor,
        })
    }

    /// Whether a line editor has the terminal.
    pub fn has_editor(&self) -> bool {
        self.has_editor
    }

    /// Asks for the next line unless that has been done.
    pub fn ask(&mut self) {
        // A thread that has ended has reported the end of the input.
        if !self.asked && self.requests.send(()).is_ok() {
            self.asked = true;
        }
    }

    /// To be called when a line has come.
    pub fn answered(&mut self) {
        self.asked = false;
    }
}

/// Makes the editor draw the whole line at every key, so that a line printed above the prompt in the
/// meantime does not hide what was typed before. (The editor's own way to print above the prompt
/// hands the text to this thread: it would come after later lines, and the last one not at all.)
struct Redraw;

impl Highlighter for Redraw {
    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        true
    }
}

impl Completer for Redraw {
    type Candidate = String;
}

impl Hinter for Redraw {
    type Hint = String;
}

impl Validator for Redraw {}

impl Helper for Redraw {}

type LineEditor = Editor<Redraw, MemHistory>;

fn editor() -> Option<LineEditor> {
    // Bracketed paste would have to be switched off again when the prompt is left from outside.
    let config = Config::builder()
        .auto_add_history(true)
        .bracketed_paste(false)
        .build();
    let mut editor = Editor::with_history(config, MemHistory::new()).ok()?;
    editor.set_helper(Some(Redraw));
    Some(editor)
}

fn edit_lines(editor: LineEditor, asked: &Receiver<()>, report: &impl Fn(Input)) {
    // Never dropped: the editor would set the handler of SIGINT back to what it was before ours.
    let mut editor = ManuallyDrop::new(editor);
    let mut errors = 0;
    while asked.recv().is_ok() {
        let input = loop {
            match editor.readline(PROMPT) {
                Ok(line) => break Input::Line(line),
                Err(ReadlineError::Interrupted) => break Input::Interrupted,
                Err(ReadlineError::Eof) => break Input::End,
                Err(ReadlineError::Signal(_)) => {}
                // Bytes that are no UTF-8: what was typed is lost, the terminal is not.
                Err(_) if errors < ERRORS_MAX => errors += 1,
                Err(_) => break Input::End,
            }
        };
        if let Input::Line(_) = input {
            errors = 0;
        }
        let over = input == Input::End;
        report(input);
        if over {
            return;
        }
    }
}

fn read_lines(prompt: bool, asked: &Receiver<()>, report: &impl Fn(Input)) {
    let mut stdin = BufReader::new(std::io::stdin().lock());
    while asked.recv().is_ok() {
        if prompt {
            let _ = write!(std::io::stderr().lock(), "{PROMPT}");
        }
        let input = match read_line(&mut stdin) {
            Ok(Some(line)) => Input::Line(line),
            Ok(None) | Err(_) => Input::End,
        };
        let over = input == Input::End;
        report(input);
        if over {
            return;
        }
    }
}

/// Reads one line of at most [`LINE_MAX`] bytes; `None` at the end. A last line without its end
/// counts as a line.
fn read_line(from: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut any = false;
    loop {
        let available = match from.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(any.then(|| text(&line)));
        }
        any = true;
        let end = available.iter().position(|b| *b == b'\n');
        let piece = &available[..end.unwrap_or(available.len())];
        let room = LINE_MAX - line.len();
        line.extend_from_slice(&piece[..piece.len().min(room)]);
        let used = piece.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(Some(text(&line)));
        }
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut from = BufReader::with_capacity(7, bytes);
        std::iter::from_fn(|| read_line(&mut from).expect("reads")).collect()
    }

    #[test]
    fn lines_are_read_whole_and_the_last_needs_no_end() {
        assert_eq!(lines(b""), Vec::<String>::new());
        assert_eq!(
            lines(b"start\n\nstop and wait\nq"),
            ["start", "", "stop and wait", "q"]
        );
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut long = vec![b'x'; 3 * LINE_MAX];
        long.extend_from_slice(b"\nstop\n");
        let lines = lines(&long);
        assert_eq!((lines[0].len(), lines[1].as_str()), (LINE_MAX, "stop"));
    }

    #[test]
    fn bytes_that_are_no_text_are_a_line_all_the_same() {
        assert_eq!(lines(b"\xff\xfe\nq\n").len(), 2);
    }
}
