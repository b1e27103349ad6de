//! The network of links of all flows, and what it reports.
//!
//! ```text
//! reference flow   first links -> own hops -> shared router -> own hops -> last links -> ack
//! cross flow                     [own hops ->] shared router [-> own hops -> last links]
//! ```
//!
//! The first links of a class neither drop packets nor carry cross traffic: cross flows begin behind
//! them. In scheme 2, cross flows pass their own hops before the router, and behind it their packets
//! continue at a time drawn from the measured service times.

use crate::config::CrossFlowScheme;
use std::collections::VecDeque;
use std::sync::Arc;
use tcpcast_link::{Ecn, Packet};
use tcpcast_net::{DropCause, LinkId, Network, NetworkObserver, RouteId, Service};
use tcpcast_sim::clock::Nanos;
use tcpcast_sim::cross::CrossArrivals;
use tcpcast_sim::flows::{
    FlowClassConfig, LAST_CROSS_FLOW, NetworkConfig, NetworkLinks, RouteUser,
};
use tcpcast_sim::probe::{CrossPacketEvent, Probes};
use tcpcast_sim::queue::LinkRate;

/// A packet in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowPacket {
    /// Number of the flow; of the stream if it is cross traffic.
    pub flow: u32,
    pub number: u32,
    pub sent_at: Nanos,
    /// Whether the packet is on the second route of a cross flow.
    pub is_behind: bool,
    /// Whether the packet belongs to a stream of cross traffic of the scenario.
    pub is_stream: bool,
}

/// A packet that a flow sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentPacket {
    pub flow: u32,
    pub number: u32,
    pub bytes: u32,
    /// Whether the route is the second one of a cross flow.
    pub is_behind: bool,
}

/// What the network reports of the packets of flows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Report {
    /// A packet reached the shared router and found so many packets; maybe the router dropped it.
    Arrived { packet: FlowPacket, found: u64, is_dropped: bool },
    /// The router transmits a packet, which leaves at this time.
    Transmitted { packet: FlowPacket, leaves: Nanos },
    /// A packet was lost after it had been accepted by the router, or at another link.
    Lost { packet: FlowPacket, at: Nanos, at_router: bool },
    /// A packet reached the end of its route.
    Delivered { packet: FlowPacket },
}

/// Links on the way of the data of a class.
#[derive(Clone, Debug)]
pub(super) struct ClassRoute {
    /// All links.
    pub all: Vec<usize>,
    /// Links before the shared router, without the first ones.
    before: Vec<usize>,
    /// Links behind the shared router.
    behind: Vec<usize>,
    /// Delay behind the last link.
    delay: Nanos,
    /// Delay and longest transmission time of the first links.
    pub up_delay: Nanos,
    pub min_gap: Nanos,
}

impl ClassRoute {
    pub(super) fn new(class: &FlowClassConfig, config: &NetworkConfig) -> Self {
        let all = class.routes[0].clone();
        let at = all.iter().position(|link| *link == config.headline).unwrap_or(all.len());
        let is_first = |link: &&usize| {
            let of_link = &config.links[**link];
            let only_delays = of_link.limit.is_none()
                && of_link.limit_bytes.is_none()
                && of_link.loss.is_none()
                && matches!(of_link.rate, LinkRate::Constant(_));
            only_delays && config.cross.iter().all(|cross| cross.link != **link)
        };
        let first: Vec<usize> = all[..at].iter().take_while(is_first).copied().collect();
        let times = first.iter().map(|link| {
            let link = &config.links[*link];
            (link.transmission_time(class.packet_bytes), link.delay)
        });
        Self {
            before: all[first.len()..at].to_vec(),
            behind: all.get(at + 1..).unwrap_or_default().to_vec(),
            delay: class.delay,
            up_delay: times.clone().map(|(sending, delay)| sending + delay).sum(),
            min_gap: times.map(|(sending, _)| sending).max().unwrap_or(0),
            all,
        }
    }

    /// Whether packets pass links other than the first ones before the router.
    pub(super) fn has_own_hops_before(&self) -> bool {
        !self.before.is_empty()
    }
}

/// A stream of cross traffic on one instance of a link.
#[derive(Debug)]
struct Stream {
    /// Number in the configuration.
    stream: usize,
    bytes: u32,
    arrivals: CrossArrivals,
    route: RouteId,
}

/// The network of links.
#[derive(Debug)]
pub(super) struct FlowNetwork {
    config: Arc<NetworkConfig>,
    network: Network<FlowPacket>,
    links: NetworkLinks,
    router: Option<LinkId>,
    replication: u32,
    streams: Vec<Stream>,
    /// Reports that were not handled yet.
    reports: VecDeque<Report>,
}

