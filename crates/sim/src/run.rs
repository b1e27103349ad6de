//! One run: sources, links and receivers in virtual time.
//!
//! A data packet's way, and where it is looked at (three events, marked *):
//!
//! ```text
//!  sender* --ingress--> [bottleneck queue]* --propagation--> --egress--> receiver
//!    ^                                                                      |
//!    +---ingress(ack)--- [return bottleneck]* <--propagation-- --egress(ack)+
//! ```
//!
//! Only where packets of different sources meet does their order matter, so only there, and where
//! an endpoint decides, is there an event. What happens to a packet between two events is
//! arithmetic: its receiver is asked when the acknowledgement reaches the return bottleneck, with
//! the time at which the packet had arrived.

use crate::access::{AccessLink, Line, Waiting};
use crate::agenda::{Agenda, Event, Role, Timer};
use crate::clock::{NEVER, Nanos, SECOND, Transmitter, transmission_time};
use crate::config::{AccessConfig, ClassConfig, RunConfig};
use crate::loss::LossProcess;
use crate::packet::{Kind, Packet};
use crate::probe::{Probes, Tap};
use crate::queue::{QueueDiscipline, Verdict};
use crate::random::{Purpose, Stream};
use crate::tcp::cc::CongestionControl;
use crate::tcp::{Receiver, Sender, TcpConfig, Transmission};
use crate::traffic::{Start, Traffic};

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// Finished transfers after the warm-up; `u64::MAX` for no such goal.
    pub transfers: u64,
    /// Virtual time.
    pub until: Nanos,
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The goal was reached.
    Done,
    /// It was told to stop.
    Interrupted,
}

/// Packets that cannot be accounted for: a fault in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "packets are not conserved: {sent} sent, but {received} received, {dropped} dropped and \
     {in_flight} in flight"
)]
pub struct NotConserved {
    sent: u64,
    received: u64,
    dropped: u64,
    in_flight: u64,
}

/// Events between two looks at whether to go on.
const EVENTS_BETWEEN_POLLS: u32 = 1 << 16;

struct Class {
    ingress: AccessLink,
    egress: AccessLink,
    /// From the bottleneck to the egress link.
    forward: Nanos,
    /// From a receiver's answer to the return bottleneck.
    to_return: Nanos,
    /// From the return bottleneck to the sender, less the transmission on the ingress link.
    back: Nanos,
    traffic: Traffic,
}

/// What each source needs on the way of its packets.
#[derive(Clone, Copy, Default)]
struct Path {
    ingress_free: Nanos,
    egress_free: Nanos,
    return_free: Nanos,
    ack_free: Nanos,
    ingress_waiting: Line,
    egress_waiting: Line,
    announced: u32,
    class: u16,
    row: u16,
}

struct SenderSide<C> {
    tcp: Sender<C>,
    connection: u32,
    size: u32,
    timer: Nanos,
}

struct ReceiverSide {
    tcp: Receiver,
    connection: u32,
    timer: Nanos,
}

struct User {
    silence: Stream,
    size: Stream,
}

/// Loss processes of access links, one a source; empty where there is no loss.
struct AccessLoss {
    ingress: Vec<Option<LossProcess>>,
    egress: Vec<Option<LossProcess>>,
}

#[derive(Default)]
struct Lifetime {
    sent: u64,
    received: u64,
    dropped: u64,
}

/// A run under way.
pub struct Simulation<C, Q> {
    tcp: TcpConfig,
    packet_bytes: u32,
    ack_bytes: u32,
    classes: Vec<Class>,
    agenda: Agenda,
    paths: Vec<Path>,
    senders: Vec<SenderSide<C>>,
    receivers: Vec<ReceiverSide>,
    users: Vec<User>,
    ingress_waiting: Waiting,
    egress_waiting: Waiting,
    queue: Q,
    link: Transmitter,
    return_link: Transmitter,
    loss: Option<LossProcess>,
    access_loss: AccessLoss,
    probes: Probes,
    lifetime: Lifetime,
    boundary: Nanos,
    measuring: bool,
    now: Nanos,
}

