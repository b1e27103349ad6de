//! Sends a burst of a modern sender: stores headers and labels packets.

use super::headers::HeadersInFlight;
use super::modern::{DataHeader, ModernTcpConfig, OutgoingPacket, PacketSender};
use crate::packet_label::PacketLabel;
use crate::tcp_event::TcpProbe;
use tcpcast_link::time::Nanos;

/// A burst to send now.
pub(super) struct PacketBurst<'a, P, F> {
    pub sender: &'a mut PacketSender,
    pub headers: &'a mut HeadersInFlight<DataHeader>,
    pub now: Nanos,
    pub rules: &'a ModernTcpConfig,
    pub probe: &'a mut P,
    pub send: F,
}

impl<P: TcpProbe, F: FnMut(u32, PacketLabel)> PacketBurst<'_, P, F> {
    /// Sends runs of full packets, and all other packets one by one.
    #[inline(never)]
    pub(super) fn send_burst(mut self) {
        while !self.send_full_packet_runs() && self.send_next_packet() {}
    }

    /// Sends all runs of full packets; returns true if nothing else can be sent now.
    #[inline(always)]
    fn send_full_packet_runs(&mut self) -> bool {
        while let Some(run) = self.sender.poll_packet_run(self.now, self.rules, self.probe) {
            let mut packet = run.first;
            for left in (0..run.packets).rev() {
                if run.push && left == 0 {
                    packet.set_push_flag();
                }
                (self.send)(packet.number, store_and_label(self.headers, &packet));
                packet.advance_to_next_packet(self.rules.stack.mss);
            }
            if run.ends || run.packets == 0 {
                return run.ends;
            }
        }
        false
    }

    /// Sends the next packet; returns false if there is none.
    #[inline(never)]
    fn send_next_packet(&mut self) -> bool {
        let packet = self.sender.poll_transmit(self.now, self.rules, self.probe);
        if let Some(packet) = &packet {
            (self.send)(packet.number, store_and_label(self.headers, packet));
        }
        packet.is_some()
    }
}

/// Stores the packet's header and returns its label.
#[inline(always)]
pub(super) fn store_and_label(
    headers: &mut HeadersInFlight<DataHeader>,
    packet: &OutgoingPacket,
) -> PacketLabel {
    let token = headers.store_header(packet.header);
    let label = match packet.short {
        Some(bytes) => PacketLabel::for_short_packet(packet.kind, token, bytes),
        None => PacketLabel::with_token(packet.kind, token),
    };
    if packet.header.is_ecn_capable() { label.with_ecn_capable() } else { label }
}
