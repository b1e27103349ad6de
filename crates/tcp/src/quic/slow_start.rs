//! Rules that end slow start before a loss.

use super::rules::SlowStartExit;
use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// State of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlowStart {
    UntilLoss,
    RttRise(RttMonitor),
    HystartPlusPlus(HystartPlusPlus),
}

/// Packets of an acknowledgement that grow the window in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Growth {
    pub packets: u32,
    /// Slow start ends.
    pub ends: bool,
}

impl SlowStart {
    pub fn new(rule: SlowStartExit) -> Self {
        match rule {
            SlowStartExit::Loss => Self::UntilLoss,
            SlowStartExit::RttRise => Self::RttRise(RttMonitor::default()),
            SlowStartExit::HystartPlusPlus => Self::HystartPlusPlus(HystartPlusPlus::default()),
        }
    }

    /// A packet is sent in slow start.
    #[inline]
    pub fn on_sent(&mut self, number: u64) {
        if let Self::HystartPlusPlus(hystart) = self {
            hystart.start_round(number);
        }
    }

    /// Packets before `una` are acknowledged in slow start; `packets` of them may grow the window.
    #[inline]
    pub fn on_ack(&mut self, now: Nanos, rtt: Nanos, packets: u32, una: u64) -> Growth {
        match self {
            Self::UntilLoss => Growth { packets, ends: false },
            Self::RttRise(monitor) => Growth { packets, ends: monitor.is_rising(now, rtt) },
            Self::HystartPlusPlus(hystart) => hystart.on_ack(rtt, packets, una),
        }
    }
}

const MONITOR_SAMPLES: usize = 5;

/// The round-trip time rises if the minimum of the last five samples exceeds the smallest maximum of
/// five samples by a quarter, five times: `QuicRttMonitor` of aioquic. Samples are a millisecond
/// apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttMonitor {
    samples: [Nanos; MONITOR_SAMPLES],
    count: usize,
    sampled_at: Nanos,
    smallest_max: Option<Nanos>,
    rises: usize,
}

impl RttMonitor {
    fn is_rising(&mut self, now: Nanos, rtt: Nanos) -> bool {
        if now <= self.sampled_at + MILLISECOND {
            return false;
        }
        self.sampled_at = now;
        self.samples[self.count % MONITOR_SAMPLES] = rtt;
        self.count += 1;
        if self.count < MONITOR_SAMPLES {
            return false;
        }
        let [min, max] = self
            .samples
            .iter()
            .fold([NEVER, 0], |[min, max], sample| [min.min(*sample), max.max(*sample)]);
        let smallest_max = self.smallest_max.unwrap_or(max).min(max);
        self.smallest_max = Some(smallest_max);
        let more = min.saturating_sub(smallest_max);
        if 4 * more >= smallest_max {
            self.rises += 1;
        } else if more > 0 {
            self.rises = 0;
        }
        self.rises >= MONITOR_SAMPLES
    }
}

/// Bounds of the rise of the round-trip time that starts conservative slow start.
const RTT_BOUNDS: (Nanos, Nanos) = (4 * MILLISECOND, 16 * MILLISECOND);
const ROUND_SAMPLES: u32 = 8;
const CONSERVATIVE_DIVISOR: u32 = 4;
const CONSERVATIVE_ROUNDS: u32 = 5;

/// HyStart++ as in quiche (draft-ietf-tcpm-hystartplusplus-04, which became RFC 9406).
#[derive(Clone, Copy, Debug)]
pub(super) struct HystartPlusPlus {
    /// The round ends when this packet is acknowledged.
    round_end: Option<u64>,
    last_min: Nanos,
    current_min: Nanos,
    samples: u32,
    /// Smallest round-trip time at the start of conservative slow start, in which the window grows
    /// by a quarter.
    baseline: Option<Nanos>,
    rounds: u32,
    /// Acknowledged packets that have not grown the window by a packet yet.
    credit: u32,
}

