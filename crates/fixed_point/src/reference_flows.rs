//! Event handlers of reference flows, with the sender of the packet engine and the path of the
//! recursion. The handlers also measure the distributions used by cross flows.

use crate::events::Event;
use crate::run::{FixedPoint, draw_off_time, draw_size, is_persistent};
use tcpcast_sim::clock::{NEVER, Nanos, SECOND, nanoseconds};
use tcpcast_sim::probe::{ClassCell, Listener, Probes};
use tcpcast_sim::queue::QueueDiscipline;
use tcpcast_sim::tcp::{Idle, MaxPlus, SendingEnd, TcpConfig, Transmission};
use tcpcast_sim::{Kind, Label, Packet};

impl<Q: QueueDiscipline> FixedPoint<Q> {
    /// Starts a file.
    pub(super) fn reference_starts_file(&mut self, id: u32) {
        let (at, index) = (self.reference_now(id), id as usize);
        self.active += 1;
        self.probes.reference.population.birth(self.now);
        let Self { references, probes, traffic, coupling, .. } = self;
        let flow = &mut references[index];
        if flow.size == 0 {
            let traffic = &traffic[flow.record.class()];
            flow.size = draw_size(traffic, coupling, id, &mut flow.sizes);
        }
        let (size, reuse) = (flow.size, flow.connected && flow.sender.has_numbers(flow.size));
        probes.reference.transfer_started(at, &mut flow.record, size);
        flow.gap_since = at;
        flow.connected = true;
        let off_time = Idle {
            since_ack: at.saturating_sub(flow.last_ack),
            since_sent: at.saturating_sub(flow.sent),
        };
        self.notify(at, id, |sender, tcp, listener| {
            if reuse {
                sender.resume(at, size, off_time, tcp, listener)
            } else {
                sender.start(at, size, tcp, listener)
            }
        });
    }

    /// Time at the sender. All events of a sender are processed later by the upstream delay, the
    /// time that a packet takes from the sender to the shared router or to the first per-source
    /// hop.
    fn reference_now(&self, id: u32) -> Nanos {
        self.now - self.up_delay(id)
    }

    fn up_delay(&self, id: u32) -> Nanos {
        self.paths[self.references[id as usize].record.class()].up_delay
    }

    fn notify(
        &mut self,
        at: Nanos,
        id: u32,
        call: impl FnOnce(&mut MaxPlus, &TcpConfig, &mut Listener<'_>) -> Transmission,
    ) {
        let Self { references, probes, tcp, .. } = self;
        let flow = &mut references[id as usize];
        let listener = &mut Listener::new(&mut probes.reference, &mut flow.record, id);
        let sent = call(&mut flow.sender, tcp, listener);
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
            events.push(deadline + paths[flow.record.class()].up_delay, Event::Timer, id);
        }
    }

    fn reference_sends_one(&mut self, at: Nanos, id: u32, number: u32) {
        let Self {
            references, probes, paths, pre_hops, events, loss_delay, resend_delay, now, ..
        } = self;
        let (flow, probes) = (&mut references[id as usize], &mut probes.reference);
        let path = &paths[flow.record.class()];
        let packet = packet(id, number);
        probes.sent(at, &mut flow.record, &packet);
        flow.sent = at;
        let entry = path.before.pass(&mut flow.left_before, at);
        match pre_hops.pass(entry, &packet, &flow.record, probes) {
            Ok(arrives) if arrives == *now && flow.arriving.is_empty() => {
                self.reference_enters_router(id, number);
            }
            Ok(arrives) => {
                flow.arriving.push_back((arrives, number));
                if flow.arriving.len() == 1 {
                    events.push(arrives, Event::Arrival, id);
                }
            }
            Err(lost) => {
                let due =
                    path.up_delay + lost + if lost <= at { *resend_delay } else { *loss_delay };
                flow.feedback.add(due, number);
                events.push(due, Event::LossFeedback, id);
            }
        }
    }

    pub(super) fn reference_timer(&mut self, id: u32) {
        let (at, up) = (self.reference_now(id), self.up_delay(id));
        let flow = &mut self.references[id as usize];
        if flow.timer != at {
            return;
        }
        flow.timer = NEVER;
        let deadline = flow.sender.deadline();
        if deadline <= at {
            self.notify(at, id, |sender, tcp, listener| sender.on_timer(at, tcp, listener));
        } else if deadline != NEVER {
            flow.timer = deadline;
            self.events.push(deadline + up, Event::Timer, id);
        }
    }

