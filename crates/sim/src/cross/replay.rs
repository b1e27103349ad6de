//! What was measured, over and over.

use crate::clock::{NEVER, Nanos};
use crate::random::{Draws, Stream};

#[derive(Clone, Debug)]
pub(super) struct Replay {
    times: Vec<Nanos>,
    packets: Vec<f64>,
    period: Nanos,
    /// The next entry.
    next: usize,
    /// How much later than in the list this turn is.
    later: i128,
    /// The entry whose packets are due, and how many they still are.
    now: Nanos,
    waiting: f64,
}

impl Replay {
    pub fn new(
        times: Vec<Nanos>,
        packets: Vec<f64>,
        period: Nanos,
        offset: Option<Nanos>,
        mut stream: Stream,
    ) -> Self {
        let anywhere = ((1.0 - stream.unit()) * period as f64) as Nanos;
        let offset = offset.unwrap_or(anywhere) % period;
        let next = times.partition_point(|time| *time < offset);
        Self { times, packets, period, next, later: -i128::from(offset), now: 0, waiting: 0.0 }
    }

    pub fn next_time(&mut self) -> Nanos {
        while self.waiting < 1.0 {
            if self.next == self.times.len() {
                self.next = 0;
                self.later += i128::from(self.period);
            }
            // Entries before the offset wait for the next turn, so that no time is below 0.
            let time = i128::from(self.times[self.next]) + self.later;
            self.now = Nanos::try_from(time).unwrap_or(NEVER).min(NEVER);
            if self.now == NEVER {
                return NEVER;
            }
            self.waiting += self.packets[self.next];
            self.next += 1;
        }
        self.waiting -= 1.0;
        self.now
    }
}
