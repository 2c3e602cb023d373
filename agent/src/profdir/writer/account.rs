//! The account in the directory, and the room on the disk that is kept for its last one.

#![forbid(unsafe_code)]

use super::super::error::{Kept, ProfDirError};
use super::super::files;
use super::super::slices::is_full;
use super::{LEDGER_FILE, LEDGER_TEMP, ProfDir, RESERVE_FILE};
use crate::ledger::Ledger;
use std::os::fd::AsFd;

/// Size of the reserve, bytes: a ledger of some hundred threads.
const RESERVE_BYTES: u32 = 128 * 1024;

impl ProfDir {
    /// Writes or replaces `msprof_agent.json`; a reader sees the old text or the new one. On a full disk it
    /// takes the room that was kept for it.
    pub fn write_ledger(&mut self, ledger: &Ledger) -> Result<(), ProfDirError> {
        self.put_ledger(ledger, true)
    }

    /// The same in mid capture: what is kept for the end stays, and an error leaves the old text.
    pub fn renew_ledger(&mut self, ledger: &Ledger) -> Result<(), ProfDirError> {
        self.put_ledger(ledger, false)
    }

    /// Whether the directory has been removed, so that nothing can be put into it any more.
    pub fn is_removed(&self) -> bool {
        rustix::fs::fstat(self.as_fd()).is_ok_and(|stat| stat.st_nlink == 0)
    }

    fn put_ledger(&mut self, ledger: &Ledger, is_last: bool) -> Result<(), ProfDirError> {
        let path = self.root.path().join(LEDGER_FILE);
        let error = |source| ProfDirError::Write {
            path: path.clone(),
            source,
            kept: Kept::default(),
        };
        let mut text = serde_json::to_vec(ledger).map_err(|e| error(e.into()))?;
        text.push(b'\n');
        let _ = self.root.unlink(LEDGER_TEMP);
        let root = &self.root;
        let put = || {
            root.put(LEDGER_TEMP, &text)
                .and_then(|()| root.rename(LEDGER_TEMP, root, LEDGER_FILE))
        };
        let written = match put() {
            Err(e) if is_last && self.reserved && is_full(&e) => {
                self.reserved = false;
                let _ = root.unlink(RESERVE_FILE);
                put()
            }
            other => other,
        };
        if let Err(source) = written {
            let _ = root.unlink(LEDGER_TEMP);
            return Err(error(source));
        }
        let bytes = text.len() as u64;
        self.slices
            .count_control(bytes.saturating_sub(self.ledger_bytes));
        self.ledger_bytes = self.ledger_bytes.max(bytes);
        Ok(())
    }

    /// Takes the blocks that ledger and end_info will need; without them (no such call on this file
    /// system) those files take their chance.
    pub(super) fn reserve(&mut self) {
        self.reserved = match self.root.create(RESERVE_FILE) {
            Ok(file) if files::reserve_blocks(&file, RESERVE_BYTES) => true,
            Ok(_) => {
                let _ = self.root.unlink(RESERVE_FILE);
                false
            }
            Err(_) => false,
        };
    }

    pub(super) fn release_reserve(&mut self) {
        if std::mem::take(&mut self.reserved) {
            let _ = self.root.unlink(RESERVE_FILE);
        }
    }
}
