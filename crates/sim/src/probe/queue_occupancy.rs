//! Length of a queue: over time, and as found by arrivals.

use crate::clock::Nanos;

/// Time and arrivals by queue length, including the packet in transmission.
#[derive(Clone, Debug, Default)]
pub struct QueueOccupancy {
    time_at: Vec<Nanos>,
    seen_at: Vec<u64>,
    since: Nanos,
    integral: u64,
    /// Integral before [`QueueOccupancy::reset_sums`].
    before: u64,
}

impl QueueOccupancy {
    /// Resets the sums at `now`.
    pub fn reset_sums(&mut self, now: Nanos) {
        *self = Self {
            since: now,
            before: self.queue_length_integral_since_start(),
            ..Self::default()
        };
    }

    /// Records that the queue held `packets` until `until`.
    #[inline(always)]
    pub fn record_length_until(&mut self, packets: usize, until: Nanos) {
        let span = until.saturating_sub(self.since);
        if span == 0 {
            return;
        }
        self.since = until;
        add_to_count(&mut self.time_at, packets, span);
        self.integral = self.integral.wrapping_add(span.wrapping_mul(packets as u64));
    }

    /// Records an arrival that found `packets`.
    #[inline(always)]
    pub fn record_arrival(&mut self, packets: usize) {
        add_to_count(&mut self.seen_at, packets, 1);
    }

    /// Queue length integrated over time, in packet nanoseconds, modulo 2^64.
    #[must_use]
    pub fn queue_length_integral(&self) -> u64 {
        self.integral
    }

    /// Queue length integrated over time since the start of the run, modulo 2^64.
    #[must_use]
    pub fn queue_length_integral_since_start(&self) -> u64 {
        self.before.wrapping_add(self.integral)
    }

    /// Time in which the queue was not empty.
    #[must_use]
    pub fn busy_time(&self) -> Nanos {
        self.time_at.iter().skip(1).sum()
    }

    /// Time by queue length.
    #[must_use]
    pub fn time_by_length(&self) -> &[Nanos] {
        &self.time_at
    }

    /// Arrivals by the queue length that they found.
    #[must_use]
    pub fn arrivals_by_length(&self) -> &[u64] {
        &self.seen_at
    }
}

/// Adds to the count at `packets`; extends `counts` if necessary.
#[inline(always)]
fn add_to_count(counts: &mut Vec<u64>, packets: usize, amount: u64) {
    match counts.get_mut(packets) {
        Some(count) => *count += amount,
        None => extend_and_add(counts, packets, amount),
    }
}

#[cold]
fn extend_and_add(counts: &mut Vec<u64>, packets: usize, amount: u64) {
    counts.resize(packets, 0);
    counts.push(amount);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million packets for six hours, twice, overflow 64 bits.
    #[test]
    fn integral_wraps_modulo_2_to_the_64() {
        let (packets, hours) = (1_000_000_u64, 6 * 3_600_000_000_000_u64);
        let mut occupancy = QueueOccupancy::default();
        let mut expected = 0_u64;
        for end in [hours, 2 * hours] {
            occupancy.record_length_until(packets as usize, end);
            expected = expected.wrapping_add(packets.wrapping_mul(hours));
        }
        assert_eq!(occupancy.queue_length_integral(), expected);
        assert_eq!(occupancy.queue_length_integral_since_start(), expected);
        assert_eq!(occupancy.busy_time(), 2 * hours);
    }
}