impl FlowNetwork {
    pub(super) fn new(config: &Arc<NetworkConfig>, replication: u32) -> Self {
        let mut network = Self {
            config: Arc::clone(config),
            network: Network::default(),
            links: NetworkLinks::new(config, replication),
            router: None,
            replication,
            streams: Vec::new(),
            reports: VecDeque::new(),
        };
        // Measurements at the router need the order of time even if one flow uses it alone.
        network.add_route_of(&[config.headline], 0, 0, 0, u32::MAX);
        network
    }

    fn add_route(&mut self, links: &[usize], delay: Nanos, class: usize, flow: u32) -> RouteId {
        self.add_route_of(links, delay, class, flow, 1)
    }

    fn add_route_of(
        &mut self,
        links: &[usize],
        delay: Nanos,
        class: usize,
        flow: u32,
        flows: u32,
    ) -> RouteId {
        let user = RouteUser { class, source: flow, member: 0, sources: flows };
        let Self { links: all, network, router, config, .. } = self;
        let headline = config.headline;
        all.add_route(links, delay, user, 0, network, &mut |_, id, declared| {
            if declared == headline {
                *router = Some(id);
            }
        })
    }

    /// Adds the route of a reference flow.
    pub(super) fn add_reference_route(
        &mut self,
        route: &ClassRoute,
        class: usize,
        flow: u32,
    ) -> RouteId {
        self.add_route(&route.all, route.delay, class, flow)
    }

    /// Adds the routes of a cross flow up to and behind the router. In schemes 0 and 1, the first one
    /// has both parts.
    pub(super) fn add_cross_routes(
        &mut self,
        route: &ClassRoute,
        scheme: CrossFlowScheme,
        class: usize,
        flow: u32,
    ) -> [RouteId; 2] {
        let router = [self.config.headline];
        // The propagation behind the router precedes its next link: all packets are later by it.
        let propagation = self.config.links[self.config.headline].delay;
        let behind = self.add_route(&route.behind, route.delay + propagation, class, flow);
        let first = if scheme == CrossFlowScheme::Windows {
            let links: Vec<usize> = route.before.iter().chain(&router).copied().collect();
            self.add_route(&links, 0, class, flow)
        } else {
            let links: Vec<usize> = router.iter().chain(&route.behind).copied().collect();
            self.add_route(&links, route.delay, class, flow)
        };
        [first, behind]
    }

    /// Creates the streams of cross traffic on all links. Returns the time of the first packet of
    /// each.
    pub(super) fn add_streams(&mut self) -> Vec<Nanos> {
        let config = Arc::clone(&self.config);
        let mut first = Vec::new();
        let class = config.classes.len() as u16;
        for (declared, instance, link) in self.links.take_new_instances() {
            for (stream, cross) in config.cross.iter().enumerate() {
                if cross.link != declared {
                    continue;
                }
                let number = stream as u32 + instance * config.cross.len() as u32;
                let (seed, replication) = (config.seed, self.replication);
                let mut arrivals =
                    CrossArrivals::for_stream(&cross.process, seed, replication, number);
                first.push(arrivals.next_arrival_time());
                let route = self.network.add_route(&[link], 0, class, 1);
                self.streams.push(Stream { stream, bytes: cross.packet_bytes, arrivals, route });
            }
        }
        first
    }

    /// Sends the next packet of a stream at `now`, and returns the time of the following one.
    pub(super) fn send_stream_packet(
        &mut self,
        now: Nanos,
        index: u32,
        probes: &mut Probes,
    ) -> Nanos {
        let Stream { stream, bytes, arrivals, route } = &mut self.streams[index as usize];
        let next = arrivals.next_arrival_time().max(now);
        probes.cross.stream_mut(*stream).rates.merge(&arrivals.take_rate_counters());
        probes.cross.count_event(*stream, CrossPacketEvent::Offered);
        let packet = FlowPacket {
            flow: *stream as u32,
            number: 0,
            sent_at: now,
            is_behind: false,
            is_stream: true,
        };
        let packet = Packet::new(packet, LAST_CROSS_FLOW - index, *bytes);
        let (router, reports) = (self.router, &mut self.reports);
        let observer = &mut Observer { router, reports, probes };
        self.network.send(now, *route, packet, observer);
        next
    }

