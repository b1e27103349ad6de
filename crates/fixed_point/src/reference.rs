//! What happens to a reference flow: its sender is the packet engine's, its path the recursion. On
//! it the distributions are measured that cross flows go by.

use crate::events::Event;
use crate::run::{FixedPoint, draw_off_time, draw_size, is_persistent};
use tcpcast_sim::clock::{NEVER, Nanos, SECOND, nanoseconds};
use tcpcast_sim::probe::{ClassCell, Listener, Probes};
use tcpcast_sim::queue::QueueDiscipline;
use tcpcast_sim::tcp::{Idle, MaxPlus, SendingEnd, TcpConfig, Transmission};
use tcpcast_sim::{Kind, Label, Packet};

impl<Q: QueueDiscipline> FixedPoint<Q> {
    /// A file begins.
    pub(super) fn reference_clicks(&mut self, id: u32) {
        let (at, place) = (self.reference_now(id), id as usize);
        self.active += 1;
        self.probes.reference.population.birth(self.now);
        let Self { references, probes, traffic, coupling, .. } = self;
        let flow = &mut references[place];
        if flow.size == 0 {
            let traffic = &traffic[flow.record.class()];
            flow.size = draw_size(traffic, coupling, id, &mut flow.sizes);
        }
        let (size, goes_on) = (flow.size, flow.connected && flow.sender.has_numbers(flow.size));
        probes.reference.transfer_started(at, &mut flow.record, size);
        flow.gap_since = at;
        flow.connected = true;
        let off_time = Idle {
            since_ack: at.saturating_sub(flow.heard),
            since_sent: at.saturating_sub(flow.sent),
        };
        self.ask(at, id, |sender, tcp, listener| {
            if goes_on {
                sender.resume(at, size, off_time, tcp, listener)
            } else {
                sender.start(at, size, tcp, listener)
            }
        });
    }

    /// The time at its sender, of which all events are as late as a packet gets from there to the
    /// shared router, or to its own hops before that.
    fn reference_now(&self, id: u32) -> Nanos {
        self.now - self.up(id)
    }

    fn up(&self, id: u32) -> Nanos {
        self.paths[self.references[id as usize].record.class()].up
    }

