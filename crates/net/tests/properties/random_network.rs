//! Random networks, packets sent over them, and records of what happens.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use tcpcast_link::loss::{LinkLossConfig, LinkLossState, LossModel, LossPlace};
use tcpcast_link::queue::{
    BufferAssignment, BufferLimits, CodelConfig, DropPolicy, DrrConfig, FqCodelConfig, HeadOfLine,
    PieConfig, QueueConfig, RedConfig, RedRules, TieBreakRule,
};
use tcpcast_link::random::{RandomSource, RandomStream};
use tcpcast_link::remark::{EcnRemark, EcnRemarkConfig};
use tcpcast_link::transmit::{AnyTransmitter, ConstantRate, TokenBucket, TokenBucketConfig};
use tcpcast_link::{Ecn, NEVER, Nanos, Packet};
use tcpcast_net::{
    DropCause, Jitter, LinkChange, LinkConfig, LinkCounters, LinkId, Network, NetworkObserver,
    Passage, RouteId, Service,
};

/// All times are this large, so that two events never share a nanosecond by chance.
const SECOND: Nanos = 1_000_000_000;

/// A link, without random streams.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    pub rate_bps: Option<u64>,
    pub queue: QueueConfig,
    pub limits: BufferLimits,
    pub tokens: bool,
    pub policed: bool,
    /// Share of packets whose ECN field changes at random.
    pub remark: Option<f64>,
    pub loss: Option<(f64, LossPlace)>,
    /// Maximum jitter, and whether packets overtake each other.
    pub jitter: Option<(Nanos, bool)>,
    pub delay: Nanos,
    pub changes: Vec<(Nanos, u64, Nanos)>,
    pub seed: u64,
}

impl LinkPlan {
    pub fn config(&self) -> LinkConfig {
        let rate = self.rate_bps.and_then(NonZeroU64::new);
        let bucket =
            |rate_bps| TokenBucketConfig { rate_bps, burst_bytes: 3000, overhead_bytes: 0 };
        let mut draws = RandomStream::from_seed(self.seed);
        let loss = self.loss.map(|(probability, at)| {
            let config = LinkLossConfig { model: LossModel::Bernoulli(probability), at };
            LinkLossState::new(config, RandomStream::from_seed(draws.next_bits()))
        });
        let remark = self.remark.map(|share| {
            let config = EcnRemarkConfig { to: None, share };
            EcnRemark::new(config, RandomStream::from_seed(draws.next_bits()))
        });
        let mut jitters = RandomStream::from_seed(draws.next_bits());
        let jitter = self.jitter.map(|(max, reorder)| Jitter {
            delay: Box::new(move |_| (jitters.draw_unit() * max as f64) as Nanos),
            reorder,
        });
        let transmitter = match rate.filter(|_| self.tokens) {
            Some(rate) => AnyTransmitter::TokenBucket(TokenBucket::new(bucket(rate))),
            None => AnyTransmitter::ConstantRate(ConstantRate::new(rate)),
        };
        let changes = self.changes.iter().flat_map(|(time, rate, delay)| {
            let rate = LinkChange::Rate(NonZeroU64::new(*rate));
            [(*time, rate), (*time, LinkChange::Delay(*delay))]
        });
        LinkConfig {
            policer: rate.filter(|_| self.policed).map(bucket),
            remark,
            loss,
            queue: self.queue,
            limits: self.limits,
            draws,
            transmitter,
            jitter,
            delay: self.delay,
            shared_server: None,
            counts_queue: false,
            changes: changes.collect(),
        }
    }
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let red = RedConfig {
        min_threshold: 2.0,
        max_threshold: 6.0,
        max_probability: 0.2,
        weight: 0.1,
        gentle: true,
        adaptive: true,
        rules: RedRules::Linux { packet_bytes: NonZeroU32::MIN.saturating_add(1499) },
        packets_per_second: 5.0,
        ecn: true,
    };
    let codel =
        CodelConfig { target: SECOND, interval: 10 * SECOND, ecn: true, ..CodelConfig::default() };
    let fq_codel =
        FqCodelConfig { codel, queues: NonZeroU32::new(7).unwrap(), ..FqCodelConfig::default() };
    let drr = DrrConfig {
        quantum_bytes: NonZeroU32::new(700).unwrap(),
        buffers: BufferAssignment::Shared,
        drop: DropPolicy::LongestHead,
        ties: TieBreakRule::Latest,
        head_of_line: HeadOfLine::InBuffer,
        heavy: None,
    };
    prop_oneof![
        3 => Just(QueueConfig::DropTail),
        1 => Just(QueueConfig::HeadDrop),
        1 => Just(QueueConfig::Red(red)),
        1 => Just(QueueConfig::Codel(codel)),
        2 => Just(QueueConfig::FqCodel(fq_codel)),
        1 => Just(QueueConfig::Drr(drr)),
        1 => Just(QueueConfig::Pie(PieConfig { target: SECOND, ..PieConfig::default() })),
    ]
}

