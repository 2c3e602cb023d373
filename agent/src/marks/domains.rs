//! Domains of mstx: what a program groups its marks by.

#![forbid(unsafe_code)]

use super::record::clean;
use super::{Busy, MESSAGE_MAX};
use crate::dictionary::Dictionary;
use crate::process::reserve::{grow_map, system_has_some};
use crate::section::{Section, SectionLock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Domains that can exist at a time.
const DOMAINS_MAX: usize = 4096;

/// All domains of the process.
#[derive(Debug, Default)]
pub struct Domains {
    known: SectionLock<HashMap<u64, Domain>>,
    /// Last number; no part of `known`, so that a forked child has it in any case.
    last: AtomicU64,
}

/// What belongs to a domain's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Dictionary id of its name.
    pub name: u64,
    /// What another tool in the process knows it by; 0 if there is none.
    pub other: u64,
}

impl Domains {
    /// Makes one, or finds the one of that name, which is cleaned as messages are; 0 when there are too many, or
    /// it cannot be done now. Numbers are multiples of 16 and never given twice: outside they pass for addresses.
    pub fn create(&self, dictionary: &Dictionary, name: &[u8], other: u64) -> u64 {
        Section::enter()
            .and_then(|section| self.create_within(&section, dictionary, name, other))
            .unwrap_or(0)
    }

    fn create_within(
        &self,
        section: &Section,
        dictionary: &Dictionary,
        name: &[u8],
        other: u64,
    ) -> Option<u64> {
        const STEP: u64 = 16;
        if !system_has_some() {
            return None;
        }
        let name = dictionary.id_within(section, clean(name, MESSAGE_MAX).as_bytes());
        let mut known = self.known.write(section)?;
        if let Some((&number, domain)) = known.iter_mut().find(|(_, known)| known.name == name) {
            domain.other = other;
            return Some(number);
        }
        if known.len() >= DOMAINS_MAX || !grow_map(&mut known) {
            return None;
        }
        let number = self.last.fetch_add(STEP, Ordering::Relaxed) + STEP;
        known.insert(number, Domain { name, other });
        Some(number)
    }

    /// Ends one; what it was. It stays when it cannot be ended now.
    pub fn destroy(&self, number: u64) -> Option<Domain> {
        let section = Section::enter()?;
        self.known.write(&section)?.remove(&number)
    }

    /// The domain of that number.
    pub fn get(&self, number: u64) -> Option<Domain> {
        self.get_within(&Section::enter()?, number).ok()?
    }

    /// [`Domains::get`] for who is in a section; an error when it cannot be told now.
    pub(super) fn get_within(
        &self,
        section: &Section,
        number: u64,
    ) -> Result<Option<Domain>, Busy> {
        let known = self.known.read(section).ok_or(Busy)?;
        Ok(known.get(&number).copied())
    }

    /// For a forked child; empty when another thread was about to change them at the fork.
    pub fn copy_in_child(&self) -> Domains {
        Domains {
            known: SectionLock::new(self.known.copy_in_child().unwrap_or_default()),
            last: AtomicU64::new(self.last.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_one_domain_until_it_is_destroyed() {
        let (domains, dictionary) = (Domains::default(), Dictionary::default());
        let io = domains.create(&dictionary, b"io", 7);
        assert_ne!(io, 0);
        assert_eq!(domains.create(&dictionary, b"io", 8), io);
        let other = domains.create(&dictionary, b"other", 0);
        assert_ne!(other, io);
        let was = Domain {
            name: dictionary.id_of(b"io"),
            other: 8,
        };
        assert_eq!(domains.get(io), Some(was));
        assert_eq!(domains.destroy(io), Some(was));
        assert_eq!(domains.get(io), None);
        assert_eq!(domains.destroy(io), None);
        assert_eq!(
            domains.get(other).map(|domain| domain.name),
            Some(dictionary.id_of(b"other"))
        );
        assert_ne!(domains.create(&dictionary, b"io", 0), io);
    }

    #[test]
    fn names_are_clean_and_default_is_the_default() {
        let (domains, dictionary) = (Domains::default(), Dictionary::default());
        let name_of = |name: &[u8]| {
            let domain = domains.get(domains.create(&dictionary, name, 0));
            let text = dictionary.text_of(domain.expect("made").name);
            text.expect("known").to_bytes().to_vec()
        };
        assert_eq!(name_of(b"=1"), b"'=1");
        assert_eq!(name_of(b"a\xFF"), "a\u{FFFD}".as_bytes());
        let default = domains.create(&dictionary, b"default", 0);
        let name = domains.get(default).map(|domain| domain.name);
        assert_eq!(name, Some(dictionary.id_of(b"default")));
    }

    #[test]
    fn a_child_forked_amid_a_change_gives_no_number_again() {
        let (domains, dictionary) = (Domains::default(), Dictionary::default());
        let old = domains.create(&dictionary, b"io", 0);
        let section = Section::enter().expect("outside");
        let held = domains.known.write(&section);
        let child = domains.copy_in_child();
        drop((held, section));
        assert_eq!(child.get(old), None);
        assert!(child.create(&dictionary, b"new", 0) > old);
    }

    #[test]
    fn there_is_an_end_to_domains() {
        let (domains, dictionary) = (Domains::default(), Dictionary::default());
        for number in 0..DOMAINS_MAX {
            let name = format!("domain {number}");
            assert_ne!(domains.create(&dictionary, name.as_bytes(), 0), 0);
        }
        assert_eq!(domains.create(&dictionary, b"one more", 0), 0);
    }
}
