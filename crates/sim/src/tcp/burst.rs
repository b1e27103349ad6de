//! What a sender of today sends at a time: headers are kept, packets labelled.

use super::headers::Headers;
use super::modern::{DataHeader, ModernTcp, PacketOut, PacketSender};
use crate::clock::Nanos;
use crate::packet::Label;
use crate::probe::TcpProbe;

/// What is sent now, by whom and how.
pub(super) struct Burst<'a, P, F> {
    pub sender: &'a mut PacketSender,
    pub headers: &'a mut Headers<DataHeader>,
    pub now: Nanos,
    pub rules: &'a ModernTcp,
    pub probe: &'a mut P,
    pub send: F,
}

impl<P: TcpProbe, F: FnMut(u32, Label)> Burst<'_, P, F> {
    /// Sends all of it: runs of full packets, and between them what is no run, one by one.
    #[inline(never)]
    pub(super) fn send_all(mut self) {
        while !self.send_runs() && self.send_single() {}
    }

    /// Sends runs of full packets while there are any; says whether nothing else is to be sent now.
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

    /// Sends whatever packet is next; says whether there is one.
    #[inline(never)]
    fn send_single(&mut self) -> bool {
        let packet = self.sender.poll_transmit(self.now, self.rules, self.probe);
        if let Some(packet) = &packet {
            (self.send)(packet.number, store_and_label(self.headers, packet));
        }
        packet.is_some()
    }
}

/// Keeps what a packet carries until it arrives, and labels it.
#[inline(always)]
pub(super) fn store_and_label(headers: &mut Headers<DataHeader>, packet: &PacketOut) -> Label {
    let token = headers.push(packet.header);
    let label = match packet.short {
        Some(bytes) => Label::of_short(packet.kind, token, bytes),
        None => Label::with_token(packet.kind, token),
    };
    if packet.header.is_capable() { label.capable() } else { label }
}
