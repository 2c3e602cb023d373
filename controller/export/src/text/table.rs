//! A table, written row by row as csv or JSON, in the stock parser's form.
//!
//! What names of programs can hold does no harm: csv cells are quoted where they need it, and one that a spreadsheet would
//! take for a formula has a `'` before it.

use super::output::{Draft, OutputDir, OutputError};
use crate::number::push_float;
use std::borrow::Cow;

/// Rows of a csv file; more go into another one. A spreadsheet takes no more.
pub const ROWS_MAX: u64 = 1_000_000;
/// What begins a formula; spreadsheets take the wide forms for the same.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];
/// What some spreadsheets begin a new cell at, also within a quoted one.
const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

/// The form of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    #[default]
    Csv,
    /// An array of objects.
    Json,
}

impl Format {
    /// Ends the names of files.
    pub fn suffix(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Json => "json",
        }
    }
}

/// One value.
#[derive(Clone, Debug)]
pub enum Cell<'a> {
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A text of ours, such as a time with its tab.
    Own(Cow<'a, str>),
    /// A text that a program chose.
    Name(Cow<'a, str>),
}

impl Cell<'_> {
    /// What is not known.
    pub const NONE: Cell<'static> = Cell::Own(Cow::Borrowed("N/A"));

    fn csv(&self) -> Cow<'_, str> {
        match self {
            Cell::Int(number) => Cow::Owned(number.to_string()),
            Cell::Float(number) => {
                let mut text = String::new();
                push_float(&mut text, *number);
                Cow::Owned(text)
            }
            Cell::Own(text) => Cow::Borrowed(text),
            Cell::Name(text) => harmless(text),
        }
    }

    fn push_json(&self, row: &mut String) {
        match self {
            Cell::Int(number) => row.push_str(&number.to_string()),
            Cell::Float(number) => push_float(row, *number),
            Cell::Own(text) | Cell::Name(text) => push_json_string(row, text),
        }
    }
}

/// A name that no spreadsheet takes for a formula: with a `'` before what could begin one.
fn harmless(text: &str) -> Cow<'_, str> {
    let begins = |rest: &str| {
        let rest = rest.trim_start_matches([' ', '\0', '\u{feff}', '\u{200b}']);
        rest.starts_with(FORMULA)
    };
    let mut safe = String::new();
    for part in text.split_inclusive(SEPARATORS) {
        if begins(part) {
            safe.push('\'');
        }
        safe.push_str(part);
    }
    match safe.len() == text.len() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(safe),
    }
}

/// Appends a JSON string.
pub fn push_json_string(json: &mut String, text: &str) {
    match serde_json::to_string(text) {
        Ok(quoted) => json.push_str(&quoted),
        // A string is always one in JSON, too.
        Err(_) => json.push_str("\"\""),
    }
}

/// What rows of a table are made of: its columns and its form.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Names of the columns behind `Device_id`.
    pub names: &'static [&'static str],
    /// Form of the table.
    pub format: Format,
    /// Whether objects of JSON say which device they are of. The stock parser writes one such file per device in which
    /// they do not, and gives all of them the same name.
    pub with_device: bool,
}

impl Columns {
    /// The first line of a file.
    fn head(&self) -> Vec<u8> {
        match self.format {
            Format::Csv => {
                let names = std::iter::once("Device_id").chain(self.names.iter().copied());
                csv_line(names.map(Cow::Borrowed))
            }
            Format::Json => b"[".to_vec(),
        }
    }

    /// A row as it stands in the file.
    pub fn row(&self, device: &str, cells: &[Cell]) -> Vec<u8> {
        match self.format {
            Format::Csv => {
                let device = std::iter::once(Cow::Borrowed(device));
                csv_line(device.chain(cells.iter().map(Cell::csv)))
            }
            Format::Json => {
                let mut row = String::from("{");
                if self.with_device {
                    row.push_str("\"Device_id\": ");
                    push_json_string(&mut row, device);
                    row.push_str(", ");
                }
                for (index, (name, cell)) in self.names.iter().zip(cells).enumerate() {
                    row.push_str(if index == 0 { "" } else { ", " });
                    push_json_string(&mut row, name);
                    row.push_str(": ");
                    cell.push_json(&mut row);
                }
                row.push('}');
                row.into_bytes()
            }
        }
    }
}

