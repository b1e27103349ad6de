//! Event handlers of cross flows for all schemes.

use crate::config::Scheme;
use crate::events::Event;
use crate::reference_flows::{note_off_time, packet};
use crate::run::{FixedPoint, draw_off_time, draw_size, is_persistent};
use crate::window::Next;
use tcpcast_sim::Packet;
use tcpcast_sim::clock::{NEVER, Nanos, nanoseconds};
use tcpcast_sim::probe::ClassCell;
use tcpcast_sim::queue::QueueDiscipline;
use tcpcast_sim::random::Draws;
use tcpcast_sim::tcp::IdleRestart;

impl<Q: QueueDiscipline> FixedPoint<Q> {
    fn cross_index(&self, id: u32) -> usize {
        id as usize - self.references.len()
    }

    /// Whether cross flows pass per-source hops before the shared router. In schemes 0 and 1, the
    /// times between packets are measured behind these hops.
    pub(super) fn has_entry_hops(&self) -> bool {
        self.scheme == Scheme::Windows && !self.pre_hops.is_empty()
    }

    /// Starts a file.
    pub(super) fn cross_starts_file(&mut self, id: u32) {
        let (now, index) = (self.now, self.cross_index(id));
        let Self { cross, traffic, coupling, probes, .. } = self;
        let flow = &mut cross[index];
        if flow.size == 0 {
            let traffic = &traffic[flow.record.class()];
            flow.size = draw_size(traffic, coupling, id, &mut flow.sizes);
        }
        probes.reference.population.birth(now);
        probes.cross.transfer_started(now, &mut flow.record, flow.size);
        (flow.on, flow.accepted) = (true, 0);
        flow.lost_downstream.clear();
        self.active += 1;
        if self.scheme == Scheme::Windows {
            self.open_window(index);
            self.continue_window(id);
        } else {
            self.wait_for_next(id);
        }
    }

    fn open_window(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.cross[index];
        let up = self.paths[flow.record.class()].up_delay;
        match self.tcp.idle_restart {
            _ if !flow.connected => flow.window.open(&self.tcp),
            IdleRestart::After(longest) if now - flow.last_ack > longest => {
                flow.window.open(&self.tcp);
            }
            IdleRestart::AfterTimeout if now - flow.sent > self.tcp.min_rto => {
                flow.window.shrink(&self.tcp);
            }
            IdleRestart::Never | IdleRestart::After(_) | IdleRestart::AfterTimeout => {}
        }
        flow.connected = true;
        flow.window.begin(now + up, flow.size);
    }

    /// Handles the scheduled event of a cross flow: its next packet arrives, or its file ends.
    pub(super) fn cross_event(&mut self, id: u32) {
        let index = self.cross_index(id);
        if self.cross[index].due != self.now {
            return;
        }
        self.cross[index].due = NEVER;
        match self.scheme {
            Scheme::Rates => self.on_cross_arrival(id),
            Scheme::Queues => self.arrive_or_wait(id),
            Scheme::Windows => self.continue_window(id),
        }
    }

    fn schedule(&mut self, id: u32, due: Nanos) {
        let index = self.cross_index(id);
        self.cross[index].due = due;
        let event = if self.has_entry_hops() { Event::Entry } else { Event::Arrival };
        self.events.push(due, event, id);
    }

    /// Schemes 0 and 1: schedules the next packet after a random time.
    fn wait_for_next(&mut self, id: u32) {
        let (bin, index) = (self.bin(), self.cross_index(id));
        let flow = &mut self.cross[index];
        let gap = self.distributions[flow.record.class()].gap.draw(bin, &mut flow.draws);
        let due = self.now + nanoseconds(gap).max(1);
        self.schedule(id, due);
    }

    /// Scheme 1: delays the packet while the shared router holds more packets of the flow than a
    /// bound, which is drawn from the measurements on reference flows.
    fn arrive_or_wait(&mut self, id: u32) {
        let (bin, index) = (self.bin(), self.cross_index(id));
        let flow = &mut self.cross[index];
        let bound = self.distributions[flow.record.class()].own_backlog.draw(bin, &mut flow.draws);
        if bound.is_some_and(|bound| flow.inside > bound) {
            flow.bound = bound;
        } else {
            self.on_cross_arrival(id);
        }
    }

    fn on_cross_arrival(&mut self, id: u32) {
        let index = self.cross_index(id);
        self.cross_sends(id, 0);
        let is_accepted = self.offer_cross_packet(id, 0);
        let flow = &mut self.cross[index];
        flow.accepted += u32::from(is_accepted);
        if flow.accepted == flow.size {
            self.cross_finishes(id, self.now);
        } else {
            self.wait_for_next(id);
        }
    }

