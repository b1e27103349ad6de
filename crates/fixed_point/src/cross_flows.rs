//! Event handlers of cross flows for all schemes.

use crate::config::{CrossFlowScheme, CrossPacketTimeRule};
use crate::cross_window::NextWindowAction;
use crate::flow_events::FlowEvent;
use crate::flows::ClassPath;
use crate::reference_flows::{count_off_time_start, create_data_packet};
use crate::run::{FixedPointReplication, draw_file_size, draw_off_time, is_persistent};
use tcpcast_sim::Packet;
use tcpcast_sim::clock::{NEVER, Nanos, seconds_to_nanos};
use tcpcast_sim::probe::ClassCell;
use tcpcast_sim::random::RandomSource;
use tcpcast_tcp::IdleRestart;

impl FixedPointReplication {
    fn cross_index(&self, id: u32) -> usize {
        id as usize - self.references.len()
    }

    fn path_of_cross_flow(&self, index: usize) -> &ClassPath {
        &self.paths[self.cross[index].record.class()]
    }

    fn next_window_action(&mut self, index: usize) -> NextWindowAction {
        let flow = &mut self.cross[index];
        let ClassPath { tcp, rules, .. } = &self.paths[flow.record.class()];
        flow.window.next_action(tcp, *rules)
    }

    /// Whether cross flows pass per-source hops before the shared router. In schemes 0 and 1, the
    /// times between packets are measured behind these hops.
    pub(super) fn cross_flows_use_entry_hops(&self) -> bool {
        self.scheme == CrossFlowScheme::Windows && !self.pre_hops.is_empty()
    }

    /// Starts a file.
    pub(super) fn start_cross_file(&mut self, id: u32) {
        let (now, index) = (self.now, self.cross_index(id));
        let Self { cross, traffic, coupling, probes, .. } = self;
        let flow = &mut cross[index];
        if flow.size == 0 {
            let traffic = &traffic[flow.record.class()];
            flow.size = draw_file_size(traffic, coupling, id, &mut flow.sizes);
        }
        probes.reference.population.record_source_start(now);
        probes.cross.record_transfer_start(now, &mut flow.record, flow.size);
        (flow.on, flow.accepted, flow.clock) = (true, 0, now);
        flow.lost_downstream.clear();
        self.active += 1;
        if self.scheme == CrossFlowScheme::Windows {
            self.open_cross_window(index);
            self.send_or_schedule_from_window(id);
        } else {
            self.schedule_packet_after_gap(id);
        }
    }

    fn open_cross_window(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.cross[index];
        let ClassPath { up_delay, tcp, .. } = &self.paths[flow.record.class()];
        match tcp.idle_restart {
            _ if !flow.connected => flow.window.open_connection(tcp),
            IdleRestart::After(longest) if now - flow.last_ack > longest => {
                flow.window.open_connection(tcp);
            }
            IdleRestart::AfterTimeout if now - flow.sent > tcp.min_rto => {
                flow.window.limit_to_initial_window(tcp);
            }
            IdleRestart::Never | IdleRestart::After(_) | IdleRestart::AfterTimeout => {}
        }
        flow.connected = true;
        flow.window.begin_file(now + up_delay, flow.size);
    }

    /// Handles the scheduled event of a cross flow: its next packet arrives, or its file ends.
    pub(super) fn on_cross_event(&mut self, id: u32) {
        let index = self.cross_index(id);
        if self.cross[index].due != self.now {
            return;
        }
        self.cross[index].due = NEVER;
        match self.scheme {
            CrossFlowScheme::Rates => self.on_cross_packet_due(id),
            CrossFlowScheme::Queues => self.send_unless_own_backlog_exceeds_bound(id),
            CrossFlowScheme::Windows => self.send_or_schedule_from_window(id),
        }
    }

    fn schedule_cross_event(&mut self, id: u32, due: Nanos) {
        let index = self.cross_index(id);
        self.cross[index].due = due;
        let event =
            if self.cross_flows_use_entry_hops() { FlowEvent::Entry } else { FlowEvent::Arrival };
        self.events.push(due, event, id);
    }

