//! A packet's passage from hop to hop.

use super::own::Fate;
use super::{Kind, PushedOut, Stage};
use crate::clock::Nanos;
use crate::jitter::Jitter;
use crate::loss::LossPlace;
use crate::network::{Network, Path, Source};
use crate::packet::Packet;
use crate::queue::{QueueDiscipline, Verdict};
use crate::tcp::SendingEnd;

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// A packet has been sent and will be behind its source's own link at `at`: when it gets to
    /// where it meets others; `None` if it is lost before.
    pub(crate) fn reach_meeting<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        at: Nanos,
        packet: Packet,
    ) -> Option<Nanos> {
        let meets = self.through_own(source, path, 0, at, packet);
        if meets.is_none() {
            if let Some(loss) = &mut self.loss {
                loss.lost_before(packet.source());
            }
        }
        meets.map(|(_, at)| at)
    }

    /// A packet gets to where it first meets others, now, and that is not the bottleneck.
    pub(crate) fn at_meeting<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        packet: Packet,
    ) {
        self.enter_hop(source, path, self.tandem.first, packet);
    }

    /// A packet will have left the bottleneck and got to the next stage at `at`.
    #[inline(never)]
    pub(crate) fn behind_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        at: Nanos,
        packet: Packet,
    ) {
        let next = self.tandem.measured + 1;
        if self.jitter.as_ref().is_some_and(Jitter::reorders) {
            // Own links take packets in the order of the calls, so each call waits for its time.
            return self.tandem.arrivals.schedule(at, next, packet);
        }
        self.onward(source, path, next, at, packet);
    }

    /// A packet will get to `stage` at `at`: on to the next place where it meets others, or to the
    /// receiver.
    fn onward<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        stage: usize,
        at: Nanos,
        packet: Packet,
    ) {
        let Some((stage, at)) = self.through_own(source, path, stage, at, packet) else { return };
        if stage < self.tandem.forward {
            self.tandem.arrivals.schedule(at, stage, packet);
        } else {
            self.reach_egress(source, path, at, packet);
        }
    }

    /// Takes a packet through hops of its source's own: the next stage that is none, and when it
    /// gets there; `None` if it is lost.
    fn through_own<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        mut stage: usize,
        mut at: Nanos,
        packet: Packet,
    ) -> Option<(usize, Nanos)> {
        while let Some(Stage { delay, kind: Kind::Own(hop) }) = self.tandem.stages.get_mut(stage) {
            let counters = &mut self.probes.hops[stage];
            match hop.offer(packet.source(), path.packet_bytes, at, counters) {
                Fate::Leaves(leaves) => at = leaves + *delay,
                Fate::Lost { at, random } => {
                    self.dropped_at_hop(stage, at, source, packet, random);
                    return None;
                }
            }
            stage += 1;
        }
        Some((stage, at))
    }

    /// A packet gets to a shared hop, now; or from a delay that reorders packets to whatever is
    /// next.
    pub(crate) fn enter_hop<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        stage: usize,
        packet: Packet,
    ) {
        let now = self.now;
        let beyond = stage >= self.tandem.forward || !self.tandem.is_shared(stage);
        if stage > self.tandem.measured && beyond {
            return self.onward(source, path, stage, now, packet);
        }
        let Stage { kind: Kind::Shared(hop), .. } = &mut self.tandem.stages[stage] else {
            return self.at_bottleneck(source, path, packet);
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
            Verdict::Held { pushed_out, .. } => {
                let feedback = pushed_out.map(|packet| PushedOut { stage, at: now, packet });
                self.tandem.pushed_out.extend(feedback);
            }
            Verdict::Dropped => self.dropped_at_hop(stage, now, source, packet, false),
        }
        self.take_dropped_at_hop(stage);
    }

    /// The link of a hop is free for the next of the packets that it holds: which, and when it will
    /// have left.
    pub(crate) fn serve_hop(&mut self, stage: usize) -> Option<(Nanos, Packet)> {
        let Stage { kind: Kind::Shared(hop), .. } = &mut self.tandem.stages[stage] else {
            return None;
        };
        hop.serve(&mut self.probes.hops[stage])
    }

    /// The packet that the link of a hop has just taken will have left at `leaves`.
    pub(crate) fn served_at_hop<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        stage: usize,
        leaves: Nanos,
        packet: Packet,
    ) {
        if stage < self.tandem.forward {
            self.leave_hop(source, path, stage, leaves, packet);
        } else if let Kind::Shared(hop) = &self.tandem.stages[stage].kind {
            let waited = hop.waited();
            self.served_on_return(source, path, leaves, waited, packet);
        }
    }

    /// A packet will have left a shared hop of the forward path at `leaves`.
    fn leave_hop<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        stage: usize,
        leaves: Nanos,
        packet: Packet,
    ) {
        let Stage { delay, kind: Kind::Shared(hop) } = &mut self.tandem.stages[stage] else {
            return;
        };
        if hop.loses(LossPlace::Behind) {
            return self.dropped_at_hop(stage, leaves, source, packet, true);
        }
        let at = leaves + *delay;
        self.onward(source, path, stage + 1, at, packet);
    }

    /// Tells sources of their packets that had to leave the queues of hops.
    pub(crate) fn tell_of_hops<S: SendingEnd>(&mut self, sources: &mut [Source<S>]) {
        let mut pushed_out = std::mem::take(&mut self.tandem.pushed_out);
        for PushedOut { stage, at, packet } in pushed_out.drain(..) {
            if stage == self.tandem.forward {
                self.dropped_on_return(at);
                continue;
            }
            let source = &mut sources[packet.source() as usize];
            self.dropped_at_hop(stage, at, source, packet, false);
        }
        self.tandem.pushed_out = pushed_out;
    }
}

impl<Q, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// Packets that the queue of a shared hop held and dropped; their sources are still to be told.
    pub(crate) fn take_dropped_at_hop(&mut self, stage: usize) {
        let Stage { kind: Kind::Shared(hop), .. } = &mut self.tandem.stages[stage] else { return };
        let dropped = hop.take_dropped(&mut self.probes.hops[stage]).into_iter();
        self.tandem.pushed_out.extend(dropped.map(|(at, packet)| PushedOut { stage, at, packet }));
    }

    /// A cross packet gets to a shared hop, now.
    pub(crate) fn cross_arrives_at_hop(&mut self, stage: usize) {
        let Stage { kind: Kind::Shared(hop), .. } = &mut self.tandem.stages[stage] else { return };
        if let Some(packet) = hop.cross_arrives(&mut self.probes.hops[stage]) {
            let late = if stage == self.tandem.forward { self.return_lookahead } else { 0 };
            self.tandem.pushed_out.push(PushedOut { stage, at: self.now - late, packet });
        }
        self.take_dropped_at_hop(stage);
    }
}
