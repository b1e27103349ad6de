//! Event handlers of reference flows, with the sender of the packet engine and the path of the
//! recursion. The handlers also measure the distributions used by cross flows.

use crate::flow_events::FlowEvent;
use crate::run::{FixedPointReplication, draw_file_size, draw_off_time, is_persistent};
use tcpcast_sim::clock::{NEVER, Nanos, SECOND, seconds_to_nanos};
use tcpcast_sim::probe::{ClassCell, Probes, SenderListener};
use tcpcast_sim::{Packet, PacketKind};
use tcpcast_tcp::{IdleTime, InstantFeedbackSender, PacketsToSend, SendingEnd, TcpConfig};

impl FixedPointReplication {
    /// Starts a file.
    pub(super) fn start_reference_file(&mut self, id: u32) {
        let (at, index) = (self.reference_sender_time(id), id as usize);
        self.active += 1;
        self.probes.reference.population.record_source_start(self.now);
        let Self { references, probes, traffic, coupling, .. } = self;
        let flow = &mut references[index];
        if flow.size == 0 {
            let traffic = &traffic[flow.record.class()];
            flow.size = draw_file_size(traffic, coupling, id, &mut flow.sizes);
        }
        let (size, reuse) =
            (flow.size, flow.connected && flow.sender.has_packet_numbers_left(flow.size));
        probes.reference.record_transfer_start(at, &mut flow.record, size);
        flow.gap_since = at;
        flow.connected = true;
        let off_time = IdleTime {
            since_ack: at.saturating_sub(flow.last_ack),
            since_sent: at.saturating_sub(flow.sent),
        };
        self.call_sender_and_send_packets(at, id, |sender, tcp, listener| {
            if reuse {
                sender.send_file_on_open_connection(at, size, off_time, tcp, listener)
            } else {
                sender.start_file_on_new_connection(at, size, tcp, listener)
            }
        });
    }

    /// Time at the sender. All events of a sender are processed later by the upstream delay, the
    /// time that a packet takes from the sender to the shared router or to the first per-source
    /// hop.
    fn reference_sender_time(&self, id: u32) -> Nanos {
        self.now - self.upstream_delay(id)
    }

    fn upstream_delay(&self, id: u32) -> Nanos {
        self.paths[self.references[id as usize].record.class()].up_delay
    }

    fn call_sender_and_send_packets(
        &mut self,
        at: Nanos,
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
        self.send_reference_packets(at, id, sent);
    }

    fn send_reference_packets(&mut self, at: Nanos, id: u32, sent: PacketsToSend) {
        if sent.retransmit != 0 {
            self.send_reference_packet(at, id, sent.retransmit | COPY_FLAG);
        }
        for number in sent.from..sent.from + sent.count {
            self.send_reference_packet(at, id, number);
        }
        let Self { references, events, paths, .. } = self;
        let flow = &mut references[id as usize];
        let deadline = flow.sender.timer_deadline();
        if deadline < flow.timer {
            flow.timer = deadline;
            events.push(
                deadline + paths[flow.record.class()].up_delay,
                FlowEvent::RetransmissionTimer,
                id,
            );
        }
    }

    fn send_reference_packet(&mut self, at: Nanos, id: u32, number: u32) {
        let Self {
            references, probes, paths, pre_hops, events, loss_delay, resend_delay, now, ..
        } = self;
        let (flow, probes) = (&mut references[id as usize], &mut probes.reference);
        let path = &paths[flow.record.class()];
        let packet = create_data_packet(id, number);
        probes.count_sent(at, &mut flow.record, &packet);
        flow.sent = at;
        let entry = path.before.pass_packet_through_routers(&mut flow.left_before, at);
        match pre_hops.pass_packet_through_hops(entry, &packet, &flow.record, probes) {
            Ok(arrives) if arrives == *now && flow.arriving.is_empty() => {
                self.enter_reference_router(id, number);
            }
            Ok(arrives) => {
                flow.arriving.push_back((arrives, number));
                if flow.arriving.len() == 1 {
                    events.push(arrives, FlowEvent::Arrival, id);
                }
            }
            Err(lost) => {
                let due =
                    path.up_delay + lost + if lost <= at { *resend_delay } else { *loss_delay };
                flow.feedback.add_feedback(due, number);
                events.push(due, FlowEvent::LossFeedback, id);
            }
        }
    }

