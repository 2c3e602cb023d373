//! A stand-in for the vendor's libprofapi.so with our library behind it, in the place of libprofimpl.so.

use super::artifacts::artifacts;
use super::builder::library;
use super::home::Home;
use super::process::Program;
use std::path::PathBuf;

const SOURCE: &str = "tests/cann/stock_profapi.cpp";

/// What other tools can have of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callbacks {
    /// Reports are diverted to them.
    Called,
    /// They are taken and never called.
    Taken,
    /// As called, but there is none for additional records.
    Partly,
    /// There are none.
    Missing,
}

/// Layouts of C++ strings that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strings {
    Old,
    New,
}

/// The library in a directory of its own.
#[derive(Debug)]
pub struct Stock {
    home: Home,
}

impl Stock {
    pub fn new(callbacks: Callbacks, strings: Strings) -> Stock {
        let stock = Stock { home: Home::new() };
        let callbacks = match callbacks {
            Callbacks::Called => "-DHAS_CALLBACKS=1",
            Callbacks::Taken => "-DHAS_CALLBACKS=2",
            Callbacks::Partly => "-DHAS_CALLBACKS=3",
            Callbacks::Missing => "-DHAS_CALLBACKS=0",
        };
        let strings = match strings {
            Strings::Old => "-D_GLIBCXX_USE_CXX11_ABI=0",
            Strings::New => "-D_GLIBCXX_USE_CXX11_ABI=1",
        };
        let built = library(SOURCE, &[callbacks, strings], "libprofapi.so");
        std::fs::copy(built, stock.library()).expect("a copy");
        stock
    }

    pub fn library(&self) -> PathBuf {
        self.home.path().join("libprofapi.so")
    }

    /// Has a program find it, and our library behind it.
    pub fn before(&self, program: Program) -> Program {
        let behind = artifacts().drop_in_behind.display();
        let path = format!("{}:{behind}", self.home.path().display());
        program.env("LD_LIBRARY_PATH", path)
    }

    /// The same, with our library found before one that lies beside the stand-in.
    pub fn ours_first(&self, program: Program) -> Program {
        let behind = artifacts().drop_in_behind.display();
        let path = format!("{behind}:{}", self.home.path().display());
        program.env("LD_LIBRARY_PATH", path)
    }
}
