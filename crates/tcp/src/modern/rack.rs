//! RACK: a packet is lost if a packet sent sufficiently later was delivered (RFC 8985, section 6),
//! with Linux's reordering window.

use super::flight::Flight;
use super::outstanding_packet::{OutstandingPacket, PacketMarks};
use super::rtt::RttEstimator;
use tcpcast_link::time::Nanos;

/// Number of recoveries after which a reordering window widened by DSACKs is reset: RFC 8985,
/// section 6.2, step 4.
const REO_WND_PERSIST: u8 = 16;

/// RACK state of a connection.
#[derive(Clone, Copy, Debug)]
pub struct RackState {
    /// Send time of the most recently sent packet among the delivered packets, and the byte after
    /// this packet.
    newest: (Nanos, u64),
    /// Whether this packet was a retransmission.
    newest_was_retransmitted: bool,
    /// Round-trip time of the packet delivered last.
    rtt: Nanos,
    /// Whether there were deliveries since the last loss detection.
    advanced: bool,
    /// Reordering window in quarters of the minimum round-trip time.
    steps: u8,
    /// Recoveries until the window is reset.
    persist: u8,
    /// A DSACK requests a wider window.
    dsack_seen: bool,
    /// Packets delivered when the window was last widened.
    widened_at: u32,
    /// Number of times that reordering was observed.
    pub reorderings: u32,
}

impl Default for RackState {
    fn default() -> Self {
        Self {
            newest: (0, 0),
            newest_was_retransmitted: false,
            rtt: 0,
            advanced: false,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            widened_at: 0,
            reorderings: 0,
        }
    }
}

/// Result of loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossDetectionResult {
    /// Whether a retransmission was lost.
    pub retransmission_lost: bool,
    /// Time until packets that may be reordered are considered lost.
    pub wait: Option<Nanos>,
}

impl RackState {
    /// A packet is delivered: RFC 8985, section 6.2, step 2. `end` is the byte after it.
    ///
    /// A retransmitted packet is ignored if it is acknowledged in less than the minimum round-trip
    /// time, or if the echoed timestamp is older than the retransmission (`spurious`): then the
    /// original was delivered.
    #[inline(always)]
    pub fn on_delivered(
        &mut self,
        now: Nanos,
        packet: &OutstandingPacket,
        end: u64,
        min_rtt: Option<Nanos>,
        spurious: bool,
    ) {
        let rtt = now - packet.sent_at;
        let too_soon = min_rtt.is_some_and(|min| rtt < min);
        if packet.was_retransmitted() && (too_soon || spurious) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (packet.sent_at, end) > self.newest {
            self.newest = (packet.sent_at, end);
            self.newest_was_retransmitted = packet.was_retransmitted();
        }
    }

    /// Packets that were sent once are delivered; the arguments describe the last of these packets.
    #[inline(always)]
    pub fn on_in_order_delivery(&mut self, now: Nanos, sent_at: Nanos, end: u64) {
        self.advanced = true;
        self.rtt = now - sent_at;
        // Usually the packet was sent after all packets that were delivered before.
        if sent_at > self.newest.0 || (sent_at, end) > self.newest {
            self.newest = (sent_at, end);
            self.newest_was_retransmitted = false;
        }
    }

    /// Requests loss detection at the next acknowledgement, even without further deliveries.
    pub fn request_loss_detection(&mut self) {
        self.advanced = true;
    }

    /// Reordering window: RFC 8985, section 6.2, step 4.
    ///
    /// `immediate` if enough duplicates or a recovery make a loss evident; the window is then 0 as
    /// long as no reordering was observed.
    #[must_use]
    pub fn reordering_window(&self, immediate: bool, rtt: &RttEstimator) -> Nanos {
        if self.reorderings == 0 && immediate {
            return 0;
        }
        let quarter = rtt.min_rtt().unwrap_or(0) / 4;
        (quarter * Nanos::from(self.steps)).min(rtt.srtt().unwrap_or(0))
    }

