//! Delivery rate samples: draft-cheng-iccrg-delivery-rate-estimation-02.
//!
//! A sample is the amount of data delivered, divided by the longer of two intervals: the time in
//! which the data was sent, and the time in which it was acknowledged. So neither a burst of
//! packets nor a burst of acknowledgements gives a rate above the rate of the path.

use super::outstanding_packet::{OutstandingPacket, PacketMarks};
use tcpcast_link::time::Nanos;

/// Delivery rate: packets per interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRate {
    /// Packets delivered.
    pub delivered: u32,
    /// Interval.
    pub interval: Nanos,
}

/// Rate sample of one acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// The rate, if packets were delivered and the interval is long enough.
    pub rate: Option<DeliveryRate>,
    /// Packets delivered when the newest acknowledged packet was sent; [`None`] if there is none.
    pub prior_delivered: Option<u32>,
    /// Whether the rate was limited by the application when that packet was sent.
    pub app_limited: bool,
    /// Whether that packet was retransmitted.
    pub retransmitted: bool,
    /// Packets lost when that packet was sent, if the congestion control needs it; wraps.
    pub prior_lost: u32,
    /// Packets in flight, including that packet, when it was sent, if the congestion control needs
    /// it.
    pub in_flight: u32,
}

/// The most recently sent packet that the current acknowledgement delivers.
#[derive(Clone, Copy, Debug)]
struct NewestDelivered {
    packet: OutstandingPacket,
    /// Byte after the packet.
    end: u64,
}

/// Counts deliveries of a connection. Fields that most acknowledgements need come first: see
/// [`super::sender::Sender`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DeliveryCounter {
    /// Packets delivered so far; wraps.
    pub delivered: u32,
    /// Packets delivered with an ECN echo.
    pub delivered_ce: u32,
    /// Time of the last delivery.
    delivered_at: Nanos,
    /// Send time of the first packet of the current flight.
    first_sent_at: Nanos,
    /// The rate is limited by the application until this many packets are delivered.
    app_limited_until: Option<u32>,
    /// No rate is needed, so packets do not record times.
    skips_times: bool,
    newest: Option<NewestDelivered>,
}

impl DeliveryCounter {
    /// Time of the last delivery, or of the first packet of the current flight if later.
    #[must_use]
    pub fn delivered_at(&self) -> Nanos {
        self.delivered_at
    }

    /// Selects whether packets record the times needed for rate samples.
    pub fn set_time_recording(&mut self, keep: bool) {
        self.skips_times = !keep;
    }

    /// Records a sent packet; a new flight begins if nothing is outstanding.
    #[inline(always)]
    pub fn on_sent(&mut self, now: Nanos, nothing_out: bool, packet: &mut OutstandingPacket) {
        if nothing_out {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        packet.delivered = self.delivered;
        if !self.skips_times {
            packet.set_times(self.first_sent_at, self.delivered_at);
        }
        packet.marks.set(PacketMarks::APP_LIMITED, self.app_limited_until.is_some());
    }

    /// The application has no data although the window allows more: packets in flight do not show
    /// the capacity of the path.
    #[inline]
    pub fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = Some(self.delivered.wrapping_add(in_flight));
    }

    /// Whether the rate is limited by the application.
    #[inline(always)]
    #[must_use]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Counts packets as delivered.
    #[inline(always)]
    pub fn count_delivered(&mut self, packets: u32, ece: bool) {
        self.delivered = self.delivered.wrapping_add(packets);
        if ece {
            self.delivered_ce = self.delivered_ce.wrapping_add(packets);
        }
    }

    /// Counts delivered packets as marked.
    pub fn count_marked(&mut self, packets: u32) {
        self.delivered_ce = self.delivered_ce.wrapping_add(packets);
    }

    /// A packet is acknowledged or SACKed for the first time; `end` is the byte after it.
    #[inline(always)]
    pub fn on_delivered(&mut self, packet: &OutstandingPacket, end: u64) {
        let newer = self
            .newest
            .as_ref()
            .is_none_or(|newest| (packet.sent_at, end) > (newest.packet.sent_at, newest.end));
        if newer {
            self.newest = Some(NewestDelivered { packet: *packet, end });
        }
    }

    /// Packets delivered when the newest packet of the current acknowledgement was sent.
    #[inline(always)]
    #[must_use]
    pub fn prior_delivered(&self) -> Option<u32> {
        self.newest.as_ref().map(|newest| newest.packet.delivered)
    }

