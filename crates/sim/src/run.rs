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
//! Other hops may lie before the bottleneck and behind it (`hops/`). Where packets meet there too,
//! each has one event more; what follows then holds of the first place where they meet in place of
//! the bottleneck.
//!
//! Two spans say how late. `lead_in` is the shortest time from a sender to the bottleneck, `lead`
//! that from the return bottleneck, where acknowledgements meet, to the bottleneck. Whatever takes
//! longer (a second packet of a burst, a class that is farther away, an acknowledgement that had
//! to wait) gets an event of its own.

use crate::access::Waiting;
use crate::agenda::{Agenda, Event, Place, Timer};
use crate::balance::Unbalanced;
use crate::bursts::nanoseconds;
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::config::RunConfig;
use crate::hops::{self, Tandem};
use crate::loss::BottleneckLosses;
use crate::mean_field::crowds;
use crate::network::{Lifetime, Network};
use crate::packet::{Kind, Packet};
use crate::probe::{Probes, SourceRecord};
use crate::queue::QueueDiscipline;
use crate::random::{Purpose, Stream};
use crate::source::Source;
use crate::tcp::SendingEnd;
use crate::traffic::{Coupling, Traffic};
use crate::transfers::{GAP, MOST_UNDER_WAY, Transfers};
use crate::way::{AccessLoss, Way, class_of};
use std::hint::black_box;

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
    /// More transfers are under way than can be held: more come than go.
    Crowded,
}

/// Packets whose sources are fetched together.
const FETCHED: usize = 8;

/// Events between two looks at whether to go on.
const EVENTS_BETWEEN_POLLS: u32 = 1 << 16;

/// A run under way. Without `TAPS` nothing can be told of packets that pass, and none of them costs a
/// look at whether anything is; without `HOPS` there is no hop beside the bottleneck.
pub struct Simulation<S: SendingEnd, Q, const TAPS: bool, const HOPS: bool> {
    pub(crate) network: Network<Q, TAPS, HOPS>,
    pub(crate) sources: Vec<Source<S>>,
    pub(crate) ways: Vec<Way>,
    boundary: Nanos,
    measuring: bool,
    crowded: bool,
    /// Packets at the return bottleneck, and at the link, until sources are fetched again.
    until_fetch: usize,
    until_fetch_for_link: usize,
    most_sources: usize,
    /// What a source that joins on the way is made with.
    seed: u64,
    replication: u32,
    traced: Vec<u32>,
}

