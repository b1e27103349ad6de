//! Round-trip times: samples, their spread, and the estimate that a sender's timer stands on.

use super::histogram::Histogram;
use super::report::RoundTrips;
use crate::segment::Nanos;

/// Samples are averaged within stretches of this length first for the mean over time: as long as the kernel's
/// own counts were taken apart that it was checked against.
const STRETCH: Nanos = 250_000_000;

/// No receiver puts an acknowledgement off for longer, s (RFC 9293, section 3.8.6.3).
const MAX_DELAYED_S: f64 = 0.5;

/// The estimate of RFC 6298, section 2, without a least value, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    smoothed: f64,
    variation: f64,
    samples: u64,
}

impl Estimate {
    #[inline]
    pub(super) fn add(&mut self, sample: Nanos) {
        let sample = sample as f64;
        if self.samples == 0 {
            self.smoothed = sample;
            self.variation = sample / 2.0;
        } else {
            self.variation += ((self.smoothed - sample).abs() - self.variation) / 4.0;
            self.smoothed += (sample - self.smoothed) / 8.0;
        }
        self.samples += 1;
    }

    /// SRTT, ns.
    pub(super) fn smoothed(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.smoothed)
    }

    /// SRTT + max(4 RTTVAR, `least`), ns.
    pub(super) fn timeout(&self, least: f64) -> Option<f64> {
        self.smoothed().map(|smoothed| smoothed + (4.0 * self.variation).max(least))
    }
}

/// Mean, least, greatest and percentiles of samples.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleStats {
    samples: u64,
    /// Exact as far as it matters: a sample more or less changes the last of its 53 bits.
    sum: f64,
    least: Nanos,
    greatest: Nanos,
    histogram: Histogram,
}

/// A round-trip time, or another duration, as it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Durations {
    /// How many samples.
    pub samples: u64,
    /// Their mean, s.
    pub mean_s: f64,
    /// The least, s.
    pub min_s: f64,
    /// The greatest, s.
    pub max_s: f64,
    /// The median, s; percentiles are right to 1.6 %.
    pub p50_s: f64,
    /// Percentile, s.
    pub p95_s: f64,
    /// Percentile, s.
    pub p99_s: f64,
}

impl SampleStats {
    /// Fetches it from memory.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> u64 {
        self.samples.wrapping_add(self.histogram.prefetch())
    }

    /// The same of what it points to.
    #[inline(always)]
    pub(super) fn prefetch_second(&self) -> u64 {
        self.histogram.prefetch_second()
    }

    #[inline]
    pub(super) fn add(&mut self, sample: Nanos) {
        self.least = if self.samples == 0 { sample } else { self.least.min(sample) };
        self.greatest = self.greatest.max(sample);
        self.samples += 1;
        self.sum += sample as f64;
        self.histogram.add(sample);
    }

    pub(super) fn least(&self) -> Option<Nanos> {
        (self.samples > 0).then_some(self.least)
    }

    pub(super) fn report(mut self) -> Option<Durations> {
        if self.samples == 0 {
            return None;
        }
        let (least, greatest) = (self.least as f64, self.greatest as f64);
        let found = self.histogram.quantiles([0.5, 0.95, 0.99])?;
        let [p50_s, p95_s, p99_s] = found.map(|found| found.clamp(least, greatest) / 1e9);
        Some(Durations {
            samples: self.samples,
            mean_s: self.sum / self.samples as f64 / 1e9,
            min_s: self.least as f64 / 1e9,
            max_s: self.greatest as f64 / 1e9,
            p50_s,
            p95_s,
            p99_s,
        })
    }
}

impl RoundTrips {
    /// Takes all back where the mean is longer than any receiver waits on a path with this `handshake`. All
    /// acknowledgements that were captured brought data; those without are missing.
    pub(super) fn withhold_if_late(&mut self, handshake: Option<Nanos>) {
        let path = handshake.map_or(0.0, |whole| whole as f64 / 1e9);
        if self.sender.is_some_and(|rtt| rtt.mean_s > path + MAX_DELAYED_S) {
            *self =
                Self { tap_to_sender_s: self.tap_to_sender_s, withheld: true, ..Self::default() };
        }
    }
}

