//! Instances of the configured links, and routes over them.

use super::config::{
    CrossStreamConfig, FlowClassConfig, LinkChangeConfig, LinkInstances, NetworkConfig,
    NetworkLinkConfig,
};
use super::cross::{FIRST_CROSS_FLOW, LAST_CROSS_FLOW};
use super::parcel::{CLIENT, SERVER};
use crate::clock::{Nanos, seconds_to_nanos, transmission_time};
use crate::cross::{FluidHop, FluidHopSourceState};
use crate::probe::{LINK_CLASS_CELLS, LINK_TOTAL_CELLS, LinkTotalCell};
use crate::queue::LinkRate;
use crate::queue::disciplines::{BufferLimits, FqCodelConfig, HeavyFlows, QueueConfig};
use crate::random::{NamedStream, RandomSource, RandomStream, StreamPurpose};
use std::num::NonZeroU64;
use std::sync::Arc;
use tcpcast_link::loss::LinkLossState;
use tcpcast_link::remark::EcnRemark;
use tcpcast_link::request_grant::RequestGrant;
use tcpcast_link::transmit::{AnyTransmitter, ConstantRate};
use tcpcast_net::{
    Jitter, LinkChange, LinkConfig, LinkCounters, LinkId, Network, RouteId, SharedServer,
};

/// Alternative routes of one class and member of its site, by the end that sends: the server, then
/// the client.
#[derive(Clone, Debug)]
pub struct RouteSet([Vec<RouteId>; 2]);

impl RouteSet {
    /// Alternative routes from an end.
    #[must_use]
    pub fn alternatives_from(&self, end: usize) -> &[RouteId] {
        &self.0[end]
    }

    /// Routes of a connection, selected by `hash`.
    pub(crate) fn routes_of_connection(&self, hash: u64) -> [RouteId; 2] {
        self.0.each_ref().map(|routes| routes[(hash % routes.len() as u64) as usize])
    }
}

/// A source for which routes are created.
#[derive(Clone, Copy, Debug)]
pub struct RouteUser {
    /// Number of the class.
    pub class: usize,
    /// Number of the source among all sources.
    pub source: u32,
    /// Member of the site of the class.
    pub member: u32,
    /// Number of the host of the server; 0 if the class has one host.
    pub host: usize,
    /// Number of sources that share the routes.
    pub sources: u32,
}

/// Links of a network.
#[derive(Debug)]
pub struct NetworkLinks {
    config: Arc<NetworkConfig>,
    replication: u32,
    /// Pairs of configured link and class.
    link_classes: Vec<(usize, usize)>,
    /// Number of counters of all links.
    sum_count: usize,
    /// Instances of each configured link, by source or member.
    instances: Vec<Vec<Option<LinkId>>>,
    /// Route sets by class, member and host; by source if a route has a link of each sender.
    sets: Vec<RouteSet>,
    set_of_member: Vec<Vec<Option<u32>>>,
    /// Fluid cross traffic by configured link.
    fluids: Vec<Option<Arc<FluidHop>>>,
    /// Links created since the last call of [`NetworkLinks::take_new_instances`]: number in the
    /// configuration, source or member, and link.
    new_instances: Vec<(usize, u32, LinkId)>,
}

impl NetworkLinks {
    /// Creates no link yet.
    #[must_use]
    pub fn new(config: &Arc<NetworkConfig>, replication: u32) -> Self {
        Self {
            link_classes: config.link_classes(),
            sum_count: config.sum_count(),
            config: Arc::clone(config),
            replication,
            instances: vec![Vec::new(); config.links.len()],
            sets: Vec::new(),
            set_of_member: vec![Vec::new(); config.classes.len()],
            fluids: vec![None; config.links.len()],
            new_instances: Vec::new(),
        }
    }

