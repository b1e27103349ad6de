//! How full the bottleneck's queue is: over time, and as arrivals find it.

use crate::clock::Nanos;

/// Time and arrivals by queue length, the packet in transmission included.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    time_at: Vec<Nanos>,
    seen_at: Vec<u64>,
    since: Nanos,
    integral: u64,
    /// What was before [`Occupancy::begin`].
    before: u64,
}

impl Occupancy {
    /// Forgets the past; the level stays what it is.
    pub fn begin(&mut self, now: Nanos) {
        *self = Self { since: now, before: self.lifetime_integral(), ..Self::default() };
    }

    /// The queue held `packets` until `until`.
    #[inline(always)]
    pub fn held(&mut self, packets: usize, until: Nanos) {
        let span = until.saturating_sub(self.since);
        if span == 0 {
            return;
        }
        self.since = until;
        add(&mut self.time_at, packets, span);
        self.integral = self.integral.wrapping_add(span.wrapping_mul(packets as u64));
    }

    /// An arrival found `packets`.
    #[inline(always)]
    pub fn seen(&mut self, packets: usize) {
        add(&mut self.seen_at, packets, 1);
    }

    /// Queue length integrated over time, in packet nanoseconds, modulo 2^64.
    #[must_use]
    pub fn integral(&self) -> u64 {
        self.integral
    }

    /// The same since the run began, modulo 2^64.
    #[must_use]
    pub fn lifetime_integral(&self) -> u64 {
        self.before.wrapping_add(self.integral)
    }

    /// Time in which there was a packet.
    #[must_use]
    pub fn busy(&self) -> Nanos {
        self.time_at.iter().skip(1).sum()
    }

    /// Time spent at each length.
    #[must_use]
    pub fn time_at(&self) -> &[Nanos] {
        &self.time_at
    }

    /// Arrivals that found each length.
    #[must_use]
    pub fn seen_at(&self) -> &[u64] {
        &self.seen_at
    }
}

/// Adds to the count at `packets`, which need not be there yet.
#[inline(always)]
fn add(counts: &mut Vec<u64>, packets: usize, amount: u64) {
    match counts.get_mut(packets) {
        Some(count) => *count += amount,
        None => grow(counts, packets, amount),
    }
}

#[cold]
fn grow(counts: &mut Vec<u64>, packets: usize, amount: u64) {
    counts.resize(packets, 0);
    counts.push(amount);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million packets for six hours, twice.
    #[test]
    fn the_integral_counts_modulo_two_to_the_64() {
        let (packets, hours) = (1_000_000_u64, 6 * 3_600_000_000_000_u64);
        let mut occupancy = Occupancy::default();
        let mut expected = 0_u64;
        for end in [hours, 2 * hours] {
            occupancy.held(packets as usize, end);
            expected = expected.wrapping_add(packets.wrapping_mul(hours));
        }
        assert_eq!(occupancy.integral(), expected);
        assert_eq!(occupancy.lifetime_integral(), expected);
        assert_eq!(occupancy.busy(), 2 * hours);
    }
}