    /// Schemes 0 and 1: schedules the next packet after a random time.
    fn schedule_packet_after_gap(&mut self, id: u32) {
        let (bin, index) = (self.active_flow_bin(), self.cross_index(id));
        let flow = &mut self.cross[index];
        let gap = self.distributions[flow.record.class()].gap.draw(bin, &mut flow.draws);
        let since =
            if self.queue_rule == CrossPacketTimeRule::Delay { flow.clock } else { self.now };
        flow.clock = since + seconds_to_nanos(gap);
        let due = flow.clock.max(self.now + 1);
        self.schedule_cross_event(id, due);
    }

    /// Scheme 1: delays the packet while the shared router holds more packets of the flow than a
    /// bound, which is drawn from the measurements on reference flows.
    fn send_unless_own_backlog_exceeds_bound(&mut self, id: u32) {
        let (bin, index) = (self.active_flow_bin(), self.cross_index(id));
        let flow = &mut self.cross[index];
        let bound = self.distributions[flow.record.class()].own_backlog.draw(bin, &mut flow.draws);
        if bound.is_some_and(|bound| flow.inside > bound) {
            flow.bound = bound;
        } else {
            self.on_cross_packet_due(id);
        }
    }

    fn on_cross_packet_due(&mut self, id: u32) {
        let index = self.cross_index(id);
        self.send_cross_packet(id, 0);
        let is_accepted = self.offer_cross_packet_to_router(id, 0);
        let is_copy =
            self.draw_and_count_timeout(index) && self.path_of_cross_flow(index).rules.retransmit;
        let flow = &mut self.cross[index];
        flow.accepted += u32::from(is_accepted && !is_copy);
        if flow.accepted == flow.size {
            self.finish_cross_file(id, self.now);
        } else {
            self.schedule_packet_after_gap(id);
        }
    }

    fn send_cross_packet(&mut self, id: u32, number: u32) {
        let (now, index) = (self.now, self.cross_index(id));
        let flow = &mut self.cross[index];
        self.probes.cross.count_sent(now, &mut flow.record, &create_data_packet(id, number));
        flow.sent = now;
    }

    /// Offers a packet to the shared router, and returns true if it is accepted.
    fn offer_cross_packet_to_router(&mut self, id: u32, number: u32) -> bool {
        let (now, index) = (self.now, self.cross_index(id));
        let packet = create_data_packet(id, number);
        let held = self.shared.held_packets();
        let flow = &mut self.cross[index];
        let class = flow.record.class();
        self.probes.cross.count_bottleneck_arrival(&flow.record, &packet, held);
        self.probes.cross.counters.add_to_class(class, ClassCell::OwnFound, u64::from(flow.inside));
        flow.inside += 1;
        match self.offer_to_router(packet) {
            Some(leaves) => {
                if let Some(leaves) = leaves {
                    self.on_cross_departure(packet, leaves);
                }
                true
            }
            None => {
                let flow = &mut self.cross[index];
                flow.inside -= 1;
                self.probes.cross.count_bottleneck_drop(now, &flow.record, &packet, false);
                false
            }
        }
    }

    /// Scheme 2: sends the next packet if it is due, otherwise schedules it.
    fn send_or_schedule_from_window(&mut self, id: u32) {
        let index = self.cross_index(id);
        if !self.cross[index].on {
            return;
        }
        match self.next_window_action(index) {
            NextWindowAction::Arrives(due) if due <= self.now => {
                self.send_window_packet(id);
                self.schedule_packet_or_file_end(id);
            }
            NextWindowAction::Arrives(due) => self.schedule_cross_event(id, due),
            NextWindowAction::Finished(last_ack) if last_ack <= self.now => {
                self.finish_window_file(id, last_ack)
            }
            NextWindowAction::Finished(last_ack) => self.schedule_cross_event(id, last_ack),
            NextWindowAction::Waits => {}
        }
    }

    /// Schedules the next packet or the end of the file, at least 1 ns later.
    fn schedule_packet_or_file_end(&mut self, id: u32) {
        let index = self.cross_index(id);
        match self.next_window_action(index) {
            NextWindowAction::Arrives(due) | NextWindowAction::Finished(due) => {
                self.schedule_cross_event(id, due.max(self.now + 1))
            }
            NextWindowAction::Waits => {}
        }
    }

