//! What a run is given: plain numbers, checked by whoever made them.

use crate::clock::{Nanos, transmission_time};
use crate::cross::CrossConfig;
use crate::jitter::JitterConfig;
use crate::loss::{BottleneckLoss, LinkLoss, LossModel, LossPlace};
use crate::probe::{AddedHandshake, ConnectionProperties, ProbeConfig, Tap};
use crate::queue::{LinkRate, QueueConfig};
use crate::tcp::TcpConfig;
use crate::traffic::Traffic;
use serde::Deserialize;

/// A link of a source's own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessConfig {
    /// Bits a second; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// Propagation one way.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// Most packets held, the one in transmission included; `None` is unlimited.
    #[serde(rename = "limit_pkts")]
    pub limit: Option<u64>,
    /// Random loss of data packets.
    pub loss: Option<LinkLoss>,
}

/// A hop of the path beside the bottleneck.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopConfig {
    /// Bits a second, both ways; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// Propagation behind it, one way.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// Packets that it holds at the most, the one in transmission included; `None` is unlimited.
    #[serde(rename = "buffer_pkts")]
    pub buffer: Option<u64>,
    /// Its queue discipline; drop-tail where it is not shared.
    pub queue: QueueConfig,
    /// Its random loss of data packets.
    pub loss: Option<LinkLoss>,
    /// Whether packets of all sources meet there; otherwise each source has one of its own.
    pub shared: bool,
}

/// The link of the return path that acknowledgements of all sources share.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReturnConfig {
    /// Bits a second; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// Packets that it holds at the most, the one in transmission included; `None` is unlimited.
    #[serde(rename = "buffer_pkts")]
    pub buffer: Option<u64>,
    /// Its queue discipline.
    pub queue: QueueConfig,
    /// Its random loss of acknowledgements, before the queue.
    pub loss: Option<LossModel>,
}

/// A class of sources that are alike.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// How many.
    pub sources: u32,
    /// From the source to the bottleneck.
    pub ingress: AccessConfig,
    /// From the bottleneck to the receiver.
    pub egress: AccessConfig,
    /// Propagation from the bottleneck to the next hop, or to the egress link.
    #[serde(rename = "forward_ns")]
    pub forward: Nanos,
    /// Propagation from the return bottleneck to the ingress link, for acknowledgements; without
    /// that of other hops.
    #[serde(rename = "back_ns")]
    pub back: Nanos,
    /// Bytes of their data packets with headers; `None` is as in the whole run.
    pub packet_bytes: Option<u32>,
    /// What they send.
    pub traffic: Traffic,
    /// Their TCP, where it is not that of the run; of the same kind of sender.
    pub tcp: Option<TcpConfig>,
    /// Mean lateness of each of their hosts with a packet or a timer; 0 for hosts that are punctual.
    #[serde(rename = "host_noise_ns")]
    pub host_noise: Nanos,
    /// Scale factor: sources of a larger population for each of them, if there is one; on/off
    /// traffic only. Rates and buffers are then those of so much smaller a network.
    pub scale: Option<f64>,
}

/// A whole run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Names the random streams.
    pub seed: u64,
    /// Bytes of a data packet, with its headers.
    pub packet_bytes: u32,
    /// Bytes of an acknowledgement.
    pub ack_bytes: u32,
    /// Bits a second of the bottleneck, both ways unless there is a return link; `None` is
    /// unlimited, or the queue has the rate, which is then that of the forward path.
    pub bottleneck_bps: Option<u64>,
    /// Packets that it holds at the most, the one in transmission included; `None` is unlimited.
    #[serde(rename = "buffer_pkts")]
    pub buffer: Option<u64>,
    /// Its queue discipline.
    pub queue: QueueConfig,
    /// Its random loss of data packets; that of rounds is before the queue.
    pub loss: Option<LinkLoss<BottleneckLoss>>,
    /// Random delay of data packets behind it.
    pub jitter: Option<JitterConfig>,
    /// Cross traffic, in packets of the same size.
    pub cross: Vec<CrossConfig>,
    /// Hops between the sources' own links and the bottleneck, in the order of the forward path.
    #[serde(rename = "hops_before")]
    pub before: Vec<HopConfig>,
    /// Hops between the bottleneck and the receivers' own links.
    #[serde(rename = "hops_after")]
    pub after: Vec<HopConfig>,
    /// What acknowledgements share in place of the bottleneck the other way, where they may wait or
    /// get lost.
    pub return_link: Option<ReturnConfig>,
    /// The TCP of the classes that have none of their own; it says which kind of sender all have.
    pub tcp: TcpConfig,
    /// The sources.
    pub classes: Vec<ClassConfig>,
    /// Nothing before this is counted.
    #[serde(rename = "warmup_ns")]
    pub warmup: Nanos,
    /// What to record.
    pub probes: ProbeConfig,
}

impl RunConfig {
    /// Whether the bottleneck is not the only hop.
    pub(crate) fn has_hops(&self) -> bool {
        !self.before.is_empty() || !self.after.is_empty() || self.return_link.is_some()
    }

    /// Bits a second of what acknowledgements of all sources share.
    pub(crate) fn return_bps(&self) -> Option<u64> {
        self.return_link.as_ref().map_or(self.bottleneck_bps, |link| link.rate_bps)
    }

    /// Returns true if packets take other stages than the bottleneck's queue: hops, or random delay
    /// or loss behind it.
    pub(crate) fn has_stages(&self) -> bool {
        let is_behind = |loss: LinkLoss<_>| loss.at == LossPlace::Behind;
        self.has_hops() || self.jitter.is_some() || self.loss.is_some_and(is_behind)
    }

