//! A variable rate given by a trace of transmission opportunities, in the format of emulators of
//! cellular links (Winstein, Sivaraman and Balakrishnan, "Stochastic forecasts", NSDI 2013).
//!
//! Each line of such a file is a time in integer milliseconds at which one packet of full size can
//! leave; several lines can contain the same time. The trace repeats, with the last time as its
//! period.

use super::Transmitter;
use crate::time::{MILLISECOND, Nanos};
use serde::Deserialize;
use std::sync::Arc;

/// Error in a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The trace has no lines.
    #[error("the trace is empty; use a time in milliseconds on each line")]
    Empty,
    /// A time is less than the time of the preceding line.
    #[error("line {line} of the trace is earlier than the line before; sort the lines")]
    Decreasing {
        /// Line number, from 1.
        line: usize,
    },
    /// The last time, which is the period, is 0.
    #[error("the trace ends at 0 ms; the last line sets its period and must be at least 1 ms")]
    NoLength,
}

/// Times of transmission opportunities in one period.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<(u32, u32)>")]
pub struct OpportunityTrace {
    /// Times in nanoseconds, not decreasing.
    times: Vec<Nanos>,
    period: Nanos,
}

impl OpportunityTrace {
    /// Creates a trace from pairs of a time in milliseconds and a number of opportunities.
    ///
    /// # Errors
    ///
    /// Returns a [`TraceError`] with the number of the first invalid pair as the line number.
    pub fn from_millisecond_counts(pairs: &[(u32, u32)]) -> Result<Self, TraceError> {
        let mut times: Vec<Nanos> = Vec::new();
        for (line, (milliseconds, count)) in (1..).zip(pairs) {
            let time = u64::from(*milliseconds) * MILLISECOND;
            if times.last().is_some_and(|last| *last > time) {
                return Err(TraceError::Decreasing { line });
            }
            times.extend(std::iter::repeat_n(time, *count as usize));
        }
        Self::from_times(times)
    }

    fn from_times(times: Vec<Nanos>) -> Result<Self, TraceError> {
        match times.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoLength),
            Some(period) => Ok(Self { period: *period, times }),
        }
    }

    /// Number of opportunities up to and including `until`.
    #[must_use]
    pub fn count_opportunities_until(&self, until: Nanos) -> u64 {
        let (cycles, since) = (until / self.period, until % self.period);
        let count = |until| self.times.partition_point(|time| *time <= until) as u64;
        cycles * self.times.len() as u64 + count(since)
    }
}

impl TryFrom<Vec<(u32, u32)>> for OpportunityTrace {
    type Error = TraceError;

    fn try_from(pairs: Vec<(u32, u32)>) -> Result<Self, TraceError> {
        Self::from_millisecond_counts(&pairs)
    }
}

/// A transmitter that sends at the opportunities of a trace.
///
/// Small packets share an opportunity if they fit, and a long packet uses several. An opportunity
/// is lost if no packet waits; a packet cannot use the opportunity at its arrival time.
#[derive(Clone, Debug)]
pub struct TraceTransmitter {
    trace: Arc<OpportunityTrace>,
    bytes: u32,
    /// Start time of the current repetition of the trace.
    cycle_start: Nanos,
    /// Index of the current opportunity.
    index: usize,
    /// Remaining bytes of the current opportunity.
    bytes_left: u32,
    free_at: Nanos,
}

impl TraceTransmitter {
    /// Creates a transmitter at the beginning of a trace with `bytes` per opportunity: 1500, or
    /// 1504 with a link-layer header; at least 1.
    #[must_use]
    pub fn new(trace: Arc<OpportunityTrace>, bytes: u32) -> Self {
        Self { trace, bytes: bytes.max(1), cycle_start: 0, index: 0, bytes_left: 0, free_at: 0 }
    }

    fn current_opportunity_time(&self) -> Nanos {
        self.cycle_start + self.trace.times[self.index]
    }

    /// Moves to the first opportunity after `now`.
    fn seek_opportunity_after(&mut self, now: Nanos) {
        let OpportunityTrace { times, period } = &*self.trace;
        let cycles = now.saturating_sub(self.cycle_start) / period;
        self.cycle_start += cycles * period;
        let since = now.saturating_sub(self.cycle_start);
        self.index = times.partition_point(|time| *time <= since);
        self.bytes_left = self.bytes;
        if self.index == times.len() {
            self.begin_next_trace_period();
        }
    }

    fn begin_next_trace_period(&mut self) {
        self.cycle_start += self.trace.period;
        self.index = 0;
    }

    fn advance_opportunity(&mut self) {
        self.bytes_left = self.bytes;
        self.index += 1;
        if self.index == self.trace.times.len() {
            self.begin_next_trace_period();
        }
    }
}

