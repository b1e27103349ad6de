//! Packets of a rate that varies per bin: evenly spaced within a bin, with fractions of a packet
//! carried over to the next bin.

use super::CrossRateCounters;
use super::fractional_noise::{FractionalNoise, NoiseCircle};
use crate::clock::Nanos;
use crate::random::{RandomSource, RandomStream};

#[derive(Clone, Debug)]
pub(super) struct PacedArrivals {
    noise: FractionalNoise,
    stream: RandomStream,
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
    pub rates: CrossRateCounters,
}

impl PacedArrivals {
    pub fn new(noise: FractionalNoise, mut stream: RandomStream) -> Self {
        let carried = 1.0 - stream.draw_unit();
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
            rates: CrossRateCounters::default(),
        }
    }

    pub fn next_arrival_time(&mut self) -> Nanos {
        if self.series.is_empty() {
            self.begin_next_noise_series();
            self.begin_next_bin();
        }
        while self.sent + 1.0 > self.carried + self.rate {
            self.carried += self.rate - self.sent;
            self.starts += self.noise.bin;
            self.begin_next_bin();
        }
        self.sent += 1.0;
        let share = ((self.sent - self.carried) / self.rate).clamp(0.0, 1.0);
        self.starts + (share * self.noise.bin as f64) as Nanos
    }

    fn begin_next_bin(&mut self) {
        if self.next == self.series.len() {
            self.begin_next_noise_series();
        }
        let rate = self.noise.packets_in_bin(self.series[self.next]);
        self.next += 1;
        self.sent = 0.0;
        self.rate = self.rates.add_bin(rate);
    }

    /// Starts a series: half of a circle, for which all autocovariances are exact. Consecutive
    /// series are independent.
    fn begin_next_noise_series(&mut self) {
        self.next = 0;
        self.series = self.spare.take().unwrap_or_else(|| {
            let bins = self.noise.bins;
            let circle = NoiseCircle::new(self.noise.hurst, 2 * bins);
            let (mut first, mut second) = circle.draw_two_series(&mut self.stream);
            first.truncate(bins);
            second.truncate(bins);
            second.shrink_to_fit();
            first.shrink_to_fit();
            self.spare = Some(second);
            first
        });
    }
}
