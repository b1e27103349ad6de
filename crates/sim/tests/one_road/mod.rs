//! One-road scenarios as networks of links: access links, hops, bottleneck and return link.
//!
//! ```text
//!  server -> ingress -> hops -> bottleneck -> [forward delay] -> hops -> egress -> client
//!         <- [delays and transmission times of acknowledgements] <- return link, if any <-
//! ```
//!
//! Acknowledgements take constant times, except on a return link.

use std::num::NonZeroU32;
use tcpcast_sim::clock::{Nanos, transmission_time};
use tcpcast_sim::cross::CrossConfig;
use tcpcast_sim::flows::{
    CrossStreamConfig, FlowClassConfig, FlowTcp, FlowTraffic, LinkInstances, NetworkConfig,
    NetworkLinkConfig, SendingEnds,
};
use tcpcast_sim::queue::disciplines::{self, DrrConfig};
use tcpcast_sim::queue::{LinkRate, QueueConfig};
use tcpcast_sim::{
    AccessConfig, BottleneckLoss, ClassConfig, HopConfig, LinkLossConfig, ReturnLinkConfig,
    RunConfig,
};

/// Converts a one-road configuration; `None` if it has a feature that a network of links does not
/// have: cross traffic at a hop per source.
pub fn network_of_one_road(run: &RunConfig) -> Option<NetworkConfig> {
    let mut road = Road { run, links: Vec::new() };
    let before: Vec<usize> = road.add_hops(&run.hops_before)?;
    let headline = road.add_bottleneck()?;
    let after: Vec<usize> = road.add_hops(&run.hops_after)?;
    let back = match &run.return_link {
        Some(link) => Some(road.add_return_link(link)?),
        None => None,
    };
    let stages: Vec<usize> = before.iter().chain([&headline]).chain(&after).copied().collect();
    let stream = |cross: &CrossConfig| {
        let link = *stages.get(cross.stage)?;
        let is_shared = road.links[link].each == LinkInstances::All;
        let process = cross.process.clone();
        is_shared.then_some({
            let packet_bytes = run.packet_bytes;
            CrossStreamConfig { link, packet_bytes, process, fluid: None }
        })
    };
    let cross = run.cross.iter().map(stream).collect::<Option<Vec<_>>>()?;
    let classes = run
        .classes
        .iter()
        .map(|class| road.class(class, &before, headline, &after, back))
        .collect::<Option<Vec<_>>>()?;
    Some(NetworkConfig {
        cross,
        round_loss: match run.loss {
            Some(LinkLossConfig { model: BottleneckLoss::RestOfRound(rate), .. }) => Some(rate),
            _ => None,
        },
        seed: run.seed,
        links: road.links,
        sites: Vec::new(),
        classes,
        headline,
        warmup: run.warmup,
        probes: run.probes.clone(),
    })
}

/// A link without a limit of rate or buffer.
fn delay_link(delay: Nanos) -> NetworkLinkConfig {
    NetworkLinkConfig {
        rate: LinkRate::Constant(None),
        policer: None,
        delay,
        limit: None,
        limit_bytes: None,
        queue: disciplines::QueueConfig::DropTail,
        remark: None,
        loss: None,
        jitter: None,
        docsis: None,
        each: LinkInstances::All,
        changes: Vec::new(),
    }
}

/// A link with the discipline and rate of a configured queue.
fn queueing_link(
    queue: &QueueConfig,
    rate_bps: Option<u64>,
    limit: Option<u64>,
) -> Option<NetworkLinkConfig> {
    let link = NetworkLinkConfig { rate: LinkRate::Constant(rate_bps), limit, ..delay_link(0) };
    Some(match queue {
        QueueConfig::DropTail => link,
        QueueConfig::Red(red) => {
            NetworkLinkConfig { queue: disciplines::QueueConfig::Red(*red), ..link }
        }
        QueueConfig::Fair(fair) => {
            let drr = DrrConfig {
                quantum_bytes: NonZeroU32::new(fair.quantum_bytes)?,
                buffers: fair.buffers,
                drop: fair.drop,
                ties: fair.ties,
                head_of_line: fair.head_of_line,
                heavy: None,
            };
            NetworkLinkConfig { queue: disciplines::QueueConfig::Drr(drr), ..link }
        }
        QueueConfig::Managed(managed) => NetworkLinkConfig {
            queue: managed.discipline,
            rate: managed.rate.clone(),
            limit_bytes: managed.limit_bytes,
            ..link
        },
        QueueConfig::Policed(policed) => {
            NetworkLinkConfig { policer: Some(policed.tokens), ..delay_link(0) }
        }
    })
}