    pub(super) fn on_reference_retransmission_timer(&mut self, id: u32) {
        let (at, up) = (self.reference_sender_time(id), self.upstream_delay(id));
        let flow = &mut self.references[id as usize];
        if flow.timer != at {
            return;
        }
        flow.timer = NEVER;
        let deadline = flow.sender.timer_deadline();
        if deadline <= at {
            self.call_sender_and_send_packets(at, id, |sender, tcp, listener| {
                sender.on_timer(at, tcp, listener)
            });
        } else if deadline != NEVER {
            flow.timer = deadline;
            self.events.push(deadline + up, FlowEvent::RetransmissionTimer, id);
        }
    }

    /// Handles the arrival of a queued packet at the shared router, and schedules the next arrival.
    pub(super) fn on_reference_arrival(&mut self, id: u32) {
        let Self { references, events, .. } = self;
        let flow = &mut references[id as usize];
        let Some((_, number)) = flow.arriving.pop_front() else { return };
        if let Some((next, _)) = flow.arriving.front() {
            events.push(*next, FlowEvent::Arrival, id);
        }
        self.enter_reference_router(id, number);
    }

    /// Offers a packet to the shared router.
    fn enter_reference_router(&mut self, id: u32, number: u32) {
        let (now, bin) = (self.now, self.active_flow_bin());
        let Self { references, distributions, probes, .. } = self;
        let flow = &mut references[id as usize];
        let class = flow.record.class();
        let own_backlog = flow.inside.len();
        distributions[class].measured_gap.add_value(bin, nanos_to_seconds(now - flow.gap_since));
        distributions[class].own_backlog.add_backlog(bin, own_backlog);
        flow.gap_since = now;
        probes.reference.counters.add_to_class(class, ClassCell::OwnFound, own_backlog as u64);
        let packet = create_data_packet(id, number);
        let held = self.shared.held_packets();
        match self.offer_to_router(packet) {
            None => {
                self.probes.reference.count_bottleneck_arrival(
                    &self.references[id as usize].record,
                    &packet,
                    held,
                );
                self.on_reference_drop(packet);
            }
            Some(leaves) => {
                let flow = &mut self.references[id as usize];
                self.probes.reference.count_bottleneck_arrival(&flow.record, &packet, held);
                flow.inside.push_back((now, number));
                if let Some(leaves) = leaves {
                    self.on_reference_departure(packet, leaves);
                }
            }
        }
    }

    /// Handles the departure from the shared router, which determines the service time of the
    /// recursion.
    pub(super) fn on_reference_departure(&mut self, packet: Packet, leaves: Nanos) {
        let (bin, id) = (self.active_flow_bin(), packet.source);
        let Self {
            references,
            events,
            distributions,
            probes,
            paths,
            post_hops,
            blocks,
            loss_delay,
            ..
        } = self;
        let (flow, probes) = (&mut references[id as usize], &mut probes.reference);
        let Some(arrived) = flow.remove_from_router(packet.number) else { return };
        let class = flow.record.class();
        let service = leaves - arrived.max(flow.left_shared).min(leaves);
        distributions[class].measured_service.add_value(bin, nanos_to_seconds(service));
        probes.counters.add_to_class(class, ClassCell::Service, service);
        probes.counters.add_to_class(class, ClassCell::Inside, leaves - arrived);
        flow.left_shared = leaves;
        let path = &paths[class];
        let next = leaves + path.forward;
        let arrives = match post_hops.pass_packet_through_hops(next, &packet, &flow.record, probes)
        {
            Ok(next) => path.after.pass_packet_through_routers(&mut flow.left_after, next),
            Err(lost) => {
                let due = path.up_delay + lost + *loss_delay;
                flow.feedback.add_feedback(due, packet.number);
                events.push(due, FlowEvent::LossFeedback, id);
                return;
            }
        };
        if is_retransmission_number(packet.number) {
            return;
        }
        probes.count_delivery(&flow.record, true);
        flow.record.record_data_arrival(arrives, true);
        if *blocks {
            probes.count_delivery_for_blocks(arrives, &flow.record, id);
        }
        flow.record.packets += u64::from(flow.size == u32::MAX - 1);
        let due = arrives + path.ack_path_delay();
        flow.acks.push_back((due, packet.number));
        if flow.acks.len() == 1 {
            events.push(due, FlowEvent::Ack, id);
        }
    }

