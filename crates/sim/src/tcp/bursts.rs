//! What a sender of today sends at a time: headers are kept, packets labelled.

use super::headers::Headers;
use super::modern::{DataHeader, ModernTcp, PacketOut, PacketSender};
use crate::clock::Nanos;
use crate::packet::Label;
use crate::probe::TcpProbe;

/// Sends all that is to be sent now.
#[inline(never)]
pub(super) fn send_all(
    sender: &mut PacketSender,
    headers: &mut Headers<DataHeader>,
    now: Nanos,
    rules: &ModernTcp,
    probe: &mut impl TcpProbe,
    send: &mut impl FnMut(u32, Label),
) {
    if !send_run(sender, headers, now, rules, probe, send) {
        send_others(sender, headers, now, rules, probe, send);
    }
}

/// Sends a run of full packets, if there is one; says whether nothing else is to be sent now.
#[inline(always)]
fn send_run(
    sender: &mut PacketSender,
    headers: &mut Headers<DataHeader>,
    now: Nanos,
    rules: &ModernTcp,
    probe: &mut impl TcpProbe,
    send: &mut impl FnMut(u32, Label),
) -> bool {
    let Some(run) = sender.poll_run(now, rules, probe) else { return false };
    let mut packet = run.first;
    for left in (0..run.packets).rev() {
        if run.push && left == 0 {
            packet.push();
        }
        send(packet.number, labelled(headers, &packet));
        packet.go_on(rules.stack.mss);
    }
    run.ends
}

/// Sends what is to be sent that is no run, and runs behind it.
#[inline(never)]
fn send_others(
    sender: &mut PacketSender,
    headers: &mut Headers<DataHeader>,
    now: Nanos,
    rules: &ModernTcp,
    probe: &mut impl TcpProbe,
    send: &mut impl FnMut(u32, Label),
) {
    while let Some(packet) = sender.poll_transmit(now, rules, probe) {
        send(packet.number, labelled(headers, &packet));
        if send_run(sender, headers, now, rules, probe, send) {
            return;
        }
    }
}

/// Keeps what a packet carries until it arrives, and labels it.
#[inline(always)]
pub(super) fn labelled(headers: &mut Headers<DataHeader>, packet: &PacketOut) -> Label {
    let token = headers.push(packet.header);
    let label = match packet.short {
        Some(bytes) => Label::of_short(packet.kind, token, bytes),
        None => Label::with_token(packet.kind, token),
    };
    if packet.header.is_capable() { label.capable() } else { label }
}
