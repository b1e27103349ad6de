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

use crate::access::Waiting;
use crate::agenda::{Agenda, Event, Place, Timer};
use crate::clock::{Nanos, Transmitter};
use crate::config::RunConfig;
use crate::loss::BottleneckLosses;
use crate::network::{Lifetime, Network, nanoseconds};
use crate::packet::{Kind, Packet};
use crate::probe::{Probes, SourceRecord};
use crate::queue::QueueDiscipline;
use crate::random::{Purpose, Stream};
use crate::source::Source;
use crate::tcp::cc::CongestionControl;
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

/// A run under way.
pub struct Simulation<C, Q> {
    network: Network<Q>,
    sources: Vec<Source<C>>,
    ways: Vec<Way>,
    boundary: Nanos,
    measuring: bool,
}

impl<C: CongestionControl + Default, Q: QueueDiscipline> Simulation<C, Q> {
    /// Sets a run up; replication `replication` of the configuration's seed.
    #[must_use]
    pub fn new(config: &RunConfig, queue: Q, replication: u32) -> Self {
        let class_of = class_of(&config.classes);
        let mut ways: Vec<Way> =
            config.classes.iter().map(|class| Way::new(class, config)).collect();
        let probes = &config.probes;
        let source = |(index, class): (usize, &u16)| {
            let traced = probes.traced.contains(&(index as u32));
            let record = SourceRecord::new(*class, traced);
            Source::new(record, config.seed, replication, index as u32)
        };
        let network = network(config, queue, &ways, &class_of, replication);
        ways.iter_mut().for_each(|way| way.set_lead(network.lead));
        let mut run = Self {
            network,
            sources: class_of.iter().enumerate().map(source).collect(),
            ways,
            boundary: config.warmup,
            measuring: false,
        };
        run.schedule_starts();
        run
    }

