//! HyStart: ends slow start before a loss occurs (Ha and Rhee 2008, as in Linux).

use super::super::kernel_version::HyStartRule;
use super::super::window::CongestionWindow;
use super::AckSample;
use super::cubic::CubicOptions;
use tcpcast_link::time::{MILLISECOND, Nanos, SECOND};

/// Maximum gap between acknowledgements of one train.
const TRAIN_GAP: Nanos = 2 * MILLISECOND;
/// Number of samples at the start of a round whose minimum is compared.
const DELAY_SAMPLES: u8 = 8;
/// Slow start ends when the round-trip time has increased by 1/8, limited to these bounds.
const DELAY_BOUNDS: (Nanos, Nanos) = (4 * MILLISECOND, 16 * MILLISECOND);
/// Four times the largest packet that Linux passes to an interface, in bytes. Sending this much may
/// lengthen a train.
const TRAIN_BURST_BYTES: u64 = 4 * 65_536;

/// State of a round.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    round_start: Nanos,
    last_ack: Nanos,
    /// The round ends when data beyond this byte is acknowledged.
    round_end: u64,
    smallest: Option<Nanos>,
    samples: u8,
}

impl HyStart {
    /// Starts a round that ends with byte `end`.
    #[must_use]
    pub fn begin_round(now: Nanos, end: u64) -> Self {
        Self { round_start: now, last_ack: now, round_end: end, smallest: None, samples: 0 }
    }

    /// Starts a round if the acknowledgement is beyond the end of the current one.
    #[inline(always)]
    pub fn begin_round_if_acked(&mut self, ack: &AckSample) {
        if ack.una > self.round_end {
            *self = Self::begin_round(ack.now, ack.next);
        }
    }

    /// Whether slow start ends with this acknowledgement.
    #[inline(always)]
    pub fn ends_slow_start(
        &mut self,
        rules: &CubicOptions,
        window: &CongestionWindow,
        min: Nanos,
        ack: &AckSample,
    ) -> bool {
        if rules.hystart == HyStartRule::AllRounds {
            self.begin_round_if_acked(ack);
        }
        if window.cwnd < rules.hystart_low_window {
            return false;
        }
        if rules.hystart == HyStartRule::LateRounds {
            self.begin_round_if_acked(ack);
        }
        let by_train = rules.hystart_train && self.ends_by_ack_train(rules, window, min, ack);
        let by_delay = rules.hystart_delay && self.ends_by_delay(rules, min, ack);
        by_train || by_delay
    }

    /// Whether acknowledgements arrived in a train for half a round-trip time.
    #[inline(always)]
    fn ends_by_ack_train(
        &mut self,
        rules: &CubicOptions,
        window: &CongestionWindow,
        min: Nanos,
        ack: &AckSample,
    ) -> bool {
        if ack.now - self.last_ack > TRAIN_GAP {
            return false;
        }
        self.last_ack = ack.now;
        if rules.hystart == HyStartRule::FirstSamples {
            return ack.now - self.round_start > min / 2;
        }
        let bursts = match ack.pacing_rate_of_window(window) {
            0 => 0,
            rate => MILLISECOND.min(TRAIN_BURST_BYTES * SECOND / rate),
        };
        let threshold = if ack.paced { min + bursts } else { (min + bursts) / 2 };
        ack.now - self.round_start > threshold
    }