    fn cross_sends(&mut self, id: u32, number: u32) {
        let (now, index) = (self.now, self.cross_index(id));
        let flow = &mut self.cross[index];
        self.probes.cross.sent(now, &mut flow.record, &packet(id, number));
        flow.sent = now;
    }

    /// Offers a packet to the shared router, and returns true if it is accepted.
    fn offer_cross_packet(&mut self, id: u32, number: u32) -> bool {
        let (now, index) = (self.now, self.cross_index(id));
        let packet = packet(id, number);
        let held = self.shared.queue.held();
        let flow = &mut self.cross[index];
        let class = flow.record.class();
        self.probes.cross.arrived(&flow.record, &packet, held);
        self.probes.cross.counters.add(class, ClassCell::OwnFound, u64::from(flow.inside));
        flow.inside += 1;
        match self.offer(packet) {
            Some(leaves) => {
                if let Some(leaves) = leaves {
                    self.cross_leaves(packet, leaves);
                }
                true
            }
            None => {
                let flow = &mut self.cross[index];
                flow.inside -= 1;
                self.probes.cross.dropped(now, &flow.record, &packet, false);
                false
            }
        }
    }

    /// Scheme 2: sends the next packet if it is due, otherwise schedules it.
    fn continue_window(&mut self, id: u32) {
        let index = self.cross_index(id);
        if !self.cross[index].on {
            return;
        }
        match self.cross[index].window.next(&self.tcp, self.rules) {
            Next::Arrives(due) if due <= self.now => {
                self.window_sends(id);
                self.schedule_next(id);
            }
            Next::Arrives(due) => self.schedule(id, due),
            Next::Finished(last_ack) if last_ack <= self.now => self.window_finishes(id, last_ack),
            Next::Finished(last_ack) => self.schedule(id, last_ack),
            Next::Waits => {}
        }
    }

    /// Schedules the next packet or the end of the file, at least 1 ns later.
    fn schedule_next(&mut self, id: u32) {
        let index = self.cross_index(id);
        match self.cross[index].window.next(&self.tcp, self.rules) {
            Next::Arrives(due) | Next::Finished(due) => self.schedule(id, due.max(self.now + 1)),
            Next::Waits => {}
        }
    }

    fn window_sends(&mut self, id: u32) {
        let (now, index) = (self.now, self.cross_index(id));
        let flow = &mut self.cross[index];
        let min_gap = self.paths[flow.record.class()].before.slowest();
        let number = flow.window.arrives(now, min_gap);
        self.cross_sends(id, number);
        if self.pre_hops.is_empty() {
            self.window_enters_router(id, number);
        } else {
            self.cross_enters_hops(id, number);
        }
        self.time_out_by_chance(index);
    }

    fn cross_enters_hops(&mut self, id: u32, number: u32) {
        let index = self.cross_index(id);
        let Self { cross, probes, pre_hops, events, now, loss_delay, resend_delay, .. } = self;
        let flow = &mut cross[index];
        match pre_hops.pass(*now, &packet(id, number), &flow.record, &mut probes.cross) {
            Ok(arrives) => {
                flow.arriving.push_back((arrives, number));
                if flow.arriving.len() == 1 {
                    events.push(arrives, Event::Arrival, id);
                }
            }
            Err(lost) => {
                let due = lost + if lost <= *now { *resend_delay } else { *loss_delay };
                flow.feedback.add(due, number);
                events.push(due, Event::LossFeedback, id);
            }
        }
    }

    /// A packet arrives at the shared router after the per-source hops.
    pub(super) fn cross_enters_router(&mut self, id: u32) {
        let index = self.cross_index(id);
        let Self { cross, events, .. } = self;
        let flow = &mut cross[index];
        let Some((_, number)) = flow.arriving.pop_front() else { return };
        if let Some((next, _)) = flow.arriving.front() {
            events.push(*next, Event::Arrival, id);
        }
        self.window_enters_router(id, number);
        if self.cross[index].due == NEVER {
            self.continue_window(id);
        }
    }

    fn window_enters_router(&mut self, id: u32, number: u32) {
        let (now, bin, index) = (self.now, self.bin(), self.cross_index(id));
        if !self.offer_cross_packet(id, number) {
            self.window_loses(index, number);
        } else {
            let flow = &mut self.cross[index];
            let service =
                self.distributions[flow.record.class()].service.draw(bin, &mut flow.draws);
            let leaves = flow.window.serve(now, nanoseconds(service));
            match self.pass_to_destination(packet(id, number), leaves) {
                Some(back) => self.cross[index].window.leaves(number, back),
                None => self.cross[index].lost_downstream.push(number),
            }
        }
    }

