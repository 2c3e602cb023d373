//! `msprof`: starts and stops captures of running AI tasks (spec 4).

#![forbid(unsafe_code)]

mod cli;
mod command;
mod conn;
mod controller;
mod help;
mod launch;
mod left;
mod locate;
mod process;
mod prompt;
mod report;
mod screen;
mod search;
mod session;
mod signals;
mod summary;
mod target;

use cli::{Dynamic, Invocation, Whom};
use controller::{Controller, Event, Limits, Program};
use launch::{Agent, Application};
use locate::LaunchSearch;
use msprof_agent_core::control::places::PlaceInputs;
use msprof_agent_core::options::Options;
use msprof_agent_core::params::Params;
use msprof_agent_core::process::effective_uid;
use msprof_agent_core::process::environment::Environment;
use msprof_agent_core::process::user::passwd_home;
use prompt::Prompt;
use screen::Screen;
use search::Search;
use signals::Ignored;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};

/// Exit status of wrong usage.
const USAGE: u8 = 2;
/// Variable that names the agent library, as `--agent-lib` does.
const AGENT_LIB_VARIABLE: &str = "MSPROF_AGENT_LIB";
fn main() -> ExitCode {
    match cli::parse(std::env::args_os().skip(1).collect()) {
        Ok(Invocation::Help) => print(&help::text()),
        Ok(Invocation::Version) => print(concat!("msprof ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Invocation::Verb(verb, arguments)) => (verb.run)(&arguments).into(),
        Ok(Invocation::Dynamic(dynamic)) => profile(dynamic)
            .unwrap_or_else(|error| {
                eprintln!("msprof: {}", error.text);
                error.status
            })
            .into(),
        Err(error) => {
            eprintln!("msprof: {error}");
            USAGE.into()
        }
    }
}

/// A reader that has gone away is no error.
fn print(text: &str) -> ExitCode {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Why nothing was begun.
struct Failure {
    text: String,
    status: u8,
}

impl Failure {
    fn new(error: impl std::fmt::Display, status: u8) -> Failure {
        Failure {
            text: error.to_string(),
            status,
        }
    }
}

fn profile(dynamic: Dynamic) -> Result<u8, Failure> {
    let Dynamic { options, whom } = dynamic;
    let params = Params::from_options(&options, std::process::id());
    let params = params.to_wire_text().map_err(|e| Failure::new(e, USAGE))?;
    match whom {
        Whom::Attach(pids) => {
            locate::sweep_all();
            let (controller, _) = begin(&options, params)?;
            Ok(controller.attach(&pids))
        }
        Whom::Launch { application, agent } => launch(&options, params, &application, agent),
    }
}

/// Everything but the targets.
fn begin(options: &Options, params: String) -> Result<(Controller, Sender<Event>), Failure> {
    let failed = |error: std::io::Error| Failure::new(error, 1);
    let mut screen = Screen::new();
    tell_not_collected(&mut screen, options);
    let (sender, events) = channel();
    let ignored = Ignored::read();
    let inputs = sender.clone();
    let prompt = Prompt::start(move |input| {
        let _ = inputs.send(Event::Input(input));
    })
    .map_err(failed)?;
    signals::watch(ignored, sender.clone()).map_err(failed)?;
    if prompt.has_editor() {
        screen.set_editor(prompt::PROMPT);
    }
    // The same variables with the same rules as in the agent.
    let environment = Environment::read();
    let limits = Limits {
        commands: environment.max_commands,
        idle: environment.idle_timeout,
    };
    let controller = Controller::new(screen, (sender.clone(), events), prompt, limits, params);
    Ok((controller, sender))
}

fn launch(
    options: &Options,
    params: String,
    application: &Application,
    agent: Option<PathBuf>,
) -> Result<u8, Failure> {
    let named = agent.or_else(|| std::env::var_os(AGENT_LIB_VARIABLE).map(PathBuf::from));
    let failed = |error: launch::LaunchError| {
        let status = error.exit_status();
        Failure::new(error, status)
    };
    let agent = Agent::find(named.as_deref()).map_err(failed)?;
    let home = passwd_home(rustix::process::getuid().as_raw());
    let inputs = PlaceInputs::new(effective_uid(), home, |name| application.variable(name));
    let mut looker = LaunchSearch::prepare(&inputs, std::process::id());
    // Before the program: a signal that comes in between must not kill us and leave it behind.
    let (controller, sender) = begin(options, params.clone())?;
    let mut child = application.start(&agent, &params).map_err(failed)?;
    let pid = child.id();
    looker.launched(pid);
    let places: Vec<_> = looker
        .dirs()
        .iter()
        .map(|dir| dir.display().to_string())
        .collect();
    let found = sender.clone();
    let search = Search::start(looker, move |looked| {
        let _ = found.send(Event::Looked(looked));
    });
    let waiter = std::thread::Builder::new().name("program".to_owned());
    let waiting = waiter.spawn(move || {
        if let Ok(status) = child.wait() {
            let _ = sender.send(Event::Exited(status));
        }
    });
    let failed = |error: std::io::Error| Failure::new(error, 1);
    waiting.map_err(failed)?;
    Ok(controller.launched(Program {
        pid,
        search: search.map_err(failed)?,
        places: places.join(", "),
    }))
}

/// Said once: what is asked for and only other collectors have.
fn tell_not_collected(screen: &mut Screen, options: &Options) {
    let names = options.not_collected();
    if names.is_empty() {
        return;
    }
    let names: Vec<_> = names.iter().map(|name| format!("--{name}")).collect();
    screen.warn(&format!(
        "note: {} is handed on to the components; this agent does not collect it itself",
        names.join(", ")
    ));
}
