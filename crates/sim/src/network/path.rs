//! The path of a class of sources: access links on both sides of the bottleneck.

use super::access_links::AccessLink;
use crate::clock::{Nanos, create_fixed_rate_transmitter, transmission_time};
use crate::config::{AccessConfig, ClassConfig, RunConfig};
use crate::jitter::HostProcessingDelay;
use crate::loss::{LinkLossConfig, LinkLossState, LossPlace};
use crate::random::{NamedStream, RandomStream, StreamPurpose};
use crate::traffic::Traffic;
use tcpcast_tcp::TcpConfig;
use tcpcast_tcp::modern::ApplicationReading;

/// Properties shared by all sources of a class.
#[derive(Clone, Debug)]
pub(crate) struct ClassPath {
    pub ingress: AccessLink,
    pub egress: AccessLink,
    /// Propagation time from the bottleneck to the next hop or to the egress link.
    pub forward: Nanos,
    /// Time from the receiver to the return bottleneck.
    pub to_return: Nanos,
    /// Time from the response of the receiver to the event in which it is processed.
    pub answer_to_event: Nanos,
    /// Time from the end of the transmission on the egress link to that event.
    pub egress_to_event: Nanos,
    /// Propagation time from the return bottleneck to the ingress link.
    pub back: Nanos,
    /// Whether the access links cannot lose packets.
    pub is_lossless: bool,
    /// Whether packets may be lost before the first shared hop.
    pub may_lose_before_shared_hop: bool,
    /// Whether packets may be lost behind the ingress link: then a packet that waits there cannot
    /// rely on an event of the previous packet.
    pub ingress_loses_behind: bool,
    /// Whether packets may be lost behind the egress link.
    pub egress_loses_behind: bool,
    /// Statistics of delivered packets.
    pub progress: DeliveryStatistics,
    /// TCP of both endpoints.
    pub tcp: TcpConfig,
    /// Bytes of a full data packet.
    pub packet_bytes: u32,
    /// Transmission time of a full data packet at the bottleneck.
    pub service: Nanos,
    /// Random processing delay of both hosts.
    pub noise: Option<HostProcessingDelay>,
}

/// Statistics of the packets that a receiver gets, in addition to their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryStatistics {
    /// Arrival time of the last packet of each file.
    LastOfFile,
    /// Arrival time of the last packet, and of each block of packets of a file.
    BlocksOfFile,
    /// Number of delivered packets per source, for endless flows.
    Packets,
    /// Number of delivered packets, and packets delivered in order by given times.
    PacketsByTime,
}

impl DeliveryStatistics {
    /// Whether the flows are endless.
    pub(crate) fn is_endless(self) -> bool {
        matches!(self, Self::Packets | Self::PacketsByTime)
    }
}

impl ClassPath {
    pub(crate) fn new(class: &ClassConfig, config: &RunConfig) -> Self {
        let packet_bytes = config.packet_bytes_of_class(class);
        let link = |access: &AccessConfig| AccessLink {
            data_time: transmission_time(packet_bytes, access.rate_bps),
            ack_time: transmission_time(config.ack_bytes, access.rate_bps),
            delay: access.delay,
            limit: access.limit.unwrap_or(u64::MAX),
            rate_bps: access.rate_bps,
        };
        let is_lossless = |access: &AccessConfig| access.limit.is_none() && access.loss.is_none();
        let loses_behind =
            |access: &AccessConfig| access.loss.is_some_and(|loss| loss.at == LossPlace::Behind);
        let mut per_source_hops = config.hops_before.iter().take_while(|hop| !hop.shared);
        let (ingress, egress) = (link(&class.ingress), link(&class.egress));
        let mut path = Self {
            ingress,
            egress,
            forward: class.forward,
            to_return: egress.ack_time
                + egress.delay
                + config.unloaded_ack_time_over(&config.hops_after),
            answer_to_event: 0,
            egress_to_event: 0,
            back: class.back + ingress.delay + config.unloaded_ack_time_over(&config.hops_before),
            is_lossless: is_lossless(&class.ingress) && is_lossless(&class.egress),
            may_lose_before_shared_hop: !is_lossless(&class.ingress)
                || per_source_hops.any(|hop| hop.buffer.is_some() || hop.loss.is_some()),
            ingress_loses_behind: loses_behind(&class.ingress),
            egress_loses_behind: loses_behind(&class.egress),
            progress: match class.traffic {
                Traffic::Bulk { .. } if config.probes.report_at.is_empty() => {
                    DeliveryStatistics::Packets
                }
                Traffic::Bulk { .. } => DeliveryStatistics::PacketsByTime,
                _ if config.probes.goodput_packets > 0 => DeliveryStatistics::BlocksOfFile,
                _ => DeliveryStatistics::LastOfFile,
            },
            tcp: class.tcp.as_ref().unwrap_or(&config.tcp).clone(),
            packet_bytes,
            service: create_fixed_rate_transmitter(config.bottleneck_bps, packet_bytes)
                .cached_transmission_time(),
            noise: None,
        };
        path.set_handshake(class, config);
        path
    }