    /// Passes a packet from the shared router to the destination. Returns the time of its ACK at
    /// the sender plus the upstream delay, or `None` if the packet is lost.
    fn pass_to_destination(&mut self, packet: Packet, leaves: Nanos) -> Option<Nanos> {
        let index = self.cross_index(packet.source());
        let Self { cross, probes, post_hops, paths, events, loss_delay, .. } = self;
        let flow = &mut cross[index];
        let path = &paths[flow.record.class()];
        match post_hops.pass(leaves + path.forward, &packet, &flow.record, &mut probes.cross) {
            Ok(next) => Some(path.after.pass(&mut flow.left_after, next) + path.ack_path_delay()),
            Err(lost) => {
                flow.feedback.add(lost + *loss_delay, packet.number());
                events.push(lost + *loss_delay, Event::LossFeedback, packet.source());
                None
            }
        }
    }

    /// Handles loss feedback from per-source hops.
    pub(super) fn cross_loss_feedback(&mut self, id: u32) {
        let (now, index) = (self.now, self.cross_index(id));
        while let Some(number) = self.cross[index].feedback.take(now) {
            self.cross_loses(id, number);
        }
    }

    /// Draws a timeout with the frequency measured on reference flows.
    fn time_out_by_chance(&mut self, index: usize) {
        let flow = &mut self.cross[index];
        let class = flow.record.class();
        if self.rules.timeout && flow.draws.chance(self.distributions[class].timeouts) {
            flow.window.times_out(self.rules);
            self.probes.cross.counters.add(class, ClassCell::Timeouts, 1);
        }
    }

    fn window_loses(&mut self, index: usize, number: u32) {
        let flow = &mut self.cross[index];
        let path = &self.paths[flow.record.class()];
        let feedback = self.now + (path.up_delay + self.loss_delay).max(1);
        flow.window.on_loss_feedback(feedback, path.before.slowest(), &self.tcp, self.rules);
        flow.window.lost(number, self.rules);
    }

    fn window_finishes(&mut self, id: u32, last_ack: Nanos) {
        let index = self.cross_index(id);
        let flow = &mut self.cross[index];
        let up = self.paths[flow.record.class()].up_delay;
        flow.last_ack = last_ack - up;
        self.cross_finishes(id, last_ack - up);
    }

    /// Handles the departure of a packet from the shared router.
    pub(super) fn cross_leaves(&mut self, packet: Packet, leaves: Nanos) {
        let (id, index) = (packet.source(), self.cross_index(packet.source()));
        let flow = &mut self.cross[index];
        flow.inside -= 1;
        let arrives = if self.scheme == Scheme::Windows {
            take(&mut flow.lost_downstream, packet.number()).is_none()
        } else {
            self.pass_to_destination(packet, leaves).is_some()
        };
        let flow = &mut self.cross[index];
        if arrives {
            self.probes.cross.delivered(&flow.record, true);
        }
        if flow.bound.is_some_and(|bound| flow.inside <= bound) {
            flow.bound = None;
            self.on_cross_arrival(id);
        }
    }

    /// Handles the eviction of a packet from the shared router.
    pub(super) fn cross_evicted(&mut self, packet: Packet) {
        let (id, index) = (packet.source(), self.cross_index(packet.source()));
        let now = self.now;
        let flow = &mut self.cross[index];
        flow.inside -= 1;
        take(&mut flow.lost_downstream, packet.number());
        self.probes.cross.dropped(now, &flow.record, &packet, false);
        self.cross_loses(id, packet.number());
    }

    /// Handles the loss of a packet in flight.
    fn cross_loses(&mut self, id: u32, number: u32) {
        let index = self.cross_index(id);
        let flow = &mut self.cross[index];
        if !flow.on {
            return;
        }
        flow.accepted = flow.accepted.saturating_sub(1);
        if self.scheme == Scheme::Windows {
            self.window_loses(index, number);
            if self.cross[index].due == NEVER {
                self.schedule(id, self.now + 1);
            }
        }
    }

    fn cross_finishes(&mut self, id: u32, at: Nanos) {
        let index = self.cross_index(id);
        self.active -= 1;
        let Self { cross, traffic, coupling, probes, .. } = self;
        let flow = &mut cross[index];
        let class = flow.record.class();
        let off_time = draw_off_time(&traffic[class], coupling, id, &mut flow.off_times);
        // Cross flows do not record deliveries, so the end of the file is the last delivery.
        flow.record.on_data(at, true);
        probes.cross.transfer_finished(at, &mut flow.record, flow.size);
        probes.reference.population.death(at);
        (flow.on, flow.size, flow.connected) = (false, 0, is_persistent(&traffic[class]));
        note_off_time(&mut probes.cross, class, off_time);
        if off_time < NEVER {
            self.events.push((at + off_time).max(self.now), Event::FileStart, id);
        }
    }
}

/// Removes a number from a list, if present.
fn take(numbers: &mut Vec<u32>, number: u32) -> Option<u32> {
    let index = numbers.iter().position(|known| *known == number)?;
    Some(numbers.swap_remove(index))
}
