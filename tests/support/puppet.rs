//! A C program that does what it is told, one line at a time (tests/c/puppet.c).

use super::builder::{Linkage, build};
use super::client::{ByteClient, params};
use super::home::Home;
use super::process::{Finished, Program, Running};
use super::wait::{PATIENCE, wait_for};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// The program, compiled once in a test binary.
pub fn path() -> &'static PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| build("tests/c/puppet.c", Linkage::Shared))
}

/// A running puppet.
#[derive(Debug)]
pub struct Puppet {
    running: Running,
    socket: PathBuf,
}

impl Puppet {
    /// Starts it armed and waits for its socket.
    pub fn start(home: &Home) -> Puppet {
        Puppet::start_armed(home, home.armed(path()))
    }

    /// The same in an environment of the caller's.
    pub fn start_armed(home: &Home, program: Program) -> Puppet {
        let puppet = Puppet::start_program(home, program);
        puppet.wait_socket();
        puppet
    }

    /// Starts it armed or not; a socket is not waited for.
    pub fn start_program(home: &Home, program: Program) -> Puppet {
        let running = program.spawn();
        let socket = home.socket(running.pid());
        let mut puppet = Puppet { running, socket };
        assert_eq!(puppet.answer(PATIENCE), "ready");
        puppet
    }

    pub fn wait_socket(&self) {
        let socket = &self.socket;
        wait_for("the socket", PATIENCE, || socket.exists().then_some(()));
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub fn socket(&self) -> &PathBuf {
        &self.socket
    }

    pub fn connect(&self) -> ByteClient {
        ByteClient::connect(&self.socket)
    }

    /// Gives an order and returns the answer.
    pub fn tell(&mut self, order: &str) -> String {
        self.running.tell(order)
    }

    /// Gives an order and does not wait.
    pub fn order(&mut self, order: &str) {
        self.running.say(order);
    }

    /// The next line that it says.
    pub fn answer(&mut self, limit: Duration) -> String {
        self.running.answer(limit)
    }

    pub fn signal(&self, signal: i32) {
        self.running.signal(signal);
    }

    /// Ends its stdin, whereupon it exits by itself.
    pub fn finish(self) -> Finished {
        self.running.finish()
    }

    pub fn wait_end(&mut self) -> std::process::ExitStatus {
        self.running.wait_end(PATIENCE)
    }

    pub fn kill(self) {
        self.running.kill();
    }
}

/// A puppet with a capture under way, and the client that started it.
pub fn capturing(home: &Home) -> (Puppet, ByteClient) {
    let puppet = Puppet::start(home);
    let mut client = ByteClient::open(puppet.socket(), &params(&home.output()));
    client.start();
    (puppet, client)
}
