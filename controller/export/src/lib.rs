//! What people see of a PROF_XXX directory, ours or the stock collector's, without CANN.
//!
//! [`source`] opens a directory: its names and its clock. [`calls`] walks through the calls in it, one after the other, with
//! the numbers that the stock parser gives them. [`decode`] says what the records of the other families say, [`statistics`]
//! sums up. Everything else is made of these. Their memory grows with the number of names and of calls that are open at a time,
//! not with that of records. Two exports keep more: [`db`] all tasks that the host sent to devices, some 400 bytes each, and
//! [`view`] the intervals that its page shows, up to the limit that it is told.
//!
//! [`text`] and [`db`] write the files that the stock parser writes, [`view`] draws a picture.
//!
//! A directory may be damaged or hostile: nothing here panics on one or follows a link in it. What was captured is never
//! changed: [`text`] writes new files and a README.txt, which replaces that of an earlier export, into `mindstudio_profiler_output`,
//! and [`db`] a new file into the PROF_XXX directory itself.

#![forbid(unsafe_code)]

pub mod calls;
mod clock;
pub mod db;
mod decode;
#[cfg(test)]
#[path = "../tests/support/directory.rs"]
mod directory;
mod levels;
mod loads;
#[cfg(test)]
#[path = "../tests/support/made.rs"]
mod made;
mod newfile;
pub mod notes;
mod number;
mod odd_clocks;
#[cfg(test)]
#[path = "../../../tests/support/skip.rs"]
mod skip;
pub mod source;
pub mod statistics;
pub mod text;
pub mod unread;
pub mod view;
pub mod visible;
