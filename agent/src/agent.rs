//! The agent of this process: the one global object, made at load and made anew in a forked child
//! that calls the ABI.

use crate::capture::{
    self, Captures, Origin, Parts, Request, StartError, Started, StopMode, Stopped,
};
use crate::components::{Components, Handler};
use crate::control::owner::Control;
use crate::dictionary::Dictionary;
use crate::diverted::Diverted;
use crate::gate;
use crate::lanes::Lanes;
use crate::long::LongQueue;
use crate::marks::Marks;
use crate::names;
use crate::options::{OptionError, Options, split_words};
use crate::params::Params;
use crate::process::environment::{Bind, Environment};
use crate::{clock, log, profdir, pulled};
use crate::{fork, process};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Everything the process knows about its profiling.
#[derive(Debug)]
pub struct Agent {
    /// What the environment said at load.
    pub environment: Environment,
    /// Rings of all threads.
    pub lanes: Arc<Lanes>,
    /// Names.
    pub dictionary: Arc<Dictionary>,
    /// Handlers and devices.
    pub components: Arc<Components>,
    /// Rare, long reports.
    pub long: Arc<LongQueue>,
    /// Stamps, domains and open ranges of the program's own marks.
    pub marks: Arc<Marks>,
    /// Reports that another tool gets instead.
    pub diverted: Arc<Diverted>,
    /// Start, stop, status.
    pub captures: Arc<Captures>,
    control: Control,
    unreadable: Arc<AtomicU64>,
    /// This copy of the library brings up no socket.
    inert: AtomicBool,
    /// Whether the socket comes up at the next use.
    bind_at_use: AtomicBool,
    /// Directories that MsprofGetPath gave out.
    paths: Dictionary,
    model_devices: Arc<Mutex<BTreeMap<u32, u32>>>,
    disabled: Arc<Mutex<Option<String>>>,
    last_error: Mutex<String>,
}

/// Why the program's own start is refused.
#[derive(Debug, thiserror::Error)]
pub enum ProgramStartError {
    /// An option or its value is wrong.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The capture does not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl ProgramStartError {
    /// Whether the options are at fault.
    pub fn is_bad_option(&self) -> bool {
        matches!(self, ProgramStartError::Option(_))
    }
}

static CURRENT: AtomicPtr<Agent> = AtomicPtr::new(std::ptr::null_mut());
/// Counts agents along a line of forks; high half of capture numbers.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Process id of whoever makes the agent right now; 0 for nobody. Not a mutex: a fork may leave it
/// held by a thread that does not exist in the child.
static MAKER: AtomicI32 = AtomicI32::new(0);

