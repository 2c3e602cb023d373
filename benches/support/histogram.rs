//! Many whole numbers near zero: extremes and quantiles without keeping them.

/// Numbers beyond this, to either side, are counted as this by [`Histogram::quantile`].
const REACH: i64 = 4096;

/// Extremes are exact however far out they lie.
pub struct Histogram {
    /// How often each number from -REACH to REACH came.
    counts: Vec<u64>,
    least: i64,
    most: i64,
}

impl Histogram {
    /// Of nothing.
    pub fn new() -> Histogram {
        Histogram {
            counts: vec![0; 2 * REACH as usize + 1],
            least: i64::MAX,
            most: i64::MIN,
        }
    }

    /// Adds one.
    #[inline]
    pub fn add(&mut self, number: i64) {
        self.counts[(number.clamp(-REACH, REACH) + REACH) as usize] += 1;
        self.least = self.least.min(number);
        self.most = self.most.max(number);
    }

    /// Adds all of another one.
    pub fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The smallest; `None` of nothing.
    pub fn least(&self) -> Option<i64> {
        (self.least <= self.most).then_some(self.least)
    }

    /// The largest; `None` of nothing.
    pub fn most(&self) -> Option<i64> {
        (self.least <= self.most).then_some(self.most)
    }

    /// The number below which `share` of them lie; `None` of nothing.
    pub fn quantile(&self, share: f64) -> Option<i64> {
        let rank = (share * self.count().checked_sub(1)? as f64).round() as u64;
        let mut below = 0;
        let index = self.counts.iter().position(|count| {
            below += count;
            below > rank
        })?;
        Some(index as i64 - REACH)
    }
}
