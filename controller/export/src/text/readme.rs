//! The README.txt beside the exported files: what each of them holds.

use super::output::{OutputDir, OutputError};
use super::table::Made;
use std::fmt::Write;

/// Its name.
pub const README: &str = "README.txt";

/// Writes it, in the place of an earlier one.
pub fn write(dir: &OutputDir, made: &[Made]) -> Result<(), OutputError> {
    let mut draft = dir.create(README)?;
    draft.write(text(made).as_bytes())?;
    draft.replace().map(drop)
}

fn text(made: &[Made]) -> String {
    let mut text = String::from(
        "What msprof has exported. Times are microseconds; points in time are those of the wall clock since 1970, where a\n\
         tab behind the digits keeps spreadsheets from rounding them. N/A: not known.\n\nFiles of the latest export:\n",
    );
    for file in made {
        // A string takes everything.
        let _ = write!(
            text,
            "\n{} ({})\n    {}\n",
            file.file,
            counted(file),
            about(file.kind)
        );
    }
    text
}

fn counted(file: &Made) -> String {
    let what = if is_timeline(file) { "event" } else { "row" };
    let ending = if file.rows == 1 { "" } else { "s" };
    format!("{} {what}{ending}", file.rows)
}

fn is_timeline(file: &Made) -> bool {
    file.kind == "msprof" || file.kind == "msprof_tx" && file.file.ends_with(".json")
}

/// What a file is about.
fn about(kind: &str) -> &'static str {
    match kind {
        "msprof" => {
            "The timeline: calls of the program into CANN per thread, and the marks that it set itself. Opens in MindStudio\n    \
             Insight, chrome://tracing and https://ui.perfetto.dev."
        }
        "api_statistic" => {
            "Calls by name: how many, how long all of them, the mean, the shortest and the longest took, and the variance."
        }
        "msprof_tx" => "Marks and ranges that the program set itself, with msproftx or mstx.",
        "aicpu" => {
            "Operators that ran on an AI CPU: when, and how long they computed, copied and waited."
        }
        "dp" => "Elements that were taken from data queues, and how many were left.",
        "aicpu_mi" => "Waits of an AI CPU for a data queue.",
        "fusion_op" => {
            "Operators of a model that were fused from others, and the memory that they need."
        }
        "operator_memory" => {
            "Memory that operators took: when, for how long, and how much was in use before and behind it. Of memory that was\n    \
             not given back in the capture, duration and release are 0."
        }
        "memory_record" => "Memory in use on a device each time that it changed.",
        "static_op_mem" => "Memory that a static graph plans for its operators.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_named_with_what_it_holds() {
        let kinds = [
            "msprof",
            "api_statistic",
            "msprof_tx",
            "aicpu",
            "dp",
            "aicpu_mi",
            "fusion_op",
            "operator_memory",
            "memory_record",
            "static_op_mem",
        ];
        let made = kinds.map(|kind| Made {
            file: format!("{kind}_1.csv"),
            kind,
            rows: 1,
        });
        let text = text(&made);
        for kind in kinds {
            assert!(text.contains(&format!("\n{kind}_1.csv (1 ")), "{kind}");
            assert!(about(kind).len() > 20, "{kind}");
        }
    }
}
