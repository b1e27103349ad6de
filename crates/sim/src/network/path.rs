//! The path of a class of sources: links of their own on both sides of the bottleneck.

use super::access::AccessLink;
use crate::clock::{Nanos, transmission_time, transmitter};
use crate::config::{AccessConfig, ClassConfig, RunConfig};
use crate::jitter::HostNoise;
use crate::loss::{LinkLoss, LinkLosses, LossPlace};
use crate::random::{Named, Purpose, Stream};
use crate::tcp::TcpConfig;
use crate::tcp::modern::Reading;
use crate::traffic::Traffic;

/// What is the same for all sources of a class.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub ingress: AccessLink,
    pub egress: AccessLink,
    /// From the bottleneck to the next hop, or to the egress link.
    pub forward: Nanos,
    /// From a receiver's answer to the return bottleneck.
    pub to_return: Nanos,
    /// From a receiver's answer to the event in which it is looked at.
    pub answer_to_event: Nanos,
    /// From the end of the transmission on the egress link to that event.
    pub egress_to_event: Nanos,
    /// From the return bottleneck to the source's own link.
    pub back: Nanos,
    /// No own link can overflow or lose at random.
    pub plain: bool,
    /// True if packets may be lost behind the source's own link: then one that waits there cannot rely
    /// on an event of the one before it.
    pub ingress_loses_behind: bool,
    /// True if packets may be lost behind the receiver's own link, likewise.
    pub egress_loses_behind: bool,
    /// What is kept of the packets that its receivers get.
    pub progress: Progress,
    /// How both ends behave.
    pub tcp: TcpConfig,
    /// Bytes of a full data packet.
    pub packet_bytes: u32,
    /// How long the bottleneck takes for a full data packet that waits for nothing.
    pub service: Nanos,
    /// Lateness of both hosts.
    pub noise: Option<HostNoise>,
}

/// What is kept of the packets that a receiver gets, beside their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// When the last of a file arrives.
    LastOfFile,
    /// That, and when each so many of a file have arrived.
    BlocksOfFile,
    /// How many each source has delivered: its flow never ends.
    Packets,
    /// That, and how many in order by given times.
    PacketsByTime,
}

impl Progress {
    /// Whether flows never end.
    pub(crate) fn is_endless(self) -> bool {
        matches!(self, Self::Packets | Self::PacketsByTime)
    }
}

impl Path {
    pub(crate) fn new(class: &ClassConfig, config: &RunConfig) -> Self {
        let packet_bytes = config.packet_bytes_of(class);
        let link = |access: &AccessConfig| AccessLink {
            data_time: transmission_time(packet_bytes, access.rate_bps),
            ack_time: transmission_time(config.ack_bytes, access.rate_bps),
            delay: access.delay,
            limit: access.limit.unwrap_or(u64::MAX),
            rate_bps: access.rate_bps,
        };
        let plain = |access: &AccessConfig| access.limit.is_none() && access.loss.is_none();
        let loses_behind =
            |access: &AccessConfig| access.loss.is_some_and(|loss| loss.at == LossPlace::Behind);
        let (ingress, egress) = (link(&class.ingress), link(&class.egress));
        let mut path = Self {
            ingress,
            egress,
            forward: class.forward,
            to_return: egress.ack_time + egress.delay + config.time_back(&config.after),
            answer_to_event: 0,
            egress_to_event: 0,
            back: class.back + ingress.delay + config.time_back(&config.before),
            plain: plain(&class.ingress) && plain(&class.egress),
            ingress_loses_behind: loses_behind(&class.ingress),
            egress_loses_behind: loses_behind(&class.egress),
            progress: match class.traffic {
                Traffic::Bulk { .. } if config.probes.report_at.is_empty() => Progress::Packets,
                Traffic::Bulk { .. } => Progress::PacketsByTime,
                _ if config.probes.goodput_packets > 0 => Progress::BlocksOfFile,
                _ => Progress::LastOfFile,
            },
            tcp: class.tcp.as_ref().unwrap_or(&config.tcp).clone(),
            packet_bytes,
            service: transmitter(config.bottleneck_bps, packet_bytes).time_when_idle(),
            noise: None,
        };
        path.set_handshake(class, config);
        path
    }

