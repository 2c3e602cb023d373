//! Child processes whose output is collected and that never outlive their test.

use super::proc::Proc;
use super::slower::stretched;
use super::wait::{PATIENCE, wait_for, wait_until};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program to be run: its arguments, environment and what is done before exec.
#[derive(Debug)]
pub struct Program {
    command: Command,
}

impl Program {
    /// Nothing is inherited but PATH and what the sanitizers of `make asan` and the emulator of `make aarch64` read.
    pub fn new(program: impl AsRef<OsStr>) -> Program {
        let mut words = start_words(program.as_ref()).into_iter();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).env_clear().process_group(0);
        for name in [
            "PATH",
            "ASAN_OPTIONS",
            "LSAN_OPTIONS",
            "UBSAN_OPTIONS",
            "G_SLICE",
        ] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        Program { command }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Program {
        self.command.arg(arg);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Program {
        self.command.args(args);
        self
    }

    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Program {
        self.command.env(key, value);
        self
    }

    pub fn without(mut self, key: &str) -> Program {
        self.command.env_remove(key);
        self
    }

    pub fn current_dir(mut self, dir: &std::path::Path) -> Program {
        self.command.current_dir(dir);
        self
    }

    /// # Safety
    /// As of `CommandExt::pre_exec`: `f` runs in the forked child.
    pub unsafe fn before_exec(
        mut self,
        f: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Program {
        // SAFETY: by this function's contract.
        unsafe { self.command.pre_exec(f) };
        self
    }

    /// Starts it with all three streams in our hands.
    pub fn spawn(self) -> Running {
        self.try_spawn().expect("the program starts")
    }

    pub fn try_spawn(mut self) -> std::io::Result<Running> {
        let parent = std::process::id();
        // SAFETY: signal, prctl and getppid are async-signal-safe and touch no memory of ours.
        unsafe {
            self.command.pre_exec(move || {
                // A test run in the background of a shell has these ignored, and children inherit that.
                for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                // So that a killed test run leaves nothing behind either.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() as u32 != parent {
                    return Err(std::io::Error::other("the test has gone"));
                }
                Ok(())
            });
        }
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn()?;
        let stdin = child.stdin.take();
        let out = Output::default();
        let err = Output::default();
        let readers = vec![
            out.fill_from(child.stdout.take().expect("piped")),
            err.fill_from(child.stderr.take().expect("piped")),
        ];
        Ok(Running {
            child,
            stdin,
            out,
            err,
            readers,
            status: None,
            answered: 0,
        })
    }

    /// Runs it to its end with nothing on its stdin.
    pub fn run(self) -> Finished {
        self.spawn().finish()
    }
}

/// Lines that a program has written so far.
#[derive(Clone, Debug, Default)]
struct Output {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Output {
    fn fill_from(&self, pipe: impl Read + Send + 'static) -> JoinHandle<()> {
        let lines = self.lines.clone();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            let mut bytes = Vec::new();
            while matches!(reader.read_until(b'\n', &mut bytes), Ok(n) if n > 0) {
                let line = String::from_utf8_lossy(&bytes);
                let line = line.trim_end_matches('\n').to_owned();
                lines.lock().expect("no reader panics").push(line);
                bytes.clear();
            }
        })
    }

    fn get(&self) -> Vec<String> {
        self.lines.lock().expect("no reader panics").clone()
    }
}

/// A running child. Dropping it kills it and all that is in its process group.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    out: Output,
    err: Output,
    readers: Vec<JoinHandle<()>>,
    status: Option<ExitStatus>,
    /// Lines on stdout that were taken as answers.
    answered: usize,
}

