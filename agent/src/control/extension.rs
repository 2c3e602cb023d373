//! Longer messages between our agent and our controller (spec 1 section 1.5).
//!
//! A controller announces itself with the key [`PARAMS_KEY`] in the params. An agent that knows the
//! key answers with [`super::wire::status::EXTENDED`] and a [`Hello`] frame; from then on both sides
//! send frames only:
//!
//! ```text
//! 0  u32  length of the body, 1..=MAX_BODY
//! 4  u32  request id: a reply carries its request's; 0 is the hello
//! 8  u8[] body, one JSON object
//! ```
//!
//! Unknown keys in a body are ignored on both sides, so that versions can differ.

#![forbid(unsafe_code)]

pub use crate::params::{Announcement, PARAMS_KEY, PROTOCOL_VERSION};

use crate::ledger::Ledger;
use serde::{Deserialize, Serialize};

/// Bytes before the body.
pub const FRAME_HEAD: usize = 8;
/// Longest body of a frame.
pub const MAX_BODY: usize = 1 << 20;

/// What an agent can do that an earlier one cannot, by the words in [`Hello::features`].
pub mod feature {
    /// It keeps a capture that was started with [`super::Request::detach`]; an earlier one ends it with its session.
    pub const DETACH: &str = "detach";
    /// It shows itself to who only looks ([`super::Announcement::look`]); an earlier one begins a session.
    pub const LOOK: &str = "look";
}

/// A client: who holds the session that makes an agent busy, or who started a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// User id of the client.
    pub uid: u32,
    /// Process id of the client; 0 when it is in a pid namespace that cannot be seen.
    pub pid: u32,
}

/// Who a running capture belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A client: it ends with its session.
    Client,
    /// Nobody any more: a client started it and let it go.
    Detached,
    /// The program itself.
    Program,
    /// An origin of a later protocol version.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The capture that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capture {
    /// The PROF_XXX directory.
    pub path: String,
    /// Whose it is.
    pub origin: Origin,
    /// The client that started it; absent when that was the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Holder>,
    /// When it began, ns since 1970 (CLOCK_REALTIME).
    pub since_unix_ns: u64,
    /// ms after which it ends by itself; absent when only a command ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_in_ms: Option<u64>,
    /// Why it takes nothing more; absent while all is well with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A capture that failed, and after which none has begun yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastFailure {
    /// The PROF_XXX directory.
    pub path: String,
    /// Why it failed.
    pub error: String,
    /// When it failed, ns since 1970 (CLOCK_REALTIME).
    pub since_unix_ns: u64,
}

/// First frame of an agent, request id 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the agent.
    pub protocol: u32,
    /// Version of the agent.
    pub agent_version: String,
    /// Process id as the process sees it.
    pub pid: u32,
    /// Devices that are open.
    #[serde(default)]
    pub devices: Vec<u32>,
    /// Another client holds the session; the agent closes after this frame.
    #[serde(default)]
    pub busy: Option<Holder>,
    /// The params were refused; the agent closes after this frame.
    #[serde(default)]
    pub error: Option<String>,
    /// Why the agent has turned itself off: nothing is captured any more. Absent when it is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// Words of [`feature`]; empty of agents that had none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// The capture that runs. Agents without [`feature::LOOK`] never tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// The last capture, if it failed and none has begun since. Earlier agents never tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// A start is refused while no device is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_device: bool,
    /// The state of the captures and their account, for who asked for it ([`Announcement::account`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Box<Reply>>,
}

impl Hello {
    /// Whether the agent has a feature.
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|has| has == feature)
    }
}

/// What a controller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Start a capture with the session's params.
    Start,
    /// Stop the running capture.
    Stop,
    /// Tell the state and the counters.
    Status,
    /// End the session; a running capture is finished first.
    Quit,
    /// An operation of a later protocol version; answered with an error.
    #[serde(other)]
    Unknown,
}

/// How a capture goes on without the client that starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detach {
    /// It ends by itself after so many ms; 0 for no limit.
    pub limit_ms: u64,
}

/// A request frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// Start: the capture does not end with the session. Agents without [`feature::DETACH`] do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detach: Option<Detach>,
}

