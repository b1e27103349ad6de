//! Receiving end: reorders packets and sends acknowledgements.

use super::reorder_bitmap::ReorderBitmap;
use crate::TcpConfig;
use tcpcast_link::time::{NEVER, Nanos};

/// Result of an arriving data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalResult {
    /// False if the packet is a duplicate.
    pub distinct: bool,
    /// Acknowledgement to send now: the next packet expected.
    pub ack: Option<u32>,
}

/// Receiver of one source.
#[derive(Clone, Debug)]
pub struct Receiver {
    next: u32,
    unacknowledged: u32,
    ack_deadline: Nanos,
    held: ReorderBitmap,
}

impl Default for Receiver {
    fn default() -> Self {
        Self { next: 1, unacknowledged: 0, ack_deadline: NEVER, held: ReorderBitmap::default() }
    }
}

impl Receiver {
    /// Starts a new connection.
    #[inline(always)]
    pub fn start_connection(&mut self) {
        self.next = 1;
        self.unacknowledged = 0;
        self.ack_deadline = NEVER;
        self.held.clear();
    }

    /// A data packet arrives.
    #[inline(always)]
    pub fn on_data(&mut self, now: Nanos, number: u32, tcp: &TcpConfig) -> ArrivalResult {
        // Packets that fill all or part of a gap are acknowledged immediately: RFC 5681, section
        // 4.2.
        let in_order = number == self.next && self.held.is_empty();
        let distinct = if in_order {
            self.next += 1;
            true
        } else {
            self.insert_and_check_new(number)
        };
        let ack = if tcp.delayed_acks && in_order {
            self.delay_or_take_ack(now, tcp)
        } else {
            self.take_ack()
        };
        ArrivalResult { distinct, ack }
    }

    /// Data packets received in order.
    #[must_use]
    pub fn packets_in_order(&self) -> u32 {
        self.next - 1
    }

    /// Deadline of the delayed acknowledgement, [`NEVER`] if none is pending.
    #[inline(always)]
    #[must_use]
    pub fn ack_deadline(&self) -> Nanos {
        self.ack_deadline
    }

    /// The delayed acknowledgement is due: returns the next packet expected.
    pub fn on_ack_timer(&mut self) -> u32 {
        self.take_ack();
        self.next
    }

    /// Handles a packet above a gap, a packet that fills a gap, or a duplicate.
    #[inline(never)]
    fn insert_and_check_new(&mut self, number: u32) -> bool {
        if number != self.next {
            return number > self.next && self.held.insert_number(self.next, number);
        }
        self.next += 1;
        while self.held.remove_number(self.next) {
            self.next += 1;
        }
        true
    }

    fn delay_or_take_ack(&mut self, now: Nanos, tcp: &TcpConfig) -> Option<u32> {
        self.unacknowledged += 1;
        if self.unacknowledged >= 2 {
            return self.take_ack();
        }
        self.ack_deadline = now + tcp.ack_timeout;
        None
    }

    #[inline(always)]
    fn take_ack(&mut self) -> Option<u32> {
        self.unacknowledged = 0;
        self.ack_deadline = NEVER;
        Some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers a packet.
    fn deliver(receiver: &mut Receiver, now: Nanos, number: u32, tcp: &TcpConfig) -> ArrivalResult {
        receiver.on_data(now, number, tcp)
    }

    #[test]
    fn every_packet_is_acknowledged_with_duplicate_acks_above_holes() {
        let tcp = TcpConfig::default();
        let mut receiver = Receiver::default();
        let acks: Vec<_> = [1, 2, 4, 5, 4, 3, 2]
            .map(|n| deliver(&mut receiver, 0, n, &tcp))
            .map(|a| (a.distinct, a.ack.unwrap()))
            .to_vec();
        let expected =
            [(true, 2), (true, 3), (true, 3), (true, 3), (false, 3), (true, 6), (false, 6)];
        assert_eq!(acks, expected);
    }

    #[test]
    fn delayed_acks_wait_for_second_packet_or_timer_except_above_holes() {
        let tcp = TcpConfig { delayed_acks: true, ack_timeout: 200, ..TcpConfig::default() };
        let mut receiver = Receiver::default();
        assert_eq!(deliver(&mut receiver, 10, 1, &tcp).ack, None);
        assert_eq!(receiver.ack_deadline(), 210);
        assert_eq!(deliver(&mut receiver, 20, 2, &tcp).ack, Some(3));
        assert_eq!(receiver.ack_deadline(), NEVER);
        assert_eq!(deliver(&mut receiver, 30, 4, &tcp).ack, Some(3));
        assert_eq!(deliver(&mut receiver, 40, 3, &tcp).ack, Some(5));
        assert_eq!(deliver(&mut receiver, 42, 7, &tcp).ack, Some(5));
        assert_eq!(deliver(&mut receiver, 44, 5, &tcp).ack, Some(6), "7 is still above a gap");
        assert_eq!(deliver(&mut receiver, 46, 6, &tcp).ack, Some(8));
        assert_eq!(deliver(&mut receiver, 50, 8, &tcp).ack, None);
        assert_eq!(receiver.on_ack_timer(), 9);
    }
}
