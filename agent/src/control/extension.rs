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

use crate::ledger::Ledger;
use serde::{Deserialize, Serialize};

/// Key in the params by which our controller announces itself; its value is an [`Announcement`].
pub const PARAMS_KEY: &str = "msprofAgentController";
/// Version of this protocol.
pub const PROTOCOL_VERSION: u32 = 1;
/// Bytes before the body.
pub const FRAME_HEAD: usize = 8;
/// Longest body of a frame.
pub const MAX_BODY: usize = 1 << 20;

/// What our controller says of itself in the params.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// [`PROTOCOL_VERSION`] of the controller.
    pub version: u32,
    /// `--model-execution`, which has no key of its own on the stock wire.
    #[serde(rename = "modelExecution", default)]
    pub model_execution: bool,
}

/// Who holds the session that makes an agent busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// User id of the client.
    pub uid: u32,
    /// Process id of the client; 0 when it is in a pid namespace that cannot be seen.
    pub pid: u32,
}

/// First frame of an agent, request id 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// A request frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What to do.
    pub op: Op,
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
    /// Whether a capture runs.
    #[serde(default)]
    pub capturing: bool,
    /// Devices that are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<u32>,
    /// Stop: the account of the capture. Status: the account so far, or of the last capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
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
        let bytes = encode_frame(7, &Request { op: Op::Start }).expect("small frame");
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
    fn a_frame_beyond_the_bound_is_refused() {
        let mut bytes = vec![0; 16];
        bytes[..4].copy_from_slice(&(MAX_BODY as u32 + 1).to_le_bytes());
        assert!(matches!(decode_frame(&bytes), Err(FrameError::Length(_))));
    }
}