    /// Sets the handshake parameters of a modern sender: the round-trip time of packets of
    /// `ack_bytes` on the unloaded path, and whether it closes its connections.
    fn set_handshake(&mut self, class: &ClassConfig, config: &RunConfig) {
        let Some(modern) = &mut self.tcp.modern else { return };
        modern.syn_bytes = config.ack_bytes;
        if modern.stack.receiving.reading == ApplicationReading::EachPacket
            && config.allows_simultaneous_arrivals(class)
        {
            modern.stack.receiving.reading = ApplicationReading::EachInstant;
        }
        modern.closes = class.traffic.closes_after_file();
        modern.rtt = config.unloaded_rtt(class);
    }

    /// Sets the processing delay of the hosts of class `class`.
    pub(crate) fn set_host_delay(&mut self, config: &RunConfig, class: usize, replication: u32) {
        let mean = config.classes[class].host_noise;
        self.noise = HostProcessingDelay::new(mean, config.seed, replication, class as u32);
    }

    /// Sets the times to events, which occur `return_lookahead` after the return bottleneck.
    pub(crate) fn set_times_to_events(&mut self, return_lookahead: Nanos) {
        self.answer_to_event = self.to_return + return_lookahead;
        self.egress_to_event = self.egress.delay + self.answer_to_event;
    }

    /// Time from the sender to the first hop.
    pub(crate) fn time_to_first_hop(&self) -> Nanos {
        self.ingress.data_time + self.ingress.delay
    }

    /// Time from the exit of the return bottleneck to the sender.
    pub(crate) fn time_from_return_link_to_sender(&self) -> Nanos {
        self.back + self.ingress.ack_time
    }
}

/// Class of each source; sources are grouped by class.
pub(crate) fn classes_of_sources(classes: &[ClassConfig]) -> Vec<u16> {
    let of = |(index, class): (usize, &ClassConfig)| {
        std::iter::repeat_n(index as u16, class.sources as usize)
    };
    classes.iter().enumerate().flat_map(of).collect()
}

/// Random loss on access links.
#[derive(Clone, Debug)]
pub(crate) struct AccessLoss {
    seed: u64,
    replication: u32,
    ingress: OneSideAccessLoss,
    egress: OneSideAccessLoss,
}

/// Random loss on the links of one side.
#[derive(Clone, Debug)]
struct OneSideAccessLoss {
    purpose: StreamPurpose,
    /// Model per class.
    losses: Vec<Option<LinkLossConfig>>,
    /// Process per source; empty if no class has random loss.
    processes: Vec<Option<LinkLossState>>,
}

impl AccessLoss {
    pub(crate) fn new(config: &RunConfig, class_of: &[u16], replication: u32) -> Self {
        let side = |purpose, link: fn(&ClassConfig) -> &AccessConfig| OneSideAccessLoss {
            purpose,
            losses: config.classes.iter().map(|class| link(class).loss).collect(),
            processes: Vec::new(),
        };
        let mut loss = Self {
            seed: config.seed,
            replication,
            ingress: side(StreamPurpose::IngressLoss, |class| &class.ingress),
            egress: side(StreamPurpose::EgressLoss, |class| &class.egress),
        };
        class_of.iter().for_each(|class| loss.add_source(*class as usize));
        loss
    }

    /// Adds a source of class `class`.
    pub(crate) fn add_source(&mut self, class: usize) {
        for side in [&mut self.ingress, &mut self.egress] {
            if side.losses.iter().all(Option::is_none) {
                continue;
            }
            let source = side.processes.len() as u32;
            let stream =
                RandomStream::for_entity(self.seed, self.replication, source, side.purpose);
            side.processes.push(side.losses[class].map(|loss| LinkLossState::new(loss, stream)));
        }
    }

    /// Restarts all processes.
    pub(crate) fn restart_processes(&mut self) {
        let sides = [&mut self.ingress, &mut self.egress].into_iter();
        sides
            .flat_map(|side| &mut side.processes)
            .flatten()
            .for_each(LinkLossState::restart_process);
    }

    pub(crate) fn loses_on_ingress(&mut self, at: LossPlace, source: u32) -> bool {
        self.ingress.loses_packet_at(at, source)
    }

    pub(crate) fn loses_on_egress(&mut self, at: LossPlace, source: u32) -> bool {
        self.egress.loses_packet_at(at, source)
    }
}

impl OneSideAccessLoss {
    #[inline(never)]
    fn loses_packet_at(&mut self, at: LossPlace, source: u32) -> bool {
        let process = self.processes.get_mut(source as usize).and_then(Option::as_mut);
        process.is_some_and(|process| process.loses_packet_at(at))
    }
}
