//! Forwarding of packets from hop to hop.

use super::per_source::HopOutcome;
use super::{HopDrop, Stage, StageKind};
use crate::clock::Nanos;
use crate::jitter::Jitter;
use crate::loss::LossPlace;
use crate::network::{Network, Path, Source};
use crate::packet::Packet;
use crate::queue::{QueueDiscipline, Verdict};
use crate::tcp::SendingEnd;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Arrival time at the first shared hop of a packet that leaves the ingress link at `at`;
    /// `None` if it is lost before.
    pub(crate) fn reach_first_shared<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        at: Nanos,
        packet: Packet,
    ) -> Option<Nanos> {
        let arrival = self.pass_per_source_hops(source, path, 0, at, packet);
        if arrival.is_none() {
            if let Some(loss) = &mut self.loss {
                loss.lost_before(packet.source());
            }
        }
        arrival.map(|(_, at)| at)
    }

    /// Processes a packet at the first shared hop, which is not the bottleneck.
    pub(crate) fn enter_first_shared_hop<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        packet: Packet,
    ) {
        self.enter_hop(source, path, self.hops.first_shared, packet);
    }

    /// Forwards a packet that reaches the stage behind the bottleneck at `at`.
    #[inline(never)]
    pub(crate) fn forward_from_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        at: Nanos,
        packet: Packet,
    ) {
        let next = self.hops.bottleneck + 1;
        if self.jitter.as_ref().is_some_and(Jitter::reorders) {
            // Per-source hops need packets in the order of time, so the call is deferred to `at`.
            return self.hops.arrivals.schedule(at, next, packet);
        }
        self.forward(source, path, next, at, packet);
    }

    /// Forwards a packet that reaches `stage` at `at` to the next shared hop or to the receiver.
    fn forward<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        stage: usize,
        at: Nanos,
        packet: Packet,
    ) {
        let Some((stage, at)) = self.pass_per_source_hops(source, path, stage, at, packet) else {
            return;
        };
        if stage < self.hops.forward {
            self.hops.arrivals.schedule(at, stage, packet);
        } else {
            self.reach_egress(source, path, at, packet);
        }
    }

    /// Passes a packet through per-source hops. Returns the next shared stage and the arrival time
    /// there; `None` if the packet is lost.
    fn pass_per_source_hops<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        mut stage: usize,
        mut at: Nanos,
        packet: Packet,
    ) -> Option<(usize, Nanos)> {
        while let Some(Stage { delay, kind: StageKind::PerSource(hop) }) =
            self.hops.stages.get_mut(stage)
        {
            let counters = &mut self.probes.hops[stage];
            match hop.offer(packet.source(), path.packet_bytes, at, counters) {
                HopOutcome::Leaves(leaves) => at = leaves + *delay,
                HopOutcome::Lost { at, random } => {
                    self.dropped_at_hop(stage, at, source, packet, random);
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
        source: &mut Source<S>,
        path: &Path,
        stage: usize,
        packet: Packet,
    ) {
        let now = self.now;
        let is_not_shared = stage >= self.hops.forward || !self.hops.is_shared(stage);
        if stage > self.hops.bottleneck && is_not_shared {
            return self.forward(source, path, stage, now, packet);
        }
        let Stage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return self.enter_bottleneck(source, path, packet);
        };
        let counters = &mut self.probes.hops[stage];
        counters.arrived += 1;
        if hop.loses(LossPlace::Before) {
            return self.dropped_at_hop(stage, now, source, packet, true);
        }
        match hop.offer(now, path.packet_bytes, &packet, counters) {
            Verdict::Departs { leaves, .. } => {
                self.leave_hop(source, path, stage, leaves, packet);
            }
            Verdict::Held { evicted, .. } => {
                let feedback = evicted.map(|packet| HopDrop { stage, at: now, packet });
                self.hops.drops.extend(feedback);
            }
            Verdict::Dropped => self.dropped_at_hop(stage, now, source, packet, false),
        }
        self.take_dropped_at_hop(stage);
    }

    /// Starts the transmission of the next held packet of a hop. Returns its departure time and the
    /// packet.
    pub(crate) fn serve_hop(&mut self, stage: usize) -> Option<(Nanos, Packet)> {
        let Stage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return None;
        };
        hop.serve(&mut self.probes.hops[stage])
    }

    /// Forwards the packet whose transmission at a hop has just started and ends at `leaves`.
    pub(crate) fn forward_served_at_hop<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        stage: usize,
        leaves: Nanos,
        packet: Packet,
    ) {
        if stage < self.hops.forward {
            self.leave_hop(source, path, stage, leaves, packet);
        } else if let StageKind::Shared(hop) = &self.hops.stages[stage].kind {
            let waited = hop.waited();
            self.forward_served_ack(source, path, leaves, waited, packet);
        }
    }

    /// Forwards a packet that leaves a shared hop of the forward path at `leaves`.
    fn leave_hop<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        stage: usize,
        leaves: Nanos,
        packet: Packet,
    ) {
        let Stage { delay, kind: StageKind::Shared(hop) } = &mut self.hops.stages[stage] else {
            return;
        };
        if hop.loses(LossPlace::Behind) {
            return self.dropped_at_hop(stage, leaves, source, packet, true);
        }
        let at = leaves + *delay;
        self.forward(source, path, stage + 1, at, packet);
    }

    /// Notifies sources of packets that the queues of hops dropped after accepting them.
    pub(crate) fn notify_hop_drops<S: SendingEnd>(&mut self, sources: &mut [Source<S>]) {
        let mut dropped = std::mem::take(&mut self.hops.drops);
        for HopDrop { stage, at, packet } in dropped.drain(..) {
            if stage == self.hops.forward {
                self.dropped_on_return(at);
                continue;
            }
            let source = &mut sources[packet.source() as usize];
            self.dropped_at_hop(stage, at, source, packet, false);
        }
        self.hops.drops = dropped;
    }
}

impl<Q, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Takes the packets that the queue of a shared hop dropped after accepting them, for later
    /// notification.
    pub(crate) fn take_dropped_at_hop(&mut self, stage: usize) {
        let Stage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return;
        };
        let dropped = hop.take_dropped(&mut self.probes.hops[stage]).into_iter();
        self.hops.drops.extend(dropped.map(|(at, packet)| HopDrop { stage, at, packet }));
    }

    /// Enqueues a cross packet at a shared hop.
    pub(crate) fn on_cross_arrival_at_hop(&mut self, stage: usize) {
        let Stage { kind: StageKind::Shared(hop), .. } = &mut self.hops.stages[stage] else {
            return;
        };
        if let Some(packet) = hop.on_cross_arrival(&mut self.probes.hops[stage]) {
            let late = if stage == self.hops.forward { self.return_lookahead } else { 0 };
            self.hops.drops.push(HopDrop { stage, at: self.now - late, packet });
        }
        self.take_dropped_at_hop(stage);
    }
}
