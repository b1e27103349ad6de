//! Event handlers of cross flows for all schemes.

use crate::config::{CrossFlowScheme, CrossPacketTimeRule};
use crate::cross_window::NextWindowAction;
use crate::flow_events::FlowEvent;
use crate::flows::ClassPath;
use crate::network::{FlowPacket, SentPacket};
use crate::reference_flows::{count_off_time_start, create_data_packet};
use crate::run::{FixedPointReplication, draw_file_size, draw_off_time, is_persistent};
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
        let ClassPath { route, tcp, .. } = &self.paths[flow.record.class()];
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
        flow.window.begin_file(now + route.up_delay, flow.size);
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
        self.events.push(due, FlowEvent::Cross, id);
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
        let is_accepted = self.send_cross_packet(id, 0);
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

    /// Sends a packet on the route to the router. Returns false if the router drops it immediately.
    fn send_cross_packet(&mut self, id: u32, number: u32) -> bool {
        let index = self.cross_index(id);
        let Self { cross, probes, network, paths, now, .. } = self;
        let flow = &mut cross[index];
        let bytes = paths[flow.record.class()].packet_bytes;
        probes.cross.count_sent(*now, &mut flow.record, &create_data_packet(id, number));
        flow.sent = *now;
        let sent = SentPacket { flow: id, number, bytes, is_behind: false };
        network.send(*now, flow.routes[0], sent, &mut probes.reference);
        let is_accepted = network.accepted_last();
        self.process_reports();
        is_accepted
    }

    /// Handles the arrival of a packet at the shared router, which may have dropped it.
    pub(super) fn on_cross_arrival(&mut self, packet: FlowPacket, found: u64, lost: bool) {
        let (now, bin, id) = (self.now, self.active_flow_bin(), packet.flow);
        let index = self.cross_index(id);
        let Self { cross, probes, distributions, events, .. } = self;
        let (flow, probes) = (&mut cross[index], &mut probes.cross);
        let class = flow.record.class();
        let numbered = create_data_packet(id, packet.number);
        probes.count_bottleneck_arrival(&flow.record, &numbered, found as usize);
        probes.counters.add_to_class(class, ClassCell::OwnFound, u64::from(flow.inside));
        if lost {
            probes.count_bottleneck_drop(now, &flow.record, &numbered, false);
            if self.scheme == CrossFlowScheme::Windows {
                self.on_window_packet_loss(index, packet.number);
            }
        } else {
            flow.inside += 1;
            if self.scheme == CrossFlowScheme::Windows {
                let service = distributions[class].service.draw(bin, &mut flow.draws);
                let leaves = flow.window.advance_departure_time(now, seconds_to_nanos(service));
                flow.leaving.push_back((leaves, packet.number));
                if leaves < flow.leaving_due {
                    flow.leaving_due = leaves;
                    events.push(leaves, FlowEvent::Virtual, id);
                }
            }
        }
        let waits = self.cross[index].due == NEVER && self.cross[index].on;
        if self.path_of_cross_flow(index).route.has_own_hops_before()
            && self.scheme == CrossFlowScheme::Windows
            && waits
        {
            self.send_or_schedule_from_window(id);
        }
    }

    /// Scheme 2: a packet leaves the router by the recursion, and continues behind it.
    pub(super) fn on_virtual_departure(&mut self, id: u32) {
        let index = self.cross_index(id);
        let Self { cross, probes, network, paths, events, now, .. } = self;
        let flow = &mut cross[index];
        if flow.leaving_due != *now {
            return;
        }
        flow.leaving_due = NEVER;
        while let Some((leaves, number)) = flow.leaving.front().copied() {
            if leaves > *now {
                flow.leaving_due = leaves;
                events.push(leaves, FlowEvent::Virtual, id);
                break;
            }
            flow.leaving.pop_front();
            flow.behind.push_back(number);
            let bytes = paths[flow.record.class()].packet_bytes;
            let sent = SentPacket { flow: id, number, bytes, is_behind: true };
            network.send(*now, flow.routes[1], sent, &mut probes.reference);
        }
    }

    /// Handles the arrival of a packet at the end of its route.
    pub(super) fn on_cross_delivery(&mut self, packet: FlowPacket) {
        let index = self.cross_index(packet.flow);
        if self.scheme != CrossFlowScheme::Windows {
            return self.probes.cross.count_delivery(&self.cross[index].record, true);
        }
        let due = self.now + self.path_of_cross_flow(index).ack_path_delay();
        let flow = &mut self.cross[index];
        if packet.is_behind && remove_if_present(&mut flow.behind, packet.number) {
            self.probes.cross.count_delivery(&flow.record, true);
            flow.window.record_departure(packet.number, due);
            if self.cross[index].due == NEVER {
                self.send_or_schedule_from_window(packet.flow);
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
        let min_gap = self.paths[flow.record.class()].route.min_gap;
        let number = flow.window.record_next_arrival(now, min_gap);
        self.send_cross_packet(id, number);
        if self.draw_and_count_timeout(index) {
            let rules = self.path_of_cross_flow(index).rules;
            self.cross[index].window.on_timeout(rules);
        }
    }

    /// Handles loss feedback of packets that were lost at other links than the router.
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
        let feedback = self.now + path.route.up_delay.max(1);
        flow.window.on_loss_feedback(feedback, path.route.min_gap, &path.tcp, path.rules);
        flow.window.on_loss(number, path.rules);
    }

    fn finish_window_file(&mut self, id: u32, last_ack: Nanos) {
        let index = self.cross_index(id);
        let flow = &mut self.cross[index];
        let up = self.paths[flow.record.class()].route.up_delay;
        flow.last_ack = last_ack - up;
        self.finish_cross_file(id, last_ack - up);
    }

    /// Handles the departure of a packet from the shared router.
    pub(super) fn on_cross_departure(&mut self, id: u32) {
        let index = self.cross_index(id);
        let flow = &mut self.cross[index];
        flow.inside -= 1;
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

    /// Handles the loss at `at` of a packet that the router had accepted, or of a packet at another
    /// link.
    pub(super) fn on_cross_packet_loss(&mut self, packet: FlowPacket, at: Nanos, at_router: bool) {
        let due = self.feedback_time(at, packet.sent_at);
        let (id, index) = (packet.flow, self.cross_index(packet.flow));
        let flow = &mut self.cross[index];
        let numbered = create_data_packet(id, packet.number);
        if at_router {
            flow.inside -= 1;
            self.probes.cross.count_bottleneck_drop(at, &flow.record, &numbered, false);
            flow.leaving.retain(|(_, number)| *number != packet.number);
            remove_if_present(&mut flow.behind, packet.number);
            return self.on_cross_loss(id, packet.number);
        }
        self.probes.cross.count_drop_elsewhere(at, &flow.record, &numbered, true);
        remove_if_present(&mut flow.behind, packet.number);
        flow.feedback.add_feedback(due, packet.number);
        self.events.push(due, FlowEvent::LossFeedback, id);
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
        flow.leaving.clear();
        flow.behind.clear();
        count_off_time_start(&mut probes.cross, class, off_time);
        if off_time < NEVER {
            self.events.push((at + off_time).max(self.now), FlowEvent::FileStart, id);
        }
    }
}

/// Removes a number from a list. Returns whether the list contained it.
fn remove_if_present(numbers: &mut std::collections::VecDeque<u32>, number: u32) -> bool {
    let index = numbers.iter().position(|known| *known == number);
    index.is_some_and(|index| numbers.remove(index).is_some())
}