impl Transmitter for TraceTransmitter {
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos {
        if self.free_at <= arrived {
            self.seek_opportunity_after(arrived);
        }
        let mut rest = bytes;
        while rest > self.bytes_left {
            rest -= self.bytes_left;
            self.advance_opportunity();
        }
        self.bytes_left -= rest;
        self.free_at = self.current_opportunity_time();
        self.free_at
    }

    fn capacity_bytes_until(&self, until: Nanos) -> Option<u64> {
        Some(self.trace.count_opportunities_until(until) * u64::from(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn link(times: &[u32]) -> TraceTransmitter {
        let pairs: Vec<_> = times.iter().map(|time| (*time, 1)).collect();
        let trace = OpportunityTrace::from_millisecond_counts(&pairs).unwrap();
        TraceTransmitter::new(Arc::new(trace), 1500)
    }

    const MS: Nanos = MILLISECOND;

    #[test]
    fn packets_leave_at_opportunities_of_a_repeating_trace() {
        let mut link = link(&[1, 1, 5]);
        let leaves: Vec<Nanos> = (0..7).map(|_| link.transmit(0, 1500) / MS).collect();
        assert_eq!(leaves, [1, 1, 5, 6, 6, 10, 11]);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_long_packets_use_several() {
        let mut link = link(&[1, 2, 3, 4]);
        let leaves: Vec<Nanos> =
            [500, 500, 500, 40, 3000, 1460].map(|bytes| link.transmit(0, bytes) / MS).into();
        assert_eq!(leaves, [1, 1, 1, 2, 4, 4]);
    }

    #[test]
    fn unused_opportunities_are_lost() {
        let mut link = link(&[1, 2, 3, 4]);
        assert_eq!(link.transmit(0, 40), MS);
        // A packet that arrives at an opportunity cannot use its remaining bytes.
        assert_eq!(link.transmit(MS, 40), 2 * MS);
        // A packet that arrives before an opportunity can share it with the preceding packet.
        assert_eq!(link.transmit(MS + 1, 40), 2 * MS);
        assert_eq!(link.transmit(1_000_002 * MS + 1, 1500), 1_000_003 * MS);
        assert_eq!(link.transmit(2_000_000 * MS, 1500), 2_000_001 * MS);
    }

    #[test]
    fn errors_contain_the_line_number() {
        let error = |pairs: &[(u32, u32)]| {
            OpportunityTrace::from_millisecond_counts(pairs).unwrap_err().to_string()
        };
        assert_eq!(error(&[]), "the trace is empty; use a time in milliseconds on each line");
        assert_eq!(
            error(&[(2, 1), (1, 1)]),
            "line 2 of the trace is earlier than the line before; sort the lines"
        );
        assert!(error(&[(0, 2)]).contains("at least 1"));
    }

    /// Reference model, as in the emulators: each opportunity sends bytes from the head of the
    /// queue.
    fn reference(times: &[u32], arrivals: &[(Nanos, u32)]) -> Vec<Nanos> {
        let mut queue: VecDeque<(usize, u32)> = VecDeque::new();
        let mut leaves = vec![0; arrivals.len()];
        let mut coming = arrivals.iter().enumerate().peekable();
        let (mut cycle_start, mut index, mut gone) = (0, 0, 0);
        while gone < arrivals.len() {
            let time = cycle_start + u64::from(times[index]) * MS;
            while let Some((packet, (_, bytes))) = coming.next_if(|(_, (comes, _))| *comes < time) {
                queue.push_back((packet, *bytes));
            }
            let mut left = 1500;
            while left > 0 && !queue.is_empty() {
                let (packet, bytes) = &mut queue[0];
                let sent = left.min(*bytes);
                left -= sent;
                *bytes -= sent;
                if *bytes == 0 {
                    leaves[*packet] = time;
                    gone += 1;
                    queue.pop_front();
                }
            }
            index += 1;
            if index == times.len() {
                index = 0;
                cycle_start += u64::from(times[times.len() - 1]) * MS;
            }
        }
        leaves
    }

    proptest! {
        #[test]
        fn opportunities_agree_with_reference_model(
            gaps in prop::collection::vec(0_u32..4, 1..30),
            arrivals in prop::collection::vec((0_u64..4 * MS, 1_u32..4000), 1..60),
        ) {
            let mut times = Vec::new();
            for gap in gaps {
                times.push(times.last().unwrap_or(&0) + gap);
            }
            *times.last_mut().unwrap() += 1;
            let mut link = link(&times);
            let mut now = 0;
            let arrivals: Vec<(Nanos, u32)> = arrivals.into_iter().map(|(gap, bytes)| {
                now += gap;
                (now, bytes)
            }).collect();
            let leaves: Vec<Nanos> =
                arrivals.iter().map(|(now, bytes)| link.transmit(*now, *bytes)).collect();
            prop_assert_eq!(leaves, reference(&times, &arrivals));
        }
    }
}