/// Links; `changing`: with changes of rate and delay.
pub fn links(changing: bool) -> impl Strategy<Value = Vec<LinkPlan>> {
    let limits =
        prop::option::of(1_u64..30).prop_map(|packets| BufferLimits { packets, bytes: None });
    let loss = (0.0..0.3, any::<bool>())
        .prop_map(|(p, before)| (p, if before { LossPlace::Before } else { LossPlace::Behind }));
    let jitter = (1..20 * SECOND, any::<bool>());
    let change = (1..1000 * SECOND, 5_000_u64..50_000, 1..10 * SECOND);
    let changes = prop::collection::vec(change, 0..if changing { 4 } else { 1 });
    let link = (
        (prop::option::weighted(0.7, 5_000_u64..50_000), queue(), limits),
        (
            prop::bool::weighted(0.1),
            prop::bool::weighted(0.1),
            prop::option::weighted(0.1, 0.0..1.0),
        ),
        (prop::option::weighted(0.2, loss), prop::option::weighted(0.2, jitter)),
        (1..10 * SECOND, changes, any::<u64>()),
    );
    let link = link.prop_map(
        |((rate_bps, queue, limits), (tokens, policed, remark), (loss, jitter), rest)| {
            let (delay, changes, seed) = rest;
            LinkPlan {
                rate_bps,
                queue,
                limits,
                tokens,
                policed,
                remark,
                loss,
                jitter,
                delay,
                changes,
                seed,
            }
        },
    );
    prop::collection::vec(link, 1..6)
}

/// A route over links, given by index.
#[derive(Clone, Debug)]
pub struct RoutePlan {
    pub links: Vec<usize>,
    pub delay: Nanos,
    pub class: u16,
    pub flows: u32,
}

#[derive(Clone, Debug)]
pub struct SentPacket {
    pub time: Nanos,
    pub route: usize,
    pub flow: u32,
    pub bytes: u32,
    pub ecn: Ecn,
}

/// A network, and packets sent over it in order of time. The payload of a packet is its index.
#[derive(Clone, Debug)]
pub struct Plan {
    pub links: Vec<LinkPlan>,
    pub routes: Vec<RoutePlan>,
    pub packets: Vec<SentPacket>,
}

pub fn plans_with(links: impl Strategy<Value = Vec<LinkPlan>>) -> impl Strategy<Value = Plan> {
    let route = (
        prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..4),
        1..10 * SECOND,
        0_u16..3,
        1_u32..3,
    );
    let packet = (1..SECOND, any::<prop::sample::Index>(), 0_u32..2, 40_u32..=1500, any::<bool>());
    let packets = prop::collection::vec(packet, 1..300);
    (links, prop::collection::vec(route, 1..5), packets).prop_map(|(links, routes, packets)| {
        let routes: Vec<_> = routes
            .into_iter()
            .map(|(over, delay, class, flows)| {
                let mut over: Vec<_> =
                    over.iter().map(|(link, _)| link.index(links.len())).collect();
                over.dedup();
                RoutePlan { links: over, delay, class, flows }
            })
            .collect();
        let mut time = 0;
        let packets = packets.into_iter().map(|(gap, route, flow, bytes, capable)| {
            time += gap;
            let route = route.index(routes.len());
            let flow = route as u32 * 2 + flow % routes[route].flows;
            let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
            SentPacket { time, route, flow, bytes, ecn }
        });
        let packets = packets.collect();
        Plan { links, routes, packets }
    })
}

