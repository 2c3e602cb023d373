//! A process of the vendor's library, as far as its control socket goes (tests/c/stock_server.c).

use super::builder::library;
use super::home::Home;
use super::process::Running;
use std::path::PathBuf;

/// A program that does nothing, with such a library in it.
#[derive(Debug)]
pub struct StockProcess {
    running: Running,
    log: PathBuf,
}

impl StockProcess {
    /// Starts it and waits for its socket.
    pub fn start(home: &Home) -> StockProcess {
        let library = library("tests/c/stock_server.c", &[], "libprofapi.so");
        let log = home.path().join("stock.log");
        let program = home.plain("cat").env("PROFILING_MODE", "dynamic");
        let program = program.env("LD_PRELOAD", library).env("STOCK_LOG", &log);
        let running = program.spawn();
        home.wait_socket(running.pid());
        StockProcess { running, log }
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        self.running.signal(signal);
    }

    /// What its server has met.
    pub fn met(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
