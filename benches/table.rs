//! The whole table of costs and losses in one run.
//!
//! ```text
//! cargo bench --bench table [-- --save] [--reps N] [--only WORD] [--dir DIR]
//! cargo bench --bench table -- --long [--save] [--minutes N] [--seconds N] [--dir DIR]
//! ```
//!
//! The agent is used as a CANN component reaches it: dlopen of target/release/libmsprof_agent.so, which is
//! built anew if need be, or of MSPROF_AGENT_LIB; dlsym of its C symbols. Every row is taken in turns with
//! what it is compared with (benches/doors, behind the same door), so that what else the machine does hits
//! all alike. Times are CPU time of the threads, not wall time; bursts of one thread, and of one thread a
//! core, are SCHED_FIFO where permitted. Captures go to /dev/shm, or to DIR. `--save` keeps the results
//! under benches/results/; `--only` takes a part: off, single, together, stamp, probe, drain, lossless,
//! replies, idle, children, or one of the long ones.
//!
//! The long parts run when they are asked for, by `--long` both and nothing else: clock, which takes
//! 10 minutes or `--minutes`; sustained, which takes 60 s or `--seconds` and captures to a disk: to the
//! temporary directory, or to DIR.

mod rows;
mod support;

use rows::idle;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use support::agent::Agent;
use support::contestants::Contest;
use support::cores;
use support::doors::Doors;
use support::library;
use support::machine::Machine;
use support::table::Table;

/// Fewest repetitions of a row.
const REPS_MIN: usize = 15;
/// Most producers at a time.
const THREADS: usize = 16;

struct Arguments {
    save: bool,
    reps: usize,
    only: Option<String>,
    /// The long parts instead of the others.
    long: bool,
    /// Of the part "clock".
    minutes: f64,
    /// Of the part "sustained".
    seconds: u64,
    /// Where captures go.
    dir: PathBuf,
    /// Where those of the part "sustained" go.
    disk: PathBuf,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Arguments {
        let shared = Path::new("/dev/shm");
        let mut arguments = Arguments {
            save: false,
            reps: 31,
            only: None,
            long: false,
            minutes: 10.0,
            seconds: 60,
            disk: std::env::temp_dir(),
            dir: if shared.is_dir() {
                shared.to_owned()
            } else {
                std::env::temp_dir()
            },
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("an option's value");
            match word.as_str() {
                "--save" => arguments.save = true,
                "--reps" => arguments.reps = value().parse().expect("a number"),
                "--only" => arguments.only = Some(value()),
                "--long" => arguments.long = true,
                "--minutes" => arguments.minutes = value().parse().expect("a number"),
                "--seconds" => arguments.seconds = value().parse().expect("a number"),
                "--dir" => {
                    arguments.dir = value().into();
                    arguments.disk = arguments.dir.clone();
                }
                // What cargo adds.
                "--bench" => {}
                _ => panic!("unknown option {word}"),
            }
        }
        arguments.reps = arguments.reps.max(REPS_MIN);
        arguments.seconds = arguments.seconds.max(1);
        arguments
    }

    /// Whether to take a part of the short table.
    fn wants(&self, part: &str) -> bool {
        match &self.only {
            Some(only) => only == part,
            None => !self.long,
        }
    }

    /// Whether to take a long part.
    fn wants_long(&self, part: &str) -> bool {
        match &self.only {
            Some(only) => only == part,
            None => self.long,
        }
    }

    /// What the names of saved results end in, so that a part does not replace the whole table of the day.
    fn suffix(&self) -> String {
        match &self.only {
            Some(only) => format!("-{only}"),
            None if self.long => "-long".to_owned(),
            None => String::new(),
        }
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == idle::CHILD).is_some() {
        return idle::run_child(words.next().and_then(|s| s.parse().ok()).unwrap_or(0));
    }
    let arguments = Arguments::read(words);
    let dir = tempfile::Builder::new()
        .prefix("msprof-bench-")
        .tempdir_in(&arguments.dir)
        .expect("a temporary directory");
    library::build();
    let contest = Contest {
        agent: Agent::open(dir.path()),
        doors: Doors::open(dir.path(), THREADS),
        reps: arguments.reps,
        cores: cores::allowed(),
    };
    let machine = Machine::here(contest.cores.len());
    let mut table = Table::default();
    type Add = fn(&Contest, &mut Table);
    let parts: [(&str, Add); 8] = [
        ("off", rows::off::add),
        ("single", rows::single::add),
        ("together", rows::together::add),
        ("stamp", rows::stamp::add),
        ("probe", rows::probe::add),
        ("drain", rows::drain::add),
        ("lossless", rows::lossless::add),
        ("replies", rows::replies::add),
    ];
    for (name, add) in parts {
        if arguments.wants(name) {
            eprintln!("{name}");
            add(&contest, &mut table);
        }
    }
    if arguments.wants("idle") {
        eprintln!("idle");
        idle::add(dir.path(), &mut table);
    }
    if arguments.wants("children") {
        eprintln!("children");
        rows::children::add(dir.path(), &mut table);
    }
    if arguments.wants_long("clock") {
        eprintln!("clock");
        rows::clock::add(&contest, arguments.minutes, &mut table);
    }
    if arguments.wants_long("sustained") {
        eprintln!("sustained");
        rows::sustained::add(&contest, arguments.seconds, &arguments.disk, &mut table);
    }
    let text = heading(&machine, &contest, &arguments.dir) + &table.text();
    println!("\n{text}");
    if arguments.save {
        save(&machine, &arguments.suffix(), &text, &table);
    }
    ExitCode::SUCCESS
}

fn heading(machine: &Machine, contest: &Contest, dir: &Path) -> String {
    let library = contest.agent.path().file_name().unwrap_or_default();
    let options: String = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .map(|word| format!(" {word}"))
        .collect();
    let options = if options.is_empty() {
        options
    } else {
        format!(" --{options}")
    };
    format!(
        "libmsprof_agent, cost of the calls and what is lost\n\n\
         date      {}\nmachine   {}; {} cores; {}; load average {} at the start\nrevision  {}\n\
         command   cargo bench --bench table{}\n\
         library   {}, through dlopen and dlsym; the alternatives likewise\n\
         captures  below {}\n\
         figures   median (p10..p90) of {} repetitions, all columns of a row in turns\n\n",
        machine.date,
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.load,
        machine.revision,
        options,
        library.display(),
        dir.display(),
        contest.reps,
    )
}

fn save(machine: &Machine, suffix: &str, text: &str, table: &Table) {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
    std::fs::create_dir_all(&results).expect("benches/results");
    let name = format!("{}-{}{suffix}", machine.date, std::env::consts::ARCH);
    let mut json = table.json();
    json["date"] = machine.date.as_str().into();
    json["cpu"] = machine.cpu.as_str().into();
    json["cores"] = machine.cores.into();
    json["kernel"] = machine.kernel.as_str().into();
    json["load"] = machine.load.as_str().into();
    json["revision"] = machine.revision.as_str().into();
    let raw = format!("{json}\n");
    for (extension, content) in [("txt", text), ("json", raw.as_str())] {
        let path = results.join(&name).with_extension(extension);
        std::fs::write(&path, content).expect("benches/results is writable");
        eprintln!("saved {}", path.display());
    }
}
