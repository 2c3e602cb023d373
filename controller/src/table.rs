//! Tables of text whose columns are as wide as what is in them.

use crate::paint::{Paint, Tone};
use msprof_export::visible::cut;
use unicode_width::UnicodeWidthStr;

/// Columns of a pipe that a name may take.
const PIPED: usize = 48;
/// Columns that a name has on the narrowest of terminals.
const NARROW: usize = 12;
/// Between two columns.
const GAP: &str = "  ";

/// What is in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What gives a row its place.
    Label,
    /// A name of any length, cut to what the terminal has for it.
    Name,
    /// A text of any length that is cut to so many columns.
    Short(usize),
    /// A text that a terminal may show, never cut.
    Text,
    /// A number.
    Number,
    /// The number by which the rows are sorted.
    Rank,
}

/// Rows of cells.
#[derive(Debug)]
pub struct Table {
    heads: Vec<(Kind, &'static str)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(heads: &[(Kind, &'static str)]) -> Table {
        Table {
            heads: heads.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, a cell for each column. Names may hold anything.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The text, lines ended by a line feed, none without rows.
    pub fn text(&self, paint: &Paint) -> String {
        let mut text = String::new();
        if self.rows.is_empty() {
            return text;
        }
        let mut lines: Vec<Vec<String>> = Vec::with_capacity(self.rows.len() + 1);
        lines.push(
            self.heads
                .iter()
                .map(|(_, head)| (*head).to_owned())
                .collect(),
        );
        lines.extend(self.rows.iter().cloned());
        let room = self.room(&lines, paint);
        for line in &mut lines {
            for (cell, (kind, _)) in line.iter_mut().zip(&self.heads) {
                match kind {
                    Kind::Name => *cell = fit(cell, room),
                    Kind::Short(columns) => *cell = fit(cell, *columns),
                    Kind::Label | Kind::Text | Kind::Number | Kind::Rank => {}
                }
            }
        }
        let widths: Vec<usize> = (0..self.heads.len())
            .map(|column| widest(&lines, column))
            .collect();
        for (number, line) in lines.iter().enumerate() {
            let mut out = String::new();
            for (((kind, _), cell), width) in self.heads.iter().zip(line).zip(&widths) {
                let blanks = " ".repeat(width.saturating_sub(cell.width()));
                let shown = match (number, kind) {
                    (0, _) | (_, Kind::Rank) => paint.tone(Tone::Strong, cell),
                    (_, Kind::Label) => paint.tone(Tone::Label, cell),
                    _ => cell.clone(),
                };
                out += &match kind {
                    Kind::Label | Kind::Name | Kind::Short(_) | Kind::Text => shown + &blanks,
                    Kind::Number | Kind::Rank => blanks + &shown,
                };
                out += GAP;
            }
            text += out.trim_end();
            text.push('\n');
        }
        text
    }

    /// Columns that a name may take.
    fn room(&self, lines: &[Vec<String>], paint: &Paint) -> usize {
        let Some(width) = paint.width else {
            return PIPED;
        };
        let others = self.heads.iter().enumerate();
        let others = others.filter(|(_, (kind, _))| *kind != Kind::Name);
        let taken: usize = others
            .map(|(column, _)| widest(lines, column) + GAP.len())
            .sum();
        width.saturating_sub(taken).max(NARROW)
    }
}

fn widest(lines: &[Vec<String>], column: usize) -> usize {
    let cells = lines.iter().filter_map(|line| line.get(column));
    cells.map(|cell| cell.width()).max().unwrap_or(0)
}

/// A name as a terminal may show it, at most so many columns wide.
fn fit(name: &str, room: usize) -> String {
    let mut longest = room;
    loop {
        let cut = cut(name, longest);
        // Characters may be two columns wide.
        if cut.width() <= room || longest == 0 {
            return cut;
        }
        longest -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str]) -> Table {
        let mut table = Table::new(&[
            (Kind::Label, "Level"),
            (Kind::Name, "API"),
            (Kind::Rank, "Total"),
            (Kind::Number, "Max"),
        ]);
        for name in names {
            table.row(vec![
                "acl".into(),
                (*name).into(),
                "12.5".into(),
                "-".into(),
            ]);
        }
        table
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let text = table(&["malloc", "算子"]).text(&Paint::default());
        assert_eq!(
            text,
            "Level  API     Total  Max\n\
             acl    malloc   12.5    -\n\
             acl    算子     12.5    -\n"
        );
        assert_eq!(table(&[]).text(&Paint::default()), "");
    }

    #[test]
    fn short_texts_are_cut_to_their_columns_and_no_earlier() {
        let mut table = Table::new(&[
            (Kind::Text, "PID"),
            (Kind::Short(8), "COMMAND"),
            (Kind::Text, "STATE"),
        ]);
        for command in ["12345678", "123456789", "算子算子", "算子算子算", "a\nb"] {
            table.row(vec!["7".into(), command.into(), "idle".into()]);
        }
        assert_eq!(
            table.text(&Paint::default()),
            "PID  COMMAND   STATE\n\
             7    12345678  idle\n\
             7    12345...  idle\n\
             7    算子算子  idle\n\
             7    算...     idle\n\
             7    a b       idle\n"
        );
    }

    #[test]
    fn names_are_cut_to_the_terminal_and_made_harmless() {
        let long = "a\u{202e}b\u{1b}[2J".to_owned() + &"算".repeat(100);
        for (columns, widest) in [(Some(60), 60), (Some(1), 31), (None, 67)] {
            let paint = Paint {
                width: columns,
                ..Paint::default()
            };
            let text = table(&[&long]).text(&paint);
            let lines: Vec<usize> = text.lines().map(UnicodeWidthStr::width).collect();
            // A character of two columns may leave one empty.
            assert!(
                lines
                    .iter()
                    .all(|line| (widest - 1..=widest).contains(line)),
                "{text}"
            );
            assert!(text.contains("a b [2J") && text.contains("... "), "{text}");
        }
    }
}
