//! The agent's library as a file: where it lies, under which names, and of which version it is.

use msprof_agent_core::{VERSION, VERSION_MARKER, names};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File name of the agent.
pub const LIBRARY: &str = names::LIBRARY;
/// Name under which it stands in for the stock library.
pub const DROP_IN: &str = names::PROFAPI;
/// Variable that names the library, as `--agent-lib` does.
pub const VARIABLE: &str = names::variable::LIB;
/// How much of the file is looked at at once.
const CHUNK: u64 = 1 << 20;
/// Longest file that is looked at, bytes: ours has a few million.
const LONGEST_LIBRARY: u64 = 1 << 30;
/// Longest text that is taken for a version.
const LONGEST_VERSION: usize = 40;

/// Why there is no library to use.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The agent is not where it could be.
    #[error("{LIBRARY} is not found in {}; name it with --agent-lib or {VARIABLE}", list(.0))]
    NotFound(Vec<PathBuf>),
    /// What was named is no file that can be read.
    #[error("the agent library {} cannot be read: {error}; name another with --agent-lib or {VARIABLE}", .path.display())]
    Unreadable {
        /// What was named.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// Paths in one line, each once: a place may be looked at in several ways.
pub fn list(paths: &[PathBuf]) -> String {
    let mut once: Vec<&PathBuf> = Vec::new();
    for path in paths {
        if !once.contains(&path) {
            once.push(path);
        }
    }
    let texts: Vec<_> = once.iter().map(|path| path.display().to_string()).collect();
    texts.join(", ")
}

/// What the user named: by `--agent-lib`, else by the variable.
pub fn named(option: Option<PathBuf>) -> Option<PathBuf> {
    let variable = || std::env::var_os(VARIABLE).filter(|value: &OsString| !value.is_empty());
    option.or_else(|| variable().map(PathBuf::from))
}

/// The library that was named, or else the one beside this binary, by its absolute path.
pub fn find(named: Option<&Path>) -> Result<PathBuf, LibraryError> {
    let library = match named {
        Some(path) => path.to_owned(),
        None => beside_binary()?,
    };
    let failed = |error| LibraryError::Unreadable {
        path: library.clone(),
        error,
    };
    // Not resolved further than made absolute: a link keeps its name.
    let library = std::path::absolute(&library).map_err(failed)?;
    if !std::fs::metadata(&library).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no file")));
    }
    std::fs::File::open(&library).map_err(failed)?;
    Ok(library)
}

fn beside_binary() -> Result<PathBuf, LibraryError> {
    // By way of links, so that one in another bin/ does not hide what lies beside the binary.
    let binary = std::env::current_exe().unwrap_or_default();
    let dir = binary.parent().unwrap_or(Path::new("/"));
    let prefix = dir.parent().unwrap_or(Path::new("/"));
    let dirs = [dir.to_owned(), prefix.join("lib"), prefix.join("lib64")];
    let paths = dirs.map(|dir| dir.join(LIBRARY));
    let found = paths.iter().find(|path| path.is_file());
    found
        .cloned()
        .ok_or_else(|| LibraryError::NotFound(paths.to_vec()))
}

/// Where a directory may lie that holds the library under the stock library's name.
pub fn drop_in_places(library: &Path) -> [PathBuf; 2] {
    let dir = library.parent().unwrap_or(Path::new("/"));
    [dir.join("cann"), dir.join("msprof-agent/cann")]
}

/// The first of those directories. Two copies would be two agents in one process: only the very same file will do.
pub fn drop_in(library: &Path) -> Option<PathBuf> {
    let same = |dir: &PathBuf| is_same_file(&dir.join(DROP_IN), library);
    drop_in_places(library).into_iter().find(same)
}

/// Whether two paths lead to one file or directory; false when one leads nowhere.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.dev(), meta.ino()))
    };
    matches!((identity(a), identity(b)), (Some(a), Some(b)) if a == b)
}

/// The version that a library tells in its data, without being loaded: it may be of another architecture, or
/// nobody's whose code should run here. `None` when it tells none.
pub fn version_of(library: &Path) -> io::Result<Option<String>> {
    let file = std::fs::File::open(library)?;
    // A file of any length may be named.
    if file.metadata()?.len() > LONGEST_LIBRARY {
        return Ok(None);
    }
    find_version(file)
}

fn find_version(mut file: impl Read) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let read = file.by_ref().take(CHUNK).read_to_end(&mut bytes)?;
        if read == 0 {
            return Ok(None);
        }
        if let Some(version) = version_in(&bytes) {
            return Ok(Some(version));
        }
        // What the end may have cut in two is looked at once more.
        let kept = VERSION_MARKER.len() + LONGEST_VERSION + 1;
        bytes.drain(..bytes.len().saturating_sub(kept));
    }
}

