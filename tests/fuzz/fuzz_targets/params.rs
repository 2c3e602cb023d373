#![no_main]

#[path = "../shared/mod.rs"]
mod shared;

libfuzzer_sys::fuzz_target!(|data: &[u8]| shared::params::run(data));
