//! Round-trip time, loss detection and probe timeouts: RFC 9002, sections 5 and 6.

use super::datagram::Space;
use super::rules::QuicRules;
use super::sent_packets::{SentPacket, SentPackets};
use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// kTimeThreshold of RFC 9002, section 6.1.2, in eighths.
const TIME_THRESHOLD_EIGHTHS: Nanos = 9;

/// kGranularity of RFC 9002, section 6.1.2.
const GRANULARITY: Nanos = MILLISECOND;
/// kPersistentCongestionThreshold of RFC 9002, section 7.6.1.
const PERSISTENT_CONGESTION_PTOS: u64 = 3;
/// Largest exponent of the back-off, so that times stay in range.
const MAX_BACKOFF: u32 = 16;

/// Estimate of the round-trip time: RFC 9002, section 5.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuicRtt {
    smoothed: Option<Nanos>,
    /// Last sample, or the initial value.
    pub latest: Nanos,
    variation: Nanos,
    min: Nanos,
    initial: Nanos,
    /// Time of the first sample.
    pub first_sample_at: Option<Nanos>,
}

impl QuicRtt {
    pub fn new(initial: Nanos) -> Self {
        Self {
            smoothed: None,
            latest: initial,
            variation: initial / 2,
            min: NEVER,
            initial,
            first_sample_at: None,
        }
    }

    #[inline]
    pub fn add_sample(&mut self, now: Nanos, rtt: Nanos, ack_delay: Nanos) {
        self.latest = rtt;
        self.min = self.min.min(rtt);
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation) = (Some(rtt), rtt / 2);
            self.first_sample_at = Some(now);
            return;
        };
        let adjusted = if rtt >= self.min + ack_delay { rtt - ack_delay } else { rtt };
        self.variation = (3 * self.variation + smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = Some((7 * smoothed + adjusted) / 8);
    }

    /// Smoothed round-trip time, or the initial value.
    #[inline]
    pub fn smoothed(&self) -> Nanos {
        self.smoothed.unwrap_or(self.initial)
    }

    /// Smoothed round-trip time, if there is a sample.
    #[inline]
    pub fn sampled(&self) -> Option<Nanos> {
        self.smoothed
    }

    /// Minimum, if there is a sample.
    #[inline]
    pub fn min(&self) -> Option<Nanos> {
        self.smoothed.map(|_| self.min)
    }

    /// Probe timeout without the delay of acknowledgements: RFC 9002, section 6.2.1.
    #[inline]
    pub fn probe_timeout(&self) -> Nanos {
        self.smoothed() + (4 * self.variation).max(GRANULARITY)
    }

    /// Time after which a packet below an acknowledged one is lost: RFC 9002, section 6.1.2.
    #[inline]
    fn loss_delay(&self) -> Nanos {
        (self.latest.max(self.smoothed()) / 8 * TIME_THRESHOLD_EIGHTHS).max(GRANULARITY)
    }
}

/// Packets in flight of a space, and the state of their loss detection.
#[derive(Clone, Debug)]
pub(super) struct SpaceRecovery {
    pub sent: SentPackets,
    pub largest_acked: Option<u64>,
    /// Time at which the next packet is lost by the time threshold.
    pub loss_time: Nanos,
    pub last_eliciting_sent: Nanos,
}

impl SpaceRecovery {
    pub fn new() -> Self {
        let sent = SentPackets::default();
        Self { sent, largest_acked: None, loss_time: NEVER, last_eliciting_sent: 0 }
    }

    pub fn restart(&mut self) {
        self.sent.restart();
        (self.largest_acked, self.loss_time, self.last_eliciting_sent) = (None, NEVER, 0);
    }

    /// Moves the packets that are now lost to `lost`; returns whether they show persistent
    /// congestion: RFC 9002, sections 6.1 and 7.6.
    pub fn detect_losses(
        &mut self,
        now: Nanos,
        rtt: &QuicRtt,
        packet_threshold: u32,
        rules: &QuicRules,
        lost: &mut Vec<(u64, SentPacket)>,
    ) -> bool {
        self.loss_time = NEVER;
        let Some(largest) = self.largest_acked else { return false };
        let delay = rtt.loss_delay();
        let period = (rtt.probe_timeout() + rules.max_ack_delay) * PERSISTENT_CONGESTION_PTOS;
        let mut congestion = PersistentCongestion { since: None, expected: 0, is_found: false };
        let mut number = self.sent.first_number();
        while number < largest {
            if let Some(packet) = self.sent.get(number) {
                let sent_at = packet.sent_at();
                let by_number = largest - number >= u64::from(packet_threshold);
                if by_number || sent_at + delay <= now {
                    congestion.on_lost(number, sent_at, period, rtt.first_sample_at);
                    if let Some(packet) = self.sent.take(number) {
                        lost.push((number, packet));
                    }
                } else {
                    // Later packets were sent later.
                    self.loss_time = sent_at + delay;
                    break;
                }
            }
            number += 1;
        }
        congestion.is_found
    }
}

/// Search for a period in which all packets were lost.
struct PersistentCongestion {
    since: Option<Nanos>,
    expected: u64,
    is_found: bool,
}

impl PersistentCongestion {
    fn on_lost(&mut self, number: u64, sent_at: Nanos, period: Nanos, first: Option<Nanos>) {
        if number != self.expected {
            self.since = None;
        }
        self.expected = number + 1;
        match self.since {
            Some(since) => self.is_found |= sent_at - since > period,
            // Packets sent before the first sample do not count.
            None => self.since = first.filter(|first| sent_at > *first).map(|_| sent_at),
        }
    }
}

