//! What the rows of the table are made with.

pub mod agent;
pub mod contestants;
pub mod cores;
pub mod doors;
pub mod files;
pub mod histogram;
pub mod library;
pub mod machine;
pub mod proc;
pub mod stats;
pub mod table;
pub mod together;