impl Agent {
    fn new(environment: Environment, before: Option<&Agent>) -> Agent {
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed) + 1;
        let lanes = Arc::new(Lanes::new(environment.buffer_bytes, generation));
        let dictionary = Arc::new(
            before
                .map(|b| b.dictionary.copy_in_child())
                .unwrap_or_default(),
        );
        let components = Arc::new(
            before
                .map(|b| b.components.copy_in_child())
                .unwrap_or_default(),
        );
        let marks = Arc::new(before.map(|b| b.marks.copy_in_child()).unwrap_or_default());
        let long = Arc::new(LongQueue::default());
        let diverted = Arc::new(
            before
                .map(|b| b.diverted.copy_in_child())
                .unwrap_or_default(),
        );
        let unreadable = Arc::new(AtomicU64::new(0));
        let model_devices = Arc::<Mutex<BTreeMap<u32, u32>>>::default();
        let disabled = Arc::<Mutex<Option<String>>>::default();
        let parts = Parts {
            lanes: lanes.clone(),
            dictionary: dictionary.clone(),
            components: components.clone(),
            long: long.clone(),
            marks: marks.clone(),
            devices: Arc::default(),
            diverted: diverted.clone(),
            unreadable: unreadable.clone(),
            model_devices: model_devices.clone(),
            models: Arc::default(),
            disabled: disabled.clone(),
            alarm: Arc::default(),
        };
        let captures = Arc::new(Captures::new(parts, generation));
        let control = Control::new(&environment, captures.clone(), components.clone());
        Agent {
            environment,
            lanes,
            dictionary,
            components,
            long,
            marks,
            diverted,
            captures,
            control,
            unreadable,
            inert: AtomicBool::new(before.is_some_and(|b| b.inert.load(Ordering::Acquire))),
            bind_at_use: AtomicBool::new(false),
            paths: Dictionary::default(),
            model_devices,
            disabled,
            last_error: Mutex::default(),
        }
    }

    /// The agent of this process, if it has one. For reports: the gate said that something is captured.
    #[inline]
    pub fn current() -> Option<&'static Agent> {
        let agent = CURRENT.load(Ordering::Acquire);
        // SAFETY: null, or leaked by `make` and never freed.
        unsafe { agent.as_ref() }
    }

    /// Counts a report that the parser could not read.
    pub fn count_unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes sure that the control socket is up, where the environment wants one.
    pub fn ensure_control(&self) {
        if self.bind() != Bind::Off && self.disabled().is_none() {
            self.control.ensure();
        }
    }

    /// Whether calls belong to the vendor's library, if there is one: the process is not in dynamic mode.
    pub fn passes_on(&self) -> bool {
        !self.environment.dynamic && !self.inert.load(Ordering::Acquire)
    }

    /// Whether the process is in dynamic mode, and this copy of the library is the one that takes its records.
    pub fn is_armed(&self) -> bool {
        self.environment.dynamic && !self.inert.load(Ordering::Acquire)
    }

    fn bind(&self) -> Bind {
        if self.inert.load(Ordering::Acquire) {
            return Bind::Off;
        }
        self.environment.bind()
    }

    /// The application finalizes: a running capture and the control socket end.
    pub fn finalize(&self) {
        // A client's start that waits for its turn must not begin behind our back.
        self.captures.refuse_starts(true);
        let _ = self.captures.stop(StopMode::NORMAL, &mut |_| {});
        self.components
            .finalize()
            .run_within(capture::COMPONENT_LIMIT);
        self.control.shut_down();
        self.captures.refuse_starts(false);
    }

    /// A component registers.
    pub fn register(&self, module: u32, handler: Handler) {
        self.components.register(module, handler).run_here();
    }

    /// A device was opened or closed; false for an id that cannot be.
    pub fn set_device(&self, device: u32, open: bool) -> bool {
        match self.components.set_device(device, open) {
            Ok((changed, delivery)) => {
                if changed && open {
                    self.captures.device_opened(device);
                } else if changed {
                    self.captures.device_closing(device);
                }
                delivery.run_here();
                true
            }
            Err(error) => {
                self.set_error(error.to_string());
                false
            }
        }
    }

    /// Starts a capture from inside the program; `options` are words of the msprof command line.
    pub fn start(
        &'static self,
        options: &str,
        output: Option<PathBuf>,
    ) -> Result<Started, ProgramStartError> {
        // Not yet where the process is not in dynamic mode.
        log::init(&self.environment);
        clock::prepare();
        let options = split_words(options).and_then(Options::parse_words)?;
        let mut params = Params::from_options(&options, process::current_pid());
        // Not the directory of the program, which in Python is that of the interpreter.
        let mut default_dir = match &self.environment.work_path {
            Some(work_path) => capture::default_dir(Some(work_path)),
            None => PathBuf::from("."),
        };
        if let Some(output) = output {
            params.set_result_dir("");
            default_dir = output;
        }
        let request = Request {
            params,
            origin: Origin::Program,
            default_dir,
            allow_shared_dir: self.environment.allow_shared_dir,
            need_device: false,
            time_limit: None,
        };
        // Where the agent is off, it makes no thread either.
        if let Some(reason) = self.disabled() {
            return Err(StartError::Disabled(reason).into());
        }
        let started = on_own_thread(move || self.captures.start(&request));
        Ok(started.map_err(StartError::Thread)??)
    }

    /// Stops the running capture from inside the program.
    pub fn stop(&'static self) -> Result<Stopped, String> {
        let stop = move || self.captures.stop(StopMode::NORMAL, &mut |_| {});
        match on_own_thread(stop) {
            Ok(stopped) => stopped.map_err(|error| error.to_string()),
            Err(error) => Err(StartError::Thread(error).to_string()),
        }
    }

    /// Directory of the running capture as a C string that is never freed; empty when none runs.
    pub fn capture_path(&self) -> &'static CStr {
        let Some(path) = self.captures.path() else {
            return c"";
        };
        // The dictionary keeps each string once, so asking often costs no memory.
        let id = self.paths.id_of(path.as_os_str().as_bytes());
        self.paths.text_of(id).unwrap_or(c"")
    }

    /// Notes or forgets the device that a GE model index runs on.
    pub fn set_model_device(&self, model: u32, device: Option<u32>) {
        const MODELS_MAX: usize = 4096;
        let mut devices = self.model_devices.lock();
        match device {
            Some(_) if devices.len() >= MODELS_MAX && !devices.contains_key(&model) => None,
            Some(device) => devices.insert(model, device),
            None => devices.remove(&model),
        };
    }

    /// Why the agent has turned itself off, if it has.
    pub fn disabled(&self) -> Option<String> {
        self.disabled.lock().clone()
    }

    /// Remembers the text of the last failure for `msprof_agent_last_error`.
    pub fn set_error(&self, text: String) {
        *self.last_error.lock() = text;
    }

    /// Text of the last failure; empty when there was none.
    pub fn last_error(&self) -> String {
        self.last_error.lock().clone()
    }
}

