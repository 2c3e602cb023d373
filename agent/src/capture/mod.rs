//! One capture: from start over the drain thread to the stop and its ledger.

pub mod ledger;
