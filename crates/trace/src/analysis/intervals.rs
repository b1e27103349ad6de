//! Intervals of 100 seconds, into which Padhye, Firoiu, Towsley and Kurose (1998) divide each trace.

use super::loss_indications::LossIndicationCounts;
use super::rtt::credible_rtt_s;
use crate::segment::Nanos;

/// Length of an interval, s.
pub const INTERVAL_S: u64 = 100;
const INTERVAL_LENGTH: Nanos = INTERVAL_S * 1_000_000_000;
/// Maximum number of intervals per direction: 4.7 days without a pause.
const MAX_INTERVALS: usize = 4096;

/// Counters of an interval of 100 s. Intervals without a packet are omitted.
#[derive(Clone, Debug, Default, PartialEq)]
#[repr(C)] // the fields that each packet changes are adjacent
pub struct IntervalCounts {
    /// Number of the interval, counted from the connection's first packet.
    pub index: u64,
    /// Data packets.
    pub data_packets: u64,
    /// Retransmitted data packets.
    pub retransmissions: u64,
    /// Payload bytes, including retransmissions.
    pub bytes: u64,
    /// RTT samples.
    pub rtt_samples: u64,
    /// Sum of the RTT samples, s.
    pub rtt_sum_s: f64,
    /// Maximum bytes in flight.
    pub flight_max_bytes: u64,
    /// Largest receive window, bytes.
    pub window_max_bytes: u64,
    /// Loss indications that began in the interval.
    pub indications: LossIndicationCounts,
}

impl IntervalCounts {
    /// Mean of the RTT samples, s.
    #[must_use]
    pub fn rtt_mean_s(&self) -> Option<f64> {
        (self.rtt_samples > 0)
            .then(|| self.rtt_sum_s / self.rtt_samples as f64)
            .and_then(credible_rtt_s)
    }
}

/// All intervals of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    /// Current interval, stored separately because each packet changes it.
    current: IntervalCounts,
    earlier: Vec<IntervalCounts>,
    origin: Nanos,
    /// End of the current interval; 0 if there is none.
    end: Nanos,
    /// Index of the interval in which the current timeout sequence began.
    sequence: usize,
}

impl Intervals {
    /// Sets the start of the first interval.
    pub(super) fn set_origin(&mut self, origin: Nanos) {
        self.origin = origin;
    }

    /// Returns the interval of `time`. An earlier time than the current interval (after a clock
    /// step) counts in the current interval.
    #[inline]
    pub(super) fn interval_at(&mut self, time: Nanos) -> &mut IntervalCounts {
        if time >= self.end {
            self.open_interval(time);
        }
        &mut self.current
    }

    #[cold]
    fn open_interval(&mut self, time: Nanos) {
        let index = time.saturating_sub(self.origin) / INTERVAL_LENGTH;
        let had = self.end > 0;
        self.end = self.origin.saturating_add((index + 1).saturating_mul(INTERVAL_LENGTH));
        if had && self.earlier.len() < MAX_INTERVALS {
            self.earlier.push(std::mem::take(&mut self.current));
        }
        if self.earlier.len() < MAX_INTERVALS {
            self.current.index = index;
        }
    }

    /// Returns the indications of the interval in which the timeout sequence began. `first`: a new
    /// sequence begins.
    pub(super) fn timeout_sequence_at(
        &mut self,
        time: Nanos,
        first: bool,
    ) -> &mut LossIndicationCounts {
        self.interval_at(time);
        if first {
            self.sequence = self.earlier.len();
        }
        let interval = self.earlier.get_mut(self.sequence).unwrap_or(&mut self.current);
        &mut interval.indications
    }

    pub(super) fn into_vec(mut self) -> Vec<IntervalCounts> {
        if self.end > 0 {
            self.earlier.reserve_exact(1);
            self.earlier.push(self.current);
        }
        self.earlier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_omits_empty_intervals() {
        let second = 1_000_000_000;
        let mut intervals = Intervals::default();
        intervals.set_origin(7 * second);
        for time in [7, 106, 107, 50, 1_000_007] {
            intervals.interval_at(time * second).data_packets += 1;
        }
        let counts: Vec<_> =
            intervals.into_vec().iter().map(|i| (i.index, i.data_packets)).collect();
        assert_eq!(counts, [(0, 2), (1, 2), (10_000, 1)]);
    }
}
