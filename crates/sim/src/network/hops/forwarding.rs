//! Forwarding of packets from hop to hop.

use super::per_source_hop::HopOutcome;
use super::{DroppedAtHop, HopStage, StageKind};
use crate::clock::Nanos;
use crate::jitter::LinkJitter;
use crate::loss::LossPlace;
use crate::network::{ClassPath, Network, SimulatedSource};
use crate::packet::Packet;
use crate::queue::{EnqueueOutcome, QueueDiscipline};
use tcpcast_tcp::SendingEnd;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Arrival time at the first shared hop of a packet that leaves the ingress link at `at`;
    /// `None` if it is lost before.
    pub(crate) fn arrival_at_first_shared_hop<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        at: Nanos,
        packet: Packet,
    ) -> Option<Nanos> {
        let arrival = self.pass_per_source_hops(source, path, 0, at, packet);
        if arrival.is_none() {
            if let Some(loss) = &mut self.loss {
                loss.on_loss_before_bottleneck(packet.source());
            }
        }
        arrival.map(|(_, at)| at)
    }

    /// Processes a packet at the first shared hop, which is not the bottleneck.
    pub(crate) fn enter_first_shared_hop<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        packet: Packet,
    ) {
        self.enter_hop(source, path, self.hops.first_shared, packet);
    }

    /// Forwards a packet that reaches the stage behind the bottleneck at `at`.
    #[inline(never)]
    pub(crate) fn forward_from_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        at: Nanos,
        packet: Packet,
    ) {
        let next = self.hops.bottleneck + 1;
        if self.jitter.as_ref().is_some_and(LinkJitter::may_reorder) {
            // Per-source hops need packets in the order of time, so the call is deferred to `at`.
            return self.hops.arrivals.schedule_arrival(at, next, packet);
        }
        self.forward_to_next_shared_hop(source, path, next, at, packet);
    }

    /// Forwards a packet that reaches `stage` at `at` to the next shared hop or to the receiver.
    fn forward_to_next_shared_hop<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        stage: usize,
        at: Nanos,
        packet: Packet,
    ) {
        let Some((stage, at)) = self.pass_per_source_hops(source, path, stage, at, packet) else {
            return;
        };
        if stage < self.hops.forward {
            self.hops.arrivals.schedule_arrival(at, stage, packet);
        } else {
            self.enter_egress_link(source, path, at, packet);
        }
    }

    /// Passes a packet through per-source hops. Returns the next shared stage and the arrival time
    /// there; `None` if the packet is lost.
    fn pass_per_source_hops<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        mut stage: usize,
        mut at: Nanos,
        packet: Packet,
    ) -> Option<(usize, Nanos)> {
        while let Some(HopStage { delay, kind: StageKind::PerSource(hop) }) =
            self.hops.stages.get_mut(stage)
        {
            let counters = &mut self.probes.hops[stage];
            match hop.offer_packet(packet.source(), path.packet_bytes, at, counters) {
                HopOutcome::Leaves(leaves) => at = leaves + *delay,
                HopOutcome::Lost { at, random } => {
                    self.on_hop_drop(stage, at, source, packet, random);
                    return None;
                }
            }
            stage += 1;
        }
        Some((stage, at))
    }

    /// Processes a packet that reaches a shared hop, or the next stage after a random delay that
    /// reorders packets.
    pub(crate) fn enter_hop<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        stage: usize,
        packet: Packet,
    ) {
        let now = self.now;
        let is_not_shared = stage >= self.hops.forward || !self.hops.is_shared_stage(stage);
        if stage > self.hops.bottleneck && is_not_shared {
            return self.forward_to_next_shared_hop(source, path, stage, now, packet);
        }
        let short = self.length_of_short_packet::<S>(&packet);
        let HopStage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return self.enter_bottleneck(source, path, packet);
        };
        let counters = &mut self.probes.hops[stage];
        counters.arrived += 1;
        if hop.loses_packet_at(LossPlace::Before) {
            return self.on_hop_drop(stage, now, source, packet, true);
        }
        match hop.offer_packet(now, short.unwrap_or(path.packet_bytes), &packet, counters) {
            EnqueueOutcome::Departs { leaves, .. } => {
                self.forward_after_hop(source, path, stage, leaves, packet);
            }
            EnqueueOutcome::Held { evicted, .. } => {
                let feedback = evicted.map(|packet| DroppedAtHop { stage, at: now, packet });
                self.hops.drops.extend(feedback);
            }
            EnqueueOutcome::Dropped => self.on_hop_drop(stage, now, source, packet, false),
        }
        self.collect_hop_drops(stage);
    }

    /// Starts the transmission of the next held packet of a hop. Returns its departure time and the
    /// packet.
    pub(crate) fn transmit_at_hop(&mut self, stage: usize) -> Option<(Nanos, Packet)> {
        let HopStage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return None;
        };
        hop.transmit_next_packet(&mut self.probes.hops[stage])
    }

    /// Forwards the packet whose transmission at a hop has just started and ends at `leaves`.
    pub(crate) fn forward_served_at_hop<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        stage: usize,
        leaves: Nanos,
        packet: Packet,
    ) {
        if stage < self.hops.forward {
            self.forward_after_hop(source, path, stage, leaves, packet);
        } else if let StageKind::Shared(hop) = &self.hops.stages[stage].kind {
            let waited = hop.last_waiting_time();
            self.forward_served_ack(source, path, leaves, waited, packet);
        }
    }

    /// Forwards a packet that leaves a shared hop of the forward path at `leaves`.
    fn forward_after_hop<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        stage: usize,
        leaves: Nanos,
        packet: Packet,
    ) {
        let HopStage { delay, kind: StageKind::Shared(hop) } = &mut self.hops.stages[stage] else {
            return;
        };
        if hop.loses_packet_at(LossPlace::Behind) {
            return self.on_hop_drop(stage, leaves, source, packet, true);
        }
        let at = leaves + *delay;
        self.forward_to_next_shared_hop(source, path, stage + 1, at, packet);
    }

    /// Notifies sources of packets that the queues of hops dropped after accepting them.
    pub(crate) fn notify_sources_of_hop_drops<S: SendingEnd>(
        &mut self,
        sources: &mut [SimulatedSource<S>],
    ) {
        let mut dropped = std::mem::take(&mut self.hops.drops);
        for DroppedAtHop { stage, at, packet } in dropped.drain(..) {
            if stage == self.hops.forward {
                self.on_return_link_drop::<S>(at, packet);
                continue;
            }
            let source = &mut sources[packet.source() as usize];
            self.on_hop_drop(stage, at, source, packet, false);
        }
        self.hops.drops = dropped;
    }
}

impl<Q, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Takes the packets that the queue of a shared hop dropped after accepting them, for later
    /// notification.
    pub(crate) fn collect_hop_drops(&mut self, stage: usize) {
        let HopStage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return;
        };
        let dropped = hop.take_dropped_packets(&mut self.probes.hops[stage]).into_iter();
        self.hops.drops.extend(dropped.map(|(at, packet)| DroppedAtHop { stage, at, packet }));
    }

    /// Enqueues a cross packet at a shared hop.
    pub(crate) fn enqueue_cross_packet_at_hop(&mut self, stage: usize) {
        let HopStage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return;
        };
        if let Some(packet) = hop.enqueue_next_cross_packet(&mut self.probes.hops[stage]) {
            let late = if stage == self.hops.forward { self.return_lookahead } else { 0 };
            self.hops.drops.push(DroppedAtHop { stage, at: self.now - late, packet });
        }
        self.collect_hop_drops(stage);
    }
}
