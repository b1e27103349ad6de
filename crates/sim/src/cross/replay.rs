//! Repeated replay of a measured series.

use crate::clock::{NEVER, Nanos};
use crate::random::{RandomSource, RandomStream};

#[derive(Clone, Debug)]
pub(super) struct ReplayArrivals {
    times: Vec<Nanos>,
    packets: Vec<f64>,
    period: Nanos,
    /// Index of the next entry.
    next: usize,
    /// Offset of the current repetition from the times of the list.
    shift: i128,
    /// Time of the current entry, and its remaining packets.
    now: Nanos,
    remaining: f64,
}

impl ReplayArrivals {
    pub fn new(
        times: Vec<Nanos>,
        packets: Vec<f64>,
        period: Nanos,
        offset: Option<Nanos>,
        mut stream: RandomStream,
    ) -> Self {
        let random = ((1.0 - stream.draw_unit()) * period as f64) as Nanos;
        let offset = offset.unwrap_or(random) % period;
        let next = times.partition_point(|time| *time < offset);
        Self { times, packets, period, next, shift: -i128::from(offset), now: 0, remaining: 0.0 }
    }

    pub fn next_arrival_time(&mut self) -> Nanos {
        while self.remaining < 1.0 {
            if self.next == self.times.len() {
                self.next = 0;
                self.shift += i128::from(self.period);
            }
            // Entries before the offset occur in the next repetition, so no time is negative.
            let time = i128::from(self.times[self.next]) + self.shift;
            self.now = Nanos::try_from(time).unwrap_or(NEVER).min(NEVER);
            if self.now == NEVER {
                return NEVER;
            }
            self.remaining += self.packets[self.next];
            self.next += 1;
        }
        self.remaining -= 1.0;
        self.now
    }
}
