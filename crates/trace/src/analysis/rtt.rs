//! Round-trip times: samples, their distribution, and the sender's estimate for its timer.

use super::histogram::Histogram;
use super::tap_side::TapSide;
use crate::segment::Nanos;

/// Round-trip times of a direction's data, measured at the tap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttReport {
    /// RTT by Karn's rule. Each acknowledgement gives one sample: the time since the newest segment
    /// that it acknowledges was sent.
    pub karn: Option<DurationReport>,
    /// Largest of these samples for acknowledgements of two or more segments, s, which receivers do
    /// not delay.
    pub undelayed_max_s: Option<f64>,
    /// RTT as the sender measures it: the time since the oldest newly acknowledged segment was
    /// sent; in recovery, the oldest newly SACKed segment. The RTT includes the delay of delayed
    /// acknowledgements.
    pub sender: Option<DurationReport>,
    /// Time average of `sender`, s: samples are first averaged per quarter of a second, so that
    /// simultaneous samples count once.
    pub over_time_s: Option<f64>,
    /// RTT by echoed timestamps, including retransmitted segments.
    pub timestamps: Option<DurationReport>,
    /// Minimum round-trip time between the tap and the sender of the data, s.
    pub tap_to_sender_s: Option<f64>,
    /// Number of samples that time one segment at a time and no retransmissions, as a sender
    /// without timestamps does.
    pub round_samples: u64,
    /// Mean of these samples, s.
    pub round_mean_s: Option<f64>,
    /// Correlation of the duration of these rounds with the data in flight at their start.
    pub flight_correlation: Option<f64>,
    /// True if the RTT is withheld, because the capture lacks acknowledgements without data, and
    /// acknowledgements with data came later than a receiver may delay an acknowledgement.
    pub withheld: bool,
    /// True if a round-trip time of the path is below [`MIN_RTT_S`], and therefore unknown.
    pub too_short: bool,
}

/// Shorter round-trip times, s, are times within a host, or errors of timestamps. They are unknown:
/// rates and windows derived from them are not properties of a path.
pub const MIN_RTT_S: f64 = 10e-6;

/// Returns a round-trip time, s, unless it is below [`MIN_RTT_S`].
#[must_use]
pub fn credible_rtt_s(rtt_s: f64) -> Option<f64> {
    (rtt_s >= MIN_RTT_S).then_some(rtt_s)
}

/// For the time average, samples are first averaged over intervals of this length, the sampling
/// interval of the kernel counters used for validation.
const AVERAGING_INTERVAL: Nanos = 250_000_000;

/// Longest delay of an acknowledgement by a receiver, s (RFC 9293, section 3.8.6.3).
const MAX_ACK_DELAY_S: f64 = 0.5;

/// RTT estimate of RFC 6298, section 2, without a minimum, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttEstimate {
    smoothed: f64,
    variation: f64,
    samples: u64,
}

impl RttEstimate {
    #[inline]
    pub(super) fn add_sample(&mut self, sample: Nanos) {
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
    pub(super) fn srtt_ns(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.smoothed)
    }

    /// Returns SRTT + max(4 RTTVAR, `min`), ns.
    pub(super) fn rto_ns(&self, min: f64) -> Option<f64> {
        self.srtt_ns().map(|smoothed| smoothed + (4.0 * self.variation).max(min))
    }
}

/// Mean, extremes and percentiles of samples.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleStats {
    samples: u64,
    /// Rounding affects at most the last of 53 bits per sample.
    sum: f64,
    min: Nanos,
    max: Nanos,
    histogram: Histogram,
}

/// Distribution of a round-trip time or another duration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DurationReport {
    /// Number of samples.
    pub samples: u64,
    /// Mean, s.
    pub mean_s: f64,
    /// Minimum, s.
    pub min_s: f64,
    /// Maximum, s.
    pub max_s: f64,
    /// Median, s; percentiles are accurate to 1.6 %.
    pub p50_s: f64,
    /// 95th percentile, s.
    pub p95_s: f64,
    /// 99th percentile, s.
    pub p99_s: f64,
}

impl SampleStats {
    #[inline]
    pub(super) fn add_sample(&mut self, sample: Nanos) {
        self.min = if self.samples == 0 { sample } else { self.min.min(sample) };
        self.max = self.max.max(sample);
        self.samples += 1;
        self.sum += sample as f64;
        self.histogram.add_value(sample);
    }

    pub(super) fn min(&self) -> Option<Nanos> {
        (self.samples > 0).then_some(self.min)
    }

    pub(super) fn into_report(mut self) -> Option<DurationReport> {
        if self.samples == 0 {
            return None;
        }
        let (min, max) = (self.min as f64, self.max as f64);
        let quantiles = self.histogram.quantiles([0.5, 0.95, 0.99])?;
        let [p50_s, p95_s, p99_s] = quantiles.map(|quantile| quantile.clamp(min, max) / 1e9);
        Some(DurationReport {
            samples: self.samples,
            mean_s: self.sum / self.samples as f64 / 1e9,
            min_s: min / 1e9,
            max_s: max / 1e9,
            p50_s,
            p95_s,
            p99_s,
        })
    }
}

