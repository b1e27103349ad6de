//! Setup of a run: flows, their routes, and their first events.

use super::apps::AppState;
use super::config::{FlowTraffic, LinkInstances, NetworkConfig, PageTraffic, RequestTraffic};
use super::cross::cross_class;
use super::flow::{Flow, FlowClass, delayed_ends};
use super::links::{NetworkLinks, RouteUser};
use super::parcel::SERVER;
use super::taps::Taps;
use super::wait_groups::WaitGroups;
use super::wire::{ClassHostDelay, FlowHeader, LinkRole, Wire};
use super::{ClassArrivals, FlowSimulation, FlowTimer, MAX_CONCURRENT, Timers, counters};
use crate::clock::{Nanos, seconds_to_nanos};
use crate::jitter::HostProcessingDelay;
use crate::population::ScaledPopulation;
use crate::probe::{Probes, SourceRecord};
use crate::random::{NamedStream, RandomStream, StreamPurpose, mix_bits};
use crate::replication::RunWatch;
use crate::round_loss::RoundLoss;
use crate::traffic::{SizeOffTimeCoupling, SourceStart, TRANSFER_GAP, Traffic, draw_source_start};
use std::collections::VecDeque;
use std::sync::Arc;
use tcpcast_net::Network;
use tcpcast_tcp::modern::Segment;

impl FlowSimulation {
    /// Creates replication `replication` of a run. Its flows are created at the first call of
    /// `advance`, so that their creation can be interrupted.
    #[must_use]
    pub fn new(config: &Arc<NetworkConfig>, replication: u32) -> Self {
        let count = config.classes.len();
        let firsts = config.classes.iter().scan(0, |end, class| {
            let first = *end;
            *end += config.source_count(class) as usize;
            Some(first)
        });
        let classes: Vec<_> =
            firsts.enumerate().map(|(index, first)| FlowClass::new(config, index, first)).collect();
        let wait_groups = WaitGroups::new(config);
        let waits = wait_groups.count(config.links.len());
        let probes = Probes::of_network(&config.probes, count, waits);
        let mut wire = Wire::new(probes, wait_groups, host_delays(config, replication));
        wire.taps = Taps::new(config);
        wire.round_losses = config.round_loss.map(|rate| {
            let draws = RandomStream::for_entity(
                config.seed,
                replication,
                0,
                StreamPurpose::BottleneckLoss,
            );
            Box::new(RoundLoss::new(rate, 0, draws))
        });
        let stream = |class, purpose| {
            RandomStream::for_entity(config.seed, replication, class as u32, purpose)
        };
        let arrivals = (0..count).map(|class| ClassArrivals {
            gaps: stream(class, StreamPurpose::Arrival),
            sizes: stream(class, StreamPurpose::ArrivalSize),
            started: 0,
            idle: VecDeque::new(),
        });
        let sources = config.classes.iter().map(|class| config.source_count(class) as usize);
        let boundary = config.warmup.min(wire.probes.time_series.slot_end());
        let mut simulation = Self {
            replication,
            network: Network::default(),
            wire,
            links: NetworkLinks::new(config, replication),
            flows: Vec::new(),
            classes,
            timers: Timers::default(),
            arrivals: arrivals.collect(),
            populations: scaled_populations(config, replication),
            cross: Vec::new(),
            coupling: SizeOffTimeCoupling::default(),
            now: 0,
            limit: 0,
            boundary,
            wanted_transfers: u64::MAX,
            measuring: false,
            too_many_transfers: false,
            initial_flows: sources.sum(),
            has_all_flows: false,
            before: counters::SumsBefore::new(config),
            missing_record: SourceRecord::default(),
            page_news: Vec::new(),
            segment: Segment::default(),
            config: Arc::clone(config),
        };
        simulation.update_network_sums();
        simulation
    }

