//! A rate that varies by a trace of packet opportunities, the format of the known emulators of
//! cellular links (Winstein, Sivaraman and Balakrishnan, "Stochastic forecasts", NSDI 2013).
//!
//! Each line of a file is a time in whole milliseconds at which as many bytes as one packet of full
//! size can leave; a time may stand in several lines. After the last line the trace begins again,
//! its times added to the last.

use super::Transmitter;
use crate::time::{MILLISECOND, Nanos};
use serde::Deserialize;
use std::sync::Arc;

/// Why a trace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is no line in it.
    #[error("the trace is empty; write a time in milliseconds on each line")]
    Empty,
    /// A line is not a time.
    #[error("line {line} of the trace is {text:?}; write a whole number of milliseconds")]
    NotATime {
        /// Which line, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// A time is before the one above it.
    #[error("line {line} of the trace goes back in time; sort the lines")]
    Decreasing {
        /// Which line, from 1.
        line: usize,
    },
    /// The last time is 0, so that it would come again at once.
    #[error("the trace ends at 0 ms; its last line says when it begins again, at least 1")]
    NoLength,
}

/// Times at which packets can leave, over one period.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<(u32, u32)>")]
pub struct OpportunityTrace {
    /// In nanoseconds, none before the one before it.
    times: Vec<Nanos>,
    period: Nanos,
}

impl OpportunityTrace {
    /// Reads the text of a trace file; empty lines count for nothing.
    ///
    /// # Errors
    ///
    /// [`TraceError`] says which line is wrong.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<Nanos> = Vec::new();
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            // As many as a u32 has milliseconds are seven weeks.
            let Ok(milliseconds) = text.trim().parse::<u32>() else {
                return Err(TraceError::NotATime { line, text: text.trim().to_owned() });
            };
            let time = u64::from(milliseconds) * MILLISECOND;
            if times.last().is_some_and(|last| *last > time) {
                return Err(TraceError::Decreasing { line });
            }
            times.push(time);
        }
        Self::of(times)
    }

    /// A trace of so many opportunities at each of some times in milliseconds.
    ///
    /// # Errors
    ///
    /// [`TraceError`], with the number of the pair in place of that of a line.
    pub fn counted(pairs: &[(u32, u32)]) -> Result<Self, TraceError> {
        let mut times: Vec<Nanos> = Vec::new();
        for (line, (milliseconds, count)) in (1..).zip(pairs) {
            let time = u64::from(*milliseconds) * MILLISECOND;
            if times.last().is_some_and(|last| *last > time) {
                return Err(TraceError::Decreasing { line });
            }
            times.extend(std::iter::repeat_n(time, *count as usize));
        }
        Self::of(times)
    }

    fn of(times: Vec<Nanos>) -> Result<Self, TraceError> {
        match times.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoLength),
            Some(period) => Ok(Self { period: *period, times }),
        }
    }

    /// How many opportunities there have been by `until`, the one at that moment included.
    #[must_use]
    pub fn count_by(&self, until: Nanos) -> u64 {
        let (turns, since) = (until / self.period, until % self.period);
        let count = |until| self.times.partition_point(|time| *time <= until) as u64;
        turns * self.times.len() as u64 + count(since)
    }

    /// The rate over a whole period in bits a second, if each opportunity is worth `bytes`.
    #[must_use]
    pub fn mean_rate_bps(&self, bytes: u32) -> f64 {
        self.times.len() as f64 * f64::from(bytes) * 8e9 / self.period as f64
    }
}

impl TryFrom<Vec<(u32, u32)>> for OpportunityTrace {
    type Error = TraceError;

    fn try_from(pairs: Vec<(u32, u32)>) -> Result<Self, TraceError> {
        Self::counted(&pairs)
    }
}

/// A transmitter that sends at the opportunities of a trace.
///
/// Several packets share an opportunity if they fit, a long one takes several. What nobody waits for
/// passes unused: an opportunity at the very moment of a packet's arrival has gone.
#[derive(Clone, Debug)]
pub struct Opportunities {
    trace: Arc<OpportunityTrace>,
    bytes: u32,
    /// When the current turn of the trace began, and the opportunity in it at which a packet left.
    began: Nanos,
    at: usize,
    /// Bytes of it that are left.
    left: u32,
    free_at: Nanos,
}

impl Opportunities {
    /// A transmitter at the beginning of a trace, each of whose opportunities is worth `bytes`: 1500,
    /// or 1504 where a link layer's header counts; at least 1.
    #[must_use]
    pub fn new(trace: Arc<OpportunityTrace>, bytes: u32) -> Self {
        Self { trace, bytes: bytes.max(1), began: 0, at: 0, left: 0, free_at: 0 }
    }

    fn time(&self) -> Nanos {
        self.began + self.trace.times[self.at]
    }

