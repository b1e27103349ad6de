//! What happens to a cross flow, by each scheme.

use crate::config::Scheme;
use crate::events::Event;
use crate::reference::{note_off_time, packet};
use crate::run::{FixedPoint, draw_off_time, draw_size, is_persistent};
use crate::window::Next;
use tcpcast_sim::Packet;
use tcpcast_sim::clock::{NEVER, Nanos, nanoseconds};
use tcpcast_sim::probe::ClassCell;
use tcpcast_sim::queue::QueueDiscipline;
use tcpcast_sim::random::Draws;
use tcpcast_sim::tcp::IdleRestart;

impl<Q: QueueDiscipline> FixedPoint<Q> {
    fn place(&self, id: u32) -> usize {
        id as usize - self.references.len()
    }

    /// Whether cross flows take hops of their own to the shared router. Of schemes 0 and 1 the
    /// times between packets are those of reference flows behind them.
    pub(super) fn has_doors(&self) -> bool {
        self.scheme == Scheme::Windows && !self.own_before.is_empty()
    }

    /// A file begins.
    pub(super) fn cross_clicks(&mut self, id: u32) {
        let (now, place) = (self.now, self.place(id));
        let Self { cross, traffic, coupling, probes, .. } = self;
        let flow = &mut cross[place];
        if flow.size == 0 {
            let traffic = &traffic[flow.record.class()];
            flow.size = draw_size(traffic, coupling, id, &mut flow.sizes);
        }
        probes.reference.population.birth(now);
        probes.cross.transfer_started(now, &mut flow.record, flow.size);
        (flow.on, flow.good) = (true, 0);
        flow.doomed.clear();
        self.active += 1;
        if self.scheme == Scheme::Windows {
            self.open_window(place);
            self.window_goes_on(id);
        } else {
            self.wait_for_next(id);
        }
    }