impl RttReport {
    /// Withholds the RTT of the path if it is too short, and returns whether it is. At a tap away
    /// from the sender, samples are only a part of the RTT.
    pub(super) fn withhold_if_too_short(
        &mut self,
        side: TapSide,
        handshake: Option<Nanos>,
    ) -> bool {
        self.too_short = handshake.is_some_and(|rtt| credible_rtt_s(rtt as f64 / 1e9).is_none());
        let Some(rtt) = self.sender.filter(|_| !side.is_away()) else { return false };
        self.too_short |= credible_rtt_s(rtt.min_s).is_none();
        let withheld = credible_rtt_s(rtt.mean_s).is_none();
        if withheld {
            *self =
                Self { tap_to_sender_s: self.tap_to_sender_s, too_short: true, ..Self::default() };
        }
        withheld
    }

    /// Withholds the RTT if its mean exceeds the `handshake` RTT by more than the longest time for
    /// which a receiver may delay an acknowledgement: the capture then lacks the acknowledgements
    /// without data, and samples end at later acknowledgements with data.
    pub(super) fn withhold_if_acks_missing(&mut self, handshake: Option<Nanos>) {
        let path = handshake.map_or(0.0, |rtt| rtt as f64 / 1e9);
        if self.sender.is_some_and(|rtt| rtt.mean_s > path + MAX_ACK_DELAY_S) {
            *self =
                Self { tap_to_sender_s: self.tap_to_sender_s, withheld: true, ..Self::default() };
        }
    }
}

/// Time average of samples that arrive in bursts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeAverage {
    /// End of the current interval; the first begins with the first sample.
    end: Nanos,
    sum: f64,
    samples: u32,
    means: f64,
    stretches: u64,
}

impl TimeAverage {
    #[inline]
    pub(super) fn add_sample(&mut self, time: Nanos, sample: Nanos) {
        if time >= self.end {
            self.open_interval(time);
        }
        self.sum += sample as f64;
        self.samples = self.samples.saturating_add(1);
    }

    /// Opens the interval of `time`, a multiple of [`AVERAGING_INTERVAL`] after the first sample.
    #[cold]
    fn open_interval(&mut self, time: Nanos) {
        let before = if self.end == 0 { time } else { self.end };
        self.close_interval();
        let elapsed = (time - before) / AVERAGING_INTERVAL * AVERAGING_INTERVAL;
        self.end = before.saturating_add(elapsed).saturating_add(AVERAGING_INTERVAL);
    }

    fn close_interval(&mut self) {
        if self.samples > 0 {
            self.means += self.sum / f64::from(self.samples);
            self.stretches += 1;
            self.sum = 0.0;
            self.samples = 0;
        }
    }

    /// The mean, s.
    pub(super) fn mean_s(mut self) -> Option<f64> {
        self.close_interval();
        (self.stretches > 0).then(|| self.means / self.stretches as f64 / 1e9)
    }
}

/// Pearson's correlation of two values, in one pass.
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
    pub(super) fn add_pair(&mut self, x: f64, y: f64) {
        self.samples += 1.0;
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += dx / self.samples;
        self.mean_y += dy / self.samples;
        self.xx += dx * (x - self.mean_x);
        self.yy += dy * (y - self.mean_y);
        self.xy += dx * (y - self.mean_y);
    }

    /// Coefficient from -1 to 1; `None` if one of the values is constant.
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
    fn estimate_follows_rfc6298_section_2() {
        let mut estimate = RttEstimate::default();
        assert_eq!(estimate.rto_ns(0.0), None);
        estimate.add_sample(100 * MS);
        assert_eq!(estimate.rto_ns(0.0), Some(300e6)); // (2.2)
        estimate.add_sample(180 * MS);
        // (2.3): RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110
        assert_eq!(estimate.rto_ns(0.0), Some(340e6));
        assert_eq!(estimate.rto_ns(250e6), Some(360e6));
    }

    #[test]
    fn mean_over_time_weights_bursts_by_time() {
        let mut over_time = TimeAverage::default();
        assert_eq!(over_time.mean_s(), None);
        (0..100).for_each(|n| over_time.add_sample(n * MS, 10 * MS));
        over_time.add_sample(250 * MS, 30 * MS);
        assert!((over_time.mean_s().unwrap() - 0.020).abs() < 1e-9);
    }

    #[test]
    fn mean_over_time_is_independent_of_start() {
        let mean = |begin: Nanos| {
            let mut over_time = TimeAverage::default();
            (0..90).for_each(|n| over_time.add_sample(begin + n * n * MS, n * MS));
            over_time.mean_s()
        };
        for begin in [1, 100, 137, 249, 250, 1_000_137] {
            assert_eq!(mean(begin * MS), mean(0));
        }
    }

    #[test]
    fn correlation_of_line_is_minus_one() {
        let mut correlation = Correlation::default();
        assert_eq!(correlation.coefficient(), None);
        (0..10).for_each(|n| correlation.add_pair(f64::from(n), 7.0 - 2.0 * f64::from(n)));
        assert!((correlation.coefficient().unwrap() + 1.0).abs() < 1e-12);
    }
}
