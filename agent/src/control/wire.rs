//! The messages that every client speaks: params, commands and replies (spec 1 section 1.2).
//!
//! Pure functions on bytes. All integers are little-endian.

#![forbid(unsafe_code)]

pub use crate::params::PARAMS_TEXT_MAX;

/// Size of the params message.
pub const PARAMS_SIZE: usize = 4100;
/// Size of a command and of a reply.
pub const MESSAGE_SIZE: usize = 8;

/// Type field of a message.
pub mod kind {
    #![allow(missing_docs)]
    pub const PARAMS_REPLY: u32 = 0;
    pub const START: u32 = 1;
    pub const START_REPLY: u32 = 2;
    pub const STOP: u32 = 3;
    pub const STOP_REPLY: u32 = 4;
    pub const QUIT: u32 = 5;
    pub const QUIT_REPLY: u32 = 6;
    pub const DISCONNECT: u32 = 7;
}

/// Status field of a reply.
pub mod status {
    #![allow(missing_docs)]
    pub const SUCCESS: u32 = 0;
    pub const FAILED: u32 = 1;
    pub const ALREADY_STARTED: u32 = 2;
    pub const NO_DEVICE: u32 = 3;
    pub const NOT_STARTED: u32 = 4;
    /// Ours: the agent speaks the extension; frames follow (see `extension`).
    pub const EXTENDED: u32 = 0x4D50_4101;
}

/// A command or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// One of [`kind`].
    pub kind: u32,
    /// One of [`status`]; in requests of the stock client it is garbage.
    pub status: u32,
}

impl Message {
    /// The bytes on the wire.
    pub fn encode(self) -> [u8; MESSAGE_SIZE] {
        let mut bytes = [0; MESSAGE_SIZE];
        bytes[..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..].copy_from_slice(&self.status.to_le_bytes());
        bytes
    }

    /// Reads a message; never fails, since any two words are a message.
    pub fn decode(bytes: &[u8; MESSAGE_SIZE]) -> Message {
        let [a, b, c, d, e, f, g, h] = *bytes;
        Message {
            kind: u32::from_le_bytes([a, b, c, d]),
            status: u32::from_le_bytes([e, f, g, h]),
        }
    }
}

/// Why a params message cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// The length field is 0 or larger than the text can be.
    #[error("params message: length field {0} is not in 1..={PARAMS_TEXT_MAX}")]
    Length(u32),
    /// The text is not UTF-8.
    #[error("params message: the JSON text is not UTF-8")]
    Utf8,
    /// The text to send does not fit.
    #[error("params message: {0} bytes of JSON are not in 1..={PARAMS_TEXT_MAX}")]
    TooLong(usize),
}

/// Reads the JSON text out of a params message.
pub fn decode_params(bytes: &[u8; PARAMS_SIZE]) -> Result<&str, ParamsError> {
    let [a, b, c, d] = [bytes[0], bytes[1], bytes[2], bytes[3]];
    let len = u32::from_le_bytes([a, b, c, d]);
    if len == 0 || len as usize > PARAMS_TEXT_MAX {
        return Err(ParamsError::Length(len));
    }
    std::str::from_utf8(&bytes[4..4 + len as usize]).map_err(|_| ParamsError::Utf8)
}

/// Makes a params message of a JSON text.
pub fn encode_params(text: &str) -> Result<Box<[u8; PARAMS_SIZE]>, ParamsError> {
    if text.is_empty() || text.len() > PARAMS_TEXT_MAX {
        return Err(ParamsError::TooLong(text.len()));
    }
    let mut bytes = Box::new([0; PARAMS_SIZE]);
    bytes[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
    bytes[4..4 + text.len()].copy_from_slice(text.as_bytes());
    Ok(bytes)
}

/// The reply type of a request type, if it is one.
pub fn reply_kind(request: u32) -> Option<u32> {
    matches!(request, kind::START | kind::STOP | kind::QUIT).then(|| request + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_survive_the_wire() {
        let text = "{\"runtimeApi\":\"on\"}";
        let bytes = encode_params(text).expect("short text fits");
        assert_eq!(decode_params(&bytes), Ok(text));
    }

    #[test]
    fn a_length_beyond_the_buffer_is_refused() {
        for len in [0u32, 4096, 4097, u32::MAX] {
            let mut bytes = [0; PARAMS_SIZE];
            bytes[..4].copy_from_slice(&len.to_le_bytes());
            assert_eq!(decode_params(&bytes), Err(ParamsError::Length(len)));
        }
    }

    #[test]
    fn only_commands_have_a_reply_type() {
        assert_eq!(reply_kind(kind::START), Some(kind::START_REPLY));
        assert_eq!(reply_kind(kind::QUIT), Some(kind::QUIT_REPLY));
        for other in [kind::PARAMS_REPLY, kind::STOP_REPLY, 99, u32::MAX] {
            assert_eq!(reply_kind(other), None);
        }
    }

    #[test]
    fn a_text_that_does_not_fit_is_refused_when_sending() {
        let text = "x".repeat(PARAMS_TEXT_MAX + 1);
        assert_eq!(encode_params(&text).err(), Some(ParamsError::TooLong(4096)));
    }
}
