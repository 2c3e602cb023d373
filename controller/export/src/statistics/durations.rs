//! Durations of one kind: count, sum and extremes are exact, quantiles within 0.8 %.

use super::histogram::{Histogram, Pages};
use serde::Serialize;

/// In ticks, or in ns where there are none.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    count: u64,
    total: u128,
    min: u64,
    max: u64,
    spread: Histogram,
}

impl Default for Durations {
    fn default() -> Durations {
        Durations {
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
            spread: Histogram::default(),
        }
    }
}

impl Durations {
    pub(super) fn add(&mut self, ticks: u64, pages: &mut Pages) {
        self.count += 1;
        self.total += u128::from(ticks);
        self.min = self.min.min(ticks);
        self.max = self.max.max(ticks);
        self.spread.add(ticks, pages);
    }

    pub(super) fn merge(&mut self, other: Durations) {
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.spread.merge(other.spread);
    }

    /// In ns, of which a tick has so many.
    pub(super) fn times(&self, ns_per_tick: f64) -> Times {
        let ns = |ticks: u128| match ns_per_tick {
            1.0 => u64::try_from(ticks).unwrap_or(u64::MAX),
            _ => (ticks as f64 * ns_per_tick) as u64,
        };
        // The middle of a bucket may lie outside of what was met.
        let quantile = |thousandths| {
            let ticks = self.spread.quantile(thousandths)?;
            Some(ns(ticks.clamp(self.min, self.max).into()))
        };
        let total_ns = ns(self.total);
        let any = self.count > 0;
        Times {
            count: self.count,
            total_ns,
            mean_ns: if any {
                total_ns as f64 / self.count as f64
            } else {
                0.0
            },
            min_ns: if any { ns(self.min.into()) } else { 0 },
            p50_ns: quantile(500),
            p99_ns: quantile(990),
            max_ns: ns(self.max.into()),
        }
    }
}

/// How often something happened and how long it took, ns. All 0 and no quantiles where it never did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// How often.
    pub count: u64,
    /// Sum.
    pub total_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Shortest.
    pub min_ns: u64,
    /// What half of them did not exceed, within 0.8 %; `None` where there are more names than it is kept for.
    pub p50_ns: Option<u64>,
    /// What 99 of 100 did not exceed, the same.
    pub p99_ns: Option<u64>,
    /// Longest.
    pub max_ns: u64,
}
