//! Packets of a rate that varies per bin: evenly spaced within a bin, with fractions of a packet
//! carried over to the next bin.

use super::RateCounters;
use super::fractional::{Circle, FractionalNoise};
use crate::clock::Nanos;
use crate::random::{Draws, Stream};

#[derive(Clone, Debug)]
pub(super) struct Paced {
    noise: FractionalNoise,
    stream: Stream,
    /// Series to use after the current one.
    spare: Option<Vec<f64>>,
    series: Vec<f64>,
    /// Index of the next bin.
    next: usize,
    starts: Nanos,
    /// Packets in the current bin.
    rate: f64,
    /// Fraction of a packet carried over from earlier bins.
    carried: f64,
    sent: f64,
    pub rates: RateCounters,
}

impl Paced {
    pub fn new(noise: FractionalNoise, mut stream: Stream) -> Self {
        let carried = 1.0 - stream.unit();
        Self {
            noise,
            stream,
            spare: None,
            series: Vec::new(),
            next: 0,
            starts: 0,
            rate: 0.0,
            carried,
            sent: 0.0,
            rates: RateCounters::default(),
        }
    }

    pub fn next_time(&mut self) -> Nanos {
        if self.series.is_empty() {
            self.new_series();
            self.begin_bin();
        }
        while self.sent + 1.0 > self.carried + self.rate {
            self.carried += self.rate - self.sent;
            self.starts += self.noise.bin;
            self.begin_bin();
        }
        self.sent += 1.0;
        let share = ((self.sent - self.carried) / self.rate).clamp(0.0, 1.0);
        self.starts + (share * self.noise.bin as f64) as Nanos
    }

    fn begin_bin(&mut self) {
        if self.next == self.series.len() {
            self.new_series();
        }
        let rate = self.noise.packets_in_bin(self.series[self.next]);
        self.next += 1;
        self.sent = 0.0;
        self.rate = self.rates.add(rate);
    }

    /// Starts a series: half of a circle, for which all autocovariances are exact. Consecutive
    /// series are independent.
    fn new_series(&mut self) {
        self.next = 0;
        self.series = self.spare.take().unwrap_or_else(|| {
            let bins = self.noise.bins;
            let circle = Circle::new(self.noise.hurst, 2 * bins);
            let (mut first, mut second) = circle.draw(&mut self.stream);
            first.truncate(bins);
            second.truncate(bins);
            second.shrink_to_fit();
            first.shrink_to_fit();
            self.spare = Some(second);
            first
        });
    }
}
