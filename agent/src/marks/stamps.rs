//! msproftx stamps: what a program fills in, marks with and throws away.
//!
//! A stamp is a number to the outside, never an address: one that was destroyed, or that never was, is
//! recognised.

#![forbid(unsafe_code)]

use super::record::{Attributes, MESSAGE_MAX, clean};
use crate::process::reserve::{grow_vec, system_has_some};

/// Stamps that can exist at a time.
const STAMPS_MAX: usize = 65_536;

/// A stamp: its content, as often as it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Category and payload.
    pub attributes: Attributes,
    /// Empty until it is set.
    pub message: Box<str>,
}

impl Stamp {
    /// Sets the message; what is longer than 155 bytes is cut off. False when there is no memory for it.
    pub fn set_message(&mut self, message: &[u8]) -> bool {
        // It may live as long as the process.
        let room = system_has_some();
        if room {
            self.message = clean(message, MESSAGE_MAX);
        }
        room
    }
}

/// A place for a stamp. Each time it is taken or left, its turn goes up: it is odd while it is taken.
#[derive(Clone, Debug, Default)]
struct Place {
    turn: u32,
    stamp: Stamp,
}

/// All stamps of the process.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    places: Vec<Place>,
    /// Has room for all places, so that leaving one needs no memory.
    free: Vec<u32>,
    /// Turn of a place that was never taken.
    first: u32,
}

/// The turn in a stamp's number.
pub fn turn_of(stamp: u64) -> u32 {
    (stamp >> 32) as u32
}

/// What stands for a stamp outside: place in the low half, turn in the high half. Never 0.
fn handle(place: u32, turn: u32) -> u64 {
    u64::from(turn) << 32 | u64::from(place)
}

impl Stamps {
    /// None yet, and none will have the number of one whose turn was up to `last`.
    pub fn after(last: u32) -> Stamps {
        Stamps {
            first: last.wrapping_add(last % 2),
            ..Stamps::default()
        }
    }

    /// Makes a stamp; `None` when there are 65,536, or no memory for one more.
    pub fn create(&mut self) -> Option<u64> {
        let place = match self.free.pop() {
            Some(place) => place,
            None => self.add_place()?,
        };
        let taken = &mut self.places[place as usize];
        taken.turn = taken.turn.wrapping_add(1);
        Some(handle(place, taken.turn))
    }

    fn add_place(&mut self) -> Option<u32> {
        if self.places.len() >= STAMPS_MAX || !grow_vec(&mut self.places) {
            return None;
        }
        // Nothing is free now, so this leaves room for as many as there are places.
        let room = self.places.capacity();
        if self.free.capacity() < room
            && !(system_has_some() && self.free.try_reserve(room).is_ok())
        {
            return None;
        }
        self.places.push(Place {
            turn: self.first,
            ..Place::default()
        });
        Some(self.places.len() as u32 - 1)
    }

    /// Ends a stamp; false when there is none of that number.
    pub fn destroy(&mut self, stamp: u64) -> bool {
        let Some(taken) = self.place(stamp) else {
            return false;
        };
        taken.turn = taken.turn.wrapping_add(1);
        taken.stamp = Stamp::default();
        self.free.push(stamp as u32);
        true
    }

    /// The stamp of that number.
    pub fn get(&mut self, stamp: u64) -> Option<&mut Stamp> {
        self.place(stamp).map(|place| &mut place.stamp)
    }

    fn place(&mut self, stamp: u64) -> Option<&mut Place> {
        let turn = turn_of(stamp);
        let place = self.places.get_mut(stamp as u32 as usize)?;
        (place.turn == turn && turn % 2 == 1).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_that_was_destroyed_is_none_although_its_place_is_taken_again() {
        let mut stamps = Stamps::default();
        let first = stamps.create().expect("room");
        assert!(stamps.destroy(first));
        assert!(!stamps.destroy(first));
        let second = stamps.create().expect("room");
        assert_ne!(first, second);
        assert!(stamps.get(first).is_none());
        assert_eq!(stamps.get(second), Some(&mut Stamp::default()));
        for no_stamp in [0, 1, u64::MAX, second + 1] {
            assert!(stamps.get(no_stamp).is_none(), "{no_stamp}");
        }
    }

    #[test]
    fn stamps_of_before_are_none_of_those_after_them() {
        let mut before = Stamps::default();
        let old = [(); 3].map(|()| before.create().expect("room"));
        assert!(before.destroy(old[0]));
        let again = before.create().expect("room");
        let last = turn_of(again);
        let mut after = Stamps::after(last);
        for _ in 0..3 {
            let new = after.create().expect("room");
            assert!(turn_of(new) > last);
            assert!(after.get(new).is_some());
        }
        for stamp in [old[0], old[1], old[2], again] {
            assert!(after.get(stamp).is_none(), "{stamp:#x}");
        }
    }

    #[test]
    fn there_is_an_end_to_stamps_and_room_when_one_goes() {
        let mut stamps = Stamps::default();
        let all: Vec<u64> = std::iter::from_fn(|| stamps.create()).collect();
        assert_eq!(all.len(), STAMPS_MAX);
        assert!(stamps.destroy(all[17]));
        assert!(stamps.create().is_some());
        assert!(stamps.create().is_none());
    }
}
