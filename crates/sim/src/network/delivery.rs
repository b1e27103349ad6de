//! Delivery: egress link, receiver, and delivery statistics.

use super::Network;
use super::path::{ClassPath, DeliveryStatistics};
use super::send::is_full_packet;
use super::source::SimulatedSource;
use crate::clock::Nanos;
use crate::event_queue::PacketPlace;
use crate::jitter::HostProcessingDelay;
use crate::loss::LossPlace;
use crate::packet::{Packet, PacketKind, PacketLabel};
use crate::probe::TapPlace;
use crate::queue::QueueDiscipline;
use tcpcast_tcp::modern::Segment;
use tcpcast_tcp::{ReceivingEnd, SendingEnd};

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Forwards a packet that enters the egress link at `enters` to its receiver. The next event is
    /// `return_lookahead` after the response would reach the return bottleneck.
    #[inline(always)]
    pub(crate) fn enter_egress_link<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        enters: Nanos,
        packet: Packet,
    ) {
        if !path.is_lossless {
            if let Some(at) = self.egress_loss_time(source, path, enters, packet) {
                return self.on_access_drop(at, source, packet);
            }
        }
        let time = self.transmission_time_on::<S>(&path.egress, &packet);
        let (idle, due) = transmit_on_egress(source, path, enters, time);
        match &path.noise {
            None => self.schedule_processing_at_host(source, path, idle, due, packet),
            Some(noise) => self.schedule_processing_at_late_host(source, noise, idle, due, packet),
        }
    }

    /// Schedules the event at `due` in which a packet is processed. `idle` is false if the packet
    /// waits for another one on the egress link.
    #[inline(always)]
    fn schedule_processing_at_host<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        idle: bool,
        due: Nanos,
        packet: Packet,
    ) {
        let class = source.record.class();
        if idle {
            self.events.schedule_packet(PacketPlace::Return, class, due, packet);
        } else if !is_full_packet::<S>(&packet) || path.egress_loses_behind {
            self.events.schedule_packet(PacketPlace::ReturnSecond, class, due, packet);
        } else if !self.events.schedule_in_order(PacketPlace::ReturnSecond, class, due, packet) {
            let after = due - path.egress.data_time;
            self.egress_waiting.push_waiting_packet(&mut source.egress_waiting, after, due, packet);
        }
    }

    /// Returns the time at which a packet that enters the egress link at `enters` is lost there;
    /// `None` if the packet is not lost.
    #[inline(never)]
    fn egress_loss_time<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        enters: Nanos,
        packet: Packet,
    ) -> Option<Nanos> {
        let (link, index) = (&path.egress, packet.source());
        if self.access_loss.loses_on_egress(LossPlace::Before, index)
            || !link.has_buffer_room(enters, source.egress_free)
        {
            return Some(enters);
        }
        if path.egress_loses_behind && self.access_loss.loses_on_egress(LossPlace::Behind, index) {
            source.egress_free =
                source.egress_free.max(enters) + self.transmission_time_on::<S>(link, &packet);
            return Some(source.egress_free);
        }
        None
    }

    /// Schedules the event of a packet that would be processed at `due` without processing delay. A
    /// host processes a packet together with all packets that arrive before its processing.
    #[inline(always)]
    fn schedule_processing_at_late_host<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        noise: &HostProcessingDelay,
        idle: bool,
        due: Nanos,
        packet: Packet,
    ) {
        let (class, before) = (source.record.class(), source.handled_at);
        let follows = self.now < before;
        let together = follows && due <= before;
        if !together {
            source.handled_at = due + noise.delay_of_both_hosts(packet.source(), due);
        }
        let due = source.handled_at;
        if !follows || (idle && !together) {
            self.events.schedule_with_overtaking(PacketPlace::Return, class, due, packet);
        } else if together
            || !self.events.schedule_in_order(PacketPlace::ReturnSecond, class, due, packet)
        {
            self.egress_waiting.push_waiting_packet(
                &mut source.egress_waiting,
                before,
                due,
                packet,
            );
        }
    }

    /// Schedules the event of the next waiting packet, because a packet has just left the egress
    /// link.
    #[inline(always)]
    fn schedule_next_waiting_packet<S: SendingEnd>(&mut self, source: &mut SimulatedSource<S>) {
        let waiting = &mut source.egress_waiting;
        if let Some((due, next)) = self.egress_waiting.pop_if_previous_at(waiting, self.now) {
            self.events.schedule_with_overtaking(
                PacketPlace::ReturnQueued,
                source.record.class(),
                due,
                next,
            );
        }
    }

    /// Processes a packet at its receiver. The event occurs `return_lookahead` after the receiver's
    /// response reaches the return bottleneck; earlier times are computed back from it.
    #[inline(always)]
    pub(crate) fn process_at_receiver<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        packet: Packet,
    ) {
        if packet.kind() == PacketKind::Ack {
            return self.send_waiting_ack(source, path, packet);
        }
        self.schedule_next_waiting_packet(source);
        let arrived = self.now - path.answer_to_event;
        self.totals.received += 1;
        self.report_packet_at_tap(source, TapPlace::Receiver, arrived, &packet);
        if S::HAS_LOSS_FEEDBACK && packet.kind() == PacketKind::Retransmission {
            // A copy after a timeout only uses capacity: the original is still in flight.
            return;
        }
        if source.received != packet.connection() {
            if S::IS_POLLED && path.tcp.has_handshake() {
                // A late packet of an earlier connection.
                self.segments.remove(packet.label());
                return;
            }
            source.received = packet.connection();
            source.receiver.start_connection(&path.tcp);
        }
        let (tcp, mut answer) = (&path.tcp, Segment::default());
        let short = self.length_of_short_packet::<S>(&packet);
        let segment =
            if S::IS_POLLED { self.segments.remove(packet.label()) } else { &Segment::default() };
        let arrival = source.receiver.on_data(arrived, packet.number(), segment, tcp, &mut answer);
        self.probes.count_delivery(&source.record, arrival.distinct);
        if S::IS_POLLED {
            self.count_short_and_spurious_packets(source, path, &packet, arrival.distinct, short);
        }
        if path.progress == DeliveryStatistics::LastOfFile {
            source.record.record_data_arrival(arrived, arrival.distinct);
        } else if path.progress == DeliveryStatistics::Packets {
            source.record.packets += u64::from(arrival.distinct);
        } else {
            self.record_delivery(source, path.progress, arrived, arrival.distinct, packet.source());
        }
        if let Some(number) = arrival.ack {
            let serial = if HAS_TAPS { packet.label().serial() } else { 0 };
            let ack =
                packet.with_number_and_label(number, PacketLabel::new(PacketKind::Ack, serial));
            if S::IS_POLLED {
                let mut second = Segment::default();
                if let Some(number) = source.receiver.poll_ack(arrived, tcp, &mut second) {
                    let later = ack.with_number_and_label(number, ack.label());
                    return self.send_two_new_acks(source, path, [(ack, answer), (later, second)]);
                }
            }
            self.send_new_ack(source, path, ack, &answer);
        } else {
            self.set_ack_timer(source, path, packet.source());
        }
    }

    /// Counts short packets and spurious retransmissions of polled sources.
    #[inline(always)]
    fn count_short_and_spurious_packets<S: SendingEnd>(
        &mut self,
        source: &SimulatedSource<S>,
        path: &ClassPath,
        packet: &Packet,
        distinct: bool,
        short: Option<u32>,
    ) {
        if distinct {
            if let Some(bytes) = short {
                self.probes.count_short_delivery(&source.record, path.packet_bytes - bytes);
            }
        } else if packet.number() != 0 && !source.sender.is_handshake_pending() {
            self.probes.count_spurious_retransmission(&source.record);
        }
    }

    /// Records a delivered packet for blocks of files or for given times.
    #[inline(never)]
    fn record_delivery<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        progress: DeliveryStatistics,
        arrived: Nanos,
        distinct: bool,
        index: u32,
    ) {
        let endless = progress.is_endless();
        if endless {
            source.record.packets += u64::from(distinct);
        } else {
            source.record.record_data_arrival(arrived, distinct);
        }
        if !distinct {
            return;
        }
        if endless {
            let packets = source.receiver.packets_in_order();
            self.probes.record_in_order_delivery(arrived, &source.record, index, packets);
        } else {
            self.probes.count_delivery_for_blocks(arrived, &source.record, index);
        }
    }
}

/// Occupies the egress link for the transmission `time` of a packet. Returns whether the link was idle, and the time of the
/// event that processes the packet, before host noise is added.
#[inline(always)]
fn transmit_on_egress<S: SendingEnd>(
    source: &mut SimulatedSource<S>,
    path: &ClassPath,
    enters: Nanos,
    time: Nanos,
) -> (bool, Nanos) {
    let idle = source.egress_free <= enters;
    source.egress_free = source.egress_free.max(enters) + time;
    (idle, source.egress_free + path.egress_to_event)
}
