//! One run: sources, links and receivers in virtual time.
//!
//! A data packet's way, and where it is looked at (marked *):
//!
//! ```text
//!  sender* --ingress--> [bottleneck queue]* --propagation--> --egress--> receiver
//!    ^                                                                      |
//!    +---ingress(ack)--- [return bottleneck]  <--propagation-- --egress(ack)+
//! ```
//!
//! Only where packets of different sources meet does their order matter, so there is one event a
//! packet: its arrival at the bottleneck. What an acknowledgement makes its sender send is worked
//! out in the event in which it arrives there, and what that packet's predecessor made its
//! receiver answer as well: everything between two meetings concerns one source alone, and is
//! arithmetic. Endpoints are asked late, but with the time at which they would have been asked.
//!
//! Two spans say how late. `lead_in` is the shortest time from a sender to the bottleneck, `lead`
//! that from the return bottleneck, where acknowledgements meet, to the bottleneck. Whatever takes
//! longer (a second packet of a burst, a class that is farther away, an acknowledgement that had
//! to wait) gets an event of its own.

use crate::access::{Line, Waiting};
use crate::agenda::{Agenda, Event, Role, Timer};
use crate::clock::{NEVER, Nanos, SECOND, Transmitter};
use crate::config::RunConfig;
use crate::loss::LossProcess;
use crate::packet::{Kind, Packet};
use crate::probe::{Probes, Tap};
use crate::queue::{QueueDiscipline, Verdict};
use crate::random::{Purpose, Stream};
use crate::tcp::cc::CongestionControl;
use crate::tcp::{Receiver, Sender, TcpConfig, Transmission};
use crate::traffic::{Start, Traffic};
use crate::way::{AccessLoss, Way, class_of};

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

#[derive(Default)]
struct Lifetime {
    sent: u64,
    received: u64,
    dropped: u64,
}