    /// Creates the missing flows and their first events. Returns false if the watcher stopped it.
    pub(super) fn create_flows(&mut self, watch: &mut RunWatch<'_>) -> bool {
        if self.has_all_flows {
            return true;
        }
        self.flows.reserve_exact(self.initial_flows - self.flows.len());
        for class in 0..self.classes.len() {
            let end = self.classes.get(class + 1).map_or(self.initial_flows, |next| next.first);
            while self.flows.len() < end {
                if !watch.should_continue(|| 0.0) {
                    return false;
                }
                let flow = self.add_flow(class);
                self.schedule_start_and_stop(flow);
            }
        }
        for class in 0..self.classes.len() {
            let first = match &self.classes[class].traffic {
                FlowTraffic::Files(Traffic::Arrivals { gap, .. }) => {
                    seconds_to_nanos(gap.draw_value(&mut self.arrivals[class].gaps))
                }
                FlowTraffic::Files(Traffic::Transfers { .. }) => TRANSFER_GAP,
                _ => match &mut self.populations[class] {
                    Some(population) => {
                        population.sort_idle_sources_by_age();
                        0
                    }
                    None => continue,
                },
            };
            self.timers.set(FlowTimer::Arrival, class, SERVER, first);
        }
        self.has_all_flows = true;
        true
    }

    /// Adds a flow of a class, and returns its index.
    pub(super) fn add_flow(&mut self, class: usize) -> usize {
        let index = self.flows.len();
        let of_class = &self.classes[class];
        let is_arrival = matches!(of_class.traffic, FlowTraffic::Files(Traffic::Arrivals { .. }));
        // Isolated transfers use one flow, one after the other.
        let member = if is_arrival {
            (index % of_class.members as usize) as u32
        } else {
            of_class.member_of(index)
        };
        let in_class = index - of_class.first;
        let in_user = in_class % of_class.traffic.sources_per_user();
        let user = RouteUser {
            class,
            // The connections of a browser share their user's access links.
            source: if of_class.traffic.shares_links() { index - in_user } else { index } as u32,
            member,
            host: of_class.traffic.host_of(in_user),
            // Further transfers may share the routes.
            sources: if is_arrival { u32::MAX } else { of_class.flows.max(1) },
        };
        let Self { links, network, wire, now, config, .. } = self;
        let headline = config.headline;
        let route_set = links.find_or_add_routes(user, *now, network, |network, id, declared| {
            let is_headline = declared == headline;
            if is_headline && config.links[declared].each == LinkInstances::All {
                wire.recorded = Some(id);
            }
            wire.links.push(LinkRole {
                declared: declared as u32,
                is_headline,
                has_queue: network.link(id).has_queue(),
                is_own: config.links[declared].each == LinkInstances::Sender,
                is_policer: config.links[declared].policer.is_some(),
            });
        });
        let routes = self.links.route_set(route_set).routes_of_connection(0);
        let (seed, number) = (self.config.seed, index as u32);
        let stream = |purpose| RandomStream::for_entity(seed, self.replication, number, purpose);
        let is_traced = self.config.probes.traced.contains(&number);
        let record = SourceRecord::new(class as u16, of_class.packet_bytes, is_traced);
        let stepped =
            of_class.has_stepped_application().then(|| stream(StreamPurpose::Application));
        let app = AppState::new(&of_class.traffic, index, in_class, stepped);
        let wanted = of_class.first_wanted_bytes();
        // The random numbers of users do not depend on the connections that each of them has.
        let user = (of_class.first + in_class / of_class.traffic.sources_per_user()) as u32;
        let of_user = |purpose| match of_class.traffic {
            FlowTraffic::Page(_) => RandomStream::for_entity(seed, self.replication, user, purpose),
            _ => stream(purpose),
        };
        let streams = [
            of_user(StreamPurpose::OffTime),
            of_user(StreamPurpose::Size),
            stream(StreamPurpose::Connection),
        ];
        let flow = Flow::new(record, routes, route_set, streams, app);
        self.flows.push(Flow { wanted, ..flow });
        self.wire.seen.push(0);
        let payload_bytes = self.classes[class].payload_bytes;
        let class = &self.config.classes[class];
        let client = class.client_host(index as u32, member);
        self.wire.headers.push(FlowHeader { client, dscp: class.dscp, payload_bytes });
        if self.wire.has_host_delays {
            self.wire.processed_at.push([0; 2]);
        }
        if !self.config.cross.is_empty() {
            self.start_cross_streams();
        }
        self.wire.add_passages(&self.network, cross_class(&self.config));
        index
    }

