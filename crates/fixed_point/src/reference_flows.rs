//! Event handlers of reference flows, with the sender of the packet engine. The handlers also
//! measure the distributions used by cross flows.

use crate::flow_events::FlowEvent;
use crate::network::{FlowPacket, SentPacket};
use crate::run::{FixedPointReplication, draw_file_size, draw_off_time, is_persistent};
use tcpcast_sim::clock::{NEVER, Nanos, SECOND, seconds_to_nanos};
use tcpcast_sim::probe::{ClassCell, Probes, SenderListener};
use tcpcast_sim::{Packet, PacketKind, PacketLabel};
use tcpcast_tcp::modern::Segment;
use tcpcast_tcp::{IdleTime, InstantFeedbackSender, PacketsToSend, SendingEnd, TcpConfig};

impl FixedPointReplication {
    /// Starts a file.
    pub(super) fn start_reference_file(&mut self, id: u32) {
        let (now, index) = (self.now, id as usize);
        self.active += 1;
        self.probes.reference.population.record_source_start(now);
        let Self { references, probes, traffic, coupling, .. } = self;
        let flow = &mut references[index];
        if flow.size == 0 {
            let traffic = &traffic[flow.record.class()];
            flow.size = draw_file_size(traffic, coupling, id, &mut flow.sizes);
        }
        let (size, reuse) =
            (flow.size, flow.connected && flow.sender.has_packet_numbers_left(flow.size));
        probes.reference.record_transfer_start(now, &mut flow.record, size);
        flow.gap_since = now;
        flow.connected = true;
        let off_time = IdleTime {
            since_ack: now.saturating_sub(flow.last_ack),
            since_sent: now.saturating_sub(flow.sent),
        };
        self.call_sender_and_send_packets(id, |sender, tcp, listener| {
            if reuse {
                sender.send_file_on_open_connection(now, size, off_time, tcp, listener)
            } else {
                sender.start_file_on_new_connection(now, size, tcp, listener)
            }
        });
    }

    fn call_sender_and_send_packets(
        &mut self,
        id: u32,
        call: impl FnOnce(
            &mut InstantFeedbackSender,
            &TcpConfig,
            &mut SenderListener<'_>,
        ) -> PacketsToSend,
    ) {
        let Self { references, probes, paths, .. } = self;
        let flow = &mut references[id as usize];
        let tcp = &paths[flow.record.class()].tcp;
        let listener = &mut SenderListener::new(&mut probes.reference, &mut flow.record, id);
        let sent = call(&mut flow.sender, tcp, listener);
        if sent.retransmit != 0 {
            self.send_reference_packet(id, sent.retransmit | COPY_FLAG);
        }
        for number in sent.from..sent.from + sent.count {
            self.send_reference_packet(id, number);
        }
        let Self { references, events, .. } = self;
        let flow = &mut references[id as usize];
        let deadline = flow.sender.timer_deadline();
        if deadline < flow.timer {
            flow.timer = deadline;
            events.push(deadline, FlowEvent::RetransmissionTimer, id);
        }
    }

    fn send_reference_packet(&mut self, id: u32, number: u32) {
        let Self { references, probes, paths, network, now, .. } = self;
        let flow = &mut references[id as usize];
        let bytes = paths[flow.record.class()].packet_bytes;
        let packet = create_data_packet(id, number);
        probes.reference.count_sent(*now, &mut flow.record, &packet);
        flow.sent = *now;
        let sent = SentPacket { flow: id, number, bytes, is_behind: false };
        network.send(*now, flow.route, sent, &mut probes.reference);
    }

    pub(super) fn on_reference_retransmission_timer(&mut self, id: u32) {
        let now = self.now;
        let flow = &mut self.references[id as usize];
        if flow.timer != now {
            return;
        }
        flow.timer = NEVER;
        let deadline = flow.sender.timer_deadline();
        if deadline <= now {
            self.call_sender_and_send_packets(id, |sender, tcp, listener| {
                sender.on_timer(now, tcp, listener)
            });
        } else if deadline != NEVER {
            flow.timer = deadline;
            self.events.push(deadline, FlowEvent::RetransmissionTimer, id);
        }
    }

    /// Handles the arrival of a packet at the shared router, which may have dropped it.
    pub(super) fn on_reference_arrival(&mut self, packet: FlowPacket, found: u64, lost: bool) {
        let (now, bin) = (self.now, self.active_flow_bin());
        let Self { references, distributions, probes, .. } = self;
        let flow = &mut references[packet.flow as usize];
        let class = flow.record.class();
        let own_backlog = flow.inside.len();
        distributions[class].measured_gap.add_value(bin, nanos_to_seconds(now - flow.gap_since));
        distributions[class].own_backlog.add_backlog(bin, own_backlog);
        flow.gap_since = now;
        probes.reference.counters.add_to_class(class, ClassCell::OwnFound, own_backlog as u64);
        let numbered = create_data_packet(packet.flow, packet.number);
        probes.reference.count_bottleneck_arrival(&flow.record, &numbered, found as usize);
        if lost {
            self.on_reference_loss(packet, now, true);
        } else {
            flow.inside.push_back((now, packet.number));
        }
    }