    /// Whether the minimum of the first samples of the round exceeds the overall minimum.
    #[inline(always)]
    fn ends_by_delay(&mut self, rules: &CubicOptions, min: Nanos, ack: &AckSample) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        let smallest = match self.smallest {
            None => rtt,
            Some(smallest)
                if rules.hystart == HyStartRule::FirstSamples && self.samples == DELAY_SAMPLES =>
            {
                smallest
            }
            Some(smallest) => smallest.min(rtt),
        };
        self.smallest = Some(smallest);
        if self.samples < DELAY_SAMPLES {
            self.samples += 1;
            return false;
        }
        smallest > min + (min / 8).clamp(DELAY_BOUNDS.0, DELAY_BOUNDS.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time at which slow start ends if an acknowledgement arrives every `gap` with a constant RTT.
    fn ends_at(
        rules: CubicOptions,
        cwnd: u32,
        (min, rtt, gap): (Nanos, Nanos, Nanos),
        paced: bool,
    ) -> Option<Nanos> {
        let mut hystart = HyStart::begin_round(0, 1);
        (1..=100).map(|count| count * gap).find(|&now| {
            let ack = AckSample {
                rtt: Some(rtt),
                srtt: None,
                paced,
                ..AckSample::for_test(now, 1, cwnd)
            };
            hystart.ends_slow_start(&rules, &CongestionWindow::new(cwnd), min, &ack)
        })
    }

    const BY_TRAIN: CubicOptions = CubicOptions { hystart_delay: false, ..CubicOptions::LINUX };
    const BY_DELAY: CubicOptions = CubicOptions { hystart_train: false, ..CubicOptions::LINUX };

    #[test]
    fn linux_hystart_delay_thresh_is_an_eighth_from_4_to_16_ms() {
        for (min, more) in [(8, 4), (40, 5), (64, 8), (120, 15), (400, 16)] {
            let (min, more) = (min * MILLISECOND, more * MILLISECOND);
            let end = |rtt| ends_at(BY_DELAY, 16, (min, rtt, 3 * MILLISECOND), false);
            assert_eq!(end(min + more), None);
            // The ninth acknowledgement of the round, because the minimum is compared after eight
            // samples.
            assert_eq!(end(min + more + 1), Some(9 * 3 * MILLISECOND));
        }
    }

    #[test]
    fn linux_hystart_ack_delta_ends_train_and_paced_train_takes_one_rtt() {
        let min = 40 * MILLISECOND;
        let end = |gap, paced| ends_at(BY_TRAIN, 16, (min, min, gap), paced);
        assert_eq!(end(2 * MILLISECOND, false), Some(22 * MILLISECOND));
        assert_eq!(end(2 * MILLISECOND, true), Some(42 * MILLISECOND));
        assert_eq!(end(2 * MILLISECOND + 1, false), None);
    }

    #[test]
    fn linux_hystart_low_window_is_16_packets() {
        let long = 40 * MILLISECOND;
        let end = |rules, cwnd| ends_at(rules, cwnd, (long, 2 * long, 2 * MILLISECOND), false);
        for rules in [BY_TRAIN, BY_DELAY] {
            assert_eq!(end(rules, 15), None);
            assert!(end(rules, 16).is_some());
        }
    }

    #[test]
    fn linux_5_16_to_6_13_begin_rounds_late() {
        let begin = |hystart_rule| {
            let rules = CubicOptions { hystart: hystart_rule, ..CubicOptions::LINUX };
            let mut hystart = HyStart::begin_round(0, 1);
            [(20, 2, 10, 100), (30, 50, 16, 200), (40, 101, 32, 300)].map(
                |(ms, una, cwnd, next)| {
                    let now = ms * MILLISECOND;
                    let rtt = Some(20 * MILLISECOND);
                    let ack = AckSample { una, next, rtt, ..AckSample::for_test(now, 1, cwnd) };
                    let window = CongestionWindow::new(cwnd);
                    hystart.ends_slow_start(&rules, &window, 20 * MILLISECOND, &ack);
                    hystart.round_start / MILLISECOND
                },
            )
        };
        assert_eq!(begin(HyStartRule::AllRounds), [20, 20, 40]);
        assert_eq!(begin(HyStartRule::LateRounds), [0, 30, 30]);
        // The congestion control begins rounds, if the window limits the rate.
        assert_eq!(begin(HyStartRule::LimitedRounds), [0, 0, 0]);
    }

    #[test]
    fn linux_5_4_compares_only_the_first_samples_and_half_of_a_paced_train() {
        let old = CubicOptions { hystart: HyStartRule::FirstSamples, ..CubicOptions::LINUX };
        let min = 40 * MILLISECOND;
        let by_train = CubicOptions { hystart_delay: false, ..old };
        for paced in [false, true] {
            let end = ends_at(by_train, 16, (min, min, 2 * MILLISECOND), paced);
            assert_eq!(end, Some(22 * MILLISECOND));
        }
        let ends_with_low_ninth_sample = |hystart| {
            let rules = CubicOptions { hystart_train: false, hystart, ..old };
            let mut hystart = HyStart::begin_round(0, 1);
            (1..=9).any(|count| {
                let rtt = Some(if count == 9 { min } else { 2 * min });
                let ack = AckSample { rtt, ..AckSample::for_test(count * MILLISECOND, 1, 16) };
                hystart.ends_slow_start(&rules, &CongestionWindow::new(16), min, &ack)
            })
        };
        assert!(ends_with_low_ninth_sample(HyStartRule::FirstSamples));
        assert!(!ends_with_low_ninth_sample(HyStartRule::LimitedRounds));
    }
}