    fn send_window_packet(&mut self, id: u32) {
        let (now, index) = (self.now, self.cross_index(id));
        let flow = &mut self.cross[index];
        let min_gap = self.paths[flow.record.class()].before.longest_service_time();
        let number = flow.window.record_next_arrival(now, min_gap);
        self.send_cross_packet(id, number);
        if self.pre_hops.is_empty() {
            self.offer_window_packet_to_router(id, number);
        } else {
            self.pass_entry_hops(id, number);
        }
        if self.draw_and_count_timeout(index) {
            let rules = self.path_of_cross_flow(index).rules;
            self.cross[index].window.on_timeout(rules);
        }
    }

    fn pass_entry_hops(&mut self, id: u32, number: u32) {
        let index = self.cross_index(id);
        let Self { cross, probes, pre_hops, events, now, loss_delay, resend_delay, .. } = self;
        let flow = &mut cross[index];
        match pre_hops.pass_packet_through_hops(
            *now,
            &create_data_packet(id, number),
            &flow.record,
            &mut probes.cross,
        ) {
            Ok(arrives) => {
                flow.arriving.push_back((arrives, number));
                if flow.arriving.len() == 1 {
                    events.push(arrives, FlowEvent::Arrival, id);
                }
            }
            Err(lost) => {
                let due = lost + if lost <= *now { *resend_delay } else { *loss_delay };
                flow.feedback.add_feedback(due, number);
                events.push(due, FlowEvent::LossFeedback, id);
            }
        }
    }

    /// A packet arrives at the shared router after the per-source hops.
    pub(super) fn enter_router_after_entry_hops(&mut self, id: u32) {
        let index = self.cross_index(id);
        let Self { cross, events, .. } = self;
        let flow = &mut cross[index];
        let Some((_, number)) = flow.arriving.pop_front() else { return };
        if let Some((next, _)) = flow.arriving.front() {
            events.push(*next, FlowEvent::Arrival, id);
        }
        self.offer_window_packet_to_router(id, number);
        if self.cross[index].due == NEVER {
            self.send_or_schedule_from_window(id);
        }
    }

    fn offer_window_packet_to_router(&mut self, id: u32, number: u32) {
        let (now, bin, index) = (self.now, self.active_flow_bin(), self.cross_index(id));
        if !self.offer_cross_packet_to_router(id, number) {
            self.on_window_packet_loss(index, number);
        } else {
            let flow = &mut self.cross[index];
            let service =
                self.distributions[flow.record.class()].service.draw(bin, &mut flow.draws);
            let leaves = flow.window.advance_departure_time(now, seconds_to_nanos(service));
            match self.deliver_and_get_ack_time(create_data_packet(id, number), leaves) {
                Some(back) => self.cross[index].window.record_departure(number, back),
                None => self.cross[index].lost_downstream.push(number),
            }
        }
    }

    /// Passes a packet from the shared router to the destination. Returns the time of its ACK at
    /// the sender plus the upstream delay, or `None` if the packet is lost.
    fn deliver_and_get_ack_time(&mut self, packet: Packet, leaves: Nanos) -> Option<Nanos> {
        let index = self.cross_index(packet.source);
        let Self { cross, probes, post_hops, paths, events, loss_delay, .. } = self;
        let flow = &mut cross[index];
        let path = &paths[flow.record.class()];
        match post_hops.pass_packet_through_hops(
            leaves + path.forward,
            &packet,
            &flow.record,
            &mut probes.cross,
        ) {
            Ok(next) => Some(
                path.after.pass_packet_through_routers(&mut flow.left_after, next)
                    + path.ack_path_delay(),
            ),
            Err(lost) => {
                flow.feedback.add_feedback(lost + *loss_delay, packet.number);
                events.push(lost + *loss_delay, FlowEvent::LossFeedback, packet.source);
                None
            }
        }
    }

    /// Handles loss feedback from per-source hops.
    pub(super) fn on_cross_loss_feedback(&mut self, id: u32) {
        let (now, index) = (self.now, self.cross_index(id));
        while let Some(number) = self.cross[index].feedback.take_due(now) {
            self.on_cross_loss(id, number);
        }
    }

    /// Draws a timeout with the frequency measured on reference flows.
    fn draw_and_count_timeout(&mut self, index: usize) -> bool {
        let flow = &mut self.cross[index];
        let class = flow.record.class();
        let expires = self.paths[class].rules.timeout
            && flow.draws.draw_chance(self.distributions[class].timeouts);
        self.probes.cross.counters.add_to_class(class, ClassCell::Timeouts, u64::from(expires));
        expires
    }