    fn open_window(&mut self, place: usize) {
        let now = self.now;
        let flow = &mut self.cross[place];
        let up = self.paths[flow.record.class()].up;
        match self.tcp.idle_restart {
            _ if !flow.connected => flow.window.open(&self.tcp),
            IdleRestart::After(longest) if now - flow.heard > longest => {
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

    /// The event of a cross flow: its next packet arrives, or its file may be over.
    pub(super) fn cross_goes_on(&mut self, id: u32) {
        let place = self.place(id);
        if self.cross[place].due != self.now {
            return;
        }
        self.cross[place].due = NEVER;
        match self.scheme {
            Scheme::Rates => self.cross_arrives(id),
            Scheme::Queues => self.arrive_unless_bound(id),
            Scheme::Windows => self.window_goes_on(id),
        }
    }

    fn schedule(&mut self, id: u32, due: Nanos) {
        let place = self.place(id);
        self.cross[place].due = due;
        let event = if self.has_doors() { Event::Door } else { Event::Arrival };
        self.events.push(due, event, id);
    }

    /// Schemes 0 and 1: the next packet comes after a time that is drawn.
    fn wait_for_next(&mut self, id: u32) {
        let (bin, place) = (self.bin(), self.place(id));
        let flow = &mut self.cross[place];
        let gap = self.distributions[flow.record.class()].gap.draw(bin, &mut flow.draws);
        let due = self.now + nanoseconds(gap).max(1);
        self.schedule(id, due);
    }

    /// Scheme 1: it waits until no more of its own are in the shared router than a reference flow
    /// would find there.
    fn arrive_unless_bound(&mut self, id: u32) {
        let (bin, place) = (self.bin(), self.place(id));
        let flow = &mut self.cross[place];
        let bound = self.distributions[flow.record.class()].found.draw(bin, &mut flow.draws);
        if bound.is_some_and(|bound| flow.inside > bound) {
            flow.bound = bound;
        } else {
            self.cross_arrives(id);
        }
    }

    fn cross_arrives(&mut self, id: u32) {
        let place = self.place(id);
        self.cross_is_sent(id, 0);
        let taken = self.cross_is_offered(id, 0);
        let flow = &mut self.cross[place];
        flow.good += u32::from(taken);
        if flow.good == flow.size {
            self.cross_finishes(id, self.now);
        } else {
            self.wait_for_next(id);
        }
    }

    fn cross_is_sent(&mut self, id: u32, number: u32) {
        let (now, place) = (self.now, self.place(id));
        let flow = &mut self.cross[place];
        self.probes.cross.sent(now, &mut flow.record, &packet(id, number));
        flow.sent = now;
    }

    /// A packet is offered to the shared router; says whether it was taken.
    fn cross_is_offered(&mut self, id: u32, number: u32) -> bool {
        let (now, place) = (self.now, self.place(id));
        let packet = packet(id, number);
        let held = self.shared.queue.held();
        let flow = &mut self.cross[place];
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
                let flow = &mut self.cross[place];
                flow.inside -= 1;
                self.probes.cross.dropped(now, &flow.record, &packet, false);
                false
            }
        }
    }

    /// Scheme 2: the next packet arrives if that is due now, or is scheduled.
    fn window_goes_on(&mut self, id: u32) {
        let place = self.place(id);
        if !self.cross[place].on {
            return;
        }
        match self.cross[place].window.next(&self.tcp, self.rules) {
            Next::Arrives(due) if due <= self.now => {
                self.window_sends(id);
                self.window_goes_on_later(id);
            }
            Next::Arrives(due) => self.schedule(id, due),
            Next::Over(heard) if heard <= self.now => self.window_is_over(id, heard),
            Next::Over(heard) => self.schedule(id, heard),
            Next::Waits => {}
        }
    }

    /// Whatever follows a packet has an event of its own.
    fn window_goes_on_later(&mut self, id: u32) {
        let place = self.place(id);
        match self.cross[place].window.next(&self.tcp, self.rules) {
            Next::Arrives(due) | Next::Over(due) => self.schedule(id, due.max(self.now + 1)),
            Next::Waits => {}
        }
    }

    fn window_sends(&mut self, id: u32) {
        let (now, place) = (self.now, self.place(id));
        let flow = &mut self.cross[place];
        let apart = self.paths[flow.record.class()].before.slowest();
        let number = flow.window.arrives(now, apart);
        self.cross_is_sent(id, number);
        if self.own_before.is_empty() {
            self.window_meets(id, number);
        } else {
            self.cross_takes_own_hops(id, number);
        }
        self.time_out_by_chance(place);
    }

    fn cross_takes_own_hops(&mut self, id: u32, number: u32) {
        let place = self.place(id);
        let Self { cross, probes, own_before, events, now, late, late_at_once, .. } = self;
        let flow = &mut cross[place];
        match own_before.pass(*now, &packet(id, number), &flow.record, &mut probes.cross) {
            Ok(arrives) => {
                flow.arriving.push_back((arrives, number));
                if flow.arriving.len() == 1 {
                    events.push(arrives, Event::Arrival, id);
                }
            }
            Err(lost) => {
                let heard = lost + if lost <= *now { *late_at_once } else { *late };
                flow.feedback.add(heard, number);
                events.push(heard, Event::LossFeedback, id);
            }
        }
    }

    /// A packet that has left the flow's own hops reaches the shared router.
    pub(super) fn cross_meets(&mut self, id: u32) {
        let place = self.place(id);
        let Self { cross, events, .. } = self;
        let flow = &mut cross[place];
        let Some((_, number)) = flow.arriving.pop_front() else { return };
        if let Some((next, _)) = flow.arriving.front() {
            events.push(*next, Event::Arrival, id);
        }
        self.window_meets(id, number);
        if self.cross[place].due == NEVER {
            self.window_goes_on(id);
        }
    }

    fn window_meets(&mut self, id: u32, number: u32) {
        let (now, bin, place) = (self.now, self.bin(), self.place(id));
        if !self.cross_is_offered(id, number) {
            self.window_loses(place, number);
        } else {
            let flow = &mut self.cross[place];
            let service =
                self.distributions[flow.record.class()].service.draw(bin, &mut flow.draws);
            let leaves = flow.window.taken(now, nanoseconds(service));
            match self.cross_gets_there(packet(id, number), leaves) {
                Some(back) => self.cross[place].window.leaves(number, back),
                None => self.cross[place].doomed.push(number),
            }
        }
    }

    /// A packet will have left the shared router: when its acknowledgement opens the window, unless
    /// it is lost at a hop of the flow's own.
    fn cross_gets_there(&mut self, packet: Packet, leaves: Nanos) -> Option<Nanos> {
        let place = self.place(packet.source());
        let Self { cross, probes, own_after, paths, events, late, .. } = self;
        let flow = &mut cross[place];
        let path = &paths[flow.record.class()];
        match own_after.pass(leaves + path.forward, &packet, &flow.record, &mut probes.cross) {
            Ok(next) => Some(path.after.pass(&mut flow.left_after, next) + path.around()),
            Err(lost) => {
                flow.feedback.add(lost + *late, packet.number());
                events.push(lost + *late, Event::LossFeedback, packet.source());
                None
            }
        }
    }

    /// Loss feedback from hops of its own reaches it.
    pub(super) fn cross_loss_feedback(&mut self, id: u32) {
        let (now, place) = (self.now, self.place(id));
        while let Some(number) = self.cross[place].feedback.take(now) {
            self.cross_loses(id, number);
        }
    }

    /// Timeouts have the frequency that they have on reference flows.
    fn time_out_by_chance(&mut self, place: usize) {
        let flow = &mut self.cross[place];
        let class = flow.record.class();
        if self.rules.timeout && flow.draws.chance(self.distributions[class].timeouts) {
            flow.window.times_out(self.rules);
            self.probes.cross.counters.add(class, ClassCell::Timeouts, 1);
        }
    }

    fn window_loses(&mut self, place: usize, number: u32) {
        let flow = &mut self.cross[place];
        let path = &self.paths[flow.record.class()];
        let feedback = self.now + (path.up + self.late).max(1);
        flow.window.hear(feedback, path.before.slowest(), &self.tcp, self.rules);
        flow.window.lost(number, self.rules);
    }

    fn window_is_over(&mut self, id: u32, heard: Nanos) {
        let place = self.place(id);
        let flow = &mut self.cross[place];
        let up = self.paths[flow.record.class()].up;
        flow.heard = heard - up;
        self.cross_finishes(id, heard - up);
    }

    /// The shared router serves a packet of it.
    pub(super) fn cross_leaves(&mut self, packet: Packet, leaves: Nanos) {
        let (id, place) = (packet.source(), self.place(packet.source()));
        let flow = &mut self.cross[place];
        flow.inside -= 1;
        let arrives = if self.scheme == Scheme::Windows {
            take(&mut flow.doomed, packet.number()).is_none()
        } else {
            self.cross_gets_there(packet, leaves).is_some()
        };
        let flow = &mut self.cross[place];
        if arrives {
            self.probes.cross.delivered(&flow.record, true);
        }
        if flow.bound.is_some_and(|bound| flow.inside <= bound) {
            flow.bound = None;
            self.cross_arrives(id);
        }
    }

    /// A packet of it had to go to make room for another.
    pub(super) fn cross_pushed_out(&mut self, packet: Packet) {
        let (id, place) = (packet.source(), self.place(packet.source()));
        let now = self.now;
        let flow = &mut self.cross[place];
        flow.inside -= 1;
        take(&mut flow.doomed, packet.number());
        self.probes.cross.dropped(now, &flow.record, &packet, false);
        self.cross_loses(id, packet.number());
    }

    /// A packet in flight is lost, and its sender told.
    fn cross_loses(&mut self, id: u32, number: u32) {
        let place = self.place(id);
        let flow = &mut self.cross[place];
        if !flow.on {
            return;
        }
        flow.good = flow.good.saturating_sub(1);
        if self.scheme == Scheme::Windows {
            self.window_loses(place, number);
            if self.cross[place].due == NEVER {
                self.schedule(id, self.now + 1);
            }
        }
    }

    fn cross_finishes(&mut self, id: u32, at: Nanos) {
        let place = self.place(id);
        self.active -= 1;
        let Self { cross, traffic, coupling, probes, .. } = self;
        let flow = &mut cross[place];
        let class = flow.record.class();
        let off_time = draw_off_time(&traffic[class], coupling, id, &mut flow.off_times);
        // What is left of its path behind the shared router is not told of cross flows.
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

/// Takes a number out of a list, if it is there.
fn take(numbers: &mut Vec<u32>, number: u32) -> Option<u32> {
    let at = numbers.iter().position(|known| *known == number)?;
    Some(numbers.swap_remove(at))
}