    /// Removes and returns the newest packet of the current acknowledgement.
    #[inline(always)]
    pub fn take_newest_delivered(&mut self) -> Option<OutstandingPacket> {
        self.newest.take().map(|newest| newest.packet)
    }

    /// Whether no delivery is pending since the last completed acknowledgement.
    #[inline(always)]
    pub fn has_no_pending_delivery(&self) -> bool {
        self.newest.is_none()
    }

    /// Completes an acknowledgement without a rate sample; `newest` is the send time of the newest
    /// packet delivered.
    #[inline(always)]
    pub fn finish_ack_without_rate_sample(
        &mut self,
        now: Nanos,
        newly: u32,
        newest: Option<Nanos>,
    ) {
        self.finish_delivery(now, newly);
        if let Some(sent_at) = newest {
            self.first_sent_at = sent_at;
        }
    }

    #[inline(always)]
    fn finish_delivery(&mut self, now: Nanos, newly: u32) {
        if let Some(until) = self.app_limited_until {
            if self.delivered.wrapping_sub(until) as i32 > 0 {
                self.app_limited_until = None;
            }
        }
        if newly > 0 {
            self.delivered_at = now;
        }
    }

    /// Completes an acknowledgement with a rate sample. If the interval is shorter than the minimum
    /// round-trip time, the acknowledgement was for the first copy of a retransmitted packet, and
    /// there is no rate.
    #[inline(always)]
    pub fn finish_ack_with_rate_sample(
        &mut self,
        now: Nanos,
        newly: u32,
        newest: Option<&OutstandingPacket>,
        min_rtt: Option<Nanos>,
    ) -> RateSample {
        self.finish_delivery(now, newly);
        let Some(newest) = newest else { return RateSample::default() };
        self.first_sent_at = newest.sent_at;
        let send_interval = newest.sent_at - newest.first_sent_at();
        let interval = send_interval.max(now - newest.delivered_at());
        let long_enough = interval > 0 && min_rtt.is_none_or(|min| interval >= min);
        RateSample {
            rate: long_enough.then(|| DeliveryRate {
                delivered: self.delivered.wrapping_sub(newest.delivered),
                interval,
            }),
            prior_delivered: Some(newest.delivered),
            app_limited: newest.marks.contains_any(PacketMarks::APP_LIMITED),
            retransmitted: newest.was_retransmitted(),
            prior_lost: newest.lost,
            in_flight: newest.in_flight(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flight::Flight;
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn burst_and_ack_train_give_rate_of_path() {
        let mut counter = DeliveryCounter::default();
        let mut flight = Flight::new(1);
        for number in 0..10 {
            flight.push_packet(OutstandingPacket::default(), 1000);
            counter.on_sent(0, number == 0, flight.packet_mut(number));
        }
        // One acknowledgement per millisecond after 100 ms; the first flight's rate counts the full
        // RTT.
        let mut rates = vec![];
        for number in 0..10_u32 {
            let now = (100 + u64::from(number)) * MS;
            let (packet, _, end) = flight.take_first_acked_packet(u64::MAX).unwrap();
            counter.count_delivered(1, false);
            counter.on_delivered(&packet, end);
            let newest = counter.take_newest_delivered();
            rates.push(
                counter
                    .finish_ack_with_rate_sample(now, 1, newest.as_ref(), Some(100 * MS))
                    .rate
                    .unwrap(),
            );
        }
        assert_eq!(rates[0], DeliveryRate { delivered: 1, interval: 100 * MS });
        assert_eq!(rates[9], DeliveryRate { delivered: 10, interval: 109 * MS });
    }

    #[test]
    fn app_limited_mark_is_kept_until_packets_are_delivered() {
        let mut counter = DeliveryCounter::default();
        let mut flight = Flight::new(1);
        counter.mark_app_limited(1);
        flight.push_packet(OutstandingPacket::default(), 1000);
        counter.on_sent(0, true, flight.packet_mut(0));
        let (packet, _, end) = flight.take_first_acked_packet(u64::MAX).unwrap();
        counter.count_delivered(1, false);
        counter.on_delivered(&packet, end);
        let newest = counter.take_newest_delivered();
        let sample = counter.finish_ack_with_rate_sample(MS, 1, newest.as_ref(), None);
        assert!(sample.app_limited && counter.is_app_limited());
        counter.count_delivered(1, false);
        counter.finish_ack_with_rate_sample(2 * MS, 1, None, None);
        assert!(!counter.is_app_limited());
    }
}