    /// Whether a modern sender closes its connections, and what a handshake has told it: how long
    /// packets without data take there and back on the unloaded path, those of an acknowledgement's
    /// length.
    fn set_handshake(&mut self, class: &ClassConfig, config: &RunConfig) {
        let Some(modern) = &mut self.tcp.modern else { return };
        modern.syn_bytes = config.ack_bytes;
        if modern.stack.receiving.reading == Reading::EachPacket
            && config.allows_simultaneous_arrivals(class)
        {
            modern.stack.receiving.reading = Reading::EachInstant;
        }
        modern.closes = class.traffic.closes();
        modern.rtt = config.unloaded_rtt(class);
    }

    /// Makes both hosts as late as class number `at` has its hosts.
    pub(crate) fn set_noise(&mut self, config: &RunConfig, at: usize, replication: u32) {
        let mean = config.classes[at].host_noise;
        self.noise = HostNoise::new(mean, config.seed, replication, at as u32);
    }

    /// Events are `return_lookahead` after the return bottleneck.
    pub(crate) fn set_lookahead(&mut self, return_lookahead: Nanos) {
        self.answer_to_event = self.to_return + return_lookahead;
        self.egress_to_event = self.egress.delay + self.answer_to_event;
    }

    /// From the sender to the first hop.
    pub(crate) fn to_hops(&self) -> Nanos {
        self.ingress.data_time + self.ingress.delay
    }

    /// From the return bottleneck to the sender, apart from the bottleneck itself.
    pub(crate) fn return_to_sender(&self) -> Nanos {
        self.back + self.ingress.ack_time
    }
}

/// The class of each source: the sources of a class stand together.
pub(crate) fn class_of(classes: &[ClassConfig]) -> Vec<u16> {
    let of =
        |(at, class): (usize, &ClassConfig)| std::iter::repeat_n(at as u16, class.sources as usize);
    classes.iter().enumerate().flat_map(of).collect()
}

/// Random loss on the sources' and the receivers' own links.
#[derive(Clone, Debug)]
pub(crate) struct AccessLoss {
    seed: u64,
    replication: u32,
    ingress: Side,
    egress: Side,
}

#[derive(Clone, Debug)]
struct Side {
    purpose: Purpose,
    /// Of each class.
    losses: Vec<Option<LinkLoss>>,
    /// Of each source; none at all where no class has random loss.
    processes: Vec<Option<LinkLosses>>,
}

impl AccessLoss {
    pub(crate) fn new(config: &RunConfig, class_of: &[u16], replication: u32) -> Self {
        let side = |purpose, link: fn(&ClassConfig) -> &AccessConfig| Side {
            purpose,
            losses: config.classes.iter().map(|class| link(class).loss).collect(),
            processes: Vec::new(),
        };
        let mut loss = Self {
            seed: config.seed,
            replication,
            ingress: side(Purpose::IngressLoss, |class| &class.ingress),
            egress: side(Purpose::EgressLoss, |class| &class.egress),
        };
        class_of.iter().for_each(|class| loss.add_source(*class as usize));
        loss
    }

    /// One source more, of class `class`.
    pub(crate) fn add_source(&mut self, class: usize) {
        for side in [&mut self.ingress, &mut self.egress] {
            if side.losses.iter().all(Option::is_none) {
                continue;
            }
            let source = side.processes.len() as u32;
            let stream = Stream::named(self.seed, self.replication, source, side.purpose);
            side.processes.push(side.losses[class].map(|loss| LinkLosses::new(loss, stream)));
        }
    }

    /// Starts all processes again.
    pub(crate) fn restart(&mut self) {
        let sides = [&mut self.ingress, &mut self.egress].into_iter();
        sides.flat_map(|side| &mut side.processes).flatten().for_each(LinkLosses::restart);
    }

    pub(crate) fn ingress_loses(&mut self, at: LossPlace, source: u32) -> bool {
        self.ingress.loses(at, source)
    }

    pub(crate) fn egress_loses(&mut self, at: LossPlace, source: u32) -> bool {
        self.egress.loses(at, source)
    }
}

impl Side {
    #[inline(never)]
    fn loses(&mut self, at: LossPlace, source: u32) -> bool {
        let process = self.processes.get_mut(source as usize).and_then(Option::as_mut);
        process.is_some_and(|process| process.loses(at))
    }
}