impl From<Op> for Request {
    fn from(op: Op) -> Request {
        Request { op, detach: None }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Not ended yet; `progress` says how far, and another reply follows.
    Progress,
    /// Done.
    Success,
    /// Not done; `error` says why.
    Failed,
    /// Start: a capture runs already.
    AlreadyStarted,
    /// Start: refused because no device is open (only where the agent was told to require one).
    NoDevice,
    /// Stop: no capture runs.
    NotStarted,
    /// The session is over (limit reached or process ending); `error` says why.
    Disconnected,
    /// An outcome of a later protocol version: treated as failed.
    #[serde(other)]
    Unknown,
}

/// A reply frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// How the request ended.
    pub outcome: Option<Outcome>,
    /// Why it failed, and the way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Things to say to the user although it succeeded, such as `no device open yet`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The PROF_XXX directory of the capture that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Start: CLOCK_MONOTONIC_RAW ns of the instant at which records began to be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ns: Option<u64>,
    /// Start: along with this reply come two descriptors (SCM_RIGHTS), the rings' memory and the PROF_XXX
    /// directory, for a controller that announced to take them; the number of the capture as it stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<u64>,
    /// Whether a capture runs.
    #[serde(default)]
    pub capturing: bool,
    /// Status, and a start that found a capture running: that capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// Status: the last capture, as in [`Hello::last_failure`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// Status: why the agent has turned itself off, as in [`Hello::disabled`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// Devices that are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<u32>,
    /// Stop: the account of the capture. Status: the account so far, or of the last capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// Disconnected: nothing was captured for so many seconds. The request was not looked at, and a new session can
    /// be begun at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
    /// Progress: bytes still to be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<u64>,
}

/// Why a frame cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Length field out of bounds.
    #[error("frame: length field {0} is not in 1..={MAX_BODY}")]
    Length(u32),
    /// The body is not the JSON that it should be.
    #[error("frame: {0}")]
    Body(String),
}

/// One frame: its request id, body and size on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Request id.
    pub id: u32,
    /// JSON text, not yet parsed.
    pub body: &'a [u8],
    /// Bytes that the frame took, head included.
    pub size: usize,
}

/// Takes the first frame off `bytes`; `None` when it is not complete yet.
pub fn decode_frame(bytes: &[u8]) -> Result<Option<Frame<'_>>, FrameError> {
    let Some(head) = bytes.first_chunk::<FRAME_HEAD>() else {
        return Ok(None);
    };
    let [a, b, c, d, e, f, g, h] = *head;
    let len = u32::from_le_bytes([a, b, c, d]);
    if len == 0 || len as usize > MAX_BODY {
        return Err(FrameError::Length(len));
    }
    let size = FRAME_HEAD + len as usize;
    let Some(body) = bytes.get(FRAME_HEAD..size) else {
        return Ok(None);
    };
    let id = u32::from_le_bytes([e, f, g, h]);
    Ok(Some(Frame { id, body, size }))
}

/// Parses the body of a frame.
pub fn parse_body<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|e| FrameError::Body(e.to_string()))
}

/// Makes a frame; fails only for a body beyond [`MAX_BODY`].
pub fn encode_frame<T: Serialize>(id: u32, body: &T) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; FRAME_HEAD];
    serde_json::to_writer(&mut bytes, body).map_err(|e| FrameError::Body(e.to_string()))?;
    let len = bytes.len() - FRAME_HEAD;
    if len > MAX_BODY {
        return Err(FrameError::Length(u32::try_from(len).unwrap_or(u32::MAX)));
    }
    bytes[..4].copy_from_slice(&(len as u32).to_le_bytes());
    bytes[4..8].copy_from_slice(&id.to_le_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_only_when_it_is_complete() {
        let bytes = encode_frame(7, &Request::from(Op::Start)).expect("small frame");
        for cut in 0..bytes.len() {
            assert_eq!(decode_frame(&bytes[..cut]), Ok(None));
        }
        let frame = decode_frame(&bytes).expect("valid").expect("complete");
        assert_eq!((frame.id, frame.size), (7, bytes.len()));
        let request: Request = parse_body(frame.body).expect("request");
        assert_eq!(request.op, Op::Start);
    }

    #[test]
    fn an_operation_of_a_later_version_is_recognised_as_unknown() {
        let request: Request = parse_body(b"{\"op\":\"teleport\",\"x\":1}").expect("parses");
        assert_eq!(request.op, Op::Unknown);
        let reply: Reply = parse_body(b"{\"outcome\":\"later\",\"new\":[]}").expect("parses");
        assert_eq!(reply.outcome, Some(Outcome::Unknown));
    }

    #[test]
    fn an_agent_that_is_off_says_why_and_one_that_is_well_says_nothing() {
        let mut hello: Hello =
            parse_body(b"{\"protocol\":1,\"agent_version\":\"0\",\"pid\":1}").expect("parses");
        let mut reply = Reply::default();
        let text = |hello: &Hello, reply: &Reply| {
            let texts = (serde_json::to_value(hello), serde_json::to_value(reply));
            [texts.0.expect("JSON"), texts.1.expect("JSON")]
        };
        for body in text(&hello, &reply) {
            assert_eq!(body.get("disabled"), None);
        }
        hello.disabled = Some("a panic".into());
        reply.disabled = Some("a panic".into());
        for body in text(&hello, &reply) {
            assert_eq!(body["disabled"], "a panic");
        }
    }

    #[test]
    fn a_frame_beyond_the_bound_is_refused() {
        let mut bytes = vec![0; 16];
        bytes[..4].copy_from_slice(&(MAX_BODY as u32 + 1).to_le_bytes());
        assert!(matches!(decode_frame(&bytes), Err(FrameError::Length(_))));
    }
}