/// A run under way.
pub struct Simulation<C, Q> {
    agenda: Agenda,
    now: Nanos,
    /// What is due later than this is none of the loop's business.
    limit: Nanos,
    boundary: Nanos,
    measuring: bool,
    wanted: u64,
    tcp: TcpConfig,
    packet_bytes: u32,
    ack_bytes: u32,
    /// From a sender to the bottleneck, for the class that is nearest.
    lead_in: Nanos,
    /// From the return bottleneck over the sender to the bottleneck, likewise.
    lead: Nanos,
    ways: Vec<Way>,
    paths: Vec<Path>,
    senders: Vec<SenderSide<C>>,
    receivers: Vec<ReceiverSide>,
    ingress_waiting: Waiting,
    egress_waiting: Waiting,
    queue: Q,
    link: Transmitter,
    return_link: Transmitter,
    loss: Option<LossProcess>,
    access_loss: AccessLoss,
    probes: Probes,
    lifetime: Lifetime,
    traffic: Vec<Traffic>,
    users: Vec<User>,
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
        let user = |source| User {
            silence: stream(source, Purpose::Silence),
            size: stream(source, Purpose::Size),
        };
        let ways: Vec<Way> = config.classes.iter().map(|class| Way::new(class, config)).collect();
        let lead_in = ways.iter().map(Way::to_bottleneck).min().unwrap_or(0);
        let from_return = ways.iter().map(Way::from_return).min().unwrap_or(0);
        let loss = |law| LossProcess::new(law, stream(0, Purpose::BottleneckLoss));
        let return_link = Transmitter::new(config.bottleneck_bps);
        let mut run = Self {
            agenda: Agenda::new(ways.len()),
            now: 0,
            limit: 0,
            boundary: config.warmup,
            measuring: false,
            wanted: u64::MAX,
            tcp: config.tcp.clone(),
            packet_bytes: config.packet_bytes,
            ack_bytes: config.ack_bytes,
            lead_in,
            lead: return_link.time_when_idle(config.ack_bytes) + from_return + lead_in,
            ways,
            paths: class_of.iter().map(|class| Path { class: *class, ..Path::default() }).collect(),
            senders: (0..sources).map(|_| idle_sender()).collect(),
            receivers: (0..sources).map(|_| idle_receiver()).collect(),
            ingress_waiting: Waiting::default(),
            egress_waiting: Waiting::default(),
            queue,
            link: Transmitter::new(config.bottleneck_bps),
            return_link,
            loss: config.loss.map(loss),
            access_loss: AccessLoss::new(config, &class_of, replication),
            probes: Probes::new(&config.probes, &class_of, config.classes.len()),
            lifetime: Lifetime::default(),
            traffic: config.classes.iter().map(|class| class.traffic.clone()).collect(),
            users: (0..sources).map(user).collect(),
        };
        run.schedule_starts();
        run
    }

    /// Goes on until the goal is reached or `poll` says no; it is told the share done.
    pub fn advance(&mut self, goal: Goal, poll: &mut dyn FnMut(f64) -> bool) -> Stop {
        self.wanted = goal.transfers;
        self.limit = self.boundary.min(goal.until);
        if self.transfers() >= goal.transfers {
            return Stop::Done;
        }
        let mut budget = EVENTS_BETWEEN_POLLS;
        loop {
            let (queue, due) = self.agenda.next();
            if due > self.limit {
                if self.pass_limit(goal) {
                    return Stop::Done;
                }
                continue;
            }
            self.now = due;
            match self.agenda.role(queue) {
                Some(Role::AtReturn | Role::AtReturnQueued) => {
                    let packet = self.agenda.take(queue, due);
                    self.at_return(packet);
                }
                Some(Role::AtBottleneck | Role::AtBottleneckQueued) => {
                    let packet = self.agenda.take(queue, due);
                    self.at_bottleneck(packet);
                }
                Some(Role::AtSender) => {
                    let packet = self.agenda.take(queue, due);
                    self.at_sender(packet);
                }
                None => self.from_heap(queue, due),
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
        self.settle_queue();
        self.probes.population.settle(self.now);
        self.probes.snapshot(self.now, true);
        let in_flight = self.agenda.count(|packet| packet.kind != Kind::Ack)
            + self.ingress_waiting.held()
            + self.egress_waiting.held();
        let Lifetime { sent, received, dropped } = self.lifetime;
        if sent == received + dropped + in_flight {
            Ok(&self.probes)
        } else {
            Err(NotConserved { sent, received, dropped, in_flight })
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
        if self.measuring { self.probes.finished() } else { 0 }
    }

    fn share_of(&self, goal: Goal) -> f64 {
        let by_time = self.now as f64 / goal.until as f64;
        by_time.max(self.transfers() as f64 / goal.transfers as f64)
    }

    #[inline(never)]
    fn from_heap(&mut self, queue: usize, due: Nanos) {
        match self.agenda.take_from_heap(queue, due) {
            Event::Packet(Role::AtReturn | Role::AtReturnQueued, packet) => self.at_return(packet),
            Event::Packet(Role::AtBottleneck | Role::AtBottleneckQueued, packet) => {
                self.at_bottleneck(packet);
            }
            Event::Packet(Role::AtSender, packet) => self.at_sender(packet),
            Event::Timer(Timer::Start, source) => self.start(source),
            Event::Timer(Timer::Retransmission, source) => self.retransmission_timer(source),
            Event::Timer(Timer::DelayedAck, source) => self.ack_timer(source),
        }
    }

    /// Nothing is due before the limit: the goal is reached, or a slot or the warm-up is over.
    #[inline(never)]
    fn pass_limit(&mut self, goal: Goal) -> bool {
        if self.transfers() >= goal.transfers {
            return true;
        }
        if self.boundary > goal.until {
            self.now = goal.until;
            return true;
        }
        self.now = self.boundary;
        self.settle_queue();
        if self.measuring {
            self.probes.snapshot(self.now, false);
        } else {
            self.measuring = true;
            self.probes.begin_measurement(self.now);
        }
        self.boundary = self.probes.ledger.slot_ends();
        self.limit = self.boundary.min(goal.until);
        false
    }

    fn settle_queue(&mut self) {
        self.queue.settle(self.now, &mut self.probes);
        self.probes.occupancy.held(self.queue.held(), self.now);
    }

    fn schedule_starts(&mut self) {
        let mut of_class = vec![0_usize; self.ways.len()];
        for source in 0..self.paths.len() {
            let class = self.paths[source].class as usize;
            let silence = &mut self.users[source].silence;
            let seconds = match &self.traffic[class] {
                Traffic::OnOff { off, .. } => off.draw(silence),
                Traffic::Bulk { start: Start::Law(law) } => law.draw(silence),
                Traffic::Bulk { start: Start::Times(times) } => {
                    times[of_class[class] % times.len()]
                }
            };
            of_class[class] += 1;
            let start = nanoseconds(seconds) + self.lead_in;
            self.agenda.timer(Timer::Start, source as u32, start);
        }
    }

    fn start(&mut self, source: u32) {
        let at = source as usize;
        let size = match &self.traffic[self.paths[at].class as usize] {
            Traffic::OnOff { size, .. } => packets(size.draw(&mut self.users[at].size)),
            Traffic::Bulk { .. } => u32::MAX - 1,
        };
        let now = self.now - self.lead_in;
        self.probes.transfer_started(now, source, size);
        self.paths[at].row = self.probes.size_row(source);
        let side = &mut self.senders[at];
        side.connection = side.connection.wrapping_add(1);
        side.size = size;
        let sent = side.tcp.start(now, size, &self.tcp, &mut self.probes.of(source));
        self.send(source, sent);
    }

    #[inline(never)]
    fn finish(&mut self, source: u32) {
        let at = source as usize;
        let size = self.senders[at].size;
        let now = self.now - self.lead_in;
        self.probes.transfer_finished(now, source, size);
        self.probes.population.death(now);
        if let Traffic::OnOff { off, .. } = &self.traffic[self.paths[at].class as usize] {
            let silence = nanoseconds(off.draw(&mut self.users[at].silence));
            self.agenda.timer(Timer::Start, source, self.now + silence);
        }
        if self.transfers() >= self.wanted {
            self.limit = 0;
        }
    }

    /// Hands packets to the source's own link and sets the timer.
    #[inline(always)]
    fn send(&mut self, source: u32, sent: Transmission) {
        let connection = self.senders[source as usize].connection;
        if sent.retransmit != 0 {
            let (number, kind) = (sent.retransmit, Kind::Retransmission);
            self.retransmit(Packet { source, connection, number, kind });
        }
        for number in sent.from..sent.from + sent.count {
            let kind = if number < sent.fresh_from { Kind::Retransmission } else { Kind::Data };
            self.send_packet(Packet { source, connection, number, kind });
        }
        let side = &mut self.senders[source as usize];
        let due = side.tcp.deadline().saturating_add(self.lead_in);
        if due < side.timer {
            side.timer = due;
            self.agenda.timer(Timer::Retransmission, source, due);
        }
    }

    #[inline(never)]
    fn retransmit(&mut self, packet: Packet) {
        self.send_packet(packet);
    }

    #[inline(always)]
    fn send_packet(&mut self, packet: Packet) {
        let now = self.now - self.lead_in;
        let path = &mut self.paths[packet.source as usize];
        let class = path.class as usize;
        let way = &self.ways[class];
        self.lifetime.sent += 1;
        self.probes.sent(now, &packet);
        self.probes.pass(Tap::Sender, now, &packet);
        let link = &way.ingress;
        if !way.plain
            && (self.access_loss.ingress_loses(packet.source)
                || !link.has_room(now, path.ingress_free))
        {
            return self.dropped_on_access(packet);
        }
        let idle = path.ingress_free <= now;
        path.ingress_free = path.ingress_free.max(now) + link.data_time;
        let due = path.ingress_free + link.delay;
        if due == self.now {
            self.at_bottleneck(packet);
        } else if idle {
            self.agenda.packet(Role::AtBottleneck, class, due, packet);
        } else if !self.agenda.packet_in_order(Role::AtBottleneckQueued, class, due, packet) {
            self.ingress_waiting.push(&mut path.ingress_waiting, due, packet);
        }
    }

    #[inline(always)]
    fn at_bottleneck(&mut self, packet: Packet) {
        let path = &mut self.paths[packet.source as usize];
        let class = path.class as usize;
        let way = &self.ways[class];
        let follows = self.now + way.ingress.data_time;
        if let Some(next) = self.ingress_waiting.pop_due(&mut path.ingress_waiting, follows) {
            self.agenda.packet(Role::AtBottleneckQueued, class, follows, next);
        }
        if path.announced != packet.connection {
            path.announced = packet.connection;
            self.probes.population.birth(self.now);
        }
        self.probes.pass(Tap::BottleneckIn, self.now, &packet);
        if let Some(loss) = &mut self.loss
            && loss.loses()
        {
            return self.dropped_at_bottleneck(packet, true);
        }
        let bytes = self.packet_bytes;
        let verdict = self.queue.offer(self.now, bytes, &mut self.link, &mut self.probes);
        match verdict {
            Verdict::Departs { leaves, found } => {
                self.probes.arrived(class, path.row as usize, &packet, found);
                self.leave_bottleneck(leaves, packet);
            }
            Verdict::Dropped => self.dropped_at_bottleneck(packet, false),
        }
    }

    /// From the bottleneck over the egress link to the receiver, and its answer to the return
    /// bottleneck; the next event is `lead` after it has got there.
    #[inline(always)]
    fn leave_bottleneck(&mut self, leaves: Nanos, packet: Packet) {
        let path = &mut self.paths[packet.source as usize];
        let class = path.class as usize;
        let way = &self.ways[class];
        self.probes.pass(Tap::BottleneckOut, leaves, &packet);
        let link = &way.egress;
        let enters = leaves + way.forward;
        if !way.plain
            && (self.access_loss.egress_loses(packet.source)
                || !link.has_room(enters, path.egress_free))
        {
            return self.dropped_on_access(packet);
        }
        let idle = path.egress_free <= enters;
        path.egress_free = path.egress_free.max(enters) + link.data_time;
        let due = path.egress_free + link.delay + way.to_return + self.lead;
        if idle {
            self.agenda.packet(Role::AtReturn, class, due, packet);
        } else {
            self.egress_waiting.push(&mut path.egress_waiting, due, packet);
        }
    }

    /// What the packet led to has reached the return bottleneck `lead` ago.
    #[inline(always)]
    fn at_return(&mut self, packet: Packet) {
        if packet.kind == Kind::Ack {
            return self.waited_for_return(packet);
        }
        let at = packet.source as usize;
        let path = &mut self.paths[at];
        let class = path.class as usize;
        let way = &self.ways[class];
        let follows = self.now + way.egress.data_time;
        if let Some(next) = self.egress_waiting.pop_due(&mut path.egress_waiting, follows) {
            self.agenda.packet(Role::AtReturnQueued, class, follows, next);
        }
        let arrived = self.now - self.lead - way.to_return;
        self.lifetime.received += 1;
        self.probes.pass(Tap::Receiver, arrived, &packet);
        let side = &mut self.receivers[at];
        if side.connection != packet.connection {
            side.connection = packet.connection;
            side.tcp.start();
        }
        let arrival = side.tcp.on_data(arrived, packet.number, &self.tcp);
        self.probes.delivered(class, packet.source, arrival.distinct, way.endless);
        if let Some(number) = arrival.ack {
            self.acknowledge(Packet { number, kind: Kind::Ack, ..packet });
        } else {
            self.set_ack_timer(packet.source);
        }
    }

    /// A receiver's answer, sent so that it has reached the return bottleneck `lead` ago unless
    /// its own link was still busy with the answer before.
    #[inline(always)]
    fn acknowledge(&mut self, ack: Packet) {
        let path = &mut self.paths[ack.source as usize];
        let way = &self.ways[path.class as usize];
        let reached = self.now - self.lead;
        self.probes.pass(Tap::Receiver, reached - way.to_return, &ack);
        let reaches = reached.max(path.return_free + way.egress.ack_time);
        path.return_free = reaches;
        if reaches == reached {
            self.send_back(ack);
        } else {
            let class = path.class as usize;
            self.agenda.packet(Role::AtReturn, class, reaches + self.lead, ack);
        }
    }

    #[inline(always)]
    fn send_back(&mut self, ack: Packet) {
        let path = &mut self.paths[ack.source as usize];
        let way = &self.ways[path.class as usize];
        let reached = self.now - self.lead;
        let leaves = self.return_link.transmit(reached, self.ack_bytes);
        self.probes.pass(Tap::BottleneckOut, reached, &ack);
        self.probes.pass(Tap::BottleneckIn, leaves, &ack);
        path.ack_free = path.ack_free.max(leaves + way.back) + way.ingress.ack_time;
        let due = path.ack_free + self.lead_in;
        if due == self.now {
            self.at_sender(ack);
        } else {
            self.agenda.packet(Role::AtSender, path.class as usize, due, ack);
        }
    }

    #[inline(always)]
    fn at_sender(&mut self, packet: Packet) {
        let source = packet.source;
        let now = self.now - self.lead_in;
        self.probes.pass(Tap::Sender, now, &packet);
        let side = &mut self.senders[source as usize];
        if side.connection != packet.connection || side.tcp.finished() {
            return;
        }
        let probe = &mut self.probes.of(source);
        let sent = side.tcp.on_ack(now, packet.number, &self.tcp, probe);
        if side.tcp.finished() {
            self.finish(source);
        } else {
            self.send(source, sent);
        }
    }

    #[inline(never)]
    fn waited_for_return(&mut self, ack: Packet) {
        self.send_back(ack);
    }

    #[inline(never)]
    fn dropped_on_access(&mut self, packet: Packet) {
        let class = self.paths[packet.source as usize].class as usize;
        self.lifetime.dropped += 1;
        self.probes.dropped_on_access(self.now, class, &packet);
    }

    #[inline(never)]
    fn dropped_at_bottleneck(&mut self, packet: Packet, random: bool) {
        self.queue.settle(self.now, &mut self.probes);
        let path = &self.paths[packet.source as usize];
        let (class, row) = (path.class as usize, path.row as usize);
        self.probes.arrived(class, row, &packet, self.queue.held());
        self.lifetime.dropped += 1;
        self.probes.dropped(self.now, class, row, &packet, random);
    }

    fn retransmission_timer(&mut self, source: u32) {
        let side = &mut self.senders[source as usize];
        if side.timer != self.now {
            return;
        }
        side.timer = NEVER;
        let now = self.now - self.lead_in;
        let sent = if side.tcp.deadline() <= now {
            side.tcp.on_timer(now, &self.tcp, &mut self.probes.of(source))
        } else {
            // The deadline has moved on since the timer was set.
            Transmission::default()
        };
        self.send(source, sent);
    }

    fn set_ack_timer(&mut self, source: u32) {
        let at = source as usize;
        let way = &self.ways[self.paths[at].class as usize];
        let side = &mut self.receivers[at];
        let deadline = side.tcp.ack_deadline();
        if deadline == NEVER {
            return;
        }
        let due = deadline + way.to_return + self.lead;
        if due < side.timer {
            side.timer = due;
            self.agenda.timer(Timer::DelayedAck, source, due);
        }
    }

    fn ack_timer(&mut self, source: u32) {
        let at = source as usize;
        let way = &self.ways[self.paths[at].class as usize];
        let side = &mut self.receivers[at];
        if side.timer != self.now {
            return;
        }
        side.timer = NEVER;
        if side.tcp.ack_deadline() > self.now - self.lead - way.to_return {
            return self.set_ack_timer(source);
        }
        if let Some(number) = side.tcp.on_timer() {
            let connection = side.connection;
            self.acknowledge(Packet { source, connection, number, kind: Kind::Ack });
        }
    }
}

fn idle_sender<C: CongestionControl + Default>() -> SenderSide<C> {
    SenderSide { tcp: Sender::default(), connection: 0, size: 0, timer: NEVER }
}

fn idle_receiver() -> ReceiverSide {
    ReceiverSide { tcp: Receiver::default(), connection: 0, timer: NEVER }
}

/// Seconds to nanoseconds; what is longer than 50 years never comes.
fn nanoseconds(seconds: f64) -> Nanos {
    const FIFTY_YEARS: f64 = 1.6e9;
    (seconds.clamp(0.0, FIFTY_YEARS) * SECOND as f64) as Nanos
}

/// A drawn size as whole packets: the nearest, at least one.
fn packets(size: f64) -> u32 {
    libm::round(size).clamp(1.0, f64::from(u32::MAX - 1)) as u32
}