    /// The first opportunity after `now`.
    fn seek(&mut self, now: Nanos) {
        let OpportunityTrace { times, period } = &*self.trace;
        let turns = now.saturating_sub(self.began) / period;
        self.began += turns * period;
        let since = now.saturating_sub(self.began);
        self.at = times.partition_point(|time| *time <= since);
        self.left = self.bytes;
        if self.at == times.len() {
            self.begin_again();
        }
    }

    fn begin_again(&mut self) {
        self.began += self.trace.period;
        self.at = 0;
    }

    fn advance(&mut self) {
        self.left = self.bytes;
        self.at += 1;
        if self.at == self.trace.times.len() {
            self.begin_again();
        }
    }
}

impl Transmitter for Opportunities {
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos {
        if self.free_at <= arrived {
            self.seek(arrived);
        }
        let mut rest = bytes;
        while rest > self.left {
            rest -= self.left;
            self.advance();
        }
        self.left -= rest;
        self.free_at = self.time();
        self.free_at
    }

    fn capacity(&self, until: Nanos) -> Option<u64> {
        Some(self.trace.count_by(until) * u64::from(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn link(text: &str) -> Opportunities {
        Opportunities::new(Arc::new(OpportunityTrace::parse(text).unwrap()), 1500)
    }

    const MS: Nanos = MILLISECOND;

    #[test]
    fn a_packet_leaves_at_the_next_opportunity_and_the_trace_comes_again() {
        let mut link = link("1\n1\n5\n\n");
        let leaves: Vec<Nanos> = (0..7).map(|_| link.transmit(0, 1500) / MS).collect();
        assert_eq!(leaves, [1, 1, 5, 6, 6, 10, 11]);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_a_long_one_takes_several() {
        let mut link = link("1\n2\n3\n4\n");
        let leaves: Vec<Nanos> =
            [500, 500, 500, 40, 3000, 1460].map(|bytes| link.transmit(0, bytes) / MS).into();
        assert_eq!(leaves, [1, 1, 1, 2, 4, 4]);
    }

    #[test]
    fn what_nobody_waits_for_passes() {
        let mut link = link("1\n2\n3\n4\n");
        assert_eq!(link.transmit(0, 40), MS);
        // It comes just when the first has left: the rest of that opportunity has gone.
        assert_eq!(link.transmit(MS, 40), 2 * MS);
        // It comes while the second is there, and leaves with it.
        assert_eq!(link.transmit(MS + 1, 40), 2 * MS);
        assert_eq!(link.transmit(1_000_002 * MS + 1, 1500), 1_000_003 * MS);
        assert_eq!(link.transmit(2_000_000 * MS, 1500), 2_000_001 * MS);
    }

    #[test]
    fn a_trace_that_is_wrong_says_where() {
        let parse = |text| OpportunityTrace::parse(text).unwrap_err().to_string();
        assert_eq!(parse(""), "the trace is empty; write a time in milliseconds on each line");
        assert_eq!(
            parse("1\n1.5\n"),
            "line 2 of the trace is \"1.5\"; write a whole number of milliseconds"
        );
        assert_eq!(parse("2\n\n1\n"), "line 3 of the trace goes back in time; sort the lines");
        assert!(parse("0\n0\n").contains("at least 1"));
    }

    #[test]
    fn the_mean_rate_is_that_of_a_period() {
        let trace = OpportunityTrace::parse("1\n2\n3\n4\n").unwrap();
        assert!((trace.mean_rate_bps(1500) - 12e6).abs() < 1e-3);
    }

    /// The emulators' loop: each opportunity in turn takes what it can from the head of the queue.
    fn stepped(times: &[u32], arrivals: &[(Nanos, u32)]) -> Vec<Nanos> {
        let mut queue: VecDeque<(usize, u32)> = VecDeque::new();
        let mut leaves = vec![0; arrivals.len()];
        let mut coming = arrivals.iter().enumerate().peekable();
        let (mut began, mut at, mut gone) = (0, 0, 0);
        while gone < arrivals.len() {
            let time = began + u64::from(times[at]) * MS;
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
            at += 1;
            if at == times.len() {
                at = 0;
                began += u64::from(times[times.len() - 1]) * MS;
            }
        }
        leaves
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_emulators_loop(
            gaps in prop::collection::vec(0_u32..4, 1..30),
            arrivals in prop::collection::vec((0_u64..4 * MS, 1_u32..4000), 1..60),
        ) {
            let mut times = Vec::new();
            for gap in gaps {
                times.push(times.last().unwrap_or(&0) + gap);
            }
            *times.last_mut().unwrap() += 1;
            let text: String = times.iter().map(|time| format!("{time}\n")).collect();
            let mut link = link(&text);
            let mut now = 0;
            let arrivals: Vec<(Nanos, u32)> = arrivals.into_iter().map(|(gap, bytes)| {
                now += gap;
                (now, bytes)
            }).collect();
            let leaves: Vec<Nanos> =
                arrivals.iter().map(|(now, bytes)| link.transmit(*now, *bytes)).collect();
            prop_assert_eq!(leaves, stepped(&times, &arrivals));
        }
    }
}
