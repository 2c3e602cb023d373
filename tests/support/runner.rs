//! A program whose workers run models as they are told (tests/c/runs.c).

use super::builder::{Linkage, build};
use super::client::{ByteClient, params};
use super::home::{Home, prof_dirs};
use super::prof::Prof;
use super::puppet::Puppet;
use super::rules::open_complete;

pub struct Runner {
    pub puppet: Puppet,
}

impl Runner {
    pub fn start(home: &Home) -> Runner {
        let program = home.armed(build("tests/c/runs.c", Linkage::Shared));
        Runner {
            puppet: Puppet::start_armed(home, program),
        }
    }

    /// Begins a capture.
    pub fn begin(&self, home: &Home) -> ByteClient {
        let mut client = ByteClient::open(self.puppet.socket(), &params(&home.output()));
        client.start();
        client
    }

    /// A capture in which these orders are given.
    #[track_caller]
    pub fn capture(&mut self, home: &Home, orders: &[&str]) -> Prof {
        let mut client = self.begin(home);
        self.tell(orders);
        client.stop();
        client.quit();
        open_complete(prof_dirs(&home.output()).last().expect("a capture"))
    }

    #[track_caller]
    pub fn tell(&mut self, orders: &[&str]) {
        for order in orders {
            assert_eq!(self.ask(order), 0, "{order}");
        }
    }

    pub fn tid(&mut self, worker: u64) -> u32 {
        self.ask(&format!("tid {worker}"))
    }

    fn ask(&mut self, order: &str) -> u32 {
        let answer = self.puppet.tell(order);
        answer
            .parse()
            .unwrap_or_else(|_| panic!("{order}: {answer}"))
    }
}
