//! `msprof`: starts and stops captures of running AI tasks (spec 4).

#![forbid(unsafe_code)]

/// A line on stderr. Where it cannot be written, on a full disk or to a reader that has gone, there is nobody to tell, and what
/// is being done goes on.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

mod cli;
mod command;
mod conn;
mod controller;
mod exit;
mod export;
mod help;
mod inject;
mod launch;
mod left;
mod library;
mod locate;
mod look;
mod losses;
#[cfg(test)]
mod manual;
mod paint;
mod preload;
mod process;
mod profdirs;
mod prompt;
mod recover;
mod report;
mod screen;
mod search;
mod session;
mod signals;
mod summary;
mod table;
mod target;
mod verbs;
mod view;

use cli::{Dynamic, Invocation, Whom};
use controller::{Controller, Event, Limits, Program};
use exit::{FAILED, USAGE};
use inject::Injection;
use launch::Application;
use locate::LaunchSearch;
use msprof_agent_core::control::places::{PlaceInputs, SOCKET_DIR_VARIABLE};
use msprof_agent_core::options::Options;
use msprof_agent_core::params::Params;
use msprof_agent_core::process::effective_uid;
use msprof_agent_core::process::environment::Environment;
use msprof_agent_core::process::user::passwd_home;
use prompt::Prompt;
use screen::Screen;
use search::Search;
use signals::Ignored;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};

fn main() -> ExitCode {
    signals::survive_file_size_limit(Ignored::read());
    let status = run();
    if screen::is_lost() && status == exit::DONE {
        complain!("msprof: what was to be said on stdout could not be written");
        return exit::FAILED.into();
    }
    status.into()
}

/// Does what is asked for; gives the exit status.
fn run() -> u8 {
    match cli::parse(std::env::args_os().skip(1).collect()) {
        Ok(Invocation::Help) => print(&help::text()),
        Ok(Invocation::Version(agent)) => print(&library::versions(agent)),
        Ok(Invocation::Export(arguments)) => export::run(&arguments),
        Ok(Invocation::Verb(verb, arguments)) => (verb.run)(&arguments),
        Ok(Invocation::Dynamic(dynamic)) => profile(dynamic).unwrap_or_else(|error| {
            complain!("msprof: {}", screen::clean(&error.text));
            error.status
        }),
        Err(error) => {
            complain!("msprof: {}", screen::clean(&error.to_string()));
            USAGE
        }
    }
}

/// A reader that has gone away is no error; another failure becomes one at the end.
fn print(text: &str) -> u8 {
    use std::io::Write;
    let mut out = std::io::stdout();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written {
        screen::note_lost(&error);
    }
    exit::DONE
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
            let (controller, _) = begin(&options, params, &[])?;
            Ok(controller.attach(&pids))
        }
        Whom::Launch {
            application,
            inject,
            agent,
        } => {
            let named = library::named(agent);
            let injection = Injection::find(inject, named.as_deref());
            let injection = injection.map_err(|error| Failure::new(error, USAGE))?;
            let remarks = injection.remarks(inject);
            launch(&options, params, &application, &injection, &remarks)
        }
    }
}

/// Everything but the targets.
fn begin(
    options: &Options,
    params: String,
    remarks: &[String],
) -> Result<(Controller, Sender<Event>), Failure> {
    let failed = |error: std::io::Error| Failure::new(error, FAILED);
    let mut screen = Screen::new();
    tell_not_collected(&mut screen, options);
    for remark in remarks {
        screen.warn(&format!("note: {remark}"));
    }
    let (sender, events) = channel();
    let ignored = Ignored::read();
    let inputs = sender.clone();
    let prompt = Prompt::start(move |input| {
        let _ = inputs.send(Event::Input(input));
    })
    .map_err(failed)?;
    let told = sender.clone();
    signals::watch(ignored, move |signal| {
        told.send(Event::Signal(signal)).is_ok()
    })
    .map_err(failed)?;
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
    injection: &Injection,
    remarks: &[String],
) -> Result<u8, Failure> {
    let failed = |error: launch::LaunchError| {
        let status = error.exit_status();
        Failure::new(error, status)
    };
    let home = passwd_home(rustix::process::getuid().as_raw());
    let inputs = PlaceInputs::new(effective_uid(), home, |name| application.variable(name));
    if let Some(dir) = &inputs.override_dir
        && dir.is_absolute()
        && !dir.is_dir()
    {
        let text = format!("{SOCKET_DIR_VARIABLE}: {}", locate::no_directory(dir));
        return Err(Failure::new(text, USAGE));
    }
    let mut looker = LaunchSearch::prepare(&inputs, std::process::id());
    // Before the program: a signal that comes in between must not kill us and leave it behind.
    let (controller, sender) = begin(options, params.clone(), remarks)?;
    let mut child = application.start(injection, &params).map_err(failed)?;
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
    let failed = |error: std::io::Error| Failure::new(error, FAILED);
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
