//! The PROF_XXX directory: what a capture leaves behind and the msprof parser reads.
//!
//! [`ProfDir`] writes one: it is made with its control files, grows by whole records appended to the
//! slices of record families, and is finished at the stop. It runs in somebody else's process: no
//! panic, no global state, descriptors close-on-exec and above the standard streams.
//!
//! [`reader`] and [`check`] read one, ours or the stock collector's, and are meant for the controller. [`recover`] finishes one whose process was killed.

pub mod check;
mod control;
pub(crate) mod dictionaries;
mod dictionary;
mod error;
mod facts;
mod families;
mod files;
mod hash_names;
mod listing;
mod members;
mod names;
mod parent;
pub mod reader;
pub mod recover;
mod setup;
mod slices;
mod sparse;
mod streams;
mod undo;
mod write_back;
mod writer;

pub use dictionary::{hash_line, type_line};
pub use error::{Kept, ProfDirError};
pub use families::{FamilyId, Place};
pub use listing::place_of;
pub use names::{family_file_name, local_stamp, parse_slice_name, prime_time_zone, slice_name};
pub use setup::{DeviceClock, Setup};
pub use slices::SLICE_BYTES;
pub use writer::{LEDGER_FILE, ProfDir};

#[cfg(test)]
mod tests;
