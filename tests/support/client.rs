//! A client that speaks the stock client's bytes (and one that speaks the extension's), written from
//! the description of the protocol alone.

use super::slower::stretched;
use super::wait::PATIENCE;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Size of the params message and of every other one.
pub const PARAMS: usize = 4100;
pub const MESSAGE: usize = 8;

/// Types of requests; a reply's type is one more.
pub const START: u32 = 1;
pub const STOP: u32 = 3;
pub const QUIT: u32 = 5;
/// Type of a disconnect.
pub const DISCONNECT: u32 = 7;

/// Status words.
pub const SUCCESS: u32 = 0;
pub const FAILED: u32 = 1;
pub const ALREADY_STARTED: u32 = 2;
pub const NO_DEVICE: u32 = 3;
pub const NOT_STARTED: u32 = 4;
/// Status of a params reply that is followed by frames.
pub const EXTENDED: u32 = 0x4D50_4101;

/// What the stock client waits for the params reply and for any other one.
const FIRST_REPLY: Duration = Duration::from_secs(1);
const REPLY: Duration = Duration::from_secs(60);

/// A reply of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    pub kind: u32,
    pub status: u32,
}

/// A connection to a control socket.
#[derive(Debug)]
pub struct ByteClient {
    stream: UnixStream,
    requests: u32,
}

/// The params of the stock client for the three traces, with as many keys as it sends that matter.
pub fn params(output: &Path) -> Value {
    json!({
        "result_dir": output.to_str().expect("UTF-8"),
        "runtimeApi": "on", "aicpuTrace": "on", "geApi": "l1", "acl": "on",
        "taskTime": "on", "taskTrace": "on", "prof_level": "off",
        "hcclTrace": "", "taskMemory": "off", "taskTsfw": "off", "l2CacheTaskProfiling": "",
        "instrProfiling": "", "msproftx": "off", "storageLimit": "", "devices": "", "job_id": "",
        "msprofBinPid": std::process::id(), "host_sys_pid": -1, "isCancel": false,
        "profiling_mode": "", "profiling_period": -1, "ai_core_profiling": "on",
        "ai_core_profiling_mode": "task-based", "ai_core_metrics": "PipeUtilization",
        "aiv_profiling": "on", "aiv_profiling_mode": "task-based", "aiv_metrics": "PipeUtilization",
        "aicore_sampling_interval": 10, "aiv_sampling_interval": 10, "llc_profiling": "",
        "hardware_mem": "off", "cpu_profiling": "off", "host_sys": "", "app": "", "app_dir": "",
        "someKeyOfALaterVersion": {"nested": [1, 2, 3]},
    })
}

/// The params message of a JSON text, zero padded.
pub fn params_message(text: &str) -> Vec<u8> {
    assert!(text.len() < PARAMS - 4);
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(PARAMS, 0);
    bytes
}

impl ByteClient {
    pub fn connect(socket: &Path) -> ByteClient {
        let stream = UnixStream::connect(socket)
            .unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        ByteClient {
            stream,
            requests: 0,
        }
    }

    /// Connects and introduces itself; the agent accepts.
    pub fn open(socket: &Path, params: &Value) -> ByteClient {
        let mut client = ByteClient::connect(socket);
        assert_eq!(client.introduce(params), SUCCESS, "params are accepted");
        client
    }

    /// Sends the params; the status of the reply, which comes within a second.
    pub fn introduce(&mut self, params: &Value) -> u32 {
        self.send(&params_message(&params.to_string()));
        let reply = self.receive_within(FIRST_REPLY).expect("a params reply");
        assert_eq!(reply.kind, 0, "type of a params reply");
        reply.status
    }

    /// Gives a command and returns the reply's status; the status word of the request is garbage.
    pub fn command(&mut self, kind: u32) -> u32 {
        self.request(kind);
        let reply = self.receive_within(REPLY).expect("a reply");
        assert_eq!(
            reply.kind,
            kind + 1,
            "a reply's type is its request's plus 1"
        );
        reply.status
    }

    /// Sends a command and does not wait.
    pub fn request(&mut self, kind: u32) {
        self.requests += 1;
        let garbage = 0x9E37_79B9u32.wrapping_mul(self.requests);
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend_from_slice(&garbage.to_le_bytes());
        self.send(&bytes);
    }

