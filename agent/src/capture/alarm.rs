//! Tells whoever looks after captures that one has failed, so that one that nobody attends does not go on for nothing.

#![forbid(unsafe_code)]

use parking_lot::Mutex;
use std::fmt;

type Wake = Box<dyn Fn() + Send + Sync>;

/// Calls the one who looks after captures. What has failed is not said: it is read where it stands, so that a call
/// that comes too early, or to nobody, is made good by the next look.
#[derive(Default)]
pub struct Alarm {
    wake: Mutex<Option<Wake>>,
}

impl Alarm {
    /// From here on `wake` is called, by the thread of a capture, and no other; it must not wait.
    pub fn set(&self, wake: impl Fn() + Send + Sync + 'static) {
        *self.wake.lock() = Some(Box::new(wake));
    }

    /// A capture has failed.
    pub fn ring(&self) {
        if let Some(wake) = &*self.wake.lock() {
            wake();
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").finish_non_exhaustive()
    }
}
