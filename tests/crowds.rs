//! Clients by the thousand, of every bad kind and of the good ones: whoever comes next is served, and the
//! process holds what it held before.

mod support;

use std::io::ErrorKind;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use support::client::{ByteClient, PARAMS, START, STOP, assert_serves, params, params_message};
use support::home::{Home, only_prof_dir};
use support::msprof::{dynamic, run_script};
use support::proc::{Proc, Resources};
use support::puppet::{self, Puppet};
use support::random::Random;
use support::rules::open_complete;
use support::wait::{PATIENCE, wait_until};

const FUZZED: u64 = 10_000;
/// After these nothing may grow any more.
const WARM_UP: u64 = 500;
const SILENT: usize = 5_000;
const CYCLES: usize = 10_000;

/// What the heap may have kept after thousands of clients, KiB: far less than a leaked connection each.
const GROWTH_KIB: u64 = 1024;

/// A process that clients come to, and what it held before they came.
struct Host {
    puppet: Puppet,
    home: Home,
    before: Resources,
    resident_kib: u64,
}

impl Host {
    fn new() -> Host {
        let home = Home::new();
        // What a thousand bad clients leave in a log is not what these tests are about.
        let program = home
            .armed(puppet::path())
            .env("MSPROF_AGENT_LOG", "off")
            // More arenas of the C library come and go with luck; they are none of our memory.
            .env("MALLOC_ARENA_MAX", "1");
        let puppet = Puppet::start_armed(&home, program);
        // The first uses make what stays.
        for _ in 0..20 {
            attach(&puppet, &home, true);
            attach(&puppet, &home, false);
        }
        assert_serves(puppet.socket(), &home.output());
        let proc = Proc::of(puppet.pid());
        let before = proc.idle_resources();
        let resident_kib = proc.resident_kib();
        Host {
            puppet,
            home,
            before,
            resident_kib,
        }
    }

    /// Both kinds of client are served, and nothing has added up.
    #[track_caller]
    fn assert_as_before(mut self) {
        assert_serves(self.puppet.socket(), &self.home.output());
        let proc = Proc::of(self.puppet.pid());
        proc.wait_for_resources(&self.before);
        wait_until("its memory to come to be what it was", || {
            proc.resident_kib() <= self.resident_kib + GROWTH_KIB
        });
        let captured = self.home.path().join("last");
        let program = dynamic(&self.home, &captured).arg(format!("--pid={}", self.puppet.pid()));
        let mut msprof = program.spawn();
        msprof.say("start");
        msprof.line("the start", |line| {
            line.contains("start success").then_some(())
        });
        assert_eq!(self.puppet.tell("api 100 1"), "0");
        msprof.say("stop");
        msprof.finish().expect_code(0);
        let prof = open_complete(&only_prof_dir(&captured));
        assert_eq!(prof.api().len(), 100);
        self.puppet.finish().expect_code(0);
    }
}

/// Attaches and quits, as a stock client or as ours.
fn attach(puppet: &Puppet, home: &Home, ours: bool) {
    if ours {
        let mut client = puppet.connect();
        let hello = client.introduce_extended(&params(&home.output()));
        assert!(hello["busy"].is_null(), "{hello}");
        assert_eq!(client.ask("quit")["outcome"], "success");
    } else {
        ByteClient::open(puppet.socket(), &params(&home.output())).quit();
    }
}

// ---- fuzzed -----------------------------------------------------------------

/// Something that no good client sends.
fn bad_bytes(random: &mut Random, good: &[u8]) -> Vec<u8> {
    match random.below(8) {
        // Nothing at all.
        0 => Vec::new(),
        // Cut short anywhere.
        1 => good[..random.below(PARAMS as u64) as usize].to_vec(),
        // Of every length up to beyond the largest message, of noise.
        2 => random.bytes(2 * PARAMS as u64),
        // Good params with some bytes changed.
        3 => {
            let mut bytes = good.to_vec();
            for _ in 0..=random.below(20) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next() as u8;
            }
            bytes
        }
        // A length that lies.
        4 => {
            let mut bytes = good.to_vec();
            bytes[..4].copy_from_slice(&(random.next() as u32).to_le_bytes());
            bytes
        }
        // Good params, then messages of types that are none, or of a few commands in any order.
        5 => {
            let mut bytes = good.to_vec();
            for _ in 0..random.below(12) {
                let kind = match random.below(3) {
                    0 => random.next() as u32,
                    _ => [START, STOP, 0, 2, 6, 7, 8][random.below(7) as usize],
                };
                bytes.extend_from_slice(&kind.to_le_bytes());
                bytes.extend_from_slice(&(random.next() as u32).to_le_bytes());
            }
            bytes
        }
        // Good params and then noise, a part of a message at its end.
        6 => [good.to_vec(), random.bytes(100)].concat(),
        // Far more than anybody reads.
        _ => [good.to_vec(), vec![0xFF; 3 * 65_536]].concat(),
    }
}

/// Sends in up to four pieces. The agent may close at any moment.
fn send_in_pieces(stream: &mut UnixStream, bytes: &[u8], random: &mut Random) {
    let mut rest = bytes;
    for _ in 0..random.below(4) {
        let (piece, behind) = rest.split_at(random.below(rest.len() as u64 + 1) as usize);
        if stream.write_all(piece).is_err() {
            return;
        }
        rest = behind;
    }
    let _ = stream.write_all(rest);
}

