//! Samples of the delivery rate: draft-cheng-iccrg-delivery-rate-estimation-02.
//!
//! A sample is what was delivered over the longer of two times: that in which it was sent and that
//! in which it was acknowledged. Neither a burst of packets nor one of acknowledgements looks
//! faster than the path is.

use super::packet::{Marks, Packet};
use crate::clock::Nanos;

/// A rate, as packets over a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRate {
    /// Packets delivered.
    pub delivered: u32,
    /// Over this time.
    pub interval: Nanos,
}

/// What one acknowledgement says of the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// The rate, if the acknowledgement delivered something and the time is not too short.
    pub rate: Option<DeliveryRate>,
    /// The packets delivered when the newest packet acknowledged was sent; [`None`] if none was.
    pub prior_delivered: Option<u32>,
    /// Whether that packet was sent while the application limited.
    pub app_limited: bool,
    /// Whether it had been retransmitted.
    pub retransmitted: bool,
    /// Packets found lost when it was sent, where the congestion control asks for it; wraps.
    pub prior_lost: u32,
    /// Packets in flight with it when it was sent, where the congestion control asks for it.
    pub in_flight: u32,
}

/// The newest packet that the current acknowledgement delivers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    packet: Packet,
    /// The byte after it.
    end: u64,
}

/// Counts deliveries of a connection. What most acknowledgements need comes first: see
/// [`super::sender::Sender`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DeliveryCounter {
    /// Packets delivered so far; wraps.
    pub delivered: u32,
    /// Of those, how many were acknowledged with an ECN echo.
    pub delivered_ce: u32,
    /// When the last one was.
    delivered_at: Nanos,
    /// When the first packet of the current flight was sent.
    first_sent_at: Nanos,
    /// The application limits until this many are delivered.
    app_limited_until: Option<u32>,
    /// Nobody asks for a rate: packets need not tell of times.
    rough: bool,
    newest: Option<Newest>,
}

impl DeliveryCounter {
    /// When the last packet was delivered, or the first of the current flight sent.
    #[must_use]
    pub fn delivered_at(&self) -> Nanos {
        self.delivered_at
    }

    /// Packets are to tell of the times that a rate follows from.
    pub fn record_times(&mut self, keep: bool) {
        self.rough = !keep;
    }

    /// A packet is sent now; with nothing in flight a new flight begins.
    #[inline(always)]
    pub fn on_sent(&mut self, now: Nanos, nothing_out: bool, packet: &mut Packet) {
        if nothing_out {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        packet.delivered = self.delivered;
        if !self.rough {
            packet.set_times(self.first_sent_at, self.delivered_at);
        }
        packet.marks.set(Marks::APP_LIMITED, self.app_limited_until.is_some());
    }

    /// The application has nothing to send while there is room: what is in flight says nothing of
    /// what the path could carry.
    #[inline]
    pub fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = Some(self.delivered.wrapping_add(in_flight));
    }

    /// Whether the application limits.
    #[inline(always)]
    #[must_use]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Counts packets as delivered.
    #[inline(always)]
    pub fn count(&mut self, packets: u32, ece: bool) {
        self.delivered = self.delivered.wrapping_add(packets);
        if ece {
            self.delivered_ce = self.delivered_ce.wrapping_add(packets);
        }
    }

    /// A packet is acknowledged, of either kind, for the first time; `end` is the byte after it.
    #[inline(always)]
    pub fn on_delivered(&mut self, packet: &Packet, end: u64) {
        let newer = self
            .newest
            .as_ref()
            .is_none_or(|newest| (packet.sent_at, end) > (newest.packet.sent_at, newest.end));
        if newer {
            self.newest = Some(Newest { packet: *packet, end });
        }
    }

    /// How much had been delivered when the newest packet was sent that the current
    /// acknowledgement delivers.
    #[inline(always)]
    #[must_use]
    pub fn prior_delivered(&self) -> Option<u32> {
        self.newest.as_ref().map(|newest| newest.packet.delivered)
    }

    /// The newest packet that the current acknowledgement delivers, which ends with it.
    #[inline(always)]
    pub fn take_newest(&mut self) -> Option<Packet> {
        self.newest.take().map(|newest| newest.packet)
    }

    /// Whether nothing was delivered since the last acknowledgement that ended.
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        self.newest.is_none()
    }

    /// The acknowledgement is done, and nobody asks for the rate; the newest packet that it delivers
    /// was sent at `newest`.
    #[inline(always)]
    pub fn end_without_sample(&mut self, now: Nanos, newly: u32, newest: Option<Nanos>) {
        self.end_sample(now, newly);
        if let Some(sent_at) = newest {
            self.first_sent_at = sent_at;
        }
    }

    #[inline(always)]
    fn end_sample(&mut self, now: Nanos, newly: u32) {
        if let Some(until) = self.app_limited_until {
            if self.delivered.wrapping_sub(until) as i32 > 0 {
                self.app_limited_until = None;
            }
        }
        if newly > 0 {
            self.delivered_at = now;
        }
    }

    /// The acknowledgement is done: what it says of the rate. Where the time is shorter than the
    /// smallest round-trip time, the packet was retransmitted and its first copy was acknowledged.
    #[inline(always)]
    pub fn sample(
        &mut self,
        now: Nanos,
        newly: u32,
        newest: Option<&Packet>,
        min_rtt: Option<Nanos>,
    ) -> RateSample {
        self.end_sample(now, newly);
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
            app_limited: newest.marks.any(Marks::APP_LIMITED),
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
    fn a_burst_and_its_train_of_acks_give_the_rate_of_the_path() {
        let mut counter = DeliveryCounter::default();
        let mut flight = Flight::new(1);
        for number in 0..10 {
            flight.push(Packet::default(), 1000);
            counter.on_sent(0, number == 0, flight.packet_mut(number));
        }
        // An ack a millisecond after 100 ms: the first flight's rate counts the whole RTT.
        let mut rates = vec![];
        for number in 0..10_u32 {
            let now = (100 + u64::from(number)) * MS;
            let (packet, _, end) = flight.take_first(u64::MAX).unwrap();
            counter.count(1, false);
            counter.on_delivered(&packet, end);
            let newest = counter.take_newest();
            rates.push(counter.sample(now, 1, newest.as_ref(), Some(100 * MS)).rate.unwrap());
        }
        assert_eq!(rates[0], DeliveryRate { delivered: 1, interval: 100 * MS });
        assert_eq!(rates[9], DeliveryRate { delivered: 10, interval: 109 * MS });
    }

    #[test]
    fn packets_of_an_idle_application_are_marked_until_they_are_delivered() {
        let mut counter = DeliveryCounter::default();
        let mut flight = Flight::new(1);
        counter.mark_app_limited(1);
        flight.push(Packet::default(), 1000);
        counter.on_sent(0, true, flight.packet_mut(0));
        let (packet, _, end) = flight.take_first(u64::MAX).unwrap();
        counter.count(1, false);
        counter.on_delivered(&packet, end);
        let newest = counter.take_newest();
        let sample = counter.sample(MS, 1, newest.as_ref(), None);
        assert!(sample.app_limited && counter.is_app_limited());
        counter.count(1, false);
        counter.sample(2 * MS, 1, None, None);
        assert!(!counter.is_app_limited());
    }
}