impl<C: CongestionControl + Default, Q: QueueDiscipline> Simulation<C, Q> {
    /// Sets a run up; replication `replication` of the configuration's seed.
    #[must_use]
    pub fn new(config: &RunConfig, queue: Q, replication: u32) -> Self {
        let class_of = class_of(&config.classes);
        let sources = class_of.len();
        let stream = |source: usize, purpose| {
            Stream::named(config.seed, replication, source as u32, purpose)
        };
        let classes: Vec<Class> = config.classes.iter().map(|c| class(c, config)).collect();
        let loss = config
            .loss
            .map(|law| LossProcess::new(law, stream(0, Purpose::BottleneckLoss)));
        let mut run = Self {
            tcp: config.tcp.clone(),
            packet_bytes: config.packet_bytes,
            ack_bytes: config.ack_bytes,
            agenda: Agenda::new(classes.len()),
            classes,
            paths: class_of
                .iter()
                .map(|c| Path {
                    class: *c,
                    ..Path::default()
                })
                .collect(),
            senders: (0..sources).map(|_| idle_sender()).collect(),
            receivers: (0..sources).map(|_| idle_receiver()).collect(),
            users: (0..sources)
                .map(|s| User {
                    silence: stream(s, Purpose::Silence),
                    size: stream(s, Purpose::Size),
                })
                .collect(),
            ingress_waiting: Waiting::default(),
            egress_waiting: Waiting::default(),
            queue,
            link: Transmitter::new(config.bottleneck_bps),
            return_link: Transmitter::new(config.bottleneck_bps),
            loss,
            access_loss: access_loss(config, &class_of, replication),
            probes: Probes::new(&config.probes, &class_of, config.classes.len()),
            lifetime: Lifetime::default(),
            boundary: config.warmup,
            measuring: false,
            now: 0,
        };
        run.schedule_starts();
        run
    }

    /// Goes on until the goal is reached or `poll` says no; it is told the share done.
    pub fn advance(&mut self, goal: Goal, poll: &mut dyn FnMut(f64) -> bool) -> Stop {
        let mut budget = EVENTS_BETWEEN_POLLS;
        loop {
            let (queue, due) = self.agenda.next();
            if due > self.boundary || due > goal.until {
                if self.boundary <= goal.until {
                    self.pass_boundary();
                    continue;
                }
                self.now = goal.until;
                return Stop::Done;
            }
            self.now = due;
            let event = self.agenda.take(queue, due);
            self.step(event);
            if self.transfers() >= goal.transfers {
                return Stop::Done;
            }
            budget -= 1;
            if budget == 0 {
                budget = EVENTS_BETWEEN_POLLS;
                if !poll(self.share_of(goal)) {
                    return Stop::Interrupted;
                }
            }
        }
    }

    /// Closes the books as of now and checks that every packet is accounted for.
    ///
    /// # Errors
    /// [`NotConserved`] if one is not.
    pub fn settle(&mut self) -> Result<&Probes, NotConserved> {
        self.queue.settle(self.now, &mut self.probes);
        let held = self.queue.held();
        self.probes.occupancy.held(held, self.now);
        self.probes.population.settle(self.now);
        self.probes.snapshot(self.now, true);
        let in_flight = self.agenda.count(|packet| packet.kind != Kind::Ack)
            + self.ingress_waiting.held()
            + self.egress_waiting.held();
        let Lifetime {
            sent,
            received,
            dropped,
        } = self.lifetime;
        if sent == received + dropped + in_flight {
            Ok(&self.probes)
        } else {
            Err(NotConserved {
                sent,
                received,
                dropped,
                in_flight,
            })
        }
    }

    /// Virtual time now.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Whether the warm-up is over.
    #[must_use]
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    fn transfers(&self) -> u64 {
        if self.measuring {
            self.probes.finished()
        } else {
            0
        }
    }

    fn share_of(&self, goal: Goal) -> f64 {
        let by_time = self.now as f64 / goal.until as f64;
        if goal.transfers == u64::MAX {
            by_time
        } else {
            by_time.max(self.transfers() as f64 / goal.transfers as f64)
        }
    }

    fn pass_boundary(&mut self) {
        self.now = self.boundary;
        self.queue.settle(self.now, &mut self.probes);
        self.probes.occupancy.held(self.queue.held(), self.now);
        if self.measuring {
            self.probes.snapshot(self.now, false);
        } else {
            self.measuring = true;
            self.probes.begin_measurement(self.now);
        }
        self.boundary = self.probes.ledger.slot_ends();
    }

    #[inline]
    fn step(&mut self, event: Event) {
        match event {
            Event::Packet(Role::AtSender, packet) => self.at_sender(packet),
            Event::Packet(Role::AtReturn | Role::AtReturnQueued, packet) => self.at_return(packet),
            Event::Packet(Role::AtBottleneck | Role::AtBottleneckQueued, packet) => {
                self.at_bottleneck(packet);
            }
            Event::Timer(Timer::Start, source) => self.start(source),
            Event::Timer(Timer::Retransmission, source) => self.retransmission_timer(source),
            Event::Timer(Timer::DelayedAck, source) => self.ack_timer(source),
        }
    }