    fn on_window_packet_loss(&mut self, index: usize, number: u32) {
        let flow = &mut self.cross[index];
        let path = &self.paths[flow.record.class()];
        let feedback = self.now + (path.up_delay + self.loss_delay).max(1);
        flow.window.on_loss_feedback(
            feedback,
            path.before.longest_service_time(),
            &path.tcp,
            path.rules,
        );
        flow.window.on_loss(number, path.rules);
    }

    fn finish_window_file(&mut self, id: u32, last_ack: Nanos) {
        let index = self.cross_index(id);
        let flow = &mut self.cross[index];
        let up = self.paths[flow.record.class()].up_delay;
        flow.last_ack = last_ack - up;
        self.finish_cross_file(id, last_ack - up);
    }

    /// Handles the departure of a packet from the shared router.
    pub(super) fn on_cross_departure(&mut self, packet: Packet, leaves: Nanos) {
        let (id, index) = (packet.source, self.cross_index(packet.source));
        let flow = &mut self.cross[index];
        flow.inside -= 1;
        let arrives = if self.scheme == CrossFlowScheme::Windows {
            remove_number_if_present(&mut flow.lost_downstream, packet.number).is_none()
        } else {
            self.deliver_and_get_ack_time(packet, leaves).is_some()
        };
        let flow = &mut self.cross[index];
        if arrives {
            self.probes.cross.count_delivery(&flow.record, true);
        }
        if flow.bound.is_some_and(|bound| flow.inside <= bound) || self.draw_immediate_send(index) {
            self.cross[index].bound = None;
            self.on_cross_packet_due(id);
        }
    }

    /// Whether a flow sends immediately, because its queue is shorter than a random number drawn
    /// from the measurements on reference flows.
    fn draw_immediate_send(&mut self, index: usize) -> bool {
        let bin = self.active_flow_bin();
        let flow = &mut self.cross[index];
        let backlog = &self.distributions[flow.record.class()].own_backlog;
        self.scheme == CrossFlowScheme::Queues
            && self.queue_rule == CrossPacketTimeRule::Fill
            && flow.on
            && backlog.draw(bin, &mut flow.draws).is_some_and(|bound| flow.inside < bound)
    }

    /// Handles the eviction of a packet from the shared router.
    pub(super) fn on_cross_eviction(&mut self, packet: Packet) {
        let (id, index) = (packet.source, self.cross_index(packet.source));
        let now = self.now;
        let flow = &mut self.cross[index];
        flow.inside -= 1;
        remove_number_if_present(&mut flow.lost_downstream, packet.number);
        self.probes.cross.count_bottleneck_drop(now, &flow.record, &packet, false);
        self.on_cross_loss(id, packet.number);
    }

    /// Handles the loss of a packet in flight.
    fn on_cross_loss(&mut self, id: u32, number: u32) {
        let index = self.cross_index(id);
        let flow = &mut self.cross[index];
        if !flow.on {
            return;
        }
        flow.accepted = flow.accepted.saturating_sub(1);
        if self.scheme == CrossFlowScheme::Windows {
            self.on_window_packet_loss(index, number);
            if self.cross[index].due == NEVER {
                self.schedule_cross_event(id, self.now + 1);
            }
        }
    }

    fn finish_cross_file(&mut self, id: u32, at: Nanos) {
        let index = self.cross_index(id);
        self.active -= 1;
        let Self { cross, traffic, coupling, probes, .. } = self;
        let flow = &mut cross[index];
        let class = flow.record.class();
        let off_time = draw_off_time(&traffic[class], coupling, id, &mut flow.off_times);
        // Cross flows do not record deliveries, so the end of the file is the last delivery.
        flow.record.record_data_arrival(at, true);
        probes.cross.record_transfer_end(at, &mut flow.record, flow.size);
        probes.reference.population.record_source_end(at);
        (flow.on, flow.size, flow.connected) = (false, 0, is_persistent(&traffic[class]));
        count_off_time_start(&mut probes.cross, class, off_time);
        if off_time < NEVER {
            self.events.push((at + off_time).max(self.now), FlowEvent::FileStart, id);
        }
    }
}

/// Removes a number from a list, if present.
fn remove_number_if_present(numbers: &mut Vec<u32>, number: u32) -> Option<u32> {
    let index = numbers.iter().position(|known| *known == number)?;
    Some(numbers.swap_remove(index))
}
