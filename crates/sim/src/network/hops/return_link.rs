//! Acknowledgements on the return link, which all sources share.

use super::{DroppedAtHop, HopStage, StageKind};
use crate::clock::Nanos;
use crate::event_queue::PacketPlace;
use crate::loss::LossPlace;
use crate::network::{ClassPath, Network, SimulatedSource};
use crate::packet::{HEADER_BYTES, Packet, TIMESTAMP_BYTES};
use crate::probe::TapPlace;
use crate::queue::{EnqueueOutcome, QueueDiscipline};
use tcpcast_tcp::{ReceivingEnd, SendingEnd};
use tcpcast_wire::TcpOptions;

/// SACK option with padding, without its blocks, and one block (RFC 2018, section 3).
const SACK_OPTION_BYTES: u32 = 4;
const SACK_BLOCK_BYTES: u32 = 8;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Enqueues an acknowledgement that reaches the return link at the virtual time `now` -
    /// `return_lookahead`. `waited`: the acknowledgement waited for its access link.
    #[inline(never)]
    pub(crate) fn enter_return_link<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        ack: Packet,
        waited: bool,
    ) {
        let (now, stage) = (self.now - self.return_lookahead, self.hops.forward);
        let shown = source.receiver.captured_header(ack.label());
        let bytes = self.hops.acks.min_bytes.max(ack_length_with_options(&shown.options));
        if HAS_TAPS && self.capturing {
            if !waited {
                self.pass_to_captures(
                    TapPlace::Receiver,
                    &source.record,
                    now - path.to_return,
                    &ack,
                    shown,
                );
            }
            self.pass_to_captures(TapPlace::BottleneckOut, &source.record, now, &ack, shown);
        }
        let HopStage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return;
        };
        let (acks, counters) = (&mut self.hops.acks, &mut self.probes.hops[stage]);
        acks.entered += 1;
        counters.arrived += 1;
        if hop.loses_packet_at(LossPlace::Before) {
            acks.dropped += 1;
            counters.random_drops += 1;
            return;
        }
        match hop.offer_packet_of_bytes(bytes, now, &ack, counters) {
            EnqueueOutcome::Departs { leaves, .. } => {
                acks.left += 1;
                acks.sojourns = acks.sojourns.wrapping_add(leaves - now);
                counters.count_transmitted_ack(
                    (leaves - now).saturating_sub(hop.transmission_time_of(bytes)),
                );
                self.forward_after_return_link(source, path, leaves, ack);
            }
            EnqueueOutcome::Held { evicted, .. } => {
                acks.sojourns = acks.sojourns.wrapping_sub(now);
                let feedback = evicted.map(|packet| DroppedAtHop { stage, at: now, packet });
                self.hops.drops.extend(feedback);
            }
            EnqueueOutcome::Dropped => {
                acks.dropped += 1;
                counters.queue_drops += 1;
            }
        }
        self.collect_hop_drops(stage);
    }

    /// Forwards an acknowledgement whose transmission has started and ends at `leaves`.
    pub(super) fn forward_served_ack<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        leaves: Nanos,
        waited: Option<Nanos>,
        ack: Packet,
    ) {
        let acks = &mut self.hops.acks;
        acks.left += 1;
        acks.sojourns = acks.sojourns.wrapping_add(leaves);
        self.probes.hops[self.hops.forward].count_transmitted_ack(waited.unwrap_or(0));
        self.forward_after_return_link(source, path, leaves, ack);
    }

    /// Counts an acknowledgement that the return link dropped at `at` after accepting it. The
    /// sender recovers through the next acknowledgement.
    pub(super) fn on_return_link_drop(&mut self, at: Nanos) {
        let acks = &mut self.hops.acks;
        acks.dropped += 1;
        acks.sojourns = acks.sojourns.wrapping_add(at);
        self.probes.hops[self.hops.forward].queue_drops += 1;
    }

    /// Forwards an acknowledgement to its sender.
    fn forward_after_return_link<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        leaves: Nanos,
        ack: Packet,
    ) {
        if HAS_TAPS && self.capturing {
            let shown = source.receiver.captured_header(ack.label());
            self.pass_to_captures(TapPlace::BottleneckIn, &source.record, leaves, &ack, shown);
        }
        source.ack_free = source.ack_free.max(leaves + path.back) + path.ingress.ack_time;
        let due = source.ack_free + self.sender_lookahead;
        self.events.schedule_packet(PacketPlace::Sender, source.record.class(), due, ack);
    }
}

/// Length in bytes of an acknowledgement with these options.
fn ack_length_with_options(options: &TcpOptions) -> u32 {
    let stamps = if options.timestamps.is_some() { TIMESTAMP_BYTES } else { 0 };
    let blocks = u32::from(options.blocks);
    let sacks = if blocks > 0 { SACK_OPTION_BYTES + SACK_BLOCK_BYTES * blocks } else { 0 };
    HEADER_BYTES + stamps + sacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_includes_options() {
        let stamped = TcpOptions { timestamps: Some((1, 2)), ..TcpOptions::default() };
        assert_eq!(ack_length_with_options(&TcpOptions::default()), 40);
        assert_eq!(ack_length_with_options(&stamped), 52);
        assert_eq!(ack_length_with_options(&TcpOptions { blocks: 3, ..stamped }), 80);
    }
}
