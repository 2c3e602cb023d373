//! The table: sections of rows, and the limits that rows are held against.

use super::stats::Samples;
use serde_json::{Value, json};
use std::fmt::Write;

/// One line of the table.
pub struct Row {
    /// What was done.
    pub name: String,
    /// Heading and samples of each column.
    pub cells: Vec<(String, Samples)>,
    /// What needs saying beneath the line.
    pub notes: Vec<String>,
}

impl Row {
    /// A row with empty cells.
    pub fn new(name: impl Into<String>, columns: &[&str]) -> Row {
        Row {
            name: name.into(),
            cells: columns
                .iter()
                .map(|&column| (column.to_owned(), Samples::default()))
                .collect(),
            notes: Vec::new(),
        }
    }

    /// Adds a sample to a column.
    pub fn add(&mut self, column: &str, sample: f64) {
        let cell = self.cells.iter_mut().find(|(name, _)| name == column);
        cell.expect("a column of this row").1.add(sample);
    }

    /// Samples of a column.
    pub fn samples(&self, column: &str) -> &Samples {
        let cell = self.cells.iter().find(|(name, _)| name == column);
        &cell.expect("a column of this row").1
    }

    /// Median over the rounds of `other / column`.
    pub fn ratio(&self, other: &str, column: &str) -> f64 {
        let ratios = self.samples(other).zip(self.samples(column), |a, b| a / b);
        ratios.median()
    }

    /// Median over the rounds of `column - other`.
    pub fn difference(&self, column: &str, other: &str) -> f64 {
        let differences = self.samples(column).zip(self.samples(other), |a, b| a - b);
        differences.median()
    }
}

/// Rows with one unit and one set of columns.
pub struct Section {
    pub title: String,
    pub rows: Vec<Row>,
}

/// A limit and how far a row is from it.
pub struct Check {
    pub what: String,
    pub value: f64,
    pub limit: f64,
    /// The value must not be above the limit; else not below.
    pub at_most: bool,
}

impl Check {
    pub fn holds(&self) -> bool {
        if self.at_most {
            self.value <= self.limit
        } else {
            self.value >= self.limit
        }
    }
}

/// All that a run found.
#[derive(Default)]
pub struct Table {
    pub sections: Vec<Section>,
    pub checks: Vec<Check>,
}

impl Table {
    /// Begins a section.
    pub fn section(&mut self, title: &str) {
        self.sections.push(Section {
            title: title.to_owned(),
            rows: Vec::new(),
        });
    }

    /// Adds a row to the last section.
    pub fn row(&mut self, row: Row) {
        eprintln!("  {}", row.name);
        let section = self.sections.last_mut().expect("a section was begun");
        section.rows.push(row);
    }

    /// `value` must not be above `limit`.
    pub fn at_most(&mut self, what: &str, value: f64, limit: f64) {
        self.check(what, value, limit, true);
    }

    /// `value` must not be below `limit`.
    pub fn at_least(&mut self, what: &str, value: f64, limit: f64) {
        self.check(what, value, limit, false);
    }

    fn check(&mut self, what: &str, value: f64, limit: f64, at_most: bool) {
        self.checks.push(Check {
            what: what.to_owned(),
            value,
            limit,
            at_most,
        });
    }

    /// As people read it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for section in self.sections.iter().filter(|s| !s.rows.is_empty()) {
            section.print(&mut text);
        }
        if !self.checks.is_empty() {
            text += "## Limits\n\n";
        }
        for check in &self.checks {
            let sign = if check.at_most { "<=" } else { ">=" };
            let word = if check.holds() { "holds" } else { "MISSED" };
            let _ = writeln!(
                text,
                "{:64} {:8.2} {sign} {:6} {word}",
                check.what, check.value, check.limit
            );
        }
        text
    }

    /// Raw results.
    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            let cells = row.cells.iter();
            let cells = cells.map(|(name, samples)| (name.clone(), samples.json()));
            json!({
                "name": row.name,
                "cells": cells.collect::<serde_json::Map<_, _>>(),
                "notes": row.notes,
            })
        };
        let section = |section: &Section| {
            json!({
                "title": section.title,
                "rows": section.rows.iter().map(row).collect::<Vec<_>>(),
            })
        };
        let check = |check: &Check| {
            json!({
                "what": check.what,
                "value": check.value,
                "limit": check.limit,
                "at_most": check.at_most,
                "holds": check.holds(),
            })
        };
        json!({
            "sections": self.sections.iter().map(section).collect::<Vec<_>>(),
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

impl Section {
    fn print(&self, text: &mut String) {
        const NAME: usize = 50;
        const CELL: usize = 22;
        let _ = writeln!(text, "## {}\n", self.title);
        let mut heading = Vec::new();
        for row in &self.rows {
            let columns: Vec<&str> = row.cells.iter().map(|(name, _)| name.as_str()).collect();
            if columns != heading {
                let _ = write!(text, "{:NAME$}", "");
                for column in &columns {
                    let _ = write!(text, " {column:>CELL$}");
                }
                text.push('\n');
                heading = columns;
            }
            let _ = write!(text, "{:NAME$}", row.name);
            for (_, samples) in &row.cells {
                let _ = write!(text, " {:>CELL$}", samples.text());
            }
            text.push('\n');
            for note in &row.notes {
                let _ = writeln!(text, "    {note}");
            }
        }
        text.push('\n');
    }
}
