//! The C ABI over `msprof_agent_core`: exported symbols, constructor, panic boundary.
//!
//! Conventions. Results are those of the stock library: 0 success, -1 a bad argument, 5 an error. A
//! report made while nothing is captured returns 0 whatever its arguments and costs a load and a
//! branch. Every export may be called from any thread at any time, also before the constructor has run
//! and from within a component's handler. A panic never crosses the boundary: the call returns its
//! type's error value and the agent turns itself off. No pointer is kept after a call returns, unless
//! the call registers it.

mod boundary;

pub mod aclprof;
pub mod device_side;
pub mod lifecycle;
pub mod own;
pub mod registry;
pub mod reporter;
pub mod reports;
pub mod stamps;
pub mod types;