    /// Sends a packet of a flow.
    pub(super) fn send(
        &mut self,
        now: Nanos,
        route: RouteId,
        sent: SentPacket,
        probes: &mut Probes,
    ) {
        let SentPacket { flow, number, bytes, is_behind } = sent;
        let packet = FlowPacket { flow, number, sent_at: now, is_behind, is_stream: false };
        let (router, reports) = (self.router, &mut self.reports);
        let observer = &mut Observer { router, reports, probes };
        self.network.send(now, route, Packet::new(packet, flow, bytes), observer);
    }

    /// Time of the next event.
    pub(super) fn next_time(&self) -> Nanos {
        self.network.next_time()
    }

    /// Processes the next event.
    pub(super) fn step(&mut self, probes: &mut Probes) {
        let (router, reports) = (self.router, &mut self.reports);
        self.network.step(&mut Observer { router, reports, probes });
    }

    /// Takes the first report.
    pub(super) fn take_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Whether the router accepted the packet that was sent last and reached it immediately.
    pub(super) fn accepted_last(&self) -> bool {
        let arrival = self.reports.iter().rev().find_map(|report| match report {
            Report::Arrived { is_dropped, .. } => Some(!is_dropped),
            _ => None,
        });
        arrival.unwrap_or(true)
    }

    /// Updates the counters of the router's queue to `now`.
    pub(super) fn update_queue(&mut self, now: Nanos, probes: &mut Probes) {
        if let Some(router) = self.router {
            let reports = &mut self.reports;
            let observer = &mut Observer { router: self.router, reports, probes };
            self.network.update_occupancy(router, now, observer);
        }
    }

    /// Packets that entered, left, were dropped by, and are on all links.
    pub(super) fn totals(&self) -> [u64; 4] {
        let mut totals = [0; 4];
        for declared in 0..self.config.links.len() {
            let Some(first) = self.links.instances_of(declared).next() else { continue };
            for class in 0..=self.config.classes.len() as u16 {
                let counters = self.network.counters(first, class);
                totals[0] += counters.entered.packets;
                totals[1] += counters.left.packets;
                totals[2] += counters.dropped_packets();
            }
        }
        totals[3] = self.network.packets_on_links().iter().sum();
        totals
    }
}

/// Stores what the network reports.
struct Observer<'a> {
    router: Option<LinkId>,
    reports: &'a mut VecDeque<Report>,
    probes: &'a mut Probes,
}

impl NetworkObserver<FlowPacket> for Observer<'_> {
    fn on_delivered(&mut self, _now: Nanos, packet: FlowPacket, _ecn: Ecn) {
        if !packet.is_stream {
            self.reports.push_back(Report::Delivered { packet });
        }
    }

    fn on_dropped(&mut self, at: Nanos, link: LinkId, packet: FlowPacket, cause: DropCause) {
        if packet.is_stream {
            let stream = packet.flow as usize;
            return self.probes.cross.count_event(stream, CrossPacketEvent::Dropped);
        }
        let at_router = self.router == Some(link);
        if at_router && cause == DropCause::Early {
            self.probes.early.count_drop();
        }
        match self.reports.back_mut() {
            Some(Report::Arrived { packet: last, is_dropped, .. })
                if at_router && *last == packet =>
            {
                *is_dropped = true;
            }
            _ => self.reports.push_back(Report::Lost { packet, at, at_router }),
        }
    }

    fn on_entered(&mut self, _now: Nanos, link: LinkId, packet: &FlowPacket) {
        if self.router == Some(link) && !packet.is_stream {
            let packet = *packet;
            self.reports.push_back(Report::Arrived { packet, found: 0, is_dropped: false });
        }
    }

    fn on_served(&mut self, link: LinkId, packet: &FlowPacket, service: &Service) {
        if packet.is_stream {
            let event = CrossPacketEvent::Carried { waited: Some(service.waited) };
            self.probes.cross.count_event(packet.flow as usize, event);
        } else if self.router == Some(link) {
            let leaves = service.leaves;
            self.reports.push_back(Report::Transmitted { packet: *packet, leaves });
        }
    }

    fn on_arrival_queue_length(&mut self, link: LinkId, packets: u64) {
        if self.router == Some(link) {
            if let Some(Report::Arrived { found, .. }) = self.reports.back_mut() {
                *found = packets;
                self.probes.occupancy.record_arrival(packets as usize);
            }
        }
    }

    fn on_queue_length_interval(&mut self, link: LinkId, packets: u64, until: Nanos) {
        if self.router == Some(link) {
            self.probes.occupancy.record_length_until(packets as usize, until);
        }
    }

    fn on_average_updated(&mut self, link: LinkId, average: f64) {
        if self.router == Some(link) {
            self.probes.early.count_average(average);
        }
    }
}
