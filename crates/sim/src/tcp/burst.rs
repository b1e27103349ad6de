//! Sends a burst of a modern sender: stores headers and labels packets.

use super::headers::Headers;
use super::modern::{DataHeader, ModernTcp, PacketOut, PacketSender};
use crate::clock::Nanos;
use crate::packet::Label;
use crate::probe::TcpProbe;

/// A burst to send now.
pub(super) struct Burst<'a, P, F> {
    pub sender: &'a mut PacketSender,
    pub headers: &'a mut Headers<DataHeader>,
    pub now: Nanos,
    pub rules: &'a ModernTcp,
    pub probe: &'a mut P,
    pub send: F,
}

impl<P: TcpProbe, F: FnMut(u32, Label)> Burst<'_, P, F> {
    /// Sends runs of full packets, and all other packets one by one.
    #[inline(never)]
    pub(super) fn send_all(mut self) {
        while !self.send_runs() && self.send_single() {}
    }

    /// Sends all runs of full packets; returns true if nothing else can be sent now.
    #[inline(always)]
    fn send_runs(&mut self) -> bool {
        while let Some(run) = self.sender.poll_run(self.now, self.rules, self.probe) {
            let mut packet = run.first;
            for left in (0..run.packets).rev() {
                if run.push && left == 0 {
                    packet.push();
                }
                (self.send)(packet.number, store_and_label(self.headers, &packet));
                packet.advance(self.rules.stack.mss);
            }
            if run.ends || run.packets == 0 {
                return run.ends;
            }
        }
        false
    }

    /// Sends the next packet; returns false if there is none.
    #[inline(never)]
    fn send_single(&mut self) -> bool {
        let packet = self.sender.poll_transmit(self.now, self.rules, self.probe);
        if let Some(packet) = &packet {
            (self.send)(packet.number, store_and_label(self.headers, packet));
        }
        packet.is_some()
    }
}

/// Stores the packet's header and returns its label.
#[inline(always)]
pub(super) fn store_and_label(headers: &mut Headers<DataHeader>, packet: &PacketOut) -> Label {
    let token = headers.push(packet.header);
    let label = match packet.short {
        Some(bytes) => Label::of_short(packet.kind, token, bytes),
        None => Label::with_token(packet.kind, token),
    };
    if packet.header.is_capable() { label.capable() } else { label }
}
