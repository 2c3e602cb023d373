//! The PROF_XXX directory: what a capture leaves behind and the msprof parser reads.
//!
//! [`ProfDir`] writes one: it is made with its control files, grows by whole records appended to the
//! slices of record families, and is finished at the stop. It runs in somebody else's process: no
//! panic, no global state, descriptors close-on-exec and above the standard streams.
//!
//! [`reader`], [`check`] and [`summary`] read one, ours or the stock collector's, and are meant for the
//! controller.

pub mod check;
mod control;
mod dictionaries;
mod dictionary;
mod error;
mod facts;
mod families;
mod files;
mod listing;
mod names;
pub mod reader;
mod slices;
mod streams;
pub mod summary;
mod writer;

pub use dictionary::{hash_line, type_line};
pub use error::{Kept, ProfDirError};
pub use families::{FamilyId, Place};
pub use names::{family_file_name, parse_slice_name, prime_time_zone, slice_name};
pub use slices::SLICE_BYTES;
pub use writer::{DeviceClock, LEDGER_FILE, ProfDir, Setup};

#[cfg(test)]
mod tests;
