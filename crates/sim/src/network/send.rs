//! Transmission of a packet over the access link of its source to the first shared hop.

use super::Network;
use super::access_links::AccessLink;
use super::path::ClassPath;
use super::source::SimulatedSource;
use crate::clock::Nanos;
use crate::event_queue::PacketPlace;
use crate::loss::LossPlace;
use crate::packet::{Packet, PacketKind, PacketLabel};
use crate::probe::{SenderListener, TapPlace};
use crate::queue::QueueDiscipline;
use tcpcast_tcp::{PacketsToSend, SendingEnd};

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Current time at the sender, which is `sender_lookahead` before the time `now` of the event.
    #[inline(always)]
    pub(crate) fn current_sender_time(&self) -> Nanos {
        self.now - self.sender_lookahead
    }

    /// Sends packets over the access link and sets the timer. `template` is any packet of the
    /// connection, for its source and lengths.
    #[inline(always)]
    pub(crate) fn send_packets_and_set_timer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        template: Packet,
        sent: PacketsToSend,
    ) {
        if S::IS_POLLED {
            return self.poll_sender_and_send(source, path, template);
        }
        let now = self.current_sender_time();
        self.set_sender_timer(source, template.source());
        let packet =
            |number, kind| template.with_number_and_label(number, PacketLabel::new(kind, 0));
        if sent.retransmit != 0 {
            self.retransmit_packet(
                source,
                path,
                now,
                packet(sent.retransmit, PacketKind::Retransmission),
            );
        }
        for number in sent.from..sent.from + sent.count {
            if number < sent.fresh_from {
                self.retransmit_packet(
                    source,
                    path,
                    now,
                    packet(number, PacketKind::Retransmission),
                );
            } else {
                self.send_packet(source, path, now, packet(number, PacketKind::Data), true);
            }
        }
    }

    /// Polls a sender and sends its packets. All packets and timers are collected before the first
    /// packet is sent, because sending may advance the clock to the arrival of the packet.
    #[inline(always)]
    fn poll_sender_and_send<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        template: Packet,
    ) {
        let now = self.current_sender_time();
        let Self { burst, probes, segments, .. } = self;
        let index = template.source();
        let SimulatedSource { sender, record, data_serial, .. } = source;
        let listener = &mut SenderListener::new(probes, record, index);
        sender.poll_transmit(now, &path.tcp, listener, |packet| {
            let label = segments.store_packet(packet, *data_serial);
            *data_serial = data_serial.wrapping_add(1);
            burst.push(template.with_number_and_label(packet.number, label));
        });
        self.set_sender_timer(source, index);
        self.set_pacing_timer(source, path, index);
        if !self.burst.is_empty() {
            self.send_collected_packets(source, path, now);
        }
    }

    /// Sends the packets that were collected from the sender.
    #[inline(never)]
    fn send_collected_packets<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        now: Nanos,
    ) {
        let mut burst = std::mem::take(&mut self.burst);
        // Handshake packets and a FIN without data do not count as data.
        let opening = source.sender.is_handshake_pending();
        for packet in &burst {
            self.send_packet(source, path, now, *packet, packet.number() != 0 && !opening);
        }
        burst.clear();
        self.burst = burst;
    }

    #[inline(never)]
    fn retransmit_packet<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        now: Nanos,
        packet: Packet,
    ) {
        self.send_packet(source, path, now, packet, true);
    }

    #[inline(always)]
    fn send_packet<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        now: Nanos,
        packet: Packet,
        counts_as_data: bool,
    ) {
        self.totals.sent += 1;
        let numbers = HAS_TAPS && !S::IS_POLLED && self.watched;
        let packet = if numbers { self.with_serial_number(packet) } else { packet };
        if !S::IS_POLLED || counts_as_data {
            self.probes.count_sent(now, &mut source.record, &packet);
            if !S::HAS_LOSS_FEEDBACK && packet.kind() == PacketKind::Data {
                source.record.count_entering_flight(now);
            }
        } else {
            self.probes.count_control_packet_sent(&source.record);
        }
        self.report_packet_at_tap(source, TapPlace::Sender, now, &packet);
        let link = &path.ingress;
        if !path.is_lossless {
            if let Some(at) = self.ingress_loss_time(source, path, now, packet) {
                if let Some(loss) = &mut self.loss {
                    loss.on_loss_before_bottleneck(packet.source());
                }
                return self.on_access_drop(at, source, packet);
            }
        }
        let idle = source.ingress_free <= now;
        source.ingress_free =
            source.ingress_free.max(now) + self.transmission_time_on::<S>(link, &packet);
        let mut due = source.ingress_free + link.delay;
        if HAS_HOP && self.hops.starts_with_per_source_hop() {
            let Some(arrival) = self.arrival_at_first_shared_hop(source, path, due, packet) else {
                return;
            };
            due = arrival;
        }
        if S::IS_POLLED {
            // `sender_lookahead` is the shortest time to the hop for a full packet; a shorter
            // packet needs less time and would arrive before `now`.
            due = due.max(self.now);
        }
        // The loss of a later packet of the burst may reach the sender before `due`.
        if !(S::HAS_LOSS_FEEDBACK && path.may_lose_before_shared_hop)
            && self.precedes_all_events(due)
            && !self.would_overtake_due_packet(source, due)
        {
            self.now = due;
            self.enter_bottleneck_or_shared_hop(source, path, packet);
        } else {
            self.schedule_data_arrival(source, path, idle, due, packet);
        }
    }

    /// Returns the time at which a packet is lost on the ingress link; `None` if it is not lost.
    #[inline(never)]
    fn ingress_loss_time<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        now: Nanos,
        packet: Packet,
    ) -> Option<Nanos> {
        let (link, index) = (&path.ingress, packet.source());
        if self.access_loss.loses_on_ingress(LossPlace::Before, index)
            || !link.has_buffer_room(now, source.ingress_free)
        {
            return Some(now);
        }
        if path.ingress_loses_behind && self.access_loss.loses_on_ingress(LossPlace::Behind, index)
        {
            source.ingress_free =
                source.ingress_free.max(now) + self.transmission_time_on::<S>(link, &packet);
            return Some(source.ingress_free);
        }
        None
    }

    /// Length of a packet that is shorter than the full packets of its class.
    #[inline(always)]
    pub(super) fn length_of_short_packet<S: SendingEnd>(&self, packet: &Packet) -> Option<u32> {
        if S::IS_POLLED { self.segments.length_of_short_packet(packet.label()) } else { None }
    }

    /// Transmission time of a packet on an access link.
    #[inline(always)]
    pub(super) fn transmission_time_on<S: SendingEnd>(
        &self,
        link: &AccessLink,
        packet: &Packet,
    ) -> Nanos {
        let short = self.length_of_short_packet::<S>(packet);
        short.map_or(link.data_time, |bytes| link.transmission_time_of(bytes))
    }

    #[inline(never)]
    fn with_serial_number(&self, packet: Packet) -> Packet {
        let label = PacketLabel::new(packet.kind(), self.totals.sent as u16);
        packet.with_label(label)
    }

    /// Schedules the arrival of a data packet at the bottleneck at `due`; `idle` is true if its
    /// access link was idle.
    #[inline(always)]
    fn schedule_data_arrival<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        idle: bool,
        due: Nanos,
        packet: Packet,
    ) {
        let class = source.record.class();
        if idle || (HAS_HOP && self.hops.starts_with_per_source_hop()) {
            self.events.schedule_packet(PacketPlace::Bottleneck, class, due, packet);
        } else if self.events.schedule_in_order(PacketPlace::BottleneckQueued, class, due, packet) {
            // Scheduled as a separate event.
        } else if is_full_packet::<S>(&packet)
            && due - path.ingress.data_time > self.now
            && !path.ingress_loses_behind
        {
            // The arrival of the previous packet will schedule this packet.
            let after = due - path.ingress.data_time;
            self.ingress_waiting.push_waiting_packet(
                &mut source.ingress_waiting,
                after,
                due,
                packet,
            );
        } else {
            self.events.schedule_packet(PacketPlace::BottleneckQueued, class, due, packet);
        }
    }
}

/// Whether a packet is full, so that the next packet on the access link follows after the
/// transmission time of a full packet.
#[inline(always)]
pub(super) fn is_full_packet<S: SendingEnd>(packet: &Packet) -> bool {
    !S::IS_POLLED || !packet.label().is_short()
}