/// A road under conversion.
struct Road<'a> {
    run: &'a RunConfig,
    links: Vec<NetworkLinkConfig>,
}

impl Road<'_> {
    fn add(&mut self, link: NetworkLinkConfig) -> usize {
        self.links.push(link);
        self.links.len() - 1
    }

    fn add_hops(&mut self, hops: &[HopConfig]) -> Option<Vec<usize>> {
        let mut added = Vec::new();
        for hop in hops {
            let link = queueing_link(&hop.queue, hop.rate_bps, hop.buffer)?;
            let each = if hop.shared { LinkInstances::All } else { LinkInstances::Sender };
            let link = NetworkLinkConfig { delay: hop.delay, loss: hop.loss, each, ..link };
            added.push(self.add(link));
        }
        Some(added)
    }

    fn add_bottleneck(&mut self) -> Option<usize> {
        let run = self.run;
        let link = queueing_link(&run.queue, run.bottleneck_bps, run.buffer)?;
        let loss = match run.loss {
            None => None,
            Some(LinkLossConfig { model: BottleneckLoss::Packet(model), at }) => {
                Some(LinkLossConfig { model, at })
            }
            Some(LinkLossConfig { model: BottleneckLoss::RestOfRound(_), .. }) => None,
        };
        Some(self.add(NetworkLinkConfig { loss, jitter: run.jitter.clone(), ..link }))
    }

    fn add_return_link(&mut self, link: &ReturnLinkConfig) -> Option<usize> {
        let loss = link.loss.map(LinkLossConfig::before_queue);
        let link = queueing_link(&link.queue, link.rate_bps, link.buffer)?;
        Some(self.add(NetworkLinkConfig { loss, ..link }))
    }

    /// Adds the access link of each source, unless it only delays packets by `delay`.
    fn add_access_link(&mut self, access: &AccessConfig, route: &mut Vec<usize>) {
        let link = NetworkLinkConfig {
            rate: LinkRate::Constant(access.rate_bps),
            limit: access.limit,
            loss: access.loss,
            each: LinkInstances::Sender,
            ..delay_link(access.delay)
        };
        if link != (NetworkLinkConfig { each: LinkInstances::Sender, ..delay_link(0) }) {
            route.push(self.add(link));
        }
    }

    fn class(
        &mut self,
        class: &ClassConfig,
        before: &[usize],
        bottleneck: usize,
        after: &[usize],
        back: Option<usize>,
    ) -> Option<FlowClassConfig> {
        let run = self.run;
        let rules = class.tcp.as_ref().unwrap_or(&run.tcp);
        let tcp = match rules.modern {
            Some(modern) => FlowTcp::Modern(modern),
            None => FlowTcp::Packets(rules.clone()),
        };
        let mut route = Vec::new();
        self.add_access_link(&class.ingress, &mut route);
        route.extend(before);
        route.push(bottleneck);
        let mut delay = class.forward;
        if !after.is_empty() {
            // The delay precedes the next queue that sources share.
            route.push(self.add(delay_link(delay)));
            delay = 0;
        }
        route.extend(after);
        self.add_access_link(&class.egress, &mut route);
        let over = |rate_bps: Option<u64>| transmission_time(run.ack_bytes, rate_bps);
        let access = |link: &AccessConfig| over(link.rate_bps) + link.delay;
        let hops_after = run.unloaded_ack_time_over(&run.hops_after);
        let to_return = access(&class.egress) + hops_after;
        let hops_before = run.unloaded_ack_time_over(&run.hops_before);
        let from_return = class.back + hops_before + access(&class.ingress);
        let (ways, back_delay) = match back {
            Some(link) => (vec![self.add(delay_link(to_return)), link], from_return),
            None => (Vec::new(), to_return + over(run.bottleneck_bps) + from_return),
        };
        Some(FlowClassConfig {
            site: None,
            flows: class.sources,
            routes: vec![route],
            back: vec![ways],
            delay,
            back_delay,
            packet_bytes: class.packet_bytes.unwrap_or(run.packet_bytes),
            ack_bytes: run.ack_bytes,
            tso: false,
            gro: true,
            sends: SendingEnds::Server,
            traffic: FlowTraffic::Files(class.traffic.clone()),
            reading: None,
            writing: None,
            tcp: Some(tcp),
            host_noise: class.host_noise,
            host: None,
            dscp: 0,
            scale: class.scale,
        })
    }
}
