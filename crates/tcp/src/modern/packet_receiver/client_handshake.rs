//! Handshake of the receiving end, which is the client.

use super::super::handshake::SynAttempts;
use super::super::packet_header::{AckHeader, DataHeader};
use super::super::segment::timestamp_at;
use super::super::stack_options::ModernTcpConfig;
use super::super::tick_clock::{TickClock, TimerSpan};
use super::PacketReceiver;
use tcpcast_link::time::Nanos;

/// Client side of a handshake, until its SYN is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientHandshake {
    attempts: SynAttempts,
    clock: TickClock,
}

impl ClientHandshake {
    #[inline]
    pub(super) fn deadline(&self) -> Nanos {
        self.attempts.deadline
    }
}

impl PacketReceiver {
    /// The application connects; the timer, which is due immediately, sends the SYN.
    pub fn connect(&mut self, now: Nanos, seed: u64, tcp: &ModernTcpConfig) {
        // The client is a different host.
        let clock = TickClock::new(seed.rotate_left(u64::BITS / 2), &tcp.stack);
        let attempts = SynAttempts::new(now, &tcp.stack);
        self.handshake = Some(Box::new(ClientHandshake { attempts, clock }));
    }

    /// The application has gone: no SYN is sent.
    pub fn abandon_connection(&mut self) {
        self.handshake = None;
    }

    /// Sends a SYN, or retransmits it.
    #[inline(never)]
    pub(super) fn send_syn(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        header: &mut AckHeader,
    ) -> Option<u32> {
        let ClientHandshake { attempts, clock } = self.handshake.as_deref_mut()?;
        if attempts.sends > 0 {
            attempts.on_syn_timeout(&tcp.stack);
        }
        let wait = attempts.record_transmission(now);
        attempts.deadline = clock.expiry_of(TimerSpan::new(now, wait));
        *header = AckHeader::new_syn(timestamp_at(now), attempts.sends == 1, tcp);
        Some(0)
    }

    /// A SYN-ACK arrives; the acknowledgement is due immediately.
    #[inline(never)]
    pub(super) fn on_syn_ack(&mut self, now: Nanos, header: &DataHeader) {
        if let Some(handshake) = self.handshake.take() {
            let stamps = header.timestamps();
            let rtt = handshake.attempts.handshake_rtt(now, stamps);
            self.receiver.on_established(rtt, stamps.map(|stamps| stamps.value));
            self.messages = 1;
        }
        self.receiver.make_ack_due();
    }

    /// Whether further TLS flights are expected before the file.
    #[inline(always)]
    pub(super) fn awaits_tls_flight(&self) -> bool {
        self.messages <= self.flights
    }

    /// A packet of a TLS flight arrives: answers immediately if the flight is complete. The packet
    /// is not part of the file.
    #[inline(never)]
    pub(super) fn on_tls_flight_packet(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        header: &mut AckHeader,
    ) -> Option<u32> {
        let bytes = tcp.handshake.bytes_of_first_flights(usize::from(self.messages));
        if self.receiver.next_expected() > u64::from(bytes) {
            self.messages += 1;
            let outgoing = self.receiver.on_data_sent(now, &tcp.stack);
            return Some(self.fill_header_with_blocks(&outgoing, tcp, header));
        }
        self.poll_ack(tcp, header)
    }
}