    /// Whether the time is kept that each packet waits at the bottleneck: where a packet that
    /// leaves says it, and where it follows from the departure, which today's TCP can afford.
    pub(crate) fn keeps_waits(&self) -> bool {
        match &self.queue {
            QueueConfig::Managed(_) => true,
            QueueConfig::DropTail | QueueConfig::Red(_) => self.has_modern(),
            QueueConfig::Fair(_) | QueueConfig::Policed(_) => false,
        }
    }

    /// Whether a packet may leave a queue in no time, with tokens or opportunities that are left.
    pub(crate) fn has_varying_rates(&self) -> bool {
        let varies = |queue: &QueueConfig| match queue {
            QueueConfig::Managed(managed) => !matches!(managed.rate, LinkRate::Constant(_)),
            _ => false,
        };
        let mut hops = self.before.iter().chain(&self.after);
        varies(&self.queue) || hops.any(|hop| varies(&hop.queue))
    }

    /// Whether packets of a connection can reach a receiver of the class at one instant: nothing
    /// from the bottleneck on takes a time of its own for each of them.
    pub(crate) fn brings_many(&self, class: &ClassConfig) -> bool {
        let serialises = |queue: &QueueConfig, rate_bps: Option<u64>| match queue {
            QueueConfig::Managed(managed) => matches!(managed.rate, LinkRate::Constant(Some(_))),
            QueueConfig::Policed(_) => false,
            QueueConfig::DropTail | QueueConfig::Red(_) | QueueConfig::Fair(_) => {
                rate_bps.is_some()
            }
        };
        class.egress.rate_bps.is_none()
            && !serialises(&self.queue, self.bottleneck_bps)
            && !self.after.iter().any(|hop| serialises(&hop.queue, hop.rate_bps))
    }

    /// Bytes of a data packet of a class, with its headers.
    pub(crate) fn packet_bytes_of(&self, class: &ClassConfig) -> u32 {
        class.packet_bytes.unwrap_or(self.packet_bytes)
    }

    /// Returns true if a class has full packets of another length than the run.
    pub(crate) fn has_own_lengths(&self) -> bool {
        self.classes.iter().any(|class| self.packet_bytes_of(class) != self.packet_bytes)
    }

    /// Whether any source has today's TCP.
    pub(crate) fn has_modern(&self) -> bool {
        let of = |class: &ClassConfig| class.tcp.as_ref().unwrap_or(&self.tcp).modern.is_some();
        self.classes.iter().any(of)
    }

    /// Time of an acknowledgement over these hops, without waiting.
    #[must_use]
    pub fn time_back(&self, hops: &[HopConfig]) -> Nanos {
        hops.iter().map(|hop| transmission_time(self.ack_bytes, hop.rate_bps) + hop.delay).sum()
    }

    /// Times of packets without data, of an acknowledgement's length, over the unloaded path: from the
    /// sender of a class to the tap, and back.
    fn unloaded_path(&self, class: &ClassConfig, tap: Tap) -> [Nanos; 2] {
        let own =
            |link: &AccessConfig| transmission_time(self.ack_bytes, link.rate_bps) + link.delay;
        let over = |bps: Option<u64>| transmission_time(self.ack_bytes, bps);
        let before = own(&class.ingress) + self.time_back(&self.before);
        let (forward, back) = (over(self.bottleneck_bps), over(self.return_bps()));
        match tap {
            Tap::Sender => [0, 0],
            Tap::BottleneckIn => [before, before + class.back],
            Tap::BottleneckOut => [before + forward, before + class.back + back],
            Tap::Receiver => {
                let after = own(&class.egress) + self.time_back(&self.after);
                [before + forward + after + class.forward, before + class.back + back + after]
            }
        }
    }

    /// Round-trip time of packets without data over the unloaded path.
    pub(crate) fn unloaded_rtt(&self, class: &ClassConfig) -> Nanos {
        self.unloaded_path(class, Tap::Receiver).iter().sum()
    }

    /// Properties of each class's connections that a capture at `tap` shows.
    #[must_use]
    pub fn connection_properties(&self, tap: Tap) -> Vec<ConnectionProperties> {
        let row = |class: &ClassConfig| {
            let tcp = class.tcp.as_ref().unwrap_or(&self.tcp);
            let modern = tcp.modern.as_ref();
            let (rtt, [forward, back]) = (self.unloaded_rtt(class), self.unloaded_path(class, tap));
            let added = AddedHandshake { rtt, forward, back };
            ConnectionProperties {
                packet_bytes: self.packet_bytes_of(class),
                packets: tcp.receiver_window,
                sack: modern.is_some_and(|modern| modern.stack.detection.uses_sack()),
                ecn: modern.is_some_and(|modern| modern.stack.ecn),
                added: (!tcp.has_handshake()).then_some(added),
            }
        };
        self.classes.iter().map(row).collect()
    }

    /// The streams of cross traffic at a hop, by their places among all.
    pub(crate) fn cross_at(&self, stage: usize) -> Vec<(u32, &CrossConfig)> {
        (0..).zip(&self.cross).filter(|(_, stream)| stream.stage == stage).collect()
    }

    /// The largest scale factor of a class.
    pub(crate) fn scale(&self) -> f64 {
        self.classes.iter().filter_map(|class| class.scale).fold(1.0, f64::max)
    }

    /// Whether anything is to be told of packets that pass: captures, or the random loss.
    pub(crate) fn is_watched(&self) -> bool {
        !self.probes.captures.is_empty()
            || self.loss.is_some_and(|loss| loss.model.needs_sender_events())
    }
}