impl<S: SendingEnd, Q: QueueDiscipline, const TAPS: bool, const HOPS: bool>
    Simulation<S, Q, TAPS, HOPS>
{
    /// Sets a run up; replication `replication` of the configuration's seed.
    #[must_use]
    pub fn new(config: &RunConfig, queue: Q, replication: u32) -> Self {
        debug_assert!(TAPS || !config.is_watched(), "made without taps");
        debug_assert!(HOPS || !config.has_hops(), "made without hops");
        let class_of = class_of(&config.classes);
        let mut ways: Vec<Way> =
            config.classes.iter().map(|class| Way::new(class, config)).collect();
        let network = network(config, queue, &ways, &class_of, replication);
        ways.iter_mut().for_each(|way| way.set_lead(network.lead));
        let mut run = Self {
            network,
            sources: Vec::with_capacity(class_of.len()),
            ways,
            boundary: config.warmup,
            measuring: false,
            crowded: false,
            until_fetch: 0,
            until_fetch_for_link: 0,
            most_sources: class_of.len() + MOST_UNDER_WAY,
            seed: config.seed,
            replication,
            traced: config.probes.traced.clone(),
        };
        class_of.iter().for_each(|class| run.add_source(*class));
        run.schedule_starts();
        run.schedule_transfers();
        run
    }

    /// Goes on until the goal is reached or `poll` says no; it is told the share done.
    pub fn advance(&mut self, goal: Goal, poll: &mut dyn FnMut(f64) -> bool) -> Stop {
        self.network.limit = self.boundary.min(goal.until);
        self.network.wanted = if self.measuring { goal.transfers } else { u64::MAX };
        if self.transfers() >= goal.transfers {
            return Stop::Done;
        }
        if self.crowded {
            return Stop::Crowded;
        }
        let mut budget = EVENTS_BETWEEN_POLLS;
        loop {
            let (queue, due) = self.network.agenda.next();
            if HOPS && self.hops_are_first(due) {
                self.hop_event();
                self.tell_of_losses();
            } else if Q::HOLDS && self.link_is_first(due) {
                self.serve_next();
            } else if Q::CROSSED && self.cross_is_first(due) {
                self.cross_arrives();
            } else if due > self.network.limit {
                if self.crowded {
                    return Stop::Crowded;
                }
                if self.pass_limit(goal) {
                    return Stop::Done;
                }
                continue;
            } else {
                self.event(queue, due);
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

    #[inline(always)]
    fn event(&mut self, queue: usize, due: Nanos) {
        self.network.now = due;
        match self.network.agenda.place(queue) {
            Some(place) => {
                if Q::HOLDS && place == Place::Return {
                    self.fetch_ahead(queue);
                }
                let packet = self.network.agenda.take(queue, due);
                self.packet(place, packet);
            }
            None => self.take_from_heap(queue, due),
        }
        self.tell_of_losses();
    }

    /// Tells sources of their packets that had to make room for others'.
    #[inline(always)]
    fn tell_of_losses(&mut self) {
        if Q::HOLDS && !self.network.pushed_out.is_empty() {
            self.tell_of_pushed_out();
        }
        if HOPS && self.network.tandem.has_news() {
            self.tell_of_hops();
        }
    }

    /// Whether something happens at another hop before the next event of the agenda, due at `due`,
    /// and before the bottleneck is free for a held packet.
    fn hops_are_first(&self, due: Nanos) -> bool {
        let (next, departs) = self.network.tandem.next();
        let leaves = if Q::HOLDS { self.network.queue.link_leaves() } else { NEVER };
        let comes = if Q::CROSSED { self.network.queue.cross_comes() } else { NEVER };
        let others = leaves.min(comes);
        let before_link = next < others || (next == others && departs);
        next <= due && next <= self.network.limit && before_link
    }

    /// Looks at the sources of the packets that come next, all at once: where sources are many each
    /// waits for memory, and several together hardly longer than one.
    #[inline(always)]
    fn fetch_ahead(&mut self, queue: usize) {
        if self.until_fetch == 0 {
            self.until_fetch = FETCHED;
            let coming = || self.network.agenda.coming(queue).take(FETCHED);
            let sources = || coming().filter_map(|next| self.sources.get(next.source as usize));
            black_box(sources().map(Source::fetch).fold(0, u64::wrapping_add));
            black_box(sources().map(Source::fetch_more).fold(0, u64::wrapping_add));
        }
        self.until_fetch -= 1;
    }

    /// Whether the bottleneck is free for a held packet before the next event, due at `due`.
    fn link_is_first(&self, due: Nanos) -> bool {
        let leaves = self.network.queue.link_leaves();
        let due = if Q::CROSSED { due.min(self.network.queue.cross_comes()) } else { due };
        leaves <= due && leaves <= self.network.limit
    }

    /// The bottleneck takes the next of the packets that it holds.
    fn serve_next(&mut self) {
        if self.until_fetch_for_link == 0 {
            self.fetch_for_link();
        }
        self.until_fetch_for_link -= 1;
        let Network { queue, link, probes, now, lifetime, .. } = &mut self.network;
        *now = queue.link_leaves();
        if let Some((leaves, packet)) = queue.serve(link, probes) {
            lifetime.sojourns = lifetime.sojourns.wrapping_add(leaves);
            let source = &mut self.sources[packet.source as usize];
            let way = &self.ways[source.record.class()];
            self.network.leave_bottleneck(source, way, leaves, packet);
        }
    }

    /// The same as [`Simulation::fetch_ahead`], for the packets that the link takes next.
    fn fetch_for_link(&mut self) {
        self.until_fetch_for_link = FETCHED;
        let mut next = [0; FETCHED];
        let count = self.network.queue.fetch_ahead(&mut next);
        let sources = next[..count].iter().filter_map(|source| self.sources.get(*source as usize));
        black_box(sources.map(|source| source.timer).fold(0, u64::wrapping_add));
    }

    pub(crate) fn tell_of_pushed_out(&mut self) {
        let mut pushed_out = std::mem::take(&mut self.network.pushed_out);
        for (at, packet) in pushed_out.drain(..) {
            let source = &mut self.sources[packet.source as usize];
            self.network.was_pushed_out(at, source, packet);
        }
        self.network.pushed_out = pushed_out;
    }

    /// Closes the books as of now and checks that every packet is accounted for, and that Little's
    /// law holds for the queue.
    ///
    /// # Errors
    /// [`Unbalanced`] if not.
    pub fn settle(&mut self) -> Result<&Probes, Unbalanced> {
        self.settle_queue();
        let network = &mut self.network;
        // On a copy: a death before now may still be told.
        network.probes.states = network.probes.population.as_of(network.now);
        network.probes.snapshot(network.now, true);
        let in_flight = network.agenda.count(|packet| packet.kind().is_data())
            + network.ingress_waiting.held()
            + network.egress_waiting.held()
            + network.queue.waiting()
            + network.tandem.in_flight();
        let Lifetime { sent, received, dropped, .. } = network.lifetime;
        if sent != received + dropped + in_flight {
            return Err(Unbalanced::Packets { sent, received, dropped, in_flight });
        }
        let (waiting, ahead) = (network.queue.waiting(), network.queue.ahead(network.now));
        let others = network.queue.others_waited(network.now);
        let waited = network.lifetime.waited(network.now, waiting, ahead).wrapping_add(others);
        let held = network.probes.occupancy.lifetime_integral();
        if held != waited {
            return Err(Unbalanced::Waiting { held, waited });
        }
        Ok(&network.probes)
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
                self.network.meet(source, way, packet);
            }
            Place::Sender if S::HEARS_LOSSES && packet.kind() == Kind::Loss => {
                self.network.at_sender_of_lost(source, way, packet);
            }
            Place::Sender => self.network.at_sender(source, way, packet),
        }
    }

    #[inline(never)]
    fn take_from_heap(&mut self, queue: usize, due: Nanos) {
        match self.network.agenda.take_from_heap(queue, due) {
            Event::Packet(place, packet) => self.packet(place, packet),
            Event::Timer(Timer::Transfer, class) => self.begin_transfer(class as usize),
            Event::Timer(Timer::Crowd, class) => self.network.end_silences(class),
            Event::Timer(timer, index) => {
                let source = &mut self.sources[index as usize];
                let way = &self.ways[source.record.class()];
                match timer {
                    Timer::Start | Timer::Transfer | Timer::Crowd => {
                        self.network.start(source, way, index);
                    }
                    Timer::Retransmission => self.network.retransmission_timer(source, way, index),
                    Timer::DelayedAck => self.network.ack_timer(source, way, index),
                }
            }
        }
    }

    /// A transfer begins on a source that is idle or new, unless it has to wait.
    #[inline(never)]
    fn begin_transfer(&mut self, class: usize) {
        let Some(size) = self.network.next_transfer(class) else { return };
        let idle = self.network.transfers[class].idle.pop_front();
        let index = match idle {
            Some(index) => index,
            None if self.sources.len() >= self.most_sources => {
                self.crowded = true;
                self.network.limit = 0;
                return;
            }
            None => {
                self.network.access_loss.add_source(class);
                self.add_source(class as u16);
                self.sources.len() as u32 - 1
            }
        };
        let source = &mut self.sources[index as usize];
        self.network.begin_transfer(source, &self.ways[class], index, size);
    }

    fn add_source(&mut self, class: u16) {
        let index = self.sources.len() as u32;
        let record = SourceRecord::new(class, self.traced.contains(&index));
        self.sources.push(Source::new(record, self.seed, self.replication, index));
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
        let Network { queue, probes, tandem, now, .. } = &mut self.network;
        queue.settle(*now, probes);
        probes.occupancy.held(queue.held(), *now);
        if HOPS {
            tandem.settle(*now, probes);
        }
    }

    fn schedule_starts(&mut self) {
        let network = &mut self.network;
        let mut of_class = vec![0_usize; self.ways.len()];
        for (index, source) in self.sources.iter_mut().enumerate() {
            let place = &mut of_class[source.record.class()];
            let due = network.first_start(source, *place, index as u32);
            *place += 1;
            if let Some(due) = due {
                network.agenda.timer(Timer::Start, index as u32, due);
            }
        }
        network.begin_crowds();
    }

    fn schedule_transfers(&mut self) {
        let Network { agenda, traffic, transfers, lead_in, .. } = &mut self.network;
        for (class, (traffic, transfers)) in traffic.iter().zip(transfers).enumerate() {
            let gap = match traffic {
                Traffic::Transfers { .. } => GAP,
                Traffic::Arrivals { gap, .. } => nanoseconds(gap.draw(&mut transfers.gaps)),
                Traffic::OnOff { .. } | Traffic::Bulk { .. } => continue,
            };
            agenda.timer(Timer::Transfer, class as u32, gap + *lead_in);
        }
    }
}

fn network<Q, const TAPS: bool, const HOPS: bool>(
    config: &RunConfig,
    queue: Q,
    ways: &[Way],
    class_of: &[u16],
    replication: u32,
) -> Network<Q, TAPS, HOPS> {
    let lead_in = ways.iter().map(Way::to_hops).min().unwrap_or(0) + hops::time_to_meeting(config);
    let from_return = ways.iter().map(Way::return_to_sender).min().unwrap_or(0);
    let return_link = Transmitter::new(config.bottleneck_bps, config.ack_bytes);
    let lead = return_link.time_when_idle() + from_return + lead_in;
    let loss = config.loss.map(|law| {
        let stream = Stream::named(config.seed, replication, 0, Purpose::BottleneckLoss);
        BottleneckLosses::new(law, class_of.len(), stream)
    });
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
        pushed_out: Vec::new(),
        link: Transmitter::new(config.bottleneck_bps, config.packet_bytes),
        return_link,
        tandem: Box::new(Tandem::new(config, replication)),
        loss,
        access_loss: AccessLoss::new(config, class_of, replication),
        probes: Probes::new(
            &config.probes,
            config.classes.len(),
            config.packet_bytes,
            Tandem::stages_of(config),
        ),
        watched: config.is_watched(),
        capturing: !config.probes.captures.is_empty(),
        lifetime: Lifetime::default(),
        traffic: config.classes.iter().map(|class| class.traffic.clone()).collect(),
        crowds: crowds(config, replication),
        coupling: Coupling::default(),
        transfers: (0..config.classes.len())
            .map(|class| Transfers::new(config.seed, replication, class))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SECOND, transmission_time};
    use crate::config::{AccessConfig, ClassConfig};
    use crate::probe::{ClassCell, ProbeConfig, Tap, TransferSums};
    use crate::queue::{DropTail, QueueConfig, QueueProbe, Verdict};
    use crate::tcp::cc::Reno;
    use crate::tcp::{Sender, TcpConfig};
    use crate::traffic::{Law, Start};

    const RTT: Nanos = SECOND / 10;

    fn configuration(traffic: Traffic, rate_bps: u64, buffer: u64, tcp: TcpConfig) -> RunConfig {
        let access = AccessConfig { rate_bps: None, delay: 0, limit: u64::MAX, loss: None };
        let taken: Nanos =
            [1500, 40].iter().map(|bytes| transmission_time(*bytes, Some(rate_bps))).sum();
        let class = ClassConfig {
            sources: 0,
            ingress: access.clone(),
            egress: access,
            forward: (RTT - taken) / 2,
            back: (RTT - taken) / 2,
            traffic,
            stands_for: None,
        };
        RunConfig {
            seed: 1,
            packet_bytes: 1500,
            ack_bytes: 40,
            bottleneck_bps: Some(rate_bps),
            buffer: Some(buffer),
            queue: QueueConfig::DropTail,
            loss: None,
            cross: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            tcp,
            classes: vec![class],
            warmup: 0,
            probes: ProbeConfig { size_bounds: vec![1, 40], ..ProbeConfig::default() },
        }
    }

    fn simulation(config: &RunConfig) -> Simulation<Sender<Reno>, DropTail, false, false> {
        Simulation::new(config, DropTail::new(config.buffer), 0)
    }

    fn until(transfers: u64) -> Goal {
        Goal { transfers, until: 1_000_000 * SECOND }
    }

    #[test]
    fn transfers_begin_on_an_empty_path_though_the_ones_before_left_packets_on_it() {
        // A timer just shorter than the round trip sends everything again, and the copies are in
        // the queue, a packet of which takes 24 ms, when the transfer is over.
        let rto = RTT - RTT / 50;
        let tcp = TcpConfig { initial_rto: rto, min_rto: rto, ..TcpConfig::default() };
        let sizes = vec![1, 1, 40];
        let config = configuration(Traffic::Transfers { sizes }, 500_000, 9, tcp);
        let mut run = simulation(&config);
        assert_eq!(run.advance(until(30), &mut |_| true), Stop::Done);
        let probes = run.settle().unwrap();
        let sent = probes.ledger.total(ClassCell::Sent);
        assert!(sent > 10 * 42 + 20, "nothing was sent for nothing: {sent}");
        for (row, transfers) in probes.transfers.rows.iter().zip([20_u64, 10]) {
            let told: Vec<&TransferSums> =
                row.by_losses.iter().filter(|sums| sums.transfers > 0).collect();
            assert_eq!(told.len(), 1, "transfers of one size differ");
            let sums = told[0];
            assert_eq!(sums.transfers, transfers);
            let count = u128::from(transfers);
            assert_eq!(sums.completion * sums.completion, count * sums.completion_squares);
            assert_eq!(sums.delivery * sums.delivery, count * sums.delivery_squares);
        }
        assert_eq!(probes.transfers.rows[0].by_losses[0].completion, 20 * u128::from(RTT));
        assert_eq!(run.sources.len(), 1);
    }

    #[test]
    fn a_run_that_is_watched_is_the_run_without_taps() {
        let traffic = Traffic::Transfers { sizes: vec![1, 40, 90] };
        let config = configuration(traffic, 2_000_000, 9, TcpConfig::default());
        let mut bare = simulation(&config);
        bare.advance(until(200), &mut |_| true);
        let captures = vec![(Tap::Sender, 100_000), (Tap::Receiver, 100_000)];
        let probes = ProbeConfig { captures, ..config.probes.clone() };
        let config = RunConfig { probes, ..config };
        let queue = DropTail::new(config.buffer);
        let mut watched = Simulation::<Sender<Reno>, _, true, false>::new(&config, queue, 0);
        watched.advance(until(200), &mut |_| true);
        let (bare, watched) = (bare.settle().unwrap(), watched.settle().unwrap());
        assert!(bare.ledger.total(ClassCell::Retransmitted) > 0, "nothing was lost");
        assert_eq!(format!("{:?}", bare.ledger), format!("{:?}", watched.ledger));
        assert_eq!(format!("{:?}", bare.transfers), format!("{:?}", watched.transfers));
    }

    /// A drop-tail queue that counts one packet too few at every tenth arrival.
    struct Forgetful(DropTail, u32);

    impl QueueDiscipline for Forgetful {
        fn offer(
            &mut self,
            now: Nanos,
            packet: &Packet,
            link: &mut Transmitter,
            probe: &mut impl QueueProbe,
        ) -> Verdict {
            self.1 += 1;
            if self.1 % 10 == 0 && self.0.held() > 0 {
                probe.queue_held(self.0.held() - 1, now);
            }
            self.0.offer(now, packet, link, probe)
        }
        fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
            self.0.settle(now, probe);
        }
        fn held(&self) -> usize {
            self.0.held()
        }
        fn ahead(&self, now: Nanos) -> Nanos {
            self.0.ahead(now)
        }
    }

    #[test]
    fn little_s_law_is_checked() {
        let traffic = Traffic::Bulk { start: Start::Law(Law::Constant(0.0)) };
        let mut config = configuration(traffic, 2_000_000, 9, TcpConfig::default());
        (config.classes[0].sources, config.warmup) = (3, 2 * SECOND);
        let goal = Goal { transfers: u64::MAX, until: 20 * SECOND };
        let mut run = simulation(&config);
        for until in [SECOND, 7 * SECOND, 20 * SECOND] {
            run.advance(Goal { until, ..goal }, &mut |_| true);
            assert!(run.settle().is_ok(), "while the queue is not empty");
        }
        let queue = Forgetful(DropTail::new(config.buffer), 0);
        let mut run = Simulation::<Sender<Reno>, _, false, false>::new(&config, queue, 0);
        run.advance(goal, &mut |_| true);
        assert!(matches!(run.settle(), Err(Unbalanced::Waiting { .. })));
    }

    #[test]
    fn arriving_transfers_take_idle_sources_and_stop_when_there_are_too_many() {
        let law = |scale| Law::Exponential { minimum: 0.0, scale };
        let traffic = |gap| Traffic::Arrivals { gap: law(gap), size: Law::Constant(40.0) };
        // 2.1 of 20.8 transfers a second.
        let config = configuration(traffic(0.48), 10_000_000, 100, TcpConfig::default());
        let mut run = simulation(&config);
        assert_eq!(run.advance(until(2000), &mut |_| true), Stop::Done);
        assert!(run.sources.len() < 20, "{} for one at a time", run.sources.len());
        // 30 a second: more come than go.
        let config = configuration(traffic(0.033), 10_000_000, 100, TcpConfig::default());
        let mut run = simulation(&config);
        run.most_sources = 200;
        assert_eq!(run.advance(until(100_000), &mut |_| true), Stop::Crowded);
        assert_eq!(run.sources.len(), 200);
        assert!(run.settle().is_ok());
        assert_eq!(run.advance(until(100_000), &mut |_| true), Stop::Crowded);
    }
}