    /// Time until the packet is considered lost; [`None`] if it is lost now.
    #[must_use]
    pub fn time_until_lost(
        &self,
        now: Nanos,
        packet: &OutstandingPacket,
        window: Nanos,
    ) -> Option<Nanos> {
        (packet.sent_at + self.rtt + window).checked_sub(now).filter(|&wait| wait > 0)
    }

    /// Detects losses if packets were delivered since the last call: RFC 8985, section 6.2, step 5.
    pub fn detect_losses_if_delivered(
        &mut self,
        now: Nanos,
        window: Nanos,
        flight: &mut Flight,
    ) -> LossDetectionResult {
        if !std::mem::take(&mut self.advanced) {
            return LossDetectionResult::default();
        }
        self.detect_losses(now, window, flight)
    }

    /// Detects losses, also without deliveries, when the reordering timer expires.
    pub fn detect_losses(
        &mut self,
        now: Nanos,
        window: Nanos,
        flight: &mut Flight,
    ) -> LossDetectionResult {
        let mut report = LossDetectionResult::default();
        let mut next = flight.first_in_send_order();
        while let Some(number) = next {
            next = flight.next_in_send_order(number);
            let packet = *flight.packet(number);
            let in_flight_again = packet.marks.contains_any(PacketMarks::RETRANSMITTED);
            if packet.marks.contains_any(PacketMarks::LOST) && !in_flight_again {
                continue;
            }
            // A retransmission may be sent right after new data, at the same time. The delivery of
            // these data then proves nothing.
            let is_proof = !in_flight_again || self.newest_was_retransmitted;
            let proof = if is_proof { self.newest } else { (self.newest.0, 0) };
            if proof <= (packet.sent_at, flight.end_byte_of(number)) {
                break;
            }
            match self.time_until_lost(now, &packet, window) {
                Some(wait) => report.wait = report.wait.max(Some(wait)),
                None => {
                    if flight.mark_lost(number) {
                        report.retransmission_lost |= in_flight_again;
                    }
                    flight.unlink_from_send_order(number);
                }
            }
        }
        report
    }

    /// A DSACK shows that a retransmission was unnecessary.
    pub fn on_dsack(&mut self) {
        self.dsack_seen |= self.reorderings > 0;
    }

