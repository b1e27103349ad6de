//! Acknowledgements on the return link, which all sources share.

use super::{DroppedAtHop, HopStage, StageKind};
use crate::clock::Nanos;
use crate::event_queue::PacketPlace;
use crate::loss::LossPlace;
use crate::network::{ClassPath, Network, SimulatedSource};
use crate::packet::{HEADER_BYTES, Packet};
use crate::probe::TapPlace;
use crate::queue::{EnqueueOutcome, QueueDiscipline};
use tcpcast_tcp::SendingEnd;

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
        let bytes = if S::IS_POLLED {
            self.segments.segment(ack.label()).ack_bytes()
        } else {
            HEADER_BYTES
        };
        let bytes = self.hops.acks.min_bytes.max(bytes);
        if HAS_TAPS && self.capturing {
            let shown = self.captured_header::<S>(&ack);
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
            return self.remove_segment_of_ack::<S>(&ack);
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
                self.remove_segment_of_ack::<S>(&ack);
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
    pub(super) fn on_return_link_drop<S: SendingEnd>(&mut self, at: Nanos, ack: Packet) {
        let acks = &mut self.hops.acks;
        acks.dropped += 1;
        acks.sojourns = acks.sojourns.wrapping_add(at);
        self.probes.hops[self.hops.forward].queue_drops += 1;
        self.remove_segment_of_ack::<S>(&ack);
    }

    fn remove_segment_of_ack<S: SendingEnd>(&mut self, ack: &Packet) {
        if S::IS_POLLED {
            self.segments.remove(ack.label());
        }
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
            let shown = self.captured_header::<S>(&ack);
            self.pass_to_captures(TapPlace::BottleneckIn, &source.record, leaves, &ack, shown);
        }
        source.ack_free = source.ack_free.max(leaves + path.back) + path.ingress.ack_time;
        let due = source.ack_free + self.sender_lookahead;
        self.events.schedule_packet(PacketPlace::Sender, source.record.class(), due, ack);
    }
}
