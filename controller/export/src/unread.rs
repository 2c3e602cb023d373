//! Files that could not be read, each once: an export reads most of them more than once.

use msprof_agent_core::profdir::reader::ReadError;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What could not be read, in the order in which it was met.
#[derive(Debug, Default)]
pub struct Unread {
    paths: HashSet<PathBuf>,
    errors: Vec<ReadError>,
}

impl Unread {
    /// Keeps an error, unless there is one of the same file.
    pub fn push(&mut self, error: ReadError) {
        if self.paths.insert(path(&error).to_owned()) {
            self.errors.push(error);
        }
    }

    /// The errors.
    pub fn errors(&self) -> &[ReadError] {
        &self.errors
    }

    /// A sentence for each.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = String> + '_ {
        self.errors.iter().map(ReadError::to_string)
    }
}

impl Extend<ReadError> for Unread {
    fn extend<T: IntoIterator<Item = ReadError>>(&mut self, errors: T) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

fn path(error: &ReadError) -> &Path {
    match error {
        ReadError::Io { path, .. }
        | ReadError::NotProfile { path }
        | ReadError::Damaged { path, .. } => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_once_whatever_was_wrong_with_it_each_time() {
        let error = |path: &str, kind: std::io::ErrorKind| ReadError::Io {
            path: path.into(),
            source: kind.into(),
        };
        let mut unread = Unread::default();
        unread.push(error("a", std::io::ErrorKind::NotFound));
        unread.extend([
            error("b", std::io::ErrorKind::NotFound),
            error("a", std::io::ErrorKind::PermissionDenied),
        ]);
        let paths: Vec<_> = unread.errors().iter().map(path).collect();
        assert_eq!(paths, [Path::new("a"), Path::new("b")]);
        assert_eq!(unread.sentences().count(), 2);
    }
}
