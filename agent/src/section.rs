//! Locks that a signal handler may come upon while its own thread holds them.
//!
//! Marks and names are functions that a program may call in its handlers, and a handler that waits for the
//! thread it has interrupted waits for ever. So a thread that is within one of these functions says so in a
//! [`Section`], and its handlers are turned away; and a [`SectionLock`] of another thread's is waited for a
//! bounded time only: that thread may be in a handler that waits for this one.

#![forbid(unsafe_code)]

use crate::clock::Moment;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, compiler_fence};
use std::time::Duration;

/// How long another thread is waited for: thousands of times what a holder needs.
const PATIENCE: Duration = Duration::from_millis(100);

thread_local! {
    // Without a destructor, so that it is there until the very end of the thread.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The current thread is within a function that takes [`SectionLock`]s; until it is dropped.
#[derive(Debug)]
pub struct Section(PhantomData<*const ()>);

impl Section {
    /// `None` in a signal handler that has interrupted such a function.
    pub fn enter() -> Option<Section> {
        let inside = INSIDE.replace(true);
        // A handler on this thread sees the mark before anything that follows.
        compiler_fence(Ordering::SeqCst);
        (!inside).then(|| Section(PhantomData))
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        INSIDE.set(false);
    }
}

/// A lock that is held for a few moves, within a [`Section`].
#[derive(Debug, Default)]
pub struct SectionLock<T>(RwLock<T>);

impl<T> SectionLock<T> {
    /// An unlocked lock.
    pub fn new(value: T) -> SectionLock<T> {
        SectionLock(RwLock::new(value))
    }

    /// Shared; `None` when another thread kept it for 100 ms.
    pub fn read(&self, _section: &Section) -> Option<RwLockReadGuard<'_, T>> {
        insist(|| self.0.try_read())
    }

    /// For this thread alone; `None` as for [`SectionLock::read`].
    pub fn write(&self, _section: &Section) -> Option<RwLockWriteGuard<'_, T>> {
        insist(|| self.0.try_write())
    }

    /// A copy of what is in it, for a forked child; `None` when another thread was changing it.
    pub fn copy_in_child(&self) -> Option<T>
    where
        T: Clone,
    {
        self.0.try_read().map(|value| value.clone())
    }
}

/// Never parks a thread: the table of parked ones has locks of its own.
fn insist<G>(attempt: impl Fn() -> Option<G>) -> Option<G> {
    if let Some(guard) = attempt() {
        return Some(guard);
    }
    let end = Moment::now() + PATIENCE;
    loop {
        std::thread::yield_now();
        if let Some(guard) = attempt() {
            return Some(guard);
        }
        if end.has_come() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_in_one_section_at_a_time_and_others_are_in_theirs() {
        let section = Section::enter();
        assert!(section.is_some());
        for _ in 0..2 {
            assert!(Section::enter().is_none());
        }
        let other = std::thread::spawn(|| Section::enter().is_some());
        assert!(other.join().expect("no panic"));
        drop(section);
        assert!(Section::enter().is_some());
        assert!(Section::enter().is_some());
    }

    #[test]
    fn a_lock_that_is_never_given_back_is_not_waited_for_for_ever() {
        let lock = SectionLock::new(7);
        let section = Section::enter().expect("outside");
        let held = lock.write(&section).expect("free");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let section = Section::enter().expect("outside");
                let begin = Moment::now();
                assert!(lock.read(&section).is_none());
                assert!(begin.elapsed() >= PATIENCE);
                assert!(lock.write(&section).is_none());
            });
        });
        assert_eq!(lock.copy_in_child(), None);
        drop(held);
        assert_eq!(lock.read(&section).as_deref(), Some(&7));
        assert_eq!(lock.copy_in_child(), Some(7));
    }
}