fn version_in(bytes: &[u8]) -> Option<String> {
    let marker = VERSION_MARKER.as_bytes();
    let ends = bytes.windows(marker.len()).enumerate();
    let mut ends = ends.filter_map(|(at, window)| (window == marker).then_some(at + marker.len()));
    ends.find_map(|start| {
        let rest = &bytes[start..];
        let length = rest.iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&rest[..length]).ok()?;
        let is_version = (1..=LONGEST_VERSION).contains(&length)
            && text.starts_with(|c: char| c.is_ascii_digit())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c));
        is_version.then(|| text.to_owned())
    })
}

/// The text of `--version`: ours, and that of the library that a launched program would get.
pub fn versions(option: Option<PathBuf>) -> String {
    let mut text = format!("msprof {VERSION}\n");
    let library = match find(named(option).as_deref()) {
        Ok(library) => library,
        Err(error) => return text + &format!("libmsprof_agent: {error}\n"),
    };
    let path = library.display();
    match version_of(&library) {
        Ok(Some(version)) => {
            text += &format!("libmsprof_agent {version}, {path}\n");
            if version != VERSION {
                text += &format!("{}\n", differs(&version));
            }
        }
        Ok(None) => text += &format!("libmsprof_agent of an unknown version, {path}\n"),
        Err(error) => text += &format!("libmsprof_agent: {path} cannot be read: {error}\n"),
    }
    text
}

/// What is said of a library that does not tell a version, as every release of ours does.
pub fn unknown_version(library: &Path) -> Option<String> {
    let why = match version_of(library) {
        Ok(Some(_)) => return None,
        Ok(None) => "it tells no version".to_owned(),
        Err(error) => format!("its version cannot be read: {error}"),
    };
    Some(format!(
        "{} is perhaps no {LIBRARY}, or a damaged one: {why}",
        library.display()
    ))
}

/// What two releases can do together.
pub fn differs(agent: &str) -> String {
    format!(
        "the agent is of version {agent}, this msprof of {VERSION}: commands work as far as both know them, but what a \
         killed process still had in memory is not rescued; use both of one release"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8]) -> Option<String> {
        find_version(bytes).expect("readable")
    }

    fn marked(version: &[u8]) -> Vec<u8> {
        [b"\x7fELF\0", VERSION_MARKER.as_bytes(), version].concat()
    }

    #[test]
    fn a_version_is_read_from_the_data_around_it() {
        assert_eq!(told(&marked(b"0.1.0\0rest")), Some("0.1.0".into()));
        assert_eq!(
            told(&marked(b"1.2.3-rc.1+7\0")),
            Some("1.2.3-rc.1+7".into())
        );
        // The marker alone is no version: whoever looks for it has it in his own data.
        let twice = [marked(b"\0"), marked(b"%s\0"), marked(b"9.0.0\0")].concat();
        assert_eq!(told(&twice), Some("9.0.0".into()));
    }

    #[test]
    fn what_is_no_version_is_none() {
        let long = [&[b'1'; LONGEST_VERSION + 1][..], b"\0"].concat();
        for version in [
            &b"0.1.0"[..],
            b"",
            b"\0",
            b"x1\0",
            b"1 2\0",
            b"1\n\0",
            &long,
        ] {
            assert_eq!(told(&marked(version)), None, "{version:?}");
        }
        assert_eq!(told(b""), None);
    }

    #[test]
    fn a_version_across_two_pieces_of_a_large_file_is_found() {
        let text = [VERSION_MARKER.as_bytes(), b"0.1.0\0"].concat();
        for before in 0..=text.len() {
            let mut bytes = vec![b'l'; CHUNK as usize - before];
            bytes.extend_from_slice(&text);
            assert_eq!(told(&bytes), Some("0.1.0".into()), "{before}");
        }
    }

    #[test]
    fn a_library_that_is_missing_is_named_with_the_way_out() {
        let dir = tempfile::tempdir().expect("temporary directory");
        for missing in [dir.path().join("none.so"), dir.path().to_owned()] {
            let error = find(Some(&missing)).expect_err("missing").to_string();
            let named = error.contains(&missing.display().to_string());
            assert!(named && error.contains("--agent-lib"), "{error}");
        }
    }

    #[test]
    fn the_drop_in_is_used_only_when_it_is_the_same_file() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let library = dir.path().join(LIBRARY);
        std::fs::write(&library, "x").expect("written");
        assert_eq!(drop_in(&library), None);
        // As it is installed, and as it is built.
        for place in ["msprof-agent/cann", "cann"] {
            let place = dir.path().join(place);
            std::fs::create_dir_all(&place).expect("made");
            let name = place.join(DROP_IN);
            std::fs::copy(&library, &name).expect("copied");
            assert_ne!(
                drop_in(&library),
                Some(place.clone()),
                "a copy is another file"
            );
            std::fs::remove_file(&name).expect("removed");
            std::os::unix::fs::symlink(&library, &name).expect("linked");
            assert_eq!(drop_in(&library), Some(place));
        }
    }
}