    fn ask(
        &mut self,
        at: Nanos,
        id: u32,
        question: impl FnOnce(&mut MaxPlus, &TcpConfig, &mut Listener<'_>) -> Transmission,
    ) {
        let Self { references, probes, tcp, .. } = self;
        let flow = &mut references[id as usize];
        let listener = &mut Listener::new(&mut probes.reference, &mut flow.record, id);
        let sent = question(&mut flow.sender, tcp, listener);
        self.reference_sends(at, id, sent);
    }

    fn reference_sends(&mut self, at: Nanos, id: u32, sent: Transmission) {
        for number in sent.from..sent.from + sent.count {
            self.reference_sends_one(at, id, number);
        }
        let Self { references, events, paths, .. } = self;
        let flow = &mut references[id as usize];
        let deadline = flow.sender.deadline();
        if deadline < flow.timer {
            flow.timer = deadline;
            events.push(deadline + paths[flow.record.class()].up, Event::Timer, id);
        }
    }

    fn reference_sends_one(&mut self, at: Nanos, id: u32, number: u32) {
        let Self { references, probes, paths, own_before, events, late, late_at_once, now, .. } =
            self;
        let (flow, probes) = (&mut references[id as usize], &mut probes.reference);
        let path = &paths[flow.record.class()];
        let packet = packet(id, number);
        probes.sent(at, &mut flow.record, &packet);
        flow.sent = at;
        let door = path.before.pass(&mut flow.left_before, at);
        match own_before.pass(door, &packet, &flow.record, probes) {
            Ok(arrives) if arrives == *now && flow.arriving.is_empty() => {
                self.reference_meets(id, number);
            }
            Ok(arrives) => {
                flow.arriving.push_back((arrives, number));
                if flow.arriving.len() == 1 {
                    events.push(arrives, Event::Arrival, id);
                }
            }
            Err(lost) => {
                let heard = path.up + lost + if lost <= at { *late_at_once } else { *late };
                flow.feedback.add(heard, number);
                events.push(heard, Event::LossFeedback, id);
            }
        }
    }

    pub(super) fn reference_timer(&mut self, id: u32) {
        let (at, up) = (self.reference_now(id), self.up(id));
        let flow = &mut self.references[id as usize];
        if flow.timer != at {
            return;
        }
        flow.timer = NEVER;
        let deadline = flow.sender.deadline();
        if deadline <= at {
            self.ask(at, id, |sender, tcp, listener| sender.on_timer(at, tcp, listener));
        } else if deadline != NEVER {
            flow.timer = deadline;
            self.events.push(deadline + up, Event::Timer, id);
        }
    }

    /// A packet of it reaches the shared router, before which it was not alone.
    pub(super) fn reference_arrives(&mut self, id: u32) {
        let Self { references, events, .. } = self;
        let flow = &mut references[id as usize];
        let Some((_, number)) = flow.arriving.pop_front() else { return };
        if let Some((next, _)) = flow.arriving.front() {
            events.push(*next, Event::Arrival, id);
        }
        self.reference_meets(id, number);
    }

    /// A packet of it is at the shared router.
    fn reference_meets(&mut self, id: u32, number: u32) {
        let (now, bin) = (self.now, self.bin());
        let Self { references, distributions, probes, .. } = self;
        let flow = &mut references[id as usize];
        let class = flow.record.class();
        let found = flow.inside.len();
        distributions[class].measured_gap.add(bin, seconds(now - flow.gap_since));
        distributions[class].found.add(bin, found);
        flow.gap_since = now;
        probes.reference.counters.add(class, ClassCell::OwnFound, found as u64);
        let packet = packet(id, number);
        let held = self.shared.queue.held();
        match self.offer(packet) {
            None => {
                self.probes.reference.arrived(&self.references[id as usize].record, &packet, held);
                self.reference_loses(packet);
            }
            Some(leaves) => {
                let flow = &mut self.references[id as usize];
                self.probes.reference.arrived(&flow.record, &packet, held);
                flow.inside.push_back((now, number));
                if let Some(leaves) = leaves {
                    self.reference_leaves(packet, leaves);
                }
            }
        }
    }

    /// The shared router serves a packet of it, so that the recursion has its service time.
    pub(super) fn reference_leaves(&mut self, packet: Packet, leaves: Nanos) {
        let (bin, id) = (self.bin(), packet.source());
        let Self {
            references, events, distributions, probes, paths, own_after, blocks, late, ..
        } = self;
        let (flow, probes) = (&mut references[id as usize], &mut probes.reference);
        let Some(came) = flow.take(packet.number()) else { return };
        let class = flow.record.class();
        let service = leaves - came.max(flow.left_shared).min(leaves);
        distributions[class].measured_service.add(bin, seconds(service));
        probes.counters.add(class, ClassCell::Service, service);
        probes.counters.add(class, ClassCell::Inside, leaves - came);
        flow.left_shared = leaves;
        let path = &paths[class];
        let next = leaves + path.forward;
        let arrives = match own_after.pass(next, &packet, &flow.record, probes) {
            Ok(next) => path.after.pass(&mut flow.left_after, next),
            Err(lost) => {
                let heard = path.up + lost + *late;
                flow.feedback.add(heard, packet.number());
                events.push(heard, Event::LossFeedback, id);
                return;
            }
        };
        probes.delivered(&flow.record, true);
        flow.record.on_data(arrives, true);
        if *blocks {
            probes.delivered_in_block(arrives, &flow.record, id);
        }
        flow.record.packets += u64::from(flow.size == u32::MAX - 1);
        let heard = arrives + path.around();
        flow.coming.push_back((heard, packet.number()));
        if flow.coming.len() == 1 {
            events.push(heard, Event::Ack, id);
        }
    }

    /// A packet of it was dropped, of which it is told at once.
    pub(super) fn reference_loses(&mut self, lost: Packet) {
        let (now, id) = (self.now, lost.source());
        let (flow, probes) = (&mut self.references[id as usize], &mut self.probes.reference);
        let inside = flow.take(lost.number()).map_or(0, |came| now - came);
        probes.counters.add(flow.record.class(), ClassCell::Inside, inside);
        probes.dropped(now, &flow.record, &lost, false);
        let heard = now + self.late + self.up(id);
        self.references[id as usize].feedback.add(heard, lost.number());
        self.events.push(heard, Event::LossFeedback, id);
    }

    /// Loss feedback reaches its sender.
    pub(super) fn reference_loss_feedback(&mut self, id: u32) {
        let at = self.reference_now(id);
        while let Some(number) = self.references[id as usize].feedback.take(self.now) {
            self.ask(at, id, |sender, tcp, listener| sender.on_loss(at, number, tcp, listener));
        }
    }

    /// An acknowledgement reaches its sender.
    pub(super) fn reference_hears(&mut self, id: u32) {
        let at = self.reference_now(id);
        let Self { references, events, .. } = self;
        let flow = &mut references[id as usize];
        let Some((_, number)) = flow.coming.pop_front() else { return };
        if let Some((next, _)) = flow.coming.front() {
            events.push(*next, Event::Ack, id);
        }
        flow.heard = at;
        self.ask(at, id, |sender, tcp, listener| sender.on_ack(at, number, &(), tcp, listener));
        if self.references[id as usize].sender.finished() {
            self.reference_finishes(id);
        }
    }

    fn reference_finishes(&mut self, id: u32) {
        let (at, bin) = (self.reference_now(id), self.bin());
        self.active -= 1;
        let Self { references, events, distributions, probes, now, traffic, coupling, .. } = self;
        let flow = &mut references[id as usize];
        let class = flow.record.class();
        let off_time = draw_off_time(&traffic[class], coupling, id, &mut flow.off_times);
        probes.reference.transfer_finished(at, &mut flow.record, flow.size);
        probes.reference.population.death(*now);
        distributions[class].measured_gap.add_beside(bin, seconds(at - flow.gap_since));
        flow.connected = is_persistent(&traffic[class]);
        flow.size = 0;
        note_off_time(&mut probes.reference, class, off_time);
        if off_time < NEVER {
            events.push(*now + off_time, Event::FileStart, id);
        }
    }
}

/// An OFF time begins.
pub(super) fn note_off_time(probes: &mut Probes, class: usize, off_time: Nanos) {
    if off_time < nanoseconds(1e9) {
        probes.counters.add(class, ClassCell::OffTimes, 1);
        probes.counters.add(class, ClassCell::OffTime, off_time);
    }
}

pub(super) fn packet(source: u32, number: u32) -> Packet {
    Packet::new(source, 1, number, Label::new(Kind::Data, 0))
}

pub(super) fn seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}
