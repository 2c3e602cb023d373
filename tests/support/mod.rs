//! What the end-to-end tests share: real processes, a client that speaks bytes, and a reader of
//! PROF directories that owes nothing to the product's own.

// Every test file compiles this module for itself and uses a part of it.
#![allow(dead_code)]

pub mod artifacts;
pub mod browser;
pub mod builder;
pub mod captured;
pub mod client;
pub mod counting;
pub mod elf;
pub mod executable;
pub mod families;
pub mod hal;
pub mod home;
pub mod mortal;
pub mod msprof;
pub mod namespace;
pub mod parser;
pub mod prefix;
pub mod proc;
pub mod process;
pub mod prof;
pub mod puppet;
pub mod random;
pub mod reported;
pub mod rules;
pub mod runner;
pub mod skip;
pub mod slower;
pub mod stock;
pub mod stock_server;
pub mod task;
pub mod user_namespace;
pub mod verbs;
pub mod wait;
pub mod watcher;
pub mod written;
