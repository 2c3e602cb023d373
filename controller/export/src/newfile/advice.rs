//! The way out of a directory or a disk that takes no file.

use std::io::{Error, ErrorKind};

/// What a user can do, to be put behind the reason; empty where nobody knows.
pub fn way_out(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; copy the PROF directory to where you may write, and export the copy"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; free space there, or copy the PROF directory to a disk with room, and export again"
        }
        ErrorKind::FileTooLarge => {
            "; raise the limit of file size (ulimit -f), or copy the PROF directory to another file system, and export again"
        }
        ErrorKind::OutOfMemory => "; raise the limit of memory, and export again",
        _ => "",
    }
}
