//! The first walk through the calls: sums by name, and when models were loaded.

use super::wall::Wall;
use crate::calls::{Call, NameKey, Skipped};
use crate::levels;
use crate::loads::{LoadFinder, Loads};
use crate::number::round3;
use crate::source::Source;
use msprof_agent_core::profdir::reader::ReadError;
use std::collections::HashMap;

/// Calls of one name.
#[derive(Clone, Debug)]
pub struct Group {
    /// Level.
    pub level: u16,
    /// Name. Text of a program: may hold anything.
    pub name: String,
    /// How many.
    pub count: u64,
    /// All of them together, ticks.
    pub ticks: i128,
    /// The shortest, ticks.
    pub min: i128,
    /// The longest, ticks.
    pub max: i128,
    /// What they differ from their mean, squared, each rounded to thousandths of us^2, together: thousandths.
    deviation: i128,
    /// What is rounded differently, us^2.
    rest: f64,
    /// Their mean in ticks, where that is a whole number of ns.
    mean_ns: Option<i128>,
    mean_us: f64,
}

impl Group {
    fn add(&mut self, ticks: i128) {
        self.min = if self.count == 0 {
            ticks
        } else {
            self.min.min(ticks)
        };
        self.max = if self.count == 0 {
            ticks
        } else {
            self.max.max(ticks)
        };
        self.count += 1;
        self.ticks += ticks;
    }

    /// All of them together, us.
    pub fn total_us(&self, wall: &Wall) -> f64 {
        round3(wall.duration_us(self.ticks))
    }

    /// Their mean, us.
    pub fn mean_us(&self, wall: &Wall) -> f64 {
        round3(self.total_us(wall) / self.count.max(1) as f64)
    }

    /// How much they differ from it, us^2; known behind the second walk.
    pub fn variance(&self) -> f64 {
        let sum = self.deviation as f64 / 1000.0 + self.rest;
        round3(sum / self.count.max(1) as f64)
    }

    /// Adds what a call differs from the mean. The stock parser rounds each of them in floating point; where that cannot
    /// come to another number, integers do it in a tenth of the time.
    fn deviate(&mut self, ticks: i128, wall: &Wall) {
        let far = self.mean_ns.map(|mean| ticks - mean);
        let square = far.and_then(|far| far.checked_mul(far));
        match square {
            Some(square) if square % 1000 != 500 => self.deviation += (square + 500) / 1000,
            _ => {
                let far = wall.duration_us(ticks) - self.mean_us;
                self.rest += round3(far * far);
            }
        }
    }
}

/// What the first walk has found.
#[derive(Debug, Default)]
pub struct Survey {
    /// Calls by name and level, sorted.
    pub groups: Vec<Group>,
    /// Where a group is.
    index: HashMap<NameKey, usize>,
    /// Loads of models.
    pub loads: Loads,
    /// Calls of the directory.
    pub calls: u64,
    /// What is no call.
    pub skipped: Skipped,
    /// What could not be read.
    pub errors: Vec<ReadError>,
}

impl Survey {
    /// Walks through all calls; `seen` is told now and then how many more there were.
    pub fn of(source: &Source, wall: &Wall, mut seen: impl FnMut(u64)) -> Survey {
        let mut survey = Survey::default();
        let mut groups: HashMap<(u16, String), usize> = HashMap::new();
        let mut finder = LoadFinder::new(source);
        let mut calls = source.calls();
        let mut counter = Counter::default();
        for call in calls.by_ref() {
            let call = match call {
                Ok(call) => call,
                Err(error) => {
                    survey.errors.push(error);
                    continue;
                }
            };
            survey.calls += 1;
            counter.count(&mut seen);
            finder.see(&call);
            if call.paired {
                continue;
            }
            let key = call.name_key();
            let at = *survey.index.entry(key).or_insert_with(|| {
                let name = source.name(key).into_owned();
                *groups.entry((call.level, name.clone())).or_insert_with(|| {
                    survey.groups.push(Group {
                        level: call.level,
                        name,
                        count: 0,
                        ticks: 0,
                        min: 0,
                        max: 0,
                        deviation: 0,
                        rest: 0.0,
                        mean_ns: None,
                        mean_us: 0.0,
                    });
                    survey.groups.len() - 1
                })
            });
            survey.groups[at].add(call.ticks());
        }
        counter.end(&mut seen);
        survey.skipped = calls.skipped();
        for group in &mut survey.groups {
            group.mean_us = group.mean_us(wall);
            if source.clock().is_ns() {
                group.mean_ns = Some((group.mean_us * 1000.0).round() as i128);
            }
        }
        survey.loads = finder.found();
        survey
    }

    /// To be told every call of the second walk.
    pub fn deviate(&mut self, call: &Call, wall: &Wall) {
        if call.paired {
            return;
        }
        // A file that has grown in the meantime may hold new names.
        if let Some(group) = self
            .index
            .get(&call.name_key())
            .and_then(|at| self.groups.get_mut(*at))
        {
            group.deviate(call.ticks(), wall);
        }
    }

    /// Puts the groups in the order of the table: by name, then level. Nothing can be told to it behind that.
    pub fn sort(&mut self) {
        self.index.clear();
        self.groups.sort_by(|a, b| {
            let levels = || levels::name(a.level).cmp(&levels::name(b.level));
            a.name.cmp(&b.name).then_with(levels)
        });
    }
}

/// Tells somebody now and then how much has been done.
#[derive(Debug, Default)]
pub struct Counter(u64);

impl Counter {
    const STEP: u64 = 1 << 14;

    /// One more.
    pub fn count(&mut self, seen: &mut impl FnMut(u64)) {
        self.0 += 1;
        if self.0 == Counter::STEP {
            self.end(seen);
        }
    }

    /// What has not been told yet.
    pub fn end(&mut self, seen: &mut impl FnMut(u64)) {
        seen(std::mem::take(&mut self.0));
    }
}