    /// Instances of a configured link.
    pub fn instances_of(&self, declared: usize) -> impl Iterator<Item = LinkId> + '_ {
        self.instances[declared].iter().flatten().copied()
    }

    /// Takes the links created since the last call: number in the configuration, source or member,
    /// and link.
    pub(super) fn take_new_instances(&mut self) -> Vec<(usize, u32, LinkId)> {
        std::mem::take(&mut self.new_instances)
    }

    /// Whether the cross traffic of a link is a fluid.
    pub(super) fn has_fluid(&self, declared: usize) -> bool {
        self.fluids[declared].is_some()
    }

    /// Fluid cross traffic of all links that have an instance.
    pub(super) fn fluids(&self) -> impl Iterator<Item = &FluidHop> {
        self.fluids.iter().flatten().map(|fluid| &**fluid)
    }

    /// Instances of all links.
    pub fn all_instances(&self) -> impl Iterator<Item = LinkId> + use<> {
        let instances: Vec<_> = self.instances.iter().flatten().flatten().copied().collect();
        instances.into_iter()
    }

    /// A route set.
    #[must_use]
    pub fn route_set(&self, index: u32) -> &RouteSet {
        &self.sets[index as usize]
    }

    /// Whether each source of a class has its own routes.
    fn has_sender_links(&self, class: usize) -> bool {
        let class = &self.config.classes[class];
        let mut links = class.routes.iter().chain(&class.back).flatten();
        links.any(|link| self.config.links[*link].each == LinkInstances::Sender)
    }

    /// Returns the index of the route set of a source; creates missing links, as of `now`, and
    /// routes. `on_new` receives each new link and the number of its configuration.
    pub fn find_or_add_routes<T: Copy>(
        &mut self,
        user: RouteUser,
        now: Nanos,
        network: &mut Network<T>,
        mut on_new: impl FnMut(&Network<T>, LinkId, usize),
    ) -> u32 {
        let own = self.has_sender_links(user.class);
        let hosts = self.config.classes[user.class].host_count();
        let place = if own { user.source } else { user.member };
        let key = place as usize * hosts + user.host;
        let sets = &mut self.set_of_member[user.class];
        if sets.len() <= key {
            sets.resize(key + 1, None);
        }
        if let Some(index) = sets[key] {
            return index;
        }
        let alone = self.config.classes[user.class].sources_per_link();
        let user = RouteUser { sources: if own { alone } else { user.sources }, ..user };
        let config = Arc::clone(&self.config);
        let class = &config.classes[user.class];
        let mut add = |routes: &[Vec<usize>], delay: Nanos| -> Vec<RouteId> {
            let add_route = |route: &Vec<usize>| {
                let instance = |link: &usize| self.instance(*link, user, now, network, &mut on_new);
                let links: Vec<LinkId> = route.iter().map(instance).collect();
                network.add_route(&links, delay, user.class as u16, user.sources)
            };
            routes.iter().map(add_route).collect()
        };
        let [delay, back_delay] = class.rest_delays(user.host);
        let both = [add(&class.routes, delay), add(&class.back, back_delay)];
        self.sets.push(RouteSet(both));
        let index = self.sets.len() as u32 - 1;
        self.set_of_member[user.class][key] = Some(index);
        index
    }

    /// The instance of a configured link on the routes of a source.
    fn instance<T: Copy>(
        &mut self,
        declared: usize,
        user: RouteUser,
        now: Nanos,
        network: &mut Network<T>,
        on_new: &mut impl FnMut(&Network<T>, LinkId, usize),
    ) -> LinkId {
        let fluid = self.fluid_of(declared);
        let config = &self.config.links[declared];
        let key = match config.each {
            LinkInstances::All => 0,
            LinkInstances::Sender => user.source,
            LinkInstances::Site(_) => user.member,
        };
        let instances = &mut self.instances[declared];
        let first = instances.iter().flatten().next().copied();
        if instances.len() <= key as usize {
            instances.resize(key as usize + 1, None);
        }
        *instances[key as usize].get_or_insert_with(|| {
            let stream = |purpose| {
                let (seed, declared) = (self.config.seed, declared as u32);
                RandomStream::for_entity_at_hop(seed, self.replication, declared, purpose, key)
            };
            let mut link = link_config(config, now, stream);
            if let QueueConfig::Drr(drr) = &mut link.queue {
                drr.heavy = heavy_cross_traffic(&self.config, declared);
            }
            if let Some((fluid, rate)) = fluid {
                let seed = self.config.seed;
                let state = fluid.create_source_state(seed, self.replication, key, declared as u32);
                link.shared_server = Some(fluid_server(fluid, state, rate));
            }
            link.counts_queue = declared == self.config.headline;
            let id = match first {
                Some(first) => network.add_link_with_counters_of(link, first),
                None => network.add_link(link),
            };
            if config.each != LinkInstances::Sender && self.config.has_arrivals_on(declared) {
                network.expect_more_routes(id);
            }
            on_new(network, id, declared);
            self.new_instances.push((declared, key, id));
            id
        })
    }

    /// Fluid cross traffic of a link, which all of its instances share.
    fn fluid_of(&mut self, declared: usize) -> Option<(Arc<FluidHop>, u64)> {
        let config = &self.config.links[declared];
        let on_link = |(_, cross): &(u32, &CrossStreamConfig)| cross.link == declared;
        let streams = || (0..).zip(&self.config.cross).filter(on_link);
        let (_, CrossStreamConfig { fluid, packet_bytes, .. }) = streams().next()?;
        let LinkRate::Constant(Some(rate)) = config.rate else { return None };
        let bins = (*fluid)?;
        if self.fluids[declared].is_none() {
            let packet_ns = f64::from(*packet_bytes) * byte_ns(rate);
            let bytes = config.limit_bytes.map(|bytes| bytes / u64::from(*packet_bytes));
            let limit = config.limit.into_iter().chain(bytes).min();
            let streams: Vec<_> =
                streams().map(|(index, stream)| (index, stream.process.clone())).collect();
            let (seed, run) = (self.config.seed, self.replication);
            let hop = FluidHop::for_replication(&streams, bins, packet_ns, limit, seed, run);
            self.fluids[declared] = Some(Arc::new(hop));
        }
        self.fluids[declared].clone().map(|fluid| (fluid, rate))
    }

    /// Sums of the network since the start up to `now`: [`LINK_TOTAL_CELLS`] of each configured
    /// link, then [`LINK_CLASS_CELLS`] of each pair of link and class.
    #[must_use]
    pub fn sums<T: Copy>(&self, network: &Network<T>, now: Nanos) -> Vec<u64> {
        let mut sums = Vec::with_capacity(self.sum_count);
        for (declared, config) in self.config.links.iter().enumerate() {
            let mut total = [0_u64; LINK_TOTAL_CELLS.len()];
            if let Some(first) = self.instances_of(declared).next() {
                let capacity = |link| network.link(link).capacity_nanobits_until(now);
                // Without changes, all instances have the same capacity.
                let nanobits: u128 = match config.changes.is_empty() {
                    true => u128::from(network.links_with_counters_of(first)) * capacity(first),
                    false => self.instances_of(declared).map(capacity).sum(),
                };
                total[LinkTotalCell::PacketTime as usize] = network.packet_nanos(first);
                total[LinkTotalCell::CarriedBytes as usize] = network.transmitted_bytes(first);
                total[LinkTotalCell::CapacityBytes as usize] = (nanobits / 8_000_000_000) as u64;
            }
            sums.extend(total);
        }
        for (declared, class) in &self.link_classes {
            let first = self.instances_of(*declared).next();
            let counters = first.map(|first| network.counters(first, *class as u16));
            sums.extend(class_cells(&counters.unwrap_or_default()));
        }
        sums
    }
}

