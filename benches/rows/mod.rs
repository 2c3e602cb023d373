//! The rows of the table, by what they are about.

pub mod children;
pub mod clock;
pub mod drain;
pub mod idle;
pub mod lossless;
pub mod off;
pub mod pace;
pub mod probe;
pub mod replies;
pub mod samplers;
pub mod single;
pub mod stamp;
pub mod sustained;
pub mod together;
