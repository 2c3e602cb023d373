//! Everything that libmsprof_agent does inside the profiled process.
//!
//! This crate exports no C symbol and has no constructor: the root package's `ffi/` puts the C ABI
//! over it. The controller uses its protocol (`control`), option (`options`) and PROF_XXX
//! (`profdir`) modules.

pub mod capture;
pub mod control;
pub mod options;
pub mod process;
pub mod profdir;
pub mod records;