/// Cells of the packets of one class on one link, in the order of their names.
fn class_cells(counters: &LinkCounters) -> [u64; LINK_CLASS_CELLS.len()] {
    let LinkCounters { entered, left, transmitted, .. } = counters;
    [
        entered.packets,
        entered.bytes,
        left.packets,
        left.bytes,
        counters.full_drops,
        counters.early_drops,
        counters.random_drops,
        counters.superseded,
        counters.marked,
        transmitted.packets,
        counters.waited,
    ]
}

/// Round-trip time of packets of `ack_bytes` over the first route of each direction without
/// queueing.
pub(crate) fn unloaded_rtt(config: &NetworkConfig, class: usize) -> Nanos {
    let class = &config.classes[class];
    let times = [&class.routes[0], &class.back[0]].map(|way| config.time_over(class, way));
    times[0] + class.delay + times[1] + class.back_delay
}

impl NetworkLinkConfig {
    /// Transmission time of a packet of `bytes` that does not wait.
    #[must_use]
    pub fn transmission_time(&self, bytes: u32) -> Nanos {
        match self.rate {
            LinkRate::Constant(rate) => transmission_time(bytes, rate),
            LinkRate::Bucket(_) | LinkRate::Opportunities(_) | LinkRate::Wifi(_) => 0,
        }
    }
}

impl NetworkConfig {
    /// Time of a packet of `ack_bytes` over links without queueing.
    pub(super) fn time_over(&self, class: &FlowClassConfig, links: &[usize]) -> Nanos {
        let links = links.iter().map(|link| &self.links[*link]);
        links.map(|link| link.transmission_time(class.ack_bytes) + link.delay).sum()
    }
}

impl FlowClassConfig {
    /// Routes of the packets that an end sends.
    pub(super) fn ways_from(&self, end: usize) -> &[Vec<usize>] {
        if end == SERVER { &self.routes } else { &self.back }
    }
}

