//! Delivery: egress link, receiver, and delivery statistics.

use super::Network;
use super::path::{Path, Progress};
use super::send::{is_full, time_on};
use super::source::Source;
use crate::clock::Nanos;
use crate::event_queue::Place;
use crate::jitter::HostNoise;
use crate::loss::LossPlace;
use crate::packet::{Kind, Label, Packet};
use crate::probe::Tap;
use crate::queue::QueueDiscipline;
use crate::tcp::{AckHeaderOf, ReceivingEnd, SendingEnd};

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Forwards a packet that enters the egress link at `enters` to its receiver. The next event is
    /// `return_lookahead` after the response would reach the return bottleneck.
    #[inline(always)]
    pub(crate) fn reach_egress<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        enters: Nanos,
        packet: Packet,
    ) {
        if !path.is_lossless {
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

    /// Schedules the event at `due` in which a packet is processed. `idle` is false if the packet
    /// waits for another one on the egress link.
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
            self.events.schedule(Place::Return, class, due, packet);
        } else if !is_full::<S>(&packet) || path.egress_loses_behind {
            self.events.schedule(Place::ReturnSecond, class, due, packet);
        } else if !self.events.schedule_in_order(Place::ReturnSecond, class, due, packet) {
            let after = due - path.egress.data_time;
            self.egress_waiting.push(&mut source.egress_waiting, after, due, packet);
        }
    }

    /// Returns the time at which a packet that enters the egress link at `enters` is lost there;
    /// `None` if it is not lost.
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

    /// Schedules the event of a packet that would be processed at `due` without processing delay. A
    /// host processes a packet together with all packets that arrive before its processing.
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
            self.events.schedule_sorted(Place::Return, class, due, packet);
        } else if together
            || !self.events.schedule_in_order(Place::ReturnSecond, class, due, packet)
        {
            self.egress_waiting.push(&mut source.egress_waiting, before, due, packet);
        }
    }

    /// Schedules the event of the packet that waits behind the one that has just left the egress
    /// link.
    #[inline(always)]
    fn schedule_waiting<S: SendingEnd>(&mut self, source: &mut Source<S>) {
        let waiting = &mut source.egress_waiting;
        if let Some((due, next)) = self.egress_waiting.pop_after(waiting, self.now) {
            self.events.schedule_sorted(Place::ReturnQueued, source.record.class(), due, next);
        }
    }

    /// Processes a packet at its receiver. Its response reached the return bottleneck
    /// `return_lookahead` ago.
    #[inline(always)]
    pub(crate) fn process_at_receiver<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        packet: Packet,
    ) {
        if packet.kind() == Kind::Ack {
            return self.send_waiting_ack(source, path, packet);
        }
        self.schedule_waiting(source);
        let arrived = self.now - path.answer_to_event;
        self.totals.received += 1;
        self.report_passage(source, Tap::Receiver, arrived, &packet);
        if source.received != packet.connection() {
            if S::POLLS && path.tcp.has_handshake() {
                // A late packet of an earlier connection.
                source.sender.drop_header(packet.label());
                return;
            }
            source.received = packet.connection();
            source.receiver.start(&path.tcp);
        }
        let header = source.sender.take_header(packet.label());
        let mut ack_header = AckHeaderOf::<S>::default();
        let number = packet.number();
        let arrival = source.receiver.on_data(arrived, number, header, &path.tcp, &mut ack_header);
        self.probes.delivered(&source.record, arrival.distinct);
        if S::POLLS {
            self.count_polled(source, path, &packet, arrival.distinct);
        }
        if path.progress == Progress::LastOfFile {
            source.record.on_data(arrived, arrival.distinct);
        } else if path.progress == Progress::Packets {
            source.record.packets += u64::from(arrival.distinct);
        } else {
            self.record_delivery(source, path.progress, arrived, arrival.distinct, packet.source());
        }
        if let Some(number) = arrival.ack {
            let serial = if HAS_TAPS { packet.label().serial() } else { 0 };
            let ack = packet.with(number, Label::new(Kind::Ack, serial));
            if S::POLLS {
                if let Some((number, second)) = source.receiver.poll_ack(&path.tcp) {
                    let acks = [(ack, ack_header), (ack.with(number, ack.label()), second)];
                    return self.acknowledge_twice(source, path, acks);
                }
            }
            self.acknowledge(source, path, ack, &ack_header);
        } else {
            self.set_ack_timer(source, path, packet.source());
        }
    }

    /// Counts short packets and spurious retransmissions of polled sources.
    #[inline(always)]
    fn count_polled<S: SendingEnd>(
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

    /// Records a delivered packet for blocks of files or for given times.
    #[inline(never)]
    fn record_delivery<S: SendingEnd>(
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
            source.record.on_data(arrived, distinct);
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

/// Occupies the egress link with a packet. Returns whether the link was idle, and the time at which
/// the packet is processed without processing delay.
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