/// The mean over time of samples that arrive several at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OverTime {
    /// Time at which the current stretch ends; the first one begins with the first sample.
    end: Nanos,
    sum: f64,
    samples: u32,
    means: f64,
    stretches: u64,
}

impl OverTime {
    /// Fetches it from memory.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> u64 {
        self.end
    }

    #[inline]
    pub(super) fn add(&mut self, time: Nanos, sample: Nanos) {
        if time >= self.end {
            self.open(time);
        }
        self.sum += sample as f64;
        self.samples = self.samples.saturating_add(1);
    }

    /// Opens the stretch of `time`, a whole number of stretches after the first sample.
    #[cold]
    fn open(&mut self, time: Nanos) {
        let before = if self.end == 0 { time } else { self.end };
        self.close();
        let whole = (time - before) / STRETCH * STRETCH;
        self.end = before.saturating_add(whole).saturating_add(STRETCH);
    }

    fn close(&mut self) {
        if self.samples > 0 {
            self.means += self.sum / f64::from(self.samples);
            self.stretches += 1;
            self.sum = 0.0;
            self.samples = 0;
        }
    }

    /// The mean, s.
    pub(super) fn mean_s(mut self) -> Option<f64> {
        self.close();
        (self.stretches > 0).then(|| self.means / self.stretches as f64 / 1e9)
    }
}

/// How closely two things go together (Pearson's correlation), in one pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Correlation {
    samples: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Correlation {
    #[inline]
    pub(super) fn add(&mut self, x: f64, y: f64) {
        self.samples += 1.0;
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += dx / self.samples;
        self.mean_y += dy / self.samples;
        self.xx += dx * (x - self.mean_x);
        self.yy += dy * (y - self.mean_y);
        self.xy += dx * (y - self.mean_y);
    }

    /// From -1 to 1; `None` if one of them never changed.
    pub(super) fn coefficient(&self) -> Option<f64> {
        let scale = (self.xx * self.yy).sqrt();
        (scale > 0.0).then(|| (self.xy / scale).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn the_estimate_is_that_of_rfc_6298() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.timeout(0.0), None);
        estimate.add(100 * MS);
        assert_eq!(estimate.timeout(0.0), Some(300e6)); // (2.2)
        estimate.add(180 * MS);
        // (2.3): RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110
        assert_eq!(estimate.timeout(0.0), Some(340e6));
        assert_eq!(estimate.timeout(250e6), Some(360e6));
    }

    #[test]
    fn a_burst_of_samples_counts_as_its_time() {
        let mut over_time = OverTime::default();
        assert_eq!(over_time.mean_s(), None);
        (0..100).for_each(|n| over_time.add(n * MS, 10 * MS));
        over_time.add(250 * MS, 30 * MS);
        assert!((over_time.mean_s().unwrap() - 0.020).abs() < 1e-9);
    }

    #[test]
    fn the_mean_over_time_does_not_depend_on_the_time_of_day() {
        let mean = |begin: Nanos| {
            let mut over_time = OverTime::default();
            (0..90).for_each(|n| over_time.add(begin + n * n * MS, n * MS));
            over_time.mean_s()
        };
        for begin in [1, 100, 137, 249, 250, 1_000_137] {
            assert_eq!(mean(begin * MS), mean(0));
        }
    }

    #[test]
    fn a_line_correlates_with_itself() {
        let mut correlation = Correlation::default();
        assert_eq!(correlation.coefficient(), None);
        (0..10).for_each(|n| correlation.add(f64::from(n), 7.0 - 2.0 * f64::from(n)));
        assert!((correlation.coefficient().unwrap() + 1.0).abs() < 1e-12);
    }
}
