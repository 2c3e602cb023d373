//! How durations are spread, in bounded memory: exact below 128, within 0.8 % above.
//!
//! Each power of two is a page of 64 buckets of one width. A page is made when its first value comes, and all histograms
//! take theirs from one [`Pages`]: a directory with a million names has no more of them than one with ten.

/// Buckets of a page, and values that have a bucket of their own.
const BUCKETS: usize = 64;
/// The same as a power of two.
const BITS: u32 = BUCKETS.trailing_zeros();

/// Pages that may still be made.
#[derive(Debug)]
pub struct Pages {
    left: usize,
}

impl Pages {
    /// Room for so many pages of 512 bytes.
    pub fn new(count: usize) -> Pages {
        Pages { left: count }
    }

    fn take(&mut self) -> Option<Box<[u64; BUCKETS]>> {
        self.left = self.left.checked_sub(1)?;
        Some(Box::new([0; BUCKETS]))
    }
}

/// Values counted in buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Sorted by their power of two.
    pages: Vec<(u8, Box<[u64; BUCKETS]>)>,
    count: u64,
    /// Values that there was no page for.
    missed: u64,
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64, pages: &mut Pages) {
        let (power, bucket) = place(value);
        let index = match self.pages.binary_search_by_key(&power, |(power, _)| *power) {
            Ok(index) => index,
            Err(index) => {
                let Some(page) = pages.take() else {
                    self.missed += 1;
                    return;
                };
                self.pages.insert(index, (power, page));
                index
            }
        };
        self.pages[index].1[bucket] += 1;
        self.count += 1;
    }

    /// Counts what another one has counted.
    pub fn merge(&mut self, other: Histogram) {
        self.count += other.count;
        self.missed += other.missed;
        for (power, page) in other.pages {
            match self.pages.binary_search_by_key(&power, |(power, _)| *power) {
                Ok(index) => {
                    let mine = self.pages[index].1.iter_mut();
                    mine.zip(*page).for_each(|(mine, theirs)| *mine += theirs);
                }
                Err(index) => self.pages.insert(index, (power, page)),
            }
        }
    }

    /// The value that so many of a thousand are not above: the middle of its bucket, 0.8 % off at most. `None` without
    /// values, and where there was no room for all of them.
    pub fn quantile(&self, thousandths: u64) -> Option<u64> {
        if self.count == 0 || self.missed > 0 {
            return None;
        }
        let wanted = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000);
        let mut passed = 0u128;
        for (power, page) in &self.pages {
            for (bucket, count) in page.iter().enumerate() {
                passed += u128::from(*count);
                if passed >= wanted && *count > 0 {
                    return Some(middle(*power, bucket));
                }
            }
        }
        None
    }
}

/// Page and bucket of a value.
fn place(value: u64) -> (u8, usize) {
    // Page 0 has the values below 64, page n those from 2^(n + 5) on.
    let power = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
    let bucket = match power {
        0 => value,
        _ => (value >> (power - 1)) & (BUCKETS as u64 - 1),
    };
    (power as u8, bucket as usize)
}

/// The middle of a bucket.
fn middle(power: u8, bucket: usize) -> u64 {
    let Some(shift) = power.checked_sub(1) else {
        return bucket as u64;
    };
    let least = (BUCKETS + bucket) as u64;
    (least << shift) + ((1u64 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by sorting.
    fn exact(values: &mut [u64], thousandths: u64) -> u64 {
        values.sort_unstable();
        let rank = (values.len() as u64 * thousandths).div_ceil(1000).max(1);
        values[rank as usize - 1]
    }

    #[test]
    fn a_quantile_is_within_a_hundred_and_twenty_eighth_of_the_exact_one() {
        let mut random = 0x9E37_79B9_7F4A_7C15u64;
        let mut values: Vec<u64> = (0..20_000)
            .map(|n| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random >> (n % 64)
            })
            .collect();
        values.extend([0, 1, 63, 64, 65, 127, 128, 129, u64::MAX, u64::MAX - 1]);
        let mut pages = Pages::new(59);
        let mut histogram = Histogram::default();
        for value in &values {
            histogram.add(*value, &mut pages);
        }
        for thousandths in [1, 10, 250, 500, 900, 990, 999, 1000] {
            let exact = exact(&mut values, thousandths);
            let found = histogram.quantile(thousandths).expect("values");
            let off = found.abs_diff(exact);
            assert!(off <= exact / 128, "{thousandths}: {found} for {exact}");
        }
    }

    #[test]
    fn values_below_128_are_exact_and_ranks_are_the_nearest() {
        let mut pages = Pages::new(2);
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(500), None);
        for value in [127, 3, 64, 65] {
            histogram.add(value, &mut pages);
        }
        let found = [1, 250, 251, 500, 501, 990, 1000].map(|t| histogram.quantile(t));
        assert_eq!(found, [3, 3, 64, 64, 65, 127, 127].map(Some));
    }

    #[test]
    fn without_room_there_is_no_quantile_rather_than_a_wrong_one() {
        let mut pages = Pages::new(1);
        let (mut first, mut second) = (Histogram::default(), Histogram::default());
        first.add(5, &mut pages);
        second.add(500, &mut pages);
        assert_eq!((first.quantile(500), second.quantile(500)), (Some(5), None));
        first.merge(second);
        assert_eq!(first.quantile(500), None);
    }

    #[test]
    fn merged_ones_count_as_one() {
        let mut pages = Pages::new(10);
        let (mut first, mut second, mut whole) = Default::default();
        for value in 0..1000u64 {
            let part: &mut Histogram = if value % 3 == 0 {
                &mut first
            } else {
                &mut second
            };
            part.add(value * value, &mut Pages::new(100));
            Histogram::add(&mut whole, value * value, &mut pages);
        }
        first.merge(second);
        let whole: Histogram = whole;
        assert!(whole.missed > 0, "10 pages are too few for a million");
        assert_eq!(first.count, 1000);
        assert_eq!(
            first.quantile(1000),
            Some(middle(place(998_001).0, place(998_001).1))
        );
    }
}
