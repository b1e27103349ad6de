//! Delivery: over the receiver's own link, to the receiver, and what is counted of it.

use super::Network;
use super::path::{Path, Progress};
use super::send::{is_full, time_on};
use super::source::Source;
use crate::agenda::Place;
use crate::clock::Nanos;
use crate::jitter::HostNoise;
use crate::loss::LossPlace;
use crate::packet::{Kind, Label, Packet};
use crate::probe::Tap;
use crate::queue::QueueDiscipline;
use crate::tcp::{AckHeaderOf, ReceivingEnd, SendingEnd};

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// Over the egress link, which the packet enters at `enters`, to the receiver, and its answer
    /// to the return bottleneck; the next event is `return_lookahead` after it has got there.
    #[inline(always)]
    pub(crate) fn reach_egress<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        enters: Nanos,
        packet: Packet,
    ) {
        if !path.plain {
            if let Some(at) = self.lost_on_egress(source, path, enters, packet) {
                return self.dropped_on_access(at, source, packet);
            }
        }
        let (idle, due) = cross_egress(source, path, enters, &packet);
        match &path.noise {
            None => self.reach_host(source, path, idle, due, packet),
            Some(noise) => self.reach_late_host(source, noise, idle, due, packet),
        }
    }

    /// Schedules the event at `due` in which a packet is handled. `idle` is false if the packet
    /// waited for another one on the egress link.
    #[inline(always)]
    fn reach_host<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        idle: bool,
        due: Nanos,
        packet: Packet,
    ) {
        let class = source.record.class();
        if idle {
            self.agenda.packet(Place::Return, class, due, packet);
        } else if !is_full::<S>(&packet) || path.egress_loses_behind {
            self.agenda.packet(Place::ReturnSecond, class, due, packet);
        } else if !self.agenda.packet_in_order(Place::ReturnSecond, class, due, packet) {
            let after = due - path.egress.data_time;
            self.egress_waiting.push(&mut source.egress_waiting, after, due, packet);
        }
    }

    /// Returns the time at which a packet is lost on its receiver's own link, which it enters at
    /// `enters`; `None` if it gets through.
    #[inline(never)]
    fn lost_on_egress<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        enters: Nanos,
        packet: Packet,
    ) -> Option<Nanos> {
        let (link, index) = (&path.egress, packet.source());
        if self.access_loss.egress_loses(LossPlace::Before, index)
            || !link.has_room(enters, source.egress_free)
        {
            return Some(enters);
        }
        if path.egress_loses_behind && self.access_loss.egress_loses(LossPlace::Behind, index) {
            source.egress_free = source.egress_free.max(enters) + time_on::<S>(link, &packet);
            return Some(source.egress_free);
        }
        None
    }

    /// Schedules the event of a packet that would be handled at `due` if both hosts were punctual. A
    /// host that is about to handle a packet also handles those that arrive until then.
    #[inline(always)]
    fn reach_late_host<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        noise: &HostNoise,
        idle: bool,
        due: Nanos,
        packet: Packet,
    ) {
        let (class, before) = (source.record.class(), source.handled_at);
        let follows = self.now < before;
        let together = follows && due <= before;
        if !together {
            source.handled_at = due + noise.both_hosts(packet.source(), due);
        }
        let due = source.handled_at;
        if !follows || (idle && !together) {
            self.agenda.packet_among(Place::Return, class, due, packet);
        } else if together || !self.agenda.packet_in_order(Place::ReturnSecond, class, due, packet)
        {
            self.egress_waiting.push(&mut source.egress_waiting, before, due, packet);
        }
    }

    /// The packet that waits for the one that has just left the egress link gets its event.
    #[inline(always)]
    fn follow<S: SendingEnd>(&mut self, source: &mut Source<S>) {
        let waiting = &mut source.egress_waiting;
        if let Some((due, next)) = self.egress_waiting.pop_after(waiting, self.now) {
            self.agenda.packet_among(Place::ReturnQueued, source.record.class(), due, next);
        }
    }

    /// What the packet led to has reached the return bottleneck `return_lookahead` ago.
    #[inline(always)]
    pub(crate) fn at_return<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        packet: Packet,
    ) {
        if packet.kind() == Kind::Ack {
            return self.waited_for_return(source, path, packet);
        }
        self.follow(source);
        let arrived = self.now - path.answer_to_event;
        self.lifetime.received += 1;
        self.pass(source, Tap::Receiver, arrived, &packet);
        if source.received != packet.connection() {
            if S::POLLS && path.tcp.has_handshake() {
                // Left over from a connection that is over.
                source.sender.drop_header(packet.label());
                return;
            }
            source.received = packet.connection();
            source.receiver.start(&path.tcp);
        }
        let header = source.sender.take_header(packet.label());
        let mut told = AckHeaderOf::<S>::default();
        let number = packet.number();
        let arrival = source.receiver.on_data(arrived, number, header, &path.tcp, &mut told);
        self.probes.delivered(&source.record, arrival.distinct);
        if S::POLLS {
            self.got_polled(source, path, &packet, arrival.distinct);
        }
        if path.progress == Progress::LastOfFile {
            source.record.got(arrived, arrival.distinct);
        } else if path.progress == Progress::Packets {
            source.record.packets += u64::from(arrival.distinct);
        } else {
            self.got(source, path.progress, arrived, arrival.distinct, packet.source());
        }
        if let Some(number) = arrival.ack {
            let serial = if TAPS { packet.label().serial() } else { 0 };
            let ack = packet.with(number, Label::new(Kind::Ack, serial));
            if S::POLLS {
                if let Some((number, second)) = source.receiver.poll_ack(&path.tcp) {
                    let acks = [(ack, told), (ack.with(number, ack.label()), second)];
                    return self.acknowledge_twice(source, path, acks);
                }
            }
            self.acknowledge(source, path, ack, &told);
        } else {
            self.set_ack_timer(source, path, packet.source());
        }
    }

    /// A packet may lack bytes of a full one, or bring nothing.
    #[inline(always)]
    fn got_polled<S: SendingEnd>(
        &mut self,
        source: &Source<S>,
        path: &Path,
        packet: &Packet,
        distinct: bool,
    ) {
        if distinct {
            if let Some(bytes) = packet.label().short_bytes() {
                self.probes.delivered_short(&source.record, path.packet_bytes - bytes);
            }
        } else if packet.number() != 0 && !source.sender.is_opening() {
            self.probes.delivered_again(&source.record);
        }
    }

    /// A packet has arrived where more is told of it than that.
    #[inline(never)]
    fn got<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        progress: Progress,
        arrived: Nanos,
        distinct: bool,
        index: u32,
    ) {
        let endless = progress.is_endless();
        if endless {
            source.record.packets += u64::from(distinct);
        } else {
            source.record.got(arrived, distinct);
        }
        if !distinct {
            return;
        }
        if endless {
            let packets = source.receiver.in_order();
            self.probes.delivered_in_order(arrived, &source.record, index, packets);
        } else {
            self.probes.delivered_in_block(arrived, &source.record, index);
        }
    }
}

/// Occupies the egress link with a packet. Returns whether the link was idle, and when the packet
/// is handled if both hosts are punctual.
#[inline(always)]
fn cross_egress<S: SendingEnd>(
    source: &mut Source<S>,
    path: &Path,
    enters: Nanos,
    packet: &Packet,
) -> (bool, Nanos) {
    let idle = source.egress_free <= enters;
    source.egress_free = source.egress_free.max(enters) + time_on::<S>(&path.egress, packet);
    (idle, source.egress_free + path.egress_to_event)
}