    /// Widens the window by a quarter of the minimum round-trip time if a DSACK requests it, at
    /// most once per round trip. `prior_delivered` is the number of packets delivered when the
    /// packet delivered now was sent.
    #[inline]
    pub fn adapt_reordering_window(&mut self, delivered: u32, prior_delivered: Option<u32>) {
        let Some(prior) = prior_delivered else { return };
        if (prior.wrapping_sub(self.widened_at) as i32) < 0 {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.steps = self.steps.saturating_add(1);
            self.dsack_seen = false;
            self.widened_at = delivered;
            self.persist = REO_WND_PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery has ended; `undone` is true if the recovery was unnecessary.
    pub fn on_recovered(&mut self, undone: bool) {
        self.persist = if undone {
            REO_WND_PERSIST.min(self.persist + 1)
        } else {
            self.persist.saturating_sub(1)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::flight::Flight;
    use super::super::presets::Preset;
    use super::*;
    use tcpcast_link::time::MILLISECOND;

    fn estimator(rtt: Nanos) -> RttEstimator {
        let stack = Preset::LinuxCubic.stack();
        let mut estimator = RttEstimator::new(&stack);
        estimator.add_sample(rtt, 1, 2, &stack);
        estimator.update_min(0, rtt);
        estimator
    }

    #[test]
    fn rfc_8985_6_2_earlier_packet_is_lost_after_reordering_window() {
        let rtt = estimator(100 * MILLISECOND);
        let mut flight = Flight::new(1);
        for n in 0..3 {
            flight.push_packet(
                OutstandingPacket::sent_at_time(n * MILLISECOND, PacketMarks::default()),
                1000,
            );
        }
        let mut rack = RackState::default();
        let now = 102 * MILLISECOND;
        let end = flight.end_byte_of(2);
        rack.on_delivered(now, flight.packet(2), end, rtt.min_rtt(), false);
        flight.mark_sacked(2);
        let window = rack.reordering_window(false, &rtt);
        assert_eq!(window, 25 * MILLISECOND);
        let report = rack.detect_losses_if_delivered(now, window, &mut flight);
        assert_eq!(report.wait, Some(24 * MILLISECOND), "for packet 1");
        let later = now + 24 * MILLISECOND;
        assert_eq!(flight.lost, 0, "only late");
        rack.detect_losses(later, window, &mut flight);
        let lost = |number| flight.packet(number).marks.contains_any(PacketMarks::LOST);
        assert_eq!([0, 1, 2].map(lost), [true, true, false]);
    }

    #[test]
    fn new_data_of_the_same_instant_proves_no_loss_of_a_retransmission() {
        let mut flight = Flight::new(1);
        for sent_at in [0, 10] {
            flight.push_packet(
                OutstandingPacket::sent_at_time(sent_at, PacketMarks::default()),
                1000,
            );
        }
        flight.mark_lost(0);
        flight.record_retransmission(10, 0);
        let mut rack = RackState::default();
        rack.on_delivered(110, flight.packet(1), flight.end_byte_of(1), None, false);
        flight.mark_sacked(1);
        rack.detect_losses(110, 0, &mut flight);
        assert_eq!(flight.lost_total, 1, "the retransmission is as new");
    }

    #[test]
    fn rfc_8985_6_2_window_adapts_to_dsacks_once_per_round_trip() {
        let rtt = estimator(100 * MILLISECOND);
        let mut rack = RackState::default();
        rack.on_dsack();
        rack.adapt_reordering_window(10, Some(5));
        assert_eq!(rack.reordering_window(true, &rtt), 0, "no reordering was observed");
        rack.reorderings = 1;
        for (delivered, prior, quarters) in [(20, 12, 2), (25, 13, 2), (40, 30, 3), (60, 50, 4)] {
            rack.on_dsack();
            rack.adapt_reordering_window(delivered, Some(prior));
            let window = rack.reordering_window(true, &rtt);
            assert_eq!(window, 25 * MILLISECOND * quarters);
        }
        for _ in 0..5 {
            rack.on_dsack();
            rack.adapt_reordering_window(100, Some(100));
        }
        assert_eq!(rack.reordering_window(true, &rtt), 100 * MILLISECOND, "at most srtt");
        for _ in 0..15 {
            rack.on_recovered(false);
        }
        rack.adapt_reordering_window(300, Some(200));
        assert_eq!(rack.reordering_window(true, &rtt), 100 * MILLISECOND, "kept for 16 recoveries");
        rack.on_recovered(false);
        rack.adapt_reordering_window(400, Some(300));
        assert_eq!(rack.reordering_window(true, &rtt), 25 * MILLISECOND);
    }

    #[test]
    fn rfc_8985_6_2_delayed_original_gives_no_delivery_time_of_copy() {
        let min = Some(40 * MILLISECOND);
        let ever = PacketMarks::EVER_RETRANSMITTED;
        // Delivered in less than the minimum round-trip time, or with an older timestamp.
        for (marks, rtt, spurious, counts) in [
            (ever, 39, false, false),
            (ever, 90, true, false),
            (ever, 40, false, true),
            (PacketMarks::default(), 39, true, true),
        ] {
            let mut rack = RackState::default();
            let packet = OutstandingPacket::sent_at_time(MILLISECOND, marks);
            rack.on_delivered((1 + rtt) * MILLISECOND, &packet, 1001, min, spurious);
            assert_eq!(rack.advanced, counts, "{rtt} ms, {spurious}");
            assert_eq!(rack.newest == (MILLISECOND, 1001), counts);
        }
    }
}