    /// Handles the arrival of a queued packet at the shared router, and schedules the next arrival.
    pub(super) fn reference_arrives(&mut self, id: u32) {
        let Self { references, events, .. } = self;
        let flow = &mut references[id as usize];
        let Some((_, number)) = flow.arriving.pop_front() else { return };
        if let Some((next, _)) = flow.arriving.front() {
            events.push(*next, Event::Arrival, id);
        }
        self.reference_enters_router(id, number);
    }

    /// Offers a packet to the shared router.
    fn reference_enters_router(&mut self, id: u32, number: u32) {
        let (now, bin) = (self.now, self.bin());
        let Self { references, distributions, probes, .. } = self;
        let flow = &mut references[id as usize];
        let class = flow.record.class();
        let own_backlog = flow.inside.len();
        distributions[class].measured_gap.add(bin, seconds(now - flow.gap_since));
        distributions[class].own_backlog.add(bin, own_backlog);
        flow.gap_since = now;
        probes.reference.counters.add(class, ClassCell::OwnFound, own_backlog as u64);
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

    /// Handles the departure from the shared router, which determines the service time of the
    /// recursion.
    pub(super) fn reference_leaves(&mut self, packet: Packet, leaves: Nanos) {
        let (bin, id) = (self.bin(), packet.source());
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
        let Some(arrived) = flow.take(packet.number()) else { return };
        let class = flow.record.class();
        let service = leaves - arrived.max(flow.left_shared).min(leaves);
        distributions[class].measured_service.add(bin, seconds(service));
        probes.counters.add(class, ClassCell::Service, service);
        probes.counters.add(class, ClassCell::Inside, leaves - arrived);
        flow.left_shared = leaves;
        let path = &paths[class];
        let next = leaves + path.forward;
        let arrives = match post_hops.pass(next, &packet, &flow.record, probes) {
            Ok(next) => path.after.pass(&mut flow.left_after, next),
            Err(lost) => {
                let due = path.up_delay + lost + *loss_delay;
                flow.feedback.add(due, packet.number());
                events.push(due, Event::LossFeedback, id);
                return;
            }
        };
        probes.delivered(&flow.record, true);
        flow.record.on_data(arrives, true);
        if *blocks {
            probes.delivered_in_block(arrives, &flow.record, id);
        }
        flow.record.packets += u64::from(flow.size == u32::MAX - 1);
        let due = arrives + path.ack_path_delay();
        flow.acks.push_back((due, packet.number()));
        if flow.acks.len() == 1 {
            events.push(due, Event::Ack, id);
        }
    }

    /// Handles the drop of a packet at the shared router, with instantaneous loss feedback.
    pub(super) fn reference_loses(&mut self, lost: Packet) {
        let (now, id) = (self.now, lost.source());
        let (flow, probes) = (&mut self.references[id as usize], &mut self.probes.reference);
        let inside = flow.take(lost.number()).map_or(0, |arrived| now - arrived);
        probes.counters.add(flow.record.class(), ClassCell::Inside, inside);
        probes.dropped(now, &flow.record, &lost, false);
        let due = now + self.loss_delay + self.up_delay(id);
        self.references[id as usize].feedback.add(due, lost.number());
        self.events.push(due, Event::LossFeedback, id);
    }

    /// Passes loss feedback to the sender.
    pub(super) fn reference_loss_feedback(&mut self, id: u32) {
        let at = self.reference_now(id);
        while let Some(number) = self.references[id as usize].feedback.take(self.now) {
            self.notify(at, id, |sender, tcp, listener| sender.on_loss(at, number, tcp, listener));
        }
    }

    /// Passes an ACK to the sender.
    pub(super) fn reference_ack(&mut self, id: u32) {
        let at = self.reference_now(id);
        let Self { references, events, .. } = self;
        let flow = &mut references[id as usize];
        let Some((_, number)) = flow.acks.pop_front() else { return };
        if let Some((next, _)) = flow.acks.front() {
            events.push(*next, Event::Ack, id);
        }
        flow.last_ack = at;
        self.notify(at, id, |sender, tcp, listener| sender.on_ack(at, number, &(), tcp, listener));
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
        distributions[class].measured_gap.add_to_sum_only(bin, seconds(at - flow.gap_since));
        flow.connected = is_persistent(&traffic[class]);
        flow.size = 0;
        note_off_time(&mut probes.reference, class, off_time);
        if off_time < NEVER {
            events.push(*now + off_time, Event::FileStart, id);
        }
    }
}

/// Counts the start of an OFF time.
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