/// Whether several packets of a connection of a class can reach an end at the same time, because no
/// link serialises them.
pub(crate) fn allows_simultaneous_arrivals(config: &NetworkConfig, class: usize) -> [bool; 2] {
    let class = &config.classes[class];
    let serialises = |link: &usize| matches!(config.links[*link].rate, LinkRate::Constant(Some(_)));
    let never = |routes: &[Vec<usize>]| !routes.iter().all(|route| route.iter().any(serialises));
    let mut ends = [false; 2];
    (ends[SERVER], ends[CLIENT]) = (never(&class.back), never(&class.routes));
    ends
}

/// Charge of cross traffic at a link of a scaled population: each packet of a source counts as
/// several flows, and each stream as one.
fn heavy_cross_traffic(config: &NetworkConfig, declared: usize) -> Option<HeavyFlows> {
    let cross = config.cross.iter().find(|cross| cross.link == declared)?;
    let scale = config.max_population_scale();
    let charge = libm::round(f64::from(cross.packet_bytes) * scale) as u32;
    (scale > 1.0).then_some(HeavyFlows { first: FIRST_CROSS_FLOW, last: LAST_CROSS_FLOW, charge })
}

/// Transmission time of a byte in nanoseconds.
fn byte_ns(rate_bps: u64) -> f64 {
    8e9 / rate_bps as f64
}

/// The queue and transmitter of a source's link with fluid cross traffic.
fn fluid_server(
    fluid: Arc<FluidHop>,
    mut state: FluidHopSourceState,
    rate_bps: u64,
) -> SharedServer {
    let byte_ns = byte_ns(rate_bps);
    let serve = move |now, bytes| {
        let own = f64::from(bytes) * byte_ns;
        let leaves = fluid.offer_work(&mut state, now, own)?;
        Some((leaves, (leaves - now).saturating_sub(own as Nanos)))
    };
    SharedServer { serve: Box::new(serve) }
}

/// Configuration of a link that is created at `now`, with the changes up to then.
fn link_config(
    link: &NetworkLinkConfig,
    now: Nanos,
    stream: impl Fn(StreamPurpose) -> RandomStream,
) -> LinkConfig {
    let mut early = stream(StreamPurpose::LinkEarlyDrop);
    let queue = match link.queue {
        QueueConfig::FqCodel(fq_codel) => {
            QueueConfig::FqCodel(FqCodelConfig { perturbation: early.next_bits(), ..fq_codel })
        }
        other => other,
    };
    let loss_state = |loss, index| {
        let draws = RandomStream::from_seed(stream(StreamPurpose::LinkLoss).next_bits() ^ index);
        LinkLossState::new(loss, draws)
    };
    let jitter = link.jitter.as_ref().map(|jitter| {
        let (delay, mut draws) = (jitter.delay.clone(), stream(StreamPurpose::LinkJitter));
        let delay = Box::new(move |_| seconds_to_nanos(delay.draw_value(&mut draws)));
        Jitter { delay, reorder: jitter.reorder }
    });
    let grants = link.docsis.map(|docsis| {
        let mut modem = RequestGrant::new(docsis, stream(StreamPurpose::LinkJitter));
        let delay = Box::new(move |leaves| modem.grant_time(leaves) - leaves);
        Jitter { delay, reorder: false }
    });
    let remark =
        link.remark.map(|config| EcnRemark::new(config, stream(StreamPurpose::LinkRemark)));
    let mut config = LinkConfig {
        policer: link.policer,
        remark,
        loss: link.loss.map(|loss| loss_state(loss, 0)),
        queue,
        limits: BufferLimits { packets: link.limit, bytes: link.limit_bytes },
        draws: RandomStream::from_seed(early.next_bits()),
        transmitter: link.rate.create_transmitter(|| stream(StreamPurpose::LinkAccess)),
        shared_server: None,
        jitter: jitter.or(grants),
        delay: link.delay,
        counts_queue: false,
        changes: Vec::new(),
    };
    for (index, timed) in (1..).zip(&link.changes) {
        let change = match timed.change {
            LinkChangeConfig::Rate(rate) => LinkChange::Rate(rate.and_then(NonZeroU64::new)),
            LinkChangeConfig::Delay(delay) => LinkChange::Delay(delay),
            LinkChangeConfig::Loss(loss) => {
                LinkChange::Loss(loss.map(|loss| loss_state(loss, index)))
            }
        };
        match change {
            change if timed.at > now => config.changes.push((timed.at, change)),
            LinkChange::Delay(delay) => config.delay = delay,
            LinkChange::Loss(loss) => config.loss = loss,
            LinkChange::Rate(rate) => {
                config.transmitter = AnyTransmitter::ConstantRate(ConstantRate::new(rate));
            }
        }
    }
    config
}
