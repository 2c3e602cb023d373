//! What an operation of several steps has made, to be removed again should it fail halfway.

#![forbid(unsafe_code)]

use std::path::PathBuf;

/// Removes what a failed operation made, unless it is cleared.
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// Parents, outermost first; one that holds another process's directory by now stays.
    pub(super) parents: Vec<PathBuf>,
    /// A directory of ours with all that is in it.
    pub(super) tree: Option<PathBuf>,
}

impl Undo {
    /// The operation has succeeded: everything stays.
    pub(super) fn clear(&mut self) {
        self.parents.clear();
        self.tree = None;
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        if let Some(tree) = &self.tree {
            let _ = std::fs::remove_dir_all(tree);
        }
        for dir in self.parents.iter().rev() {
            let _ = std::fs::remove_dir(dir);
        }
    }
}