    fn schedule_starts(&mut self) {
        let mut of_class = vec![0_usize; self.classes.len()];
        for source in 0..self.paths.len() {
            let class = self.paths[source].class as usize;
            let silence = &mut self.users[source].silence;
            let seconds = match &self.classes[class].traffic {
                Traffic::OnOff { off, .. } => off.draw(silence),
                Traffic::Bulk {
                    start: Start::Law(law),
                } => law.draw(silence),
                Traffic::Bulk {
                    start: Start::Times(times),
                } => times[of_class[class] % times.len()],
            };
            of_class[class] += 1;
            self.agenda
                .timer(Timer::Start, source as u32, nanoseconds(seconds));
        }
    }

    fn start(&mut self, source: u32) {
        let at = source as usize;
        let size = match &self.classes[self.paths[at].class as usize].traffic {
            Traffic::OnOff { size, .. } => packets(size.draw(&mut self.users[at].size)),
            Traffic::Bulk { .. } => u32::MAX - 1,
        };
        self.probes.transfer_started(self.now, source, size);
        self.paths[at].row = self.probes.size_row(source);
        let side = &mut self.senders[at];
        side.connection = side.connection.wrapping_add(1);
        side.size = size;
        let sent = side
            .tcp
            .start(self.now, size, &self.tcp, &mut self.probes.of(source));
        self.send(source, sent);
    }

    fn finish(&mut self, source: u32) {
        let at = source as usize;
        let size = self.senders[at].size;
        self.probes.transfer_finished(self.now, source, size);
        self.probes.population.death(self.now);
        if let Traffic::OnOff { off, .. } = &self.classes[self.paths[at].class as usize].traffic {
            let silence = nanoseconds(off.draw(&mut self.users[at].silence));
            self.agenda.timer(Timer::Start, source, self.now + silence);
        }
    }

    /// Hands packets to the source's own link and sets the timer.
    #[inline]
    fn send(&mut self, source: u32, sent: Transmission) {
        let connection = self.senders[source as usize].connection;
        for (number, kind) in sent.packets() {
            self.send_packet(Packet {
                source,
                connection,
                number,
                kind,
            });
        }
        let side = &mut self.senders[source as usize];
        if side.tcp.deadline() < side.timer {
            side.timer = side.tcp.deadline();
            self.agenda.timer(Timer::Retransmission, source, side.timer);
        }
    }

    #[inline]
    fn send_packet(&mut self, packet: Packet) {
        let path = &mut self.paths[packet.source as usize];
        let class = &self.classes[path.class as usize];
        self.lifetime.sent += 1;
        self.probes.sent(self.now, &packet);
        self.probes.pass(Tap::Sender, self.now, &packet);
        let link = &class.ingress;
        let lost = self.access_loss.ingress_loses(packet.source);
        if lost || !link.has_room(self.now, path.ingress_free) {
            self.lifetime.dropped += 1;
            self.probes
                .dropped_on_access(self.now, path.class as usize, &packet);
            return;
        }
        let idle = path.ingress_free <= self.now;
        path.ingress_free = path.ingress_free.max(self.now) + link.data_time;
        let due = path.ingress_free + link.delay;
        if idle {
            self.agenda
                .packet(Role::AtBottleneck, path.class as usize, due, packet);
        } else {
            self.ingress_waiting
                .push(&mut path.ingress_waiting, due, packet);
        }
    }

    #[inline]
    fn at_bottleneck(&mut self, packet: Packet) {
        let path = &mut self.paths[packet.source as usize];
        let class_at = path.class as usize;
        let class = &self.classes[class_at];
        let follows = self.now + class.ingress.data_time;
        if let Some(next) = self
            .ingress_waiting
            .pop_due(&mut path.ingress_waiting, follows)
        {
            self.agenda
                .packet(Role::AtBottleneckQueued, class_at, follows, next);
        }
        if path.announced != packet.connection {
            path.announced = packet.connection;
            self.probes.population.birth(self.now);
        }
        let row = path.row as usize;
        self.probes.pass(Tap::BottleneckIn, self.now, &packet);
        if self.loss.as_mut().is_some_and(LossProcess::loses) {
            self.queue.settle(self.now, &mut self.probes);
            self.probes
                .arrived(class_at, row, &packet, self.queue.held() as u64);
            self.lifetime.dropped += 1;
            self.probes.dropped(self.now, class_at, row, &packet, true);
            return;
        }
        let bytes = self.packet_bytes;
        let verdict = self
            .queue
            .offer(self.now, bytes, &mut self.link, &mut self.probes);
        let found = self.queue.held() as u64;
        match verdict {
            Verdict::Departs(leaves) => {
                // The queue already holds this packet, unless the link takes no time.
                let before = found.saturating_sub(1);
                self.probes.arrived(class_at, row, &packet, before);
                self.leave_bottleneck(leaves, packet);
            }
            Verdict::Dropped => {
                self.probes.arrived(class_at, row, &packet, found);
                self.lifetime.dropped += 1;
                self.probes.dropped(self.now, class_at, row, &packet, false);
            }
        }
    }

