//! Generates the C header into OUT_DIR and gives the library its link arguments.
//!
//! The committed `include/msprof_agent.h` is refreshed only on request (MSPROF_AGENT_UPDATE_HEADER=1, which
//! `make header` sets); a test fails when the two differ.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Sources in the order in which their declarations appear.
const SOURCES: [&str; 11] = [
    "ffi/types.rs",
    "ffi/own.rs",
    "ffi/lifecycle.rs",
    "ffi/reports.rs",
    "ffi/registry.rs",
    "ffi/profile_callback.rs",
    "ffi/reporter.rs",
    "ffi/device_side.rs",
    "ffi/aclprof.rs",
    "ffi/stamps.rs",
    "ffi/mstx.rs",
];
const HEADER: &str = "msprof_agent.h";

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=cbindgen.toml");
    println!("cargo::rerun-if-env-changed=MSPROF_AGENT_UPDATE_HEADER");
    println!("cargo::rerun-if-changed=include/{HEADER}");
    write_header(&root, &out);
    // Tests find the generated header by this.
    println!(
        "cargo::rustc-env=MSPROF_AGENT_GENERATED_HEADER={}",
        out.join(HEADER).display()
    );

    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmsprof_agent.so");
    // Functions of the ABI that call each other mean ours, also where another library's come first in the order of
    // symbols.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // Component handlers, thread-exit hooks and the atfork handler point into the library for the life
    // of the process.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

fn write_header(root: &Path, out: &Path) {
    let config =
        cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is valid");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        builder = builder.with_src(root.join(source));
    }
    let bindings = builder
        .generate()
        .expect("the C declarations can be generated");
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).expect("the header is UTF-8");
    let text: String = text.split_inclusive('\n').map(in_old_comments).collect();
    fs::write(out.join(HEADER), &text).expect("the header can be written");
    if env::var_os("MSPROF_AGENT_UPDATE_HEADER").is_some_and(|value| value == "1") {
        let committed = root.join("include").join(HEADER);
        fs::write(committed, &text).expect("the header can be written");
    }
}

/// cbindgen says what it closes in comments that C89 does not have.
fn in_old_comments(line: &str) -> String {
    let closes = line.starts_with(['#', '}']);
    match line.trim_end().split_once("// ").filter(|_| closes) {
        Some((code, comment)) => format!("{code}/* {comment} */\n"),
        None => line.to_owned(),
    }
}
