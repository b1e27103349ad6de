//! The return path: what arrives at the receiver, its acknowledgement, and that at the sender.

use crate::agenda::Place;
use crate::clock::Nanos;
use crate::network::Network;
use crate::packet::{Kind, Packet};
use crate::probe::{Listener, Tap};
use crate::queue::QueueDiscipline;
use crate::source::Source;
use crate::tcp::{ReceivingEnd, SendingEnd};
use crate::way::{Progress, Way};

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// What the packet led to has reached the return bottleneck `lead` ago.
    #[inline(always)]
    pub(crate) fn at_return<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        packet: Packet,
    ) {
        if packet.kind() == Kind::Ack {
            return self.waited_for_return(source, way, packet);
        }
        let follows = self.now + way.egress.data_time;
        if let Some(next) = self.egress_waiting.pop_due(&mut source.egress_waiting, follows) {
            self.agenda.packet(Place::ReturnQueued, source.record.class(), follows, next);
        }
        let arrived = self.now - way.answer_to_event;
        self.lifetime.received += 1;
        self.pass(source, Tap::Receiver, arrived, &packet);
        if source.received != packet.connection {
            if S::POLLS && way.tcp.has_handshake() {
                // Left over from a connection that is over.
                return;
            }
            source.received = packet.connection;
            source.receiver.start(&way.tcp);
        }
        let header = source.sender.take_header(packet.label);
        let arrival = source.receiver.on_data(arrived, packet.number, header, &way.tcp);
        self.probes.delivered(&source.record, arrival.distinct);
        if S::POLLS {
            self.got_polled(source, way, &packet, arrival.distinct);
        }
        match way.progress {
            Progress::LastOfFile => source.record.got(arrived, arrival.distinct),
            Progress::Packets => source.record.packets += u64::from(arrival.distinct),
            Progress::PacketsByTime => {
                self.got_by_time(source, arrived, arrival.distinct, packet.source)
            }
            Progress::BlocksOfFile => {
                self.got_in_block(source, arrived, arrival.distinct, packet.source);
            }
        }
        if let Some(number) = arrival.ack {
            let serial = if TAPS { packet.label.serial() } else { 0 };
            let label = source.receiver.label(serial);
            let ack = Packet { number, label, ..packet };
            if S::POLLS {
                if let Some(number) = source.receiver.poll_ack(&way.tcp) {
                    let label = source.receiver.label(serial);
                    let second = Packet { number, label, ..packet };
                    return self.acknowledge_twice(source, way, [ack, second]);
                }
            }
            self.acknowledge(source, way, ack);
        } else {
            self.set_ack_timer(source, way, packet.source);
        }
    }

    /// A packet may lack bytes of a full one, or bring nothing.
    #[inline(always)]
    fn got_polled<S: SendingEnd>(
        &mut self,
        source: &Source<S>,
        way: &Way,
        packet: &Packet,
        distinct: bool,
    ) {
        if distinct {
            if let Some(bytes) = packet.label.short_bytes() {
                self.probes.delivered_short(&source.record, way.packet_bytes - bytes);
            }
        } else if packet.number != 0 && !source.sender.is_opening() {
            self.probes.delivered_again(&source.record);
        }
    }

    #[inline(never)]
    fn got_in_block<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        arrived: Nanos,
        distinct: bool,
        index: u32,
    ) {
        source.record.got(arrived, distinct);
        if distinct {
            self.probes.delivered_in_block(arrived, &source.record, index);
        }
    }

    #[inline(never)]
    fn got_by_time<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        arrived: Nanos,
        distinct: bool,
        index: u32,
    ) {
        source.record.packets += u64::from(distinct);
        if distinct {
            let packets = source.receiver.in_order();
            self.probes.delivered_in_order(arrived, &source.record, index, packets);
        }
    }

    /// A receiver's answer, sent so that it has reached the return bottleneck `lead` ago unless
    /// its own link was still busy with the answer before.
    #[inline(always)]
    pub(crate) fn acknowledge<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        ack: Packet,
    ) {
        let reached = self.now - self.lead;
        source.return_free = reached.max(source.return_free + way.egress.ack_time);
        if source.return_free == reached {
            self.send_back(source, way, reached, ack, false);
        } else {
            self.pass(source, Tap::Receiver, reached - way.to_return, &ack);
            let due = source.return_free + self.lead;
            self.agenda.packet(Place::Return, source.record.class(), due, ack);
        }
    }

    /// Two answers at a time. Neither is looked at before both are on their way.
    #[cold]
    fn acknowledge_twice<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        acks: [Packet; 2],
    ) {
        let reached = self.now - self.lead;
        for ack in acks {
            source.return_free = reached.max(source.return_free + way.egress.ack_time);
            self.pass(source, Tap::Receiver, reached - way.to_return, &ack);
            let due = source.return_free + self.lead;
            self.agenda.packet(Place::Return, source.record.class(), due, ack);
        }
    }

    #[inline(always)]
    fn send_back<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        reached: Nanos,
        ack: Packet,
        waited: bool,
    ) {
        if HOPS && self.tandem.has_return() {
            return self.enter_return(source, way, ack, waited);
        }
        let leaves = self.return_link.transmit_next(reached);
        if TAPS && self.capturing {
            let shown = source.receiver.shown(ack.label);
            if !waited {
                self.capture(Tap::Receiver, reached - way.to_return, &ack, shown);
            }
            self.capture(Tap::BottleneckOut, reached, &ack, shown);
            self.capture(Tap::BottleneckIn, leaves, &ack, shown);
        }
        source.ack_free = source.ack_free.max(leaves + way.back) + way.ingress.ack_time;
        let due = source.ack_free + self.lead_in;
        if self.comes_next(due) {
            self.now = due;
            self.at_sender(source, way, ack);
        } else {
            self.agenda.packet(Place::Sender, source.record.class(), due, ack);
        }
    }

    #[inline(never)]
    fn waited_for_return<S: SendingEnd>(&mut self, source: &mut Source<S>, way: &Way, ack: Packet) {
        self.send_back(source, way, self.now - self.lead, ack, true);
    }

    /// An acknowledgement reaches its sender.
    #[inline(always)]
    pub(crate) fn at_sender<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        ack: Packet,
    ) {
        let now = self.sender_now();
        self.pass(source, Tap::Sender, now, &ack);
        if source.connection != ack.connection {
            return;
        }
        let header = source.receiver.take_header(ack.label);
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, ack.source);
        let sent = source.sender.on_ack(now, ack.number, header, &way.tcp, listener);
        if source.sender.finished() {
            self.finish(source, ack.source);
        } else {
            self.send(source, way, ack.source, sent);
        }
    }
}
