//! Waiting with a bound, past the C library and std.
//!
//! Their bounds are moments by a clock that a library beside ours may have moved or stopped (see [`Moment`]), so
//! that a wait of theirs would last for ever, or return at once and be begun anew without end. Here the kernel is
//! given the bound, and the bound is a duration. Waits without one are as good as std's, and stay std's.

#![forbid(unsafe_code)]

use crate::clock::Moment;
use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, futex, nanosleep};
use rustix::time::Timespec;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Between the first looks at what somebody else may have done.
const FIRST_LOOK: Duration = Duration::from_micros(50);
/// Between later ones: an eighth of the time waited so far, so that little is added to it, and this at most.
const LAST_LOOK: Duration = Duration::from_millis(2);

/// A duration as the kernel takes it.
pub fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Sleeps for that long, whatever the program's signals do.
pub fn sleep(duration: Duration) {
    let mut left = timespec(duration);
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
}

/// Looks every now and then until there is something, at most until `deadline`; at least once.
pub fn until<T>(deadline: Moment, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Moment::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        let left = deadline.remaining();
        if left.is_zero() {
            return None;
        }
        sleep((begin.elapsed() / 8).clamp(FIRST_LOOK, LAST_LOOK).min(left));
    }
}

/// The next message, if one comes until `deadline`.
pub fn receive_by<T>(receiver: &Receiver<T>, deadline: Moment) -> Result<T, RecvTimeoutError> {
    let received = until(deadline, || match receiver.try_recv() {
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Disconnected) => Some(Err(RecvTimeoutError::Disconnected)),
        Ok(message) => Some(Ok(message)),
    });
    received.unwrap_or(Err(RecvTimeoutError::Timeout))
}

/// Tells those who wait that there is something to look at.
#[derive(Debug, Default)]
pub struct Bell {
    rung: AtomicU32,
}

impl Bell {
    /// How often it was rung; to be asked before looking, and handed to [`Bell::wait`] when there was nothing.
    pub fn count(&self) -> u32 {
        self.rung.load(Ordering::Acquire)
    }

    /// Wakes up all who wait.
    pub fn ring(&self) {
        self.rung.fetch_add(1, Ordering::Release);
        // Fails for no reason that a waiter would not meet as well.
        let _ = futex::wake(&self.rung, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    /// Waits until it has been rung after `count` was asked for, or `limit` has passed; may return earlier.
    pub fn wait(&self, count: u32, limit: Duration) {
        let limit = timespec(limit);
        match futex::wait(&self.rung, futex::Flags::PRIVATE, count, Some(&limit)) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
            // A sandbox: no wait may become a spin.
            Err(_) => sleep(LAST_LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_wait_ends_with_what_is_waited_for_or_with_its_bound() {
        let begin = Moment::now();
        assert_eq!(until(begin + LONG, || Some(1)), Some(1));
        let mut looks = 0;
        let found = until(begin + LONG, || {
            looks += 1;
            (looks == 5).then_some(looks)
        });
        assert_eq!(found, Some(5));
        assert_eq!(until(begin, || None::<()>), None);
        assert_eq!(until(begin, || Some(2)), Some(2), "one look in any case");
        let bound = Duration::from_millis(20);
        let begin = Moment::now();
        assert_eq!(until(begin + bound, || None::<()>), None);
        assert!((bound..LONG).contains(&begin.elapsed()));
    }

    #[test]
    fn a_message_a_hang_up_and_the_bound_are_told_apart() {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let soon = Moment::now() + Duration::from_millis(5);
        let late = Moment::now() + LONG;
        assert_eq!(receive_by(&receiver, soon), Err(RecvTimeoutError::Timeout));
        let thread = std::thread::spawn(move || sender.send(7));
        assert_eq!(receive_by(&receiver, late), Ok(7));
        thread.join().expect("no panic").expect("received");
        assert_eq!(
            receive_by(&receiver, late),
            Err(RecvTimeoutError::Disconnected)
        );
    }

    #[test]
    fn a_bell_is_heard_by_all_who_wait_and_by_those_who_come_late() {
        let bell = Arc::new(Bell::default());
        let begin = Moment::now();
        let count = bell.count();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let bell = bell.clone();
                std::thread::spawn(move || {
                    while bell.count() == count {
                        bell.wait(count, LONG);
                    }
                })
            })
            .collect();
        bell.ring();
        for waiter in waiters {
            waiter.join().expect("no panic");
        }
        bell.wait(count, LONG);
        assert!(begin.elapsed() < LONG);
        bell.wait(bell.count(), Duration::from_millis(1));
    }

    #[test]
    fn a_sleep_is_not_cut_short() {
        let begin = Moment::now();
        let duration = Duration::from_millis(3);
        sleep(duration);
        assert!(begin.elapsed() >= duration);
        sleep(Duration::ZERO);
    }
}