/// A child that has ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lines on stdout so far.
    pub fn stdout(&self) -> Vec<String> {
        self.out.get()
    }

    /// Lines on stderr so far.
    pub fn stderr(&self) -> Vec<String> {
        self.err.get()
    }

    /// Writes a line to its stdin. A program that has ended reads no more: what it has said and its
    /// status tell the test, not the pipe.
    pub fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        match writeln!(stdin, "{line}").and_then(|()| stdin.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.expect("the program reads its stdin"),
        }
    }

    /// Ends its stdin.
    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for the first line on stdout, from line number `from` on, that `pick` takes.
    pub fn line_from<T>(
        &mut self,
        from: usize,
        what: &str,
        limit: Duration,
        mut pick: impl FnMut(&str) -> Option<T>,
    ) -> T {
        wait_for(what, limit, || {
            let lines = self.out.get();
            if let Some(found) = lines.iter().skip(from).find_map(|line| pick(line)) {
                return Some(found);
            }
            if self.has_ended() {
                // What it wrote last may have come in since.
                self.join_readers();
                let lines = self.out.get();
                let found = lines.iter().skip(from).find_map(|line| pick(line));
                if found.is_none() {
                    panic!(
                        "ended ({:?}) before {what}; stdout {lines:#?} stderr {:#?}",
                        self.status,
                        self.err.get()
                    );
                }
                return found;
            }
            None
        })
    }

    /// The next line that it says, of a program that says one for each order.
    pub fn answer(&mut self, limit: Duration) -> String {
        let what = format!("answer {}", self.answered);
        let answer = self.line_from(self.answered, &what, limit, |line| Some(line.to_owned()));
        self.answered += 1;
        answer
    }

    /// Gives an order and returns the answer.
    pub fn tell(&mut self, order: &str) -> String {
        self.say(order);
        self.answer(PATIENCE)
    }

    /// Waits for a line on stdout that `pick` takes.
    pub fn line<T>(&mut self, what: &str, pick: impl FnMut(&str) -> Option<T>) -> T {
        self.line_from(0, what, PATIENCE, pick)
    }

    /// Whether it has ended; reaps it then, and ends what is left of its process group.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_some() {
            return true;
        }
        // SAFETY: an all-zero siginfo is a valid value, and the call writes to that local only.
        let ended = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.pid(), &mut info, flags) == 0 && info.si_pid() != 0
        };
        if ended {
            self.reap();
        }
        ended
    }

    /// Kills the group while the number is still this child's, then reaps the child.
    fn reap(&mut self) {
        // SAFETY: the child is not reaped yet, so that its pid cannot be another group's.
        unsafe { libc::kill(-(self.pid() as i32), libc::SIGKILL) };
        self.status = Some(self.child.wait().expect("our child"));
    }

    /// Waits until msprof takes signals: its thread for them starts when all handlers are there. The kernel shows a handler
    /// a moment before it does anything.
    pub fn wait_takes_signals(&self) {
        wait_until("the thread of signals", || {
            Proc::of(self.pid())
                .threads()
                .contains(&"signals".to_owned())
        });
    }

    /// Sends a signal to it alone.
    pub fn signal(&self, signal: i32) {
        assert!(self.status.is_none(), "it has ended");
        // SAFETY: the pid is that of our child, which has not been reaped.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// Ends its stdin and waits until it ends of itself.
    pub fn finish(self) -> Finished {
        self.finish_within(PATIENCE)
    }

    pub fn finish_within(mut self, limit: Duration) -> Finished {
        self.end_input();
        self.wait_end(limit);
        self.join_readers();
        Finished {
            status: self.status.expect("ended"),
            stdout: self.out.get(),
            stderr: self.err.get(),
        }
    }

    /// Waits until it ends of itself; its stdin stays as it is.
    pub fn wait_end(&mut self, limit: Duration) -> ExitStatus {
        let out = self.out.clone();
        let err = self.err.clone();
        let describe = move || format!("stdout {:#?} stderr {:#?}", out.get(), err.get());
        let limit = stretched(limit);
        let deadline = std::time::Instant::now() + limit;
        while !self.has_ended() {
            assert!(
                std::time::Instant::now() < deadline,
                "still running after {limit:?}: {}",
                describe()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        self.status.expect("ended")
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(self) -> Finished {
        self.signal(libc::SIGTERM);
        self.finish()
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(mut self) {
        self.signal(libc::SIGKILL);
        let status = self.wait_end(PATIENCE);
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }

    fn join_readers(&mut self) {
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.reap();
        }
        self.join_readers();
    }
}

impl Finished {
    /// Panics with all that it said unless it ended with `code`.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Finished {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self
    }

    /// The first line on stdout that contains `text`.
    #[track_caller]
    pub fn line_with(&self, text: &str) -> &str {
        self.stdout
            .iter()
            .find(|line| line.contains(text))
            .unwrap_or_else(|| panic!("no line with {text:?}: {self:#?}"))
    }

    /// Everything on both streams.
    pub fn text(&self) -> String {
        [self.stdout.join("\n"), self.stderr.join("\n")].join("\n")
    }
}

/// What starts programs that were built for another machine: an emulator and its arguments, of `make aarch64`.
const RUNNER: &str = "MSPROF_TEST_RUNNER";

/// What starts a program: itself, behind the emulator if it is one of another machine.
pub fn start_words(program: &OsStr) -> Vec<OsString> {
    let mut words = match is_foreign(Path::new(program)) {
        true => words(&std::env::var(RUNNER).unwrap_or_default()),
        false => Vec::new(),
    };
    words.push(program.to_owned());
    words
}

/// Whether a file is a program of another machine, by the head of an ELF file.
pub fn is_foreign(program: &Path) -> bool {
    const MACHINE: std::ops::Range<usize> = 18..20;
    const OURS: u16 = match cfg!(target_arch = "aarch64") {
        true => 183,
        false => 62,
    };
    let mut head = [0; MACHINE.end];
    let read = std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF") && head[MACHINE] != OURS.to_le_bytes()
}

/// Words of a command line for `Program::args`.
pub fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}