/// The probe timeout of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeTimeouts {
    /// Expiries since the last acknowledgement.
    pub count: u32,
}

impl ProbeTimeouts {
    /// Time of the next probe, and its space: RFC 9002, section 6.2.1. `usable` are the spaces whose
    /// packets may arm the timer.
    pub fn next(
        &self,
        spaces: &[SpaceRecovery; 3],
        usable: [bool; 3],
        rtt: &QuicRtt,
        rules: &QuicRules,
    ) -> Option<(Nanos, Space)> {
        let backoff = 1 << self.count.min(MAX_BACKOFF);
        let due = |space: Space| {
            let state = &spaces[space as usize];
            let delay = if space == Space::Application { rules.max_ack_delay } else { 0 };
            let due = state.last_eliciting_sent + (rtt.probe_timeout() + delay) * backoff;
            (usable[space as usize] && state.sent.in_flight() > 0).then_some((due, space))
        };
        Space::ALL.into_iter().filter_map(due).min_by_key(|(due, _)| *due)
    }

    /// Time without packets in flight, from `now`.
    pub fn without_flight(&self, now: Nanos, rtt: &QuicRtt) -> Nanos {
        now + rtt.probe_timeout() * (1 << self.count.min(MAX_BACKOFF))
    }
}

#[cfg(test)]
mod tests {
    use super::super::datagram::QuicPacket;
    use super::*;
    use crate::modern::OutstandingPacket;

    fn space_with_packets(times: &[Nanos]) -> SpaceRecovery {
        let mut space = SpaceRecovery::new();
        for sent_at in times {
            let mut outstanding = OutstandingPacket::default();
            outstanding.sent_at = *sent_at;
            let packet = SentPacket::new(&QuicPacket::default(), outstanding, 1200);
            space.sent.push(Some(packet));
        }
        space
    }

    fn detect(space: &mut SpaceRecovery, now: Nanos, rtt: &QuicRtt) -> (Vec<u64>, bool) {
        let mut lost = Vec::new();
        let persistent = space.detect_losses(now, rtt, 3, &QuicRules::RFC, &mut lost);
        (lost.iter().map(|(number, _)| *number).collect(), persistent)
    }

    fn rtt_of(milliseconds: Nanos) -> QuicRtt {
        let mut rtt = QuicRtt::new(QuicRules::RFC.initial_rtt);
        rtt.add_sample(1, milliseconds * MILLISECOND, 0);
        rtt
    }

    #[test]
    fn rfc_9002_5_3_estimates() {
        let mut rtt = rtt_of(100);
        assert_eq!(rtt.probe_timeout(), 300 * MILLISECOND);
        // The delay of the acknowledgement is subtracted, but not below the minimum.
        rtt.add_sample(2, 125 * MILLISECOND, 25 * MILLISECOND);
        assert_eq!(rtt.smoothed(), 100 * MILLISECOND);
        rtt.add_sample(3, 108 * MILLISECOND, 25 * MILLISECOND);
        assert_eq!(rtt.smoothed(), 101 * MILLISECOND);
    }

    #[test]
    fn rfc_9002_6_1_packet_and_time_thresholds() {
        let rtt = rtt_of(80);
        let mut space = space_with_packets(&[100 * MILLISECOND; 6]);
        space.sent.take(4);
        space.largest_acked = Some(4);
        assert_eq!(detect(&mut space, 180 * MILLISECOND, &rtt), (vec![0, 1], false));
        assert_eq!(space.loss_time, 190 * MILLISECOND, "9/8 of the round-trip time");
        assert_eq!(detect(&mut space, 190 * MILLISECOND, &rtt), (vec![2, 3], false));
        assert_eq!((space.loss_time, space.sent.in_flight()), (NEVER, 1));
    }

    #[test]
    fn rfc_9002_7_6_persistent_congestion() {
        let rtt = rtt_of(100);
        // Three probe timeouts with the delay of acknowledgements are 975 ms.
        let at = |milliseconds: &[Nanos]| {
            let times: Vec<Nanos> = milliseconds.iter().map(|time| time * MILLISECOND).collect();
            let mut space = space_with_packets(&times);
            let last = times.len() as u64 - 1;
            space.sent.take(last);
            space.largest_acked = Some(last);
            detect(&mut space, 9000 * MILLISECOND, &rtt).1
        };
        assert!(at(&[1000, 1300, 1976, 3000]));
        assert!(!at(&[1000, 1300, 1975, 3000]));
    }

    #[test]
    fn probe_timeout_backs_off_and_counts_the_ack_delay_of_data() {
        let mut spaces = [(); 3].map(|()| SpaceRecovery::new());
        spaces[2] = space_with_packets(&[MILLISECOND]);
        spaces[2].last_eliciting_sent = MILLISECOND;
        let mut timeouts = ProbeTimeouts::default();
        let next = |timeouts: &ProbeTimeouts| {
            timeouts
                .next(&spaces, [true; 3], &rtt_of(100), &QuicRules::RFC)
                .map(|(at, _)| at / MILLISECOND)
        };
        assert_eq!(next(&timeouts), Some(326));
        timeouts.count = 2;
        assert_eq!(next(&timeouts), Some(1301));
        assert!(timeouts.next(&spaces, [true, true, false], &rtt_of(1), &QuicRules::RFC).is_none());
    }
}