fn csv_line<'a>(cells: impl Iterator<Item = Cow<'a, str>>) -> Vec<u8> {
    let line = Vec::with_capacity(256);
    let mut writer = csv::WriterBuilder::new()
        .buffer_capacity(256)
        .from_writer(line);
    let cells: Vec<Cow<str>> = cells.collect();
    // A vector takes everything.
    let _ = writer.write_record(cells.iter().map(|cell| cell.as_bytes()));
    writer.into_inner().unwrap_or_default()
}

/// A file that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its name in the directory of exports.
    pub file: String,
    /// What it holds: `api_statistic`, `msprof`, ...
    pub kind: &'static str,
    /// Rows or events in it.
    pub rows: u64,
}

/// A table that is written.
#[derive(Debug)]
pub struct Table<'a> {
    dir: &'a OutputDir,
    columns: Columns,
    kind: &'static str,
    stamp: &'a str,
    /// Rows of a file.
    rows_max: u64,
    /// The file that grows; `None` before its first row.
    draft: Option<Draft>,
    rows: u64,
    made: Vec<Made>,
}

impl<'a> Table<'a> {
    /// A table that has no file before its first row.
    pub fn new(
        dir: &'a OutputDir,
        columns: Columns,
        kind: &'static str,
        stamp: &'a str,
    ) -> Table<'a> {
        Table {
            dir,
            columns,
            kind,
            stamp,
            rows_max: match columns.format {
                Format::Csv => ROWS_MAX,
                Format::Json => u64::MAX,
            },
            draft: None,
            rows: 0,
            made: Vec::new(),
        }
    }

    /// The same of rows that all are of one device: none says of which.
    pub fn of_one_device(mut self) -> Table<'a> {
        self.columns.with_device = false;
        self
    }

    /// The same in files of another name.
    pub fn called(mut self, kind: &'static str) -> Table<'a> {
        self.kind = kind;
        self
    }

    /// Its columns.
    pub fn columns(&self) -> Columns {
        self.columns
    }

    /// Adds a row.
    pub fn add(&mut self, device: &str, cells: &[Cell]) -> Result<(), OutputError> {
        self.add_row(&self.columns.row(device, cells))
    }

    /// Adds a row that [`Columns::row`] has made.
    pub fn add_row(&mut self, row: &[u8]) -> Result<(), OutputError> {
        let json = self.columns.format == Format::Json;
        let draft = match &mut self.draft {
            Some(draft) => draft,
            None => {
                let name = self.name(self.made.len(), !self.made.is_empty());
                let mut draft = self.dir.create(&name)?;
                draft.write(&self.columns.head())?;
                self.draft.insert(draft)
            }
        };
        if json && self.rows > 0 {
            draft.write(b", ")?;
        }
        draft.write(row)?;
        self.rows += 1;
        if self.rows == self.rows_max {
            self.close(true)?;
        }
        Ok(())
    }

    /// Ends it; the files that it is in.
    pub fn finish(mut self) -> Result<Vec<Made>, OutputError> {
        self.close(!self.made.is_empty())?;
        Ok(self.made)
    }

    fn name(&self, slice: usize, sliced: bool) -> String {
        let (kind, stamp, suffix) = (self.kind, self.stamp, self.columns.format.suffix());
        match sliced {
            true => format!("{kind}_slice_{slice}_{stamp}.{suffix}"),
            false => format!("{kind}_{stamp}.{suffix}"),
        }
    }

    fn close(&mut self, sliced: bool) -> Result<(), OutputError> {
        let Some(mut draft) = self.draft.take() else {
            return Ok(());
        };
        if self.columns.format == Format::Json {
            draft.write(b"]")?;
        }
        let name = self.name(self.made.len(), sliced);
        let file = draft.renamed(name).finish()?;
        self.made.push(Made {
            file,
            kind: self.kind,
            rows: self.rows,
        });
        self.rows = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["Name", "Size(KB)", "Time(us)"];

    fn columns(format: Format) -> Columns {
        Columns {
            names: &NAMES,
            format,
            with_device: false,
        }
    }

    fn text(dir: &OutputDir, made: &Made) -> String {
        std::fs::read_to_string(dir.path().join(&made.file)).expect("read")
    }

    #[test]
    fn no_name_is_a_formula_to_a_spreadsheet_whatever_it_takes_for_the_end_of_a_cell() {
        for (name, safe) in [
            ("=1+1", "'=1+1"),
            ("x;=1+1;y", "x;'=1+1;y"),
            ("a\t@SUM(1)", "a\t'@SUM(1)"),
            ("a\n-1\r+2", "a\n'-1\r'+2"),
            ("\u{feff} =1", "'\u{feff} =1"),
            ("＝1", "'＝1"),
            ("\tx", "'\tx"),
        ] {
            assert_eq!(harmless(name), safe, "{name:?}");
        }
        for plain in ["", "Conv-1", "a=b", "a; b", "aclrt::Malloc+1", "a;b;c"] {
            assert_eq!(harmless(plain), plain);
        }
    }

    fn cells(name: &str) -> [Cell<'_>; 3] {
        [
            Cell::Name(name.into()),
            Cell::Float(4.0),
            Cell::Own("1.000\t".into()),
        ]
    }

    #[test]
    fn cells_are_quoted_and_no_formula_is_left() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = OutputDir::open(home.path()).expect("opened");
        let mut table = Table::new(&dir, columns(Format::Csv), "t", "1");
        for name in [
            "Add_1", "a,b", "a\"b", "a\nb", "=1+1", "-5", "@x", "\tx", "'q",
        ] {
            table.add("host", &cells(name)).expect("written");
        }
        let made = table.finish().expect("finished");
        assert_eq!(
            text(&dir, &made[0]),
            "Device_id,Name,Size(KB),Time(us)\nhost,Add_1,4.0,1.000\t\nhost,\"a,b\",4.0,1.000\t\n\
             host,\"a\"\"b\",4.0,1.000\t\nhost,\"a\nb\",4.0,1.000\t\nhost,'=1+1,4.0,1.000\t\n\
             host,'-5,4.0,1.000\t\nhost,'@x,4.0,1.000\t\nhost,'\tx,4.0,1.000\t\nhost,'q,4.0,1.000\t\n"
        );
    }

    #[test]
    fn json_holds_the_names_as_they_are() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = OutputDir::open(home.path()).expect("opened");
        let mut table = Table::new(&dir, columns(Format::Json), "t", "1");
        table.add("0", &cells("=\"a\"\n<b>")).expect("written");
        table.add("0", &cells("x")).expect("written");
        let made = table.finish().expect("finished");
        assert_eq!((made[0].file.as_str(), made[0].rows), ("t_1.json", 2));
        assert_eq!(
            text(&dir, &made[0]),
            r#"[{"Name": "=\"a\"\n<b>", "Size(KB)": 4.0, "Time(us)": "1.000\t"}, {"Name": "x", "Size(KB)": 4.0, "Time(us)": "1.000\t"}]"#
        );
    }

    #[test]
    fn more_rows_than_a_file_holds_are_cut_into_slices() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = OutputDir::open(home.path()).expect("opened");
        let files = |rows: u64| {
            let stamp = rows.to_string();
            let mut table = Table::new(&dir, columns(Format::Csv), "t", &stamp);
            table.rows_max = 2;
            for _ in 0..rows {
                table.add("host", &cells("x")).expect("written");
            }
            let made = table.finish().expect("finished").into_iter();
            made.map(|made| (made.file, made.rows)).collect::<Vec<_>>()
        };
        assert_eq!(files(0), []);
        assert_eq!(files(1), [("t_1.csv".to_owned(), 1)]);
        assert_eq!(files(2), [("t_slice_0_2.csv".to_owned(), 2)]);
        let three = [
            ("t_slice_0_3.csv".to_owned(), 2),
            ("t_slice_1_3.csv".to_owned(), 1),
        ];
        assert_eq!(files(3), three);
        assert_eq!(std::fs::read_dir(dir.path()).expect("read").count(), 4);
    }
}