    /// Goes on until the goal is reached or `poll` says no; it is told the share done.
    pub fn advance(&mut self, goal: Goal, poll: &mut dyn FnMut(f64) -> bool) -> Stop {
        self.network.limit = self.boundary.min(goal.until);
        self.network.wanted = if self.measuring { goal.transfers } else { u64::MAX };
        if self.transfers() >= goal.transfers {
            return Stop::Done;
        }
        let mut budget = EVENTS_BETWEEN_POLLS;
        loop {
            let (queue, due) = self.network.agenda.next();
            if due > self.network.limit {
                if self.pass_limit(goal) {
                    return Stop::Done;
                }
                continue;
            }
            self.network.now = due;
            match self.network.agenda.place(queue) {
                Some(place) => {
                    let packet = self.network.agenda.take(queue, due);
                    self.packet(place, packet);
                }
                None => self.take_from_heap(queue, due),
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
        let network = &mut self.network;
        // On a copy: a death before now may still be told.
        network.probes.states = network.probes.population.as_of(network.now);
        network.probes.snapshot(network.now, true);
        let in_flight = network.agenda.count(|packet| packet.kind != Kind::Ack)
            + network.ingress_waiting.held()
            + network.egress_waiting.held();
        let Lifetime { sent, received, dropped } = network.lifetime;
        if sent == received + dropped + in_flight {
            Ok(&network.probes)
        } else {
            Err(NotConserved { sent, received, dropped, in_flight })
        }
    }

    /// The probes as they stand.
    #[must_use]
    pub fn probes(&self) -> &Probes {
        &self.network.probes
    }

    /// Virtual time now.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.network.now
    }

    /// Whether the warm-up is over.
    #[must_use]
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Each source's packets and ON time since the warm-up.
    pub fn records(&self) -> impl Iterator<Item = &SourceRecord> {
        self.sources.iter().map(|source| &source.record)
    }

    fn transfers(&self) -> u64 {
        if self.measuring { self.network.probes.finished() } else { 0 }
    }

    fn share_of(&self, goal: Goal) -> f64 {
        let by_time = self.network.now as f64 / goal.until as f64;
        by_time.max(self.transfers() as f64 / goal.transfers as f64)
    }

    #[inline(always)]
    fn packet(&mut self, place: Place, packet: Packet) {
        let source = &mut self.sources[packet.source as usize];
        let way = &self.ways[source.record.class()];
        match place {
            Place::Return | Place::ReturnSecond | Place::ReturnQueued => {
                self.network.at_return(source, way, packet);
            }
            Place::Bottleneck | Place::BottleneckQueued => {
                self.network.enter_bottleneck(source, way, packet);
            }
            Place::Sender => self.network.at_sender(source, way, packet),
        }
    }

    #[inline(never)]
    fn take_from_heap(&mut self, queue: usize, due: Nanos) {
        match self.network.agenda.take_from_heap(queue, due) {
            Event::Packet(place, packet) => self.packet(place, packet),
            Event::Timer(timer, index) => {
                let source = &mut self.sources[index as usize];
                let way = &self.ways[source.record.class()];
                match timer {
                    Timer::Start => self.network.start(source, way, index),
                    Timer::Retransmission => self.network.retransmission_timer(source, way, index),
                    Timer::DelayedAck => self.network.ack_timer(source, way, index),
                }
            }
        }
    }

    /// Nothing is due before the limit: the goal is reached, or a slot or the warm-up is over.
    #[inline(never)]
    fn pass_limit(&mut self, goal: Goal) -> bool {
        if self.transfers() >= goal.transfers {
            return true;
        }
        if self.boundary > goal.until {
            self.network.now = goal.until;
            return true;
        }
        self.network.now = self.boundary;
        self.settle_queue();
        let now = self.network.now;
        if self.measuring {
            self.network.probes.snapshot(now, false);
        } else {
            self.measuring = true;
            self.network.wanted = goal.transfers;
            self.network.probes.begin_measurement(now);
            self.sources.iter_mut().for_each(|source| source.record.begin_measurement());
        }
        self.boundary = self.network.probes.ledger.slot_ends();
        self.network.limit = self.boundary.min(goal.until);
        false
    }

    fn settle_queue(&mut self) {
        let Network { queue, probes, now, .. } = &mut self.network;
        queue.settle(*now, probes);
        probes.occupancy.held(queue.held(), *now);
    }

    fn schedule_starts(&mut self) {
        let network = &mut self.network;
        let mut of_class = vec![0_usize; self.ways.len()];
        for (index, source) in self.sources.iter_mut().enumerate() {
            let class = source.record.class();
            let seconds = match &network.traffic[class] {
                Traffic::OnOff { off, .. } => off.draw(&mut source.silences),
                Traffic::Bulk { start: Start::Law(law) } => law.draw(&mut source.silences),
                Traffic::Bulk { start: Start::Times(times) } => {
                    times[of_class[class] % times.len()]
                }
            };
            of_class[class] += 1;
            let due = nanoseconds(seconds) + network.lead_in;
            network.agenda.timer(Timer::Start, index as u32, due);
        }
    }
}

fn network<Q>(
    config: &RunConfig,
    queue: Q,
    ways: &[Way],
    class_of: &[u16],
    replication: u32,
) -> Network<Q> {
    let lead_in = ways.iter().map(Way::to_bottleneck).min().unwrap_or(0);
    let from_return = ways.iter().map(Way::return_to_sender).min().unwrap_or(0);
    let return_link = Transmitter::new(config.bottleneck_bps, config.ack_bytes);
    let lead = return_link.time_when_idle() + from_return + lead_in;
    let loss = config.loss.map(|law| {
        let stream = Stream::named(config.seed, replication, 0, Purpose::BottleneckLoss);
        BottleneckLosses::new(law, class_of.len(), stream)
    });
    let capturing = !config.probes.captures.is_empty();
    Network {
        agenda: Agenda::new(ways.len()),
        now: 0,
        lead_in,
        lead,
        tcp: config.tcp.clone(),
        limit: 0,
        wanted: u64::MAX,
        ingress_waiting: Waiting::default(),
        egress_waiting: Waiting::default(),
        queue,
        link: Transmitter::new(config.bottleneck_bps, config.packet_bytes),
        return_link,
        watched: capturing || loss.as_ref().is_some_and(BottleneckLosses::listens),
        loss,
        access_loss: AccessLoss::new(config, class_of, replication),
        probes: Probes::new(&config.probes, config.classes.len()),
        capturing,
        lifetime: Lifetime::default(),
        traffic: config.classes.iter().map(|class| class.traffic.clone()).collect(),
    }
}
