//! Windows and sequence numbers of chosen flows, for plots.

use crate::clock::Nanos;

/// What happened to a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Sent for the first time.
    Sent,
    /// Sent again.
    Retransmitted,
    /// Dropped on the way.
    Dropped,
    /// Its timer expired.
    Timeout,
}

/// A window at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    /// When.
    pub time: Nanos,
    /// Which source.
    pub source: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Packets outstanding.
    pub flight: u32,
}

/// The most points kept of each sort; a trace that is cut says so.
const MOST_POINTS: usize = 1_000_000;

/// The recorded points. Traces begin at time 0, before the warm-up is over.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Windows.
    pub windows: Vec<TracePoint>,
    /// Sequence numbers: time, source, number, mark.
    pub numbers: Vec<(Nanos, u32, u32, Mark)>,
}

impl Trace {
    /// Whether there was more than is kept.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.windows.len() == MOST_POINTS || self.numbers.len() == MOST_POINTS
    }

    /// Records a window.
    pub fn window(&mut self, time: Nanos, source: u32, cwnd: u32, ssthresh: u32, flight: u32) {
        if self.windows.len() < MOST_POINTS {
            self.windows.push(TracePoint { time, source, cwnd, ssthresh, flight });
        }
    }

    /// Records a sequence number.
    pub fn mark(&mut self, time: Nanos, source: u32, number: u32, mark: Mark) {
        if self.numbers.len() < MOST_POINTS {
            self.numbers.push((time, source, number, mark));
        }
    }
}