pub fn plans() -> impl Strategy<Value = Plan> {
    any::<bool>().prop_flat_map(|changing| plans_with(links(changing)))
}

/// What happened to the packets.
#[derive(Debug, Default)]
pub struct Record {
    pub delivered: Vec<(Nanos, u32, Ecn)>,
    pub dropped: Vec<(Nanos, LinkId, u32, DropCause)>,
    /// Time of entry of the packets that are on each link.
    pub inside: BTreeMap<LinkId, BTreeMap<u32, Nanos>>,
    /// Sum of the times that packets spent in each queue.
    pub in_queue: BTreeMap<LinkId, u128>,
    served: BTreeMap<(LinkId, u32), Nanos>,
    pub now: Nanos,
}

impl NetworkObserver<u32> for Record {
    fn on_delivered(&mut self, now: Nanos, payload: u32, ecn: Ecn) {
        assert!(now >= self.now);
        self.now = now;
        self.delivered.push((now, payload, ecn));
    }

    fn on_dropped(&mut self, now: Nanos, link: LinkId, payload: u32, cause: DropCause) {
        assert!(now >= self.now);
        self.now = now;
        self.dropped.push((now, link, payload, cause));
        let entered = self.inside.get_mut(&link).unwrap().remove(&payload).unwrap();
        if self.served.remove(&(link, payload)).is_none() {
            *self.in_queue.entry(link).or_default() += u128::from(now - entered);
        }
    }

    fn on_entered(&mut self, now: Nanos, at: Passage, payload: &u32) {
        let before = self.inside.entry(at.link).or_default().insert(*payload, now);
        assert_eq!(before, None, "a packet entered twice");
    }

    fn on_served(&mut self, Passage { link, .. }: Passage, payload: &u32, service: &Service) {
        assert_eq!(self.inside[&link][payload], service.entered);
        assert!(service.entered + service.waited <= service.leaves);
        *self.in_queue.entry(link).or_default() += u128::from(service.leaves - service.entered);
        self.served.insert((link, *payload), service.leaves);
    }

    fn on_left(&mut self, now: Nanos, link: LinkId, payload: &u32) {
        assert!(now >= self.served.remove(&(link, *payload)).unwrap());
        self.inside.get_mut(&link).unwrap().remove(payload).unwrap();
    }
}

/// A network under test with its links and routes, in the order of the plan.
pub struct Run {
    pub network: Network<u32>,
    pub links: Vec<LinkId>,
    pub routes: Vec<RouteId>,
    pub record: Record,
}

impl Run {
    pub fn new(plan: &Plan, network: Network<u32>) -> Self {
        let mut run =
            Self { network, links: Vec::new(), routes: Vec::new(), record: Record::default() };
        run.add_links(plan);
        run.add_routes(plan);
        run
    }

    pub fn add_links(&mut self, plan: &Plan) {
        for link in &plan.links {
            self.links.push(self.network.add_link(link.config()));
        }
    }

    pub fn add_routes(&mut self, plan: &Plan) {
        for route in &plan.routes {
            let links: Vec<_> = route.links.iter().map(|link| self.links[*link]).collect();
            let RoutePlan { delay, class, flows, .. } = *route;
            self.routes.push(self.network.add_route(&links, delay, class, flows));
        }
    }

    pub fn send(&mut self, payload: usize, packet: &SentPacket, route: RouteId) {
        // Events at the time of a packet precede it.
        self.network.advance_to(packet.time, &mut self.record);
        let sent = Packet::new(payload as u32, packet.flow, packet.bytes).with_ecn(packet.ecn);
        self.network.send(packet.time, route, sent, &mut self.record);
    }

    pub fn send_all(mut self, plan: &Plan) -> Self {
        for (payload, packet) in plan.packets.iter().enumerate() {
            self.send(payload, packet, self.routes[packet.route]);
        }
        self.network.advance_to(NEVER - 1, &mut self.record);
        self
    }

    /// Counters of each class on a link of the plan.
    pub fn counters(&self, link: usize) -> [LinkCounters; 3] {
        [0, 1, 2].map(|class| self.network.counters(self.links[link], class))
    }
}
