//! Numbers that look random and are the same in every run.

/// A generator (xorshift64*).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    /// Fewer than `end` bytes of noise.
    pub fn bytes(&mut self, end: u64) -> Vec<u8> {
        let len = self.below(end);
        (0..len).map(|_| self.next() as u8).collect()
    }
}