    /// From the bottleneck over the egress link to the receiver, and its answer to the return
    /// bottleneck, where the next event is.
    #[inline]
    fn leave_bottleneck(&mut self, leaves: Nanos, packet: Packet) {
        let path = &mut self.paths[packet.source as usize];
        let class = &self.classes[path.class as usize];
        self.probes.pass(Tap::BottleneckOut, leaves, &packet);
        let link = &class.egress;
        let enters = leaves + class.forward;
        let lost = self.access_loss.egress_loses(packet.source);
        if lost || !link.has_room(enters, path.egress_free) {
            self.lifetime.dropped += 1;
            self.probes
                .dropped_on_access(self.now, path.class as usize, &packet);
            return;
        }
        let idle = path.egress_free <= enters;
        path.egress_free = path.egress_free.max(enters) + link.data_time;
        let due = path.egress_free + link.delay + class.to_return;
        if idle {
            self.agenda
                .packet(Role::AtReturn, path.class as usize, due, packet);
        } else {
            self.egress_waiting
                .push(&mut path.egress_waiting, due, packet);
        }
    }

    #[inline]
    fn at_return(&mut self, packet: Packet) {
        if packet.kind == Kind::Ack {
            self.send_back(packet);
            return;
        }
        let at = packet.source as usize;
        let path = &mut self.paths[at];
        let class_at = path.class as usize;
        let class = &self.classes[class_at];
        let follows = self.now + class.egress.data_time;
        if let Some(next) = self
            .egress_waiting
            .pop_due(&mut path.egress_waiting, follows)
        {
            self.agenda
                .packet(Role::AtReturnQueued, class_at, follows, next);
        }
        let arrived = self.now - class.to_return;
        let endless = matches!(class.traffic, Traffic::Bulk { .. });
        self.lifetime.received += 1;
        self.probes.pass(Tap::Receiver, arrived, &packet);
        let side = &mut self.receivers[at];
        if side.connection != packet.connection {
            side.connection = packet.connection;
            side.tcp.start();
        }
        let arrival = side.tcp.on_data(arrived, packet.number, &self.tcp);
        self.probes
            .delivered(class_at, packet.source, arrival.distinct, endless);
        if let Some(ack) = arrival.ack {
            self.acknowledge(packet.source, packet.connection, ack);
        } else if side.tcp.ack_deadline() + class.to_return < side.timer {
            side.timer = side.tcp.ack_deadline() + class.to_return;
            self.agenda
                .timer(Timer::DelayedAck, packet.source, side.timer);
        }
    }

    /// A receiver's answer, sent so that it is at the return bottleneck now unless its own link
    /// is still busy with the answer before.
    #[inline]
    fn acknowledge(&mut self, source: u32, connection: u32, number: u32) {
        let ack = Packet {
            source,
            connection,
            number,
            kind: Kind::Ack,
        };
        let path = &mut self.paths[source as usize];
        let class = &self.classes[path.class as usize];
        self.probes
            .pass(Tap::Receiver, self.now - class.to_return, &ack);
        let reaches = self.now.max(path.return_free + class.egress.ack_time);
        path.return_free = reaches;
        if reaches == self.now {
            self.send_back(ack);
        } else {
            let class_at = path.class as usize;
            self.agenda.packet(Role::AtReturn, class_at, reaches, ack);
        }
    }

    #[inline]
    fn send_back(&mut self, ack: Packet) {
        let path = &mut self.paths[ack.source as usize];
        let class = &self.classes[path.class as usize];
        self.probes.pass(Tap::BottleneckOut, self.now, &ack);
        let leaves = self.return_link.transmit(self.now, self.ack_bytes);
        self.probes.pass(Tap::BottleneckIn, leaves, &ack);
        path.ack_free = path.ack_free.max(leaves + class.back) + class.ingress.ack_time;
        self.agenda
            .packet(Role::AtSender, path.class as usize, path.ack_free, ack);
    }

