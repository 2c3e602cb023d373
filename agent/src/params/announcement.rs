//! What our controller says of itself in the params, and a stock client does not.

#![forbid(unsafe_code)]

use super::Params;
use serde::{Deserialize, Serialize};

/// Key in the params by which our controller announces itself; its value is an [`Announcement`].
pub const PARAMS_KEY: &str = "msprofAgentController";
/// Version of what the agent and our controller say to each other once one has announced itself.
pub const PROTOCOL_VERSION: u32 = 1;

/// What our controller says of itself in the params.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// [`PROTOCOL_VERSION`] of the controller.
    pub version: u32,
    /// `--model-execution`, which has no key of its own on the stock wire.
    #[serde(rename = "modelExecution", default)]
    pub model_execution: bool,
    /// The controller takes descriptors along with the reply to a start.
    #[serde(default)]
    pub rescue: bool,
    /// The controller only looks: it wants the hello and no session, and disturbs nobody who has one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub look: bool,
    /// Of one that only looks: the state of the captures and their account are wanted too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub account: bool,
}

impl Params {
    /// What our controller says of itself; `None` for a stock client.
    pub fn announcement(&self) -> Option<Announcement> {
        let value = self.map.get(PARAMS_KEY)?;
        Deserialize::deserialize(value).ok()
    }

    /// Takes the announcement away, so that the params are those of a stock client.
    pub fn remove_announcement(&mut self) {
        self.map.shift_remove(PARAMS_KEY);
    }

    pub(super) fn announce(&mut self, announcement: &Announcement) {
        let value = serde_json::to_value(announcement)
            .expect("an announcement is plain numbers and booleans");
        self.map.insert(PARAMS_KEY.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_announcement_makes_a_stock_client() {
        let text = format!("{{\"{PARAMS_KEY}\":\"yes\"}}");
        assert_eq!(Params::parse(&text).expect("ok").announcement(), None);
    }
}
