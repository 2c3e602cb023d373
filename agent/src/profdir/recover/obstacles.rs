//! What is left in a directory that a recovery does not touch, and that the parser would read all the same: whatever
//! bears the name of a section, a control file or a slice, and is none. Each is named, with the way out.

use super::super::listing::{Control, Entry, EntryKind, place_of};
use super::super::names::parse_slice_name;
use super::Survey;
use super::report::{RecoverError, Recovery, failed};
use super::slices::SLICE_MAX;
use super::tree::Tree;

const NO_PLAIN_FILE: &str = "it is no plain file: remove it";
const NO_DIRECTORY: &str = "it is no directory: remove it";

/// Names all that stands in the way.
pub(super) fn name(survey: &Survey, recovery: &mut Recovery) -> Result<(), RecoverError> {
    let path = &recovery.path.clone();
    for entry in &survey.entries {
        if place_of(&entry.name).is_some() && entry.kind != EntryKind::Directory {
            recovery.leave(&path.join(&entry.name), NO_DIRECTORY);
        }
    }
    for (place, tree) in &survey.sections {
        let names = Control::ALL.map(|control| (control, control.name(*place)));
        for entry in list(tree)? {
            if let Some(why) = of_section(&entry, &names) {
                recovery.leave(&tree.path().join(&entry.name), why);
            }
        }
        let Ok(data) = tree.enter("data") else {
            continue;
        };
        for entry in list(&data)? {
            if let Some(why) = of_data(&entry) {
                recovery.leave(&data.path().join(&entry.name), why);
            }
        }
    }
    Ok(())
}

fn list(tree: &Tree) -> Result<Vec<Entry>, RecoverError> {
    tree.list().map_err(|source| failed(tree.path(), source))
}

fn of_section(entry: &Entry, names: &[(Control, String)]) -> Option<&'static str> {
    if entry.name == "data" {
        return (entry.kind != EntryKind::Directory).then_some(NO_DIRECTORY);
    }
    let passes = |(control, _): &&(Control, String)| {
        entry.name.starts_with(control.prefix()) && !entry.name.ends_with("done")
    };
    let (_, own) = names.iter().find(passes)?;
    match (entry.name == *own, entry.kind) {
        (true, EntryKind::File) => None,
        (true, _) => Some(NO_PLAIN_FILE),
        (false, _) => {
            Some("it passes for a control file, of which the parser wants one: remove it")
        }
    }
}

fn of_data(entry: &Entry) -> Option<&'static str> {
    parse_slice_name(&entry.name)?;
    match entry.kind {
        EntryKind::File if entry.bytes > SLICE_MAX => Some("no slice of the agent is that long"),
        EntryKind::File => None,
        _ => Some(NO_PLAIN_FILE),
    }
}