    #[inline]
    fn at_sender(&mut self, packet: Packet) {
        let source = packet.source;
        self.probes.pass(Tap::Sender, self.now, &packet);
        let side = &mut self.senders[source as usize];
        if side.connection != packet.connection || side.tcp.finished() {
            return;
        }
        let probe = &mut self.probes.of(source);
        let sent = side.tcp.on_ack(self.now, packet.number, &self.tcp, probe);
        if side.tcp.finished() {
            self.finish(source);
        } else {
            self.send(source, sent);
        }
    }

    fn retransmission_timer(&mut self, source: u32) {
        let side = &mut self.senders[source as usize];
        if side.timer != self.now {
            return;
        }
        side.timer = NEVER;
        if side.tcp.deadline() <= self.now {
            let probe = &mut self.probes.of(source);
            let sent = side.tcp.on_timer(self.now, &self.tcp, probe);
            self.send(source, sent);
        } else {
            // The deadline has moved on since the timer was set.
            self.send(source, Transmission::default());
        }
    }

    fn ack_timer(&mut self, source: u32) {
        let at = source as usize;
        let to_return = self.classes[self.paths[at].class as usize].to_return;
        let side = &mut self.receivers[at];
        if side.timer != self.now {
            return;
        }
        side.timer = NEVER;
        let deadline = side.tcp.ack_deadline();
        if deadline == NEVER {
            return;
        }
        if deadline + to_return <= self.now {
            if let Some(ack) = side.tcp.on_timer() {
                let connection = side.connection;
                self.acknowledge(source, connection, ack);
            }
        } else {
            side.timer = deadline + to_return;
            self.agenda.timer(Timer::DelayedAck, source, side.timer);
        }
    }
}

impl AccessLoss {
    #[inline]
    fn ingress_loses(&mut self, source: u32) -> bool {
        loses(&mut self.ingress, source)
    }

    #[inline]
    fn egress_loses(&mut self, source: u32) -> bool {
        loses(&mut self.egress, source)
    }
}

#[inline]
fn loses(processes: &mut [Option<LossProcess>], source: u32) -> bool {
    let process = processes.get_mut(source as usize).and_then(Option::as_mut);
    process.is_some_and(LossProcess::loses)
}

fn access_loss(config: &RunConfig, class_of: &[u16], replication: u32) -> AccessLoss {
    let side = |purpose: Purpose, link: fn(&ClassConfig) -> &AccessConfig| {
        if config
            .classes
            .iter()
            .all(|class| link(class).loss.is_none())
        {
            return Vec::new();
        }
        let process = |(source, class): (usize, &u16)| {
            let law = link(&config.classes[*class as usize]).loss?;
            let stream = Stream::named(config.seed, replication, source as u32, purpose);
            Some(LossProcess::new(law, stream))
        };
        class_of.iter().enumerate().map(process).collect()
    };
    AccessLoss {
        ingress: side(Purpose::IngressLoss, |class| &class.ingress),
        egress: side(Purpose::EgressLoss, |class| &class.egress),
    }
}

fn class_of(classes: &[ClassConfig]) -> Vec<u16> {
    let of =
        |(at, class): (usize, &ClassConfig)| std::iter::repeat_n(at as u16, class.sources as usize);
    classes.iter().enumerate().flat_map(of).collect()
}

fn class(class: &ClassConfig, config: &RunConfig) -> Class {
    let link = |access: &AccessConfig| AccessLink {
        data_time: transmission_time(config.packet_bytes, access.rate_bps),
        ack_time: transmission_time(config.ack_bytes, access.rate_bps),
        delay: access.delay,
        limit: access.limit,
    };
    let (ingress, egress) = (link(&class.ingress), link(&class.egress));
    Class {
        ingress,
        egress,
        forward: class.forward,
        to_return: egress.ack_time + egress.delay,
        back: class.back + ingress.delay,
        traffic: class.traffic.clone(),
    }
}

fn idle_sender<C: CongestionControl + Default>() -> SenderSide<C> {
    SenderSide {
        tcp: Sender::default(),
        connection: 0,
        size: 0,
        timer: NEVER,
    }
}

fn idle_receiver() -> ReceiverSide {
    ReceiverSide {
        tcp: Receiver::default(),
        connection: 0,
        timer: NEVER,
    }
}

/// Seconds to nanoseconds; what is longer than 100 years never comes.
fn nanoseconds(seconds: f64) -> Nanos {
    const HUNDRED_YEARS: f64 = 3.2e9;
    (seconds.clamp(0.0, HUNDRED_YEARS) * SECOND as f64) as Nanos
}

/// A drawn size as whole packets: the nearest, at least one.
fn packets(size: f64) -> u32 {
    libm::round(size).clamp(1.0, f64::from(u32::MAX - 1)) as u32
}