/// Called by the constructor instead of binding: this copy of the library is not to be used.
pub fn stay_inert(reason: &str) {
    let agent = current();
    if agent.environment.dynamic {
        tracing::warn!("no control socket: {reason}");
    }
    agent.inert.store(true, Ordering::Release);
}

/// Called by the constructor, before the program runs where that is possible.
pub fn load() {
    let agent = current();
    match agent.bind() {
        Bind::Load => {
            // First: from the socket on, a client may open the gate.
            gate::answer();
            agent.control.ensure();
        }
        Bind::Use => {
            agent.bind_at_use.store(true, Ordering::Release);
            // The gate stays at "ask": the first report comes by `used`.
        }
        Bind::Off => {
            if agent.environment.bind == Some(Bind::Off) {
                let version = crate::VERSION;
                tracing::info!("agent {version}, no control socket: MSPROF_AGENT_BIND=off");
            }
            // Otherwise nobody knows yet whether there is another library for the reports.
            if !agent.passes_on() {
                gate::answer();
            }
        }
    }
}

/// The agent of this process, made if need be: at load, or by the first call in a forked child, or by a
/// call that comes before the constructor has run.
pub fn current() -> &'static Agent {
    if gate::is_ours()
        && let Some(agent) = Agent::current()
    {
        return agent;
    }
    make()
}

/// A call of the ABI: brings the socket up where that was left to the first use.
pub fn used() -> &'static Agent {
    let agent = current();
    gate::answer();
    if agent.bind_at_use.swap(false, Ordering::AcqRel) {
        agent.ensure_control();
        pulled::revive();
    }
    agent
}

#[cold]
fn make() -> &'static Agent {
    let pid = process::current_pid() as i32;
    loop {
        let holder = MAKER.load(Ordering::Acquire);
        // A holder of another pid is the parent as of the fork: there is no such thread here.
        let free = holder == 0 || holder != pid;
        if free
            && MAKER
                .compare_exchange(holder, pid, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            break;
        }
        std::thread::yield_now();
    }
    let agent = make_alone();
    MAKER.store(0, Ordering::Release);
    agent
}

fn make_alone() -> &'static Agent {
    let before = Agent::current();
    if let Some(agent) = before
        && gate::is_ours()
    {
        return agent;
    }
    let in_child = before.is_some();
    process::on_panic(&(disable as fn(&str)));
    let environment = match before {
        Some(parent) => parent.environment.clone(),
        None => {
            let environment = Environment::read();
            std::panic::set_hook(Box::new(|_| {}));
            clock::set_unordered(environment.unordered_clock);
            if environment.dynamic {
                log::init(&environment);
                for complaint in &environment.complaints {
                    tracing::warn!("{complaint}");
                }
                profdir::prime_time_zone();
                clock::prepare();
            }
            environment
        }
    };
    fork::watch();
    let agent: &'static Agent = Box::leak(Box::new(Agent::new(environment, before)));
    CURRENT.store(std::ptr::from_ref(agent).cast_mut(), Ordering::Release);
    if in_child {
        pulled::forget_owner();
        // A child gets here by using the ABI.
        agent.bind_at_use.store(true, Ordering::Release);
    }
    gate::own();
    agent
}

/// Turns the agent off for good: the program goes on, nothing is captured any more.
pub fn disable(reason: &str) {
    if let Some(agent) = Agent::current() {
        let mut disabled = agent.disabled.lock();
        if disabled.is_none() {
            tracing::error!("the agent turns itself off: {reason}");
            *disabled = Some(reason.to_owned());
        }
    }
    // After that: a start looks whether the agent is off once it has opened the gate.
    gate::close_for_good();
}

/// Normal exit of the process: ends a running capture within the bound and removes the socket. Does
/// nothing in a forked child that never used the ABI.
pub fn exit() {
    if !gate::is_ours() {
        return;
    }
    if let Some(agent) = Agent::current() {
        agent.captures.exit(agent.environment.exit_timeout);
        agent.control.remove_socket();
    }
}

/// Ticks of the clock of all records.
pub fn ticks() -> u64 {
    clock::now()
}

/// Runs `task` on a thread of ours and waits for it: files are written there with all signals blocked
/// (RLIMIT_FSIZE sends one), and the program's thread is at no point where pthread_cancel acts.
fn on_own_thread<R: Send + 'static>(
    task: impl FnOnce() -> R + Send + 'static,
) -> std::io::Result<R> {
    let (sender, result) = crossbeam_channel::bounded(1);
    process::spawn(names::OPERATION_THREAD, move || {
        // Received below, unless the process is ending.
        let _ = sender.send(task());
    })?;
    // Disconnected by a panic, which has turned the agent off.
    result
        .recv()
        .map_err(|_| std::io::Error::other("an internal error ended it"))
}