#[test]
fn ten_thousand_fuzzed_connections_hurt_nobody() {
    let seed = 0x5EED_0003;
    let mut random = Random::new(seed);
    let mut host = Host::new();
    let ordinary = params_message(&params(&host.home.output()).to_string());
    let mut extended = params(&host.home.output());
    extended["msprofAgentController"] = serde_json::json!({"version": 1});
    let extended = params_message(&extended.to_string());
    for number in 1..=FUZZED {
        let good = if random.below(2) == 0 {
            &ordinary
        } else {
            &extended
        };
        let bytes = bad_bytes(&mut random, good);
        let mut stream = UnixStream::connect(host.puppet.socket()).expect("a socket");
        // One that is not read from is given up in the end, and must not be waited for here.
        let limit = Some(PATIENCE);
        stream.set_write_timeout(limit).expect("not zero");
        send_in_pieces(&mut stream, &bytes, &mut random);
        if random.below(4) == 0 {
            // Listens for what comes at once, if anything.
            stream.set_nonblocking(true).expect("set");
            let _ = stream.read(&mut [0; 64]);
        }
        drop(stream);
        if number == WARM_UP {
            assert_served_in_the_end(&host, number, seed);
            let proc = Proc::of(host.puppet.pid());
            proc.wait_for_resources(&host.before);
            host.resident_kib = proc.resident_kib();
        }
        if number % 1_000 == 0 {
            // Those that came before are gone, or are thrown out for this one.
            assert_served_in_the_end(&host, number, seed);
        }
    }
    host.assert_as_before();
}

/// A good client is served as soon as the last bad one has lost its turn.
#[track_caller]
fn assert_served_in_the_end(host: &Host, number: u64, seed: u64) {
    wait_until("a good client to be served", || {
        let mut client = host.puppet.connect();
        let hello = client.introduce_extended(&params(&host.home.output()));
        hello["busy"].is_null() && client.ask("quit")["outcome"] == "success"
    });
    assert!(
        Proc::of(host.puppet.pid()).is_alive(),
        "after {number} of seed {seed:#x}"
    );
}

// ---- silent -----------------------------------------------------------------

#[test]
fn five_thousand_silent_connections_leave_no_descriptor() {
    // As many at a time as find a place, and as many again in the queue before the socket.
    const WAVE: usize = 50;
    let host = Host::new();
    for _ in 0..SILENT / WAVE {
        let wave: Vec<UnixStream> = (0..WAVE)
            .map(|_| UnixStream::connect(host.puppet.socket()).expect("a place in the queue"))
            .collect();
        drop(wave);
    }
    host.assert_as_before();
}

/// More than there are places, and each stays after it has sent `message`: a stock client is answered before
/// it gives up.
fn assert_a_full_house_makes_room(message: &[u8]) {
    const CROWD: usize = 40;
    let host = Host::new();
    let crowd: Vec<UnixStream> = (0..CROWD)
        .map(|_| {
            let mut stream =
                UnixStream::connect(host.puppet.socket()).expect("a place in the queue");
            stream.write_all(message).expect("room for a message");
            stream
        })
        .collect();
    assert_serves(host.puppet.socket(), &host.home.output());
    // The agent has hung up on each of the crowd in the end.
    for mut stays in crowd {
        stays.set_read_timeout(Some(PATIENCE)).expect("not zero");
        match stays.read_to_end(&mut Vec::new()) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{error}"),
        }
    }
    host.assert_as_before();
}

#[test]
fn a_full_house_of_silent_connections_makes_room_for_a_good_one() {
    assert_a_full_house_makes_room(&[]);
}

#[test]
fn a_full_house_of_clients_that_are_turned_away_makes_room_for_a_good_one() {
    const CROWD: usize = 40;
    let host = Host::new();
    let holder = ByteClient::open(host.puppet.socket(), &params(&host.home.output()));
    let ordinary = params_message(&params(&host.home.output()).to_string());
    let crowd: Vec<UnixStream> = (0..CROWD)
        .map(|_| {
            let mut stream =
                UnixStream::connect(host.puppet.socket()).expect("a place in the queue");
            stream.write_all(&ordinary).expect("room for a message");
            stream
        })
        .collect();
    // Within the second that the hello may take.
    let mut client = host.puppet.connect();
    let hello = client.introduce_extended(&params(&host.home.output()));
    assert!(!hello["busy"].is_null(), "{hello}");
    holder.quit();
    drop(crowd);
    host.assert_as_before();
}

#[test]
fn a_full_house_of_refused_clients_that_do_not_close_makes_room_for_a_good_one() {
    assert_a_full_house_makes_room(&params_message("no JSON"));
}

// ---- good ones --------------------------------------------------------------

#[test]
fn ten_thousand_attach_and_quit_cycles_leave_nothing_behind() {
    let host = Host::new();
    for number in 0..CYCLES {
        attach(&host.puppet, &host.home, number % 2 == 0);
    }
    host.assert_as_before();
}

#[test]
fn fifty_sessions_of_the_controller_leave_nothing_behind() {
    let host = Host::new();
    for _ in 0..50 {
        let program = dynamic(&host.home, &host.home.output());
        let program = program.arg(format!("--pid={}", host.puppet.pid()));
        run_script(program, &["quit"]).expect_code(0);
    }
    host.assert_as_before();
}