    /// Handles the drop of a packet at the shared router, with instantaneous loss feedback.
    pub(super) fn on_reference_drop(&mut self, lost: Packet) {
        let (now, id) = (self.now, lost.source);
        let (flow, probes) = (&mut self.references[id as usize], &mut self.probes.reference);
        let inside = flow.remove_from_router(lost.number).map_or(0, |arrived| now - arrived);
        probes.counters.add_to_class(flow.record.class(), ClassCell::Inside, inside);
        probes.count_bottleneck_drop(now, &flow.record, &lost, false);
        let due = now + self.loss_delay + self.upstream_delay(id);
        self.references[id as usize].feedback.add_feedback(due, lost.number);
        self.events.push(due, FlowEvent::LossFeedback, id);
    }

    /// Passes loss feedback to the sender.
    pub(super) fn on_reference_loss_feedback(&mut self, id: u32) {
        let at = self.reference_sender_time(id);
        while let Some(number) = self.references[id as usize].feedback.take_due(self.now) {
            self.call_sender_and_send_packets(at, id, |sender, tcp, listener| {
                sender.on_loss(at, number, tcp, listener)
            });
        }
    }

    /// Passes an ACK to the sender.
    pub(super) fn on_reference_ack(&mut self, id: u32) {
        let at = self.reference_sender_time(id);
        let Self { references, events, .. } = self;
        let flow = &mut references[id as usize];
        let Some((_, number)) = flow.acks.pop_front() else { return };
        if let Some((next, _)) = flow.acks.front() {
            events.push(*next, FlowEvent::Ack, id);
        }
        flow.last_ack = at;
        self.call_sender_and_send_packets(at, id, |sender, tcp, listener| {
            sender.on_ack(at, number, tcp, listener)
        });
        if self.references[id as usize].sender.is_finished() {
            self.finish_reference_file(id);
        }
    }

    fn finish_reference_file(&mut self, id: u32) {
        let (at, bin) = (self.reference_sender_time(id), self.active_flow_bin());
        self.active -= 1;
        let Self { references, events, distributions, probes, now, traffic, coupling, .. } = self;
        let flow = &mut references[id as usize];
        let class = flow.record.class();
        let off_time = draw_off_time(&traffic[class], coupling, id, &mut flow.off_times);
        probes.reference.record_transfer_end(at, &mut flow.record, flow.size);
        probes.reference.population.record_source_end(*now);
        // The copy of a packet that timed out may still be in flight.
        let rest = nanos_to_seconds(at.saturating_sub(flow.gap_since));
        distributions[class].measured_gap.add_to_sum_without_count(bin, rest);
        flow.connected = is_persistent(&traffic[class]);
        flow.size = 0;
        count_off_time_start(&mut probes.reference, class, off_time);
        if off_time < NEVER {
            events.push(*now + off_time, FlowEvent::FileStart, id);
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
    Packet { source, connection: 1, number, kind }
}

pub(super) fn nanos_to_seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}