    /// The router transmits a packet until `leaves`, which determines its service time.
    pub(super) fn on_reference_transmission(&mut self, packet: FlowPacket, leaves: Nanos) {
        let bin = self.active_flow_bin();
        let Self { references, events, distributions, probes, .. } = self;
        let flow = &mut references[packet.flow as usize];
        let Some((arrived, _)) = flow.inside.iter().find(|(_, inside)| *inside == packet.number)
        else {
            return;
        };
        let class = flow.record.class();
        let service = leaves - (*arrived).max(flow.left_shared).min(leaves);
        distributions[class].measured_service.add_value(bin, nanos_to_seconds(service));
        probes.reference.counters.add_to_class(class, ClassCell::Service, service);
        probes.reference.counters.add_to_class(class, ClassCell::Inside, leaves - *arrived);
        flow.left_shared = leaves;
        flow.departures.push_back(packet.number);
        events.push(leaves, FlowEvent::Departure, packet.flow);
    }

    /// The next packet leaves the router.
    pub(super) fn on_reference_departure(&mut self, id: u32) {
        let flow = &mut self.references[id as usize];
        if let Some(number) = flow.departures.pop_front() {
            flow.remove_from_router(number);
        }
    }

    /// Handles the arrival of a packet at its destination.
    pub(super) fn on_reference_delivery(&mut self, packet: FlowPacket) {
        let FlowPacket { flow: id, number, .. } = packet;
        if is_retransmission_number(number) {
            return;
        }
        let Self { references, events, probes, paths, blocks, now, .. } = self;
        let (flow, probes) = (&mut references[id as usize], &mut probes.reference);
        probes.count_delivery(&flow.record, true);
        flow.record.record_data_arrival(*now, true);
        if *blocks {
            probes.count_delivery_for_blocks(*now, &flow.record, id);
        }
        flow.record.packets += u64::from(flow.size == u32::MAX - 1);
        let due = *now + paths[flow.record.class()].back;
        flow.acks.push_back((due, number));
        if flow.acks.len() == 1 {
            events.push(due, FlowEvent::Ack, id);
        }
    }

    /// Handles the loss of a packet at `at`, with instantaneous loss feedback.
    pub(super) fn on_reference_loss(&mut self, lost: FlowPacket, at: Nanos, at_router: bool) {
        let due = self.feedback_time(at, lost.sent_at);
        let FlowPacket { flow: id, number, .. } = lost;
        let (flow, probes) = (&mut self.references[id as usize], &mut self.probes.reference);
        let packet = create_data_packet(id, number);
        if at_router {
            let inside = flow.remove_from_router(number).map_or(0, |arrived| at - arrived);
            probes.counters.add_to_class(flow.record.class(), ClassCell::Inside, inside);
            probes.count_bottleneck_drop(at, &flow.record, &packet, false);
        } else {
            probes.count_drop_elsewhere(at, &flow.record, &packet, true);
        }
        flow.feedback.add_feedback(due, number);
        self.events.push(due, FlowEvent::LossFeedback, id);
    }

    /// Passes loss feedback to the sender.
    pub(super) fn on_reference_loss_feedback(&mut self, id: u32) {
        let now = self.now;
        while let Some(number) = self.references[id as usize].feedback.take_due(now) {
            self.call_sender_and_send_packets(id, |sender, tcp, listener| {
                sender.on_loss(now, number, tcp, listener)
            });
        }
    }

    /// Passes an ACK to the sender.
    pub(super) fn on_reference_ack(&mut self, id: u32) {
        let now = self.now;
        let Self { references, events, .. } = self;
        let flow = &mut references[id as usize];
        let Some((_, number)) = flow.acks.pop_front() else { return };
        if let Some((next, _)) = flow.acks.front() {
            events.push(*next, FlowEvent::Ack, id);
        }
        flow.last_ack = now;
        self.call_sender_and_send_packets(id, |sender, tcp, listener| {
            sender.on_ack(now, number, &Segment::default(), tcp, listener)
        });
        if self.references[id as usize].sender.is_finished() {
            self.finish_reference_file(id);
        }
    }

    fn finish_reference_file(&mut self, id: u32) {
        let (now, bin) = (self.now, self.active_flow_bin());
        self.active -= 1;
        let Self { references, events, distributions, probes, traffic, coupling, .. } = self;
        let flow = &mut references[id as usize];
        let class = flow.record.class();
        let off_time = draw_off_time(&traffic[class], coupling, id, &mut flow.off_times);
        probes.reference.record_transfer_end(now, &mut flow.record, flow.size);
        probes.reference.population.record_source_end(now);
        // The copy of a packet that timed out may still be in flight.
        let rest = nanos_to_seconds(now.saturating_sub(flow.gap_since));
        distributions[class].measured_gap.add_to_sum_without_count(bin, rest);
        flow.connected = is_persistent(&traffic[class]);
        flow.size = 0;
        count_off_time_start(&mut probes.reference, class, off_time);
        if off_time < NEVER {
            events.push(now + off_time, FlowEvent::FileStart, id);
        }
    }
}

/// Counts the start of an OFF time.
pub(super) fn count_off_time_start(probes: &mut Probes, class: usize, off_time: Nanos) {
    if off_time < seconds_to_nanos(1e9) {
        probes.counters.add_to_class(class, ClassCell::OffTimes, 1);
        probes.counters.add_to_class(class, ClassCell::OffTime, off_time);
    }
}

/// Marks the number of the copy of a packet that timed out. The sender ignores its loss.
pub(super) const COPY_FLAG: u32 = 1 << 31;

pub(super) fn is_retransmission_number(number: u32) -> bool {
    number & COPY_FLAG != 0
}

pub(super) fn create_data_packet(source: u32, number: u32) -> Packet {
    let kind = if is_retransmission_number(number) {
        PacketKind::Retransmission
    } else {
        PacketKind::Data
    };
    Packet::new(source, 1, number, PacketLabel::new(kind, 0))
}

pub(super) fn nanos_to_seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}