    /// Whether the number of concurrent transfers has reached its maximum.
    pub(super) fn has_too_many_flows(&self) -> bool {
        self.flows.len() >= self.initial_flows + MAX_CONCURRENT
    }

    fn schedule_start_and_stop(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let class = &self.classes[flow.record.class()];
        let in_class = index - class.first;
        let start = match &class.traffic {
            FlowTraffic::Files(traffic) => {
                let (off_times, sizes) = (&mut flow.off_times, &mut flow.sizes);
                let population = &mut self.populations[flow.record.class()];
                let is_scaled = population.is_some();
                match draw_source_start(traffic, in_class, is_scaled, off_times, sizes) {
                    Some(SourceStart::Sends { after, size }) => {
                        flow.size = size;
                        Some(after)
                    }
                    Some(SourceStart::Off { left, elapsed }) => match population {
                        Some(population) => {
                            population.add_idle_source(index as u32, seconds_to_nanos(elapsed));
                            None
                        }
                        None => Some(left),
                    },
                    None => None,
                }
            }
            other => other.draw_start_time(in_class, &mut flow.off_times),
        };
        if let Some(start) = start {
            self.timers.set(FlowTimer::Start, index, SERVER, seconds_to_nanos(start));
        }
        if let Some(stop) = class.traffic.stop_time() {
            self.timers.set(FlowTimer::Stop, index, SERVER, seconds_to_nanos(stop));
        }
    }

    /// Selects the routes of the next connection of a flow.
    pub(super) fn select_routes(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let connection = u64::from(flow.connection) << 32 | index as u64;
        let key = mix_bits(self.config.seed ^ StreamPurpose::Route as u64);
        let hash = mix_bits(key ^ connection);
        flow.routes = self.links.route_set(flow.route_set).routes_of_connection(hash);
    }
}

impl FlowTraffic {
    /// Draws the start time in seconds of a source with this index in its class; `None` if another
    /// source starts it, or if the traffic is files.
    pub fn draw_start_time(&self, in_class: usize, stream: &mut RandomStream) -> Option<f64> {
        match self {
            Self::Requests(RequestTraffic { start, .. })
            | Self::Page(PageTraffic { start, .. }) => {
                let sources = self.sources_per_user();
                let is_first = in_class % sources == 0;
                is_first.then(|| start.start_time(in_class / sources, stream))
            }
            Self::Messages(messages) => Some(messages.start.start_time(in_class, stream)),
            Self::Ping(ping) => Some(ping.start.start_time(in_class, stream)),
            Self::Stream(streaming) => Some(streaming.start.start_time(in_class, stream)),
            Self::Files(_) => None,
        }
    }
}

/// Scaled population of each class that has one.
fn scaled_populations(config: &NetworkConfig, replication: u32) -> Vec<Option<ScaledPopulation>> {
    let of_class = |(index, class): (usize, &super::FlowClassConfig)| match &class.traffic {
        FlowTraffic::Files(Traffic::OnOff { off, coupling, .. }) => class.scale.map(|scale| {
            let stream =
                |purpose| RandomStream::for_entity(config.seed, replication, index as u32, purpose);
            ScaledPopulation::new(scale, off, *coupling, stream)
        }),
        _ => None,
    };
    config.classes.iter().enumerate().map(of_class).collect()
}

/// Processing delays of the hosts of each class.
fn host_delays(config: &NetworkConfig, replication: u32) -> Vec<Option<ClassHostDelay>> {
    let of_class = |(index, class): (usize, &super::FlowClassConfig)| {
        let mean: Nanos = class.host_noise;
        let delay = HostProcessingDelay::new(mean, config.seed, replication, index as u32)?;
        Some(ClassHostDelay { delay, at: delayed_ends(class) })
    };
    config.classes.iter().enumerate().map(of_class).collect()
}
