//! The C ABI over `msprof_agent_core`: exported symbols, constructor, panic boundary.
//!
//! Conventions. Results are those of the stock library: 0 success, -1 a bad argument, 5 an error. A
//! report made while nothing is captured returns 0 whatever its arguments and costs a load and a
//! branch. Every export may be called from any thread at any time, also before the constructor has run
//! and from within a component's handler. A panic never crosses the boundary: the call returns its
//! type's error value and the agent turns itself off. No pointer is kept after a call returns, unless
//! the call registers it.
//!
//! In a process that is not in dynamic mode, calls go on to the vendor's library where there is one (`stock`),
//! but for our own API (`own`), and for the records of `reports` while a capture that the program itself started
//! runs; names are noted for such a capture, and go on as well.

mod boundary;
mod copies;
mod stock;

/// Rust ends a process in which an allocation fails; this one is not ours to end.
#[global_allocator]
static ALLOCATOR: msprof_agent_core::process::reserve::Allocator =
    msprof_agent_core::process::reserve::Allocator;

pub mod aclprof;
pub mod device_side;
pub mod impl_side;
pub mod lifecycle;
pub mod mstx;
pub mod own;
pub mod profile_callback;
pub mod registry;
pub mod reporter;
pub mod reports;
pub mod stamps;
pub mod types;
