//! A component in Rust whose handler panics when it is told to start.

use std::ffi::c_void;
use std::io::Write;

type Handler = extern "C" fn(u32, *mut c_void, u32) -> i32;

unsafe extern "C" {
    fn MsprofRegisterCallback(module: u32, handler: Handler) -> i32;
    fn MsprofNotifySetDevice(chip: u32, device: u32, open: bool) -> i32;
}

const RUNTIME: u32 = 7;
const OF_KIND: usize = 280;
const START: u32 = 1;

extern "C" fn panics(_type: u32, command: *mut c_void, _len: u32) -> i32 {
    // SAFETY: a command of 5424 bytes, whose kind is here.
    let kind = unsafe { command.cast::<u8>().add(OF_KIND).cast::<u32>().read() };
    assert_ne!(kind, START, "a fault of the component");
    0
}

fn main() {
    // SAFETY: the handler lives as long as the program.
    unsafe {
        MsprofNotifySetDevice(0, 0, true);
        MsprofRegisterCallback(RUNTIME, panics);
    }
    println!("ready");
    std::io::stdout().flush().expect("somebody reads it");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}