    /// Starts a capture, which succeeds.
    pub fn start(&mut self) {
        assert_eq!(self.command(START), SUCCESS, "start");
    }

    /// Stops the capture, which succeeds.
    pub fn stop(&mut self) {
        assert_eq!(self.command(STOP), SUCCESS, "stop");
    }

    /// Quits as the stock client does: it closes at the first reply, however many there are.
    pub fn quit(mut self) {
        assert_eq!(self.command(QUIT), SUCCESS, "quit");
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the agent reads");
    }

    /// Sends what the agent may not want to have any more.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// One receive of 8 bytes; `None` when the agent has closed its end. A reply must come whole.
    pub fn receive_within(&mut self, limit: Duration) -> Option<Reply> {
        let limit = stretched(limit);
        let mut bytes = [0; MESSAGE];
        match self.read_within(limit, &mut bytes) {
            Ok(0) => None,
            Ok(MESSAGE) => {
                let word = |at: usize| {
                    let bytes = bytes[at..at + 4].try_into().expect("four");
                    u32::from_le_bytes(bytes)
                };
                Some(Reply {
                    kind: word(0),
                    status: word(4),
                })
            }
            Ok(count) => panic!("a reply came in pieces: {count} bytes first"),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no reply within {limit:?}: {error}"),
        }
    }

    /// One read. With a limit it ends where the machine was stopped meanwhile, and goes on.
    fn read_within(&mut self, limit: Duration, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.stream.set_read_timeout(Some(limit)).expect("not zero");
        loop {
            match self.stream.read(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Waits for the agent to close; how long it took, and the replies that came before.
    pub fn wait_closed(&mut self, limit: Duration) -> (Duration, Vec<Reply>) {
        let begin = Instant::now();
        let mut replies = Vec::new();
        while let Some(reply) = self.receive_within(limit) {
            replies.push(reply);
        }
        (begin.elapsed(), replies)
    }

    /// Whether the agent says something within `limit`.
    pub fn hears_within(&mut self, limit: Duration) -> bool {
        !matches!(self.read_within(limit, &mut [0; 1]), Err(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    /// Receives exactly `count` bytes of a longer answer.
    pub fn receive_exactly(&mut self, count: usize) -> Vec<u8> {
        self.stream
            .set_read_timeout(Some(stretched(PATIENCE)))
            .expect("not zero");
        let mut bytes = vec![0; count];
        self.stream
            .read_exact(&mut bytes)
            .expect("the whole answer");
        bytes
    }

    /// Receives a frame: its request id and body.
    pub fn receive_frame(&mut self) -> (u32, Value) {
        let head = self.receive_exactly(8);
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
        let body = self.receive_exactly(word(0) as usize);
        (word(4), serde_json::from_slice(&body).expect("JSON"))
    }

    /// Introduces itself as a client that knows frames; the agent's hello.
    pub fn introduce_extended(&mut self, params: &Value) -> Value {
        let mut params = params.clone();
        params["msprofAgentController"] = json!({"version": 1, "modelExecution": true});
        self.send(&params_message(&params.to_string()));
        let reply = self.receive_within(FIRST_REPLY).expect("a params reply");
        assert_eq!((reply.kind, reply.status), (0, EXTENDED));
        let (id, hello) = self.receive_frame();
        assert_eq!(id, 0, "the hello's request id");
        hello
    }

    /// Sends a request frame and returns the last reply to it.
    pub fn ask(&mut self, op: &str) -> Value {
        self.requests += 1;
        let body = json!({"op": op}).to_string();
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.requests.to_le_bytes());
        bytes.extend_from_slice(body.as_bytes());
        self.send(&bytes);
        loop {
            let (id, reply) = self.receive_frame();
            assert_eq!(id, self.requests, "the reply's request id");
            if reply["outcome"] != "progress" {
                return reply;
            }
        }
    }
}

/// A client is served from params to quit: nothing that happened before is in its way.
#[track_caller]
pub fn assert_serves(socket: &Path, output: &Path) {
    let mut client = ByteClient::open(socket, &params(output));
    client.start();
    client.stop();
    client.quit();
}