impl Default for HystartPlusPlus {
    fn default() -> Self {
        Self {
            round_end: None,
            last_min: NEVER,
            current_min: NEVER,
            samples: 0,
            baseline: None,
            rounds: 0,
            credit: 0,
        }
    }
}

impl HystartPlusPlus {
    fn start_round(&mut self, number: u64) {
        if self.round_end.is_none() {
            self.round_end = Some(number);
            (self.last_min, self.current_min, self.samples) = (self.current_min, NEVER, 0);
        }
    }

    fn on_ack(&mut self, rtt: Nanos, packets: u32, una: u64) -> Growth {
        let packets = match self.baseline {
            None => packets,
            Some(_) => {
                self.credit += packets;
                let grown = self.credit / CONSERVATIVE_DIVISOR;
                self.credit %= CONSERVATIVE_DIVISOR;
                grown
            }
        };
        self.current_min = self.current_min.min(rtt);
        self.samples += 1;
        if self.samples >= ROUND_SAMPLES {
            self.compare_rounds();
        }
        let ends = self.round_end.is_some_and(|end| una > end) && self.end_round();
        Growth { packets, ends }
    }

    fn compare_rounds(&mut self) {
        match self.baseline {
            None if self.last_min < NEVER => {
                let more = (self.last_min / 8).clamp(RTT_BOUNDS.0, RTT_BOUNDS.1);
                if self.current_min >= self.last_min + more {
                    self.baseline = Some(self.current_min);
                }
            }
            // The rise was temporary.
            Some(baseline) if self.current_min < baseline => {
                (self.baseline, self.rounds) = (None, 0);
            }
            _ => (),
        }
    }

    /// Whether slow start ends with the round.
    fn end_round(&mut self) -> bool {
        self.round_end = None;
        self.rounds += u32::from(self.baseline.is_some());
        self.rounds >= CONSERVATIVE_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips after which slow start ends, if each has `packets` packets that are acknowledged
    /// one by one, with the round-trip times of `rtt`; and the growth of the window.
    fn ends_after(rule: SlowStartExit, packets: u64, rtt: impl Fn(u64) -> Nanos) -> (u64, u32) {
        let (mut state, mut now, mut grown) = (SlowStart::new(rule), 0, 0);
        for round in 0..100 {
            for number in round * packets..(round + 1) * packets {
                state.on_sent(number);
            }
            for number in round * packets..(round + 1) * packets {
                now += 2 * MILLISECOND;
                let growth = state.on_ack(now, rtt(round), 1, number + 1);
                grown += growth.packets;
                if growth.ends {
                    return (round, grown);
                }
            }
        }
        (100, grown)
    }

    #[test]
    fn rule_of_aioquic_ends_slow_start_when_the_rtt_rises_by_a_quarter() {
        let end = |after| {
            let rtt = |round| if round < 3 { 100 } else { after } * MILLISECOND;
            ends_after(SlowStartExit::RttRise, 20, rtt).0
        };
        assert_eq!((end(125), end(124)), (3, 100));
    }

    #[test]
    fn hystart_plus_plus_grows_by_a_quarter_for_five_rounds() {
        let rtt = |round| if round < 3 { 80 } else { 90 } * MILLISECOND;
        let (end, grown) = ends_after(SlowStartExit::HystartPlusPlus, 20, rtt);
        // The eighth sample of round 3 starts conservative slow start, in which five rounds end.
        assert_eq!((end, grown), (8, 3 * 20 + 8 + (12 + 4 * 20) / 4));
        assert_eq!(ends_after(SlowStartExit::HystartPlusPlus, 20, |_| 80 * MILLISECOND).0, 100);
    }

    #[test]
    fn temporary_rise_returns_to_slow_start() {
        let rtt = |round| if round == 3 { 90 } else { 80 } * MILLISECOND;
        let (end, grown) = ends_after(SlowStartExit::HystartPlusPlus, 20, rtt);
        assert_eq!(end, 100);
        // Conservative from the ninth packet of round 3 to the eighth of round 4.
        assert_eq!(grown, 100 * 20 - 20 + 20 / 4);
    }
}
