//! Configuration of a run: plain numbers, which the caller has validated.

use crate::clock::{Nanos, transmission_time};
use crate::cross::CrossConfig;
use crate::jitter::JitterConfig;
use crate::loss::{BottleneckLoss, LinkLossConfig, LossModel, LossPlace};
use crate::probe::{ConnectionProperties, ProbeConfig, TapPlace, UnloadedHandshakeTimes};
use crate::queue::{LinkRate, QueueConfig};
use crate::traffic::Traffic;
use serde::Deserialize;
use tcpcast_tcp::TcpConfig;

/// Access link of a source or receiver.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessConfig {
    /// Rate in bit/s; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// One-way propagation delay.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// Buffer limit in packets, including the packet in transmission; `None` is unlimited.
    #[serde(rename = "limit_pkts")]
    pub limit: Option<u64>,
    /// Random loss of data packets.
    pub loss: Option<LinkLossConfig>,
}

/// A hop of the path other than the bottleneck.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopConfig {
    /// Rate in bit/s in both directions; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// One-way propagation delay behind the hop.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
    /// Buffer limit in packets, including the packet in transmission; `None` is unlimited.
    #[serde(rename = "buffer_pkts")]
    pub buffer: Option<u64>,
    /// Queue discipline; drop-tail if the hop is not shared.
    pub queue: QueueConfig,
    /// Random loss of data packets.
    pub loss: Option<LinkLossConfig>,
    /// Whether all sources share the hop; otherwise each source has a separate one.
    pub shared: bool,
}

/// Link of the return path that is shared by the acknowledgements of all sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReturnLinkConfig {
    /// Rate in bit/s; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// Buffer limit in packets, including the packet in transmission; `None` is unlimited.
    #[serde(rename = "buffer_pkts")]
    pub buffer: Option<u64>,
    /// Queue discipline.
    pub queue: QueueConfig,
    /// Random loss of acknowledgements before the queue.
    pub loss: Option<LossModel>,
}

/// A class of identical sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// Number of sources.
    pub sources: u32,
    /// Link from the source towards the bottleneck.
    pub ingress: AccessConfig,
    /// Link from the last shared hop to the receiver.
    pub egress: AccessConfig,
    /// Propagation delay from the bottleneck to the next hop or to the egress link.
    #[serde(rename = "forward_ns")]
    pub forward: Nanos,
    /// Propagation delay of acknowledgements from the return bottleneck to the ingress link,
    /// without the delays of other hops.
    #[serde(rename = "back_ns")]
    pub back: Nanos,
    /// Bytes per data packet, headers included; `None` for the value of the run.
    pub packet_bytes: Option<u32>,
    /// Traffic of each source.
    pub traffic: Traffic,
    /// TCP of the class, with the same kind of sender as the run; `None` for the TCP of the run.
    pub tcp: Option<TcpConfig>,
    /// Mean processing delay of each host per packet or timer; 0 for none.
    #[serde(rename = "host_noise_ns")]
    pub host_noise: Nanos,
    /// Scale factor of a scaled population (on/off traffic only): sources of the population per
    /// simulated source. The configured rates and buffers must already be scaled down by this
    /// factor.
    pub scale: Option<f64>,
}

/// Configuration of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Seed of the random streams.
    pub seed: u64,
    /// Bytes per data packet, headers included.
    pub packet_bytes: u32,
    /// Bytes per acknowledgement.
    pub ack_bytes: u32,
    /// Rate of the bottleneck in bit/s, in both directions unless there is a return link. `None` if
    /// the rate is unlimited or belongs to the queue, which then limits the forward path only.
    pub bottleneck_bps: Option<u64>,
    /// Buffer limit of the bottleneck in packets, including the packet in transmission; `None` is
    /// unlimited.
    #[serde(rename = "buffer_pkts")]
    pub buffer: Option<u64>,
    /// Queue discipline of the bottleneck.
    pub queue: QueueConfig,
    /// Random loss of data packets at the bottleneck; correlated loss within rounds occurs before
    /// the queue.
    pub loss: Option<LinkLossConfig<BottleneckLoss>>,
    /// Random delay of data packets behind the bottleneck.
    pub jitter: Option<JitterConfig>,
    /// Cross traffic, in packets of `packet_bytes`.
    pub cross: Vec<CrossConfig>,
    /// Hops between the ingress links and the bottleneck, in the order of the forward path.
    pub hops_before: Vec<HopConfig>,
    /// Hops between the bottleneck and the egress links.
    pub hops_after: Vec<HopConfig>,
    /// Shared link of the return path, on which acknowledgements may queue or be lost. Replaces the
    /// return direction of the bottleneck.
    pub return_link: Option<ReturnLinkConfig>,
    /// Default TCP of the classes; determines the kind of sender of all classes.
    pub tcp: TcpConfig,
    /// Classes of sources.
    pub classes: Vec<ClassConfig>,
    /// Duration of the warm-up, which the statistics exclude.
    #[serde(rename = "warmup_ns")]
    pub warmup: Nanos,
    /// Recorded data.
    pub probes: ProbeConfig,
}

impl RunConfig {
    /// Whether the path has hops other than the bottleneck.
    pub(crate) fn has_hops(&self) -> bool {
        !self.hops_before.is_empty() || !self.hops_after.is_empty() || self.return_link.is_some()
    }

    /// Rate in bit/s of the return link or of the return direction of the bottleneck.
    pub(crate) fn return_link_bps(&self) -> Option<u64> {
        self.return_link.as_ref().map_or(self.bottleneck_bps, |link| link.rate_bps)
    }

    /// Whether the path has stages other than the bottleneck's queue: hops, or random delay or loss
    /// behind the bottleneck.
    pub(crate) fn has_stages_besides_bottleneck(&self) -> bool {
        let is_behind = |loss: LinkLossConfig<_>| loss.at == LossPlace::Behind;
        self.has_hops() || self.jitter.is_some() || self.loss.is_some_and(is_behind)
    }

    /// Whether waiting times at the bottleneck are recorded. Managed queues always record them;
    /// drop-tail and RED only with modern TCP, which is slow enough to hide the cost; fair and
    /// policed queues never.
    pub(crate) fn records_bottleneck_waits(&self) -> bool {
        match &self.queue {
            QueueConfig::Managed(_) => true,
            QueueConfig::DropTail | QueueConfig::Red(_) => self.has_modern_tcp(),
            QueueConfig::Fair(_) | QueueConfig::Policed(_) => false,
        }
    }

    /// Whether packets may leave a queue immediately, using unused tokens or packet opportunities.
    pub(crate) fn has_varying_rates(&self) -> bool {
        let varies = |queue: &QueueConfig| match queue {
            QueueConfig::Managed(managed) => !matches!(managed.rate, LinkRate::Constant(_)),
            _ => false,
        };
        let mut hops = self.hops_before.iter().chain(&self.hops_after);
        varies(&self.queue) || hops.any(|hop| varies(&hop.queue))
    }

    /// Whether several packets of a connection can reach a receiver of the class at the same time,
    /// because no link from the bottleneck onwards serialises them.
    pub(crate) fn allows_simultaneous_arrivals(&self, class: &ClassConfig) -> bool {
        let serialises = |queue: &QueueConfig, rate_bps: Option<u64>| match queue {
            QueueConfig::Managed(managed) => matches!(managed.rate, LinkRate::Constant(Some(_))),
            QueueConfig::Policed(_) => false,
            QueueConfig::DropTail | QueueConfig::Red(_) | QueueConfig::Fair(_) => {
                rate_bps.is_some()
            }
        };
        class.egress.rate_bps.is_none()
            && !serialises(&self.queue, self.bottleneck_bps)
            && !self.hops_after.iter().any(|hop| serialises(&hop.queue, hop.rate_bps))
    }

    /// Bytes per data packet of a class, headers included.
    pub(crate) fn packet_bytes_of_class(&self, class: &ClassConfig) -> u32 {
        class.packet_bytes.unwrap_or(self.packet_bytes)
    }

    /// Whether any class has a packet length different from that of the run.
    pub(crate) fn has_several_lengths(&self) -> bool {
        self.classes.iter().any(|class| self.packet_bytes_of_class(class) != self.packet_bytes)
    }

    /// Whether any class uses modern TCP.
    pub(crate) fn has_modern_tcp(&self) -> bool {
        let of = |class: &ClassConfig| class.tcp.as_ref().unwrap_or(&self.tcp).modern.is_some();
        self.classes.iter().any(of)
    }

    /// Transmission and propagation time of an acknowledgement over `hops`, without queueing.
    #[must_use]
    pub fn unloaded_ack_time_over(&self, hops: &[HopConfig]) -> Nanos {
        hops.iter().map(|hop| transmission_time(self.ack_bytes, hop.rate_bps) + hop.delay).sum()
    }

    /// Times of packets of `ack_bytes` on the unloaded path of a class: from the sender to the tap
    /// and from the tap to the sender.
    fn unloaded_times_around_tap(&self, class: &ClassConfig, tap: TapPlace) -> [Nanos; 2] {
        let access_time =
            |link: &AccessConfig| transmission_time(self.ack_bytes, link.rate_bps) + link.delay;
        let over = |bps: Option<u64>| transmission_time(self.ack_bytes, bps);
        let before = access_time(&class.ingress) + self.unloaded_ack_time_over(&self.hops_before);
        let (forward, back) = (over(self.bottleneck_bps), over(self.return_link_bps()));
        match tap {
            TapPlace::Sender => [0, 0],
            TapPlace::BottleneckIn => [before, before + class.back],
            TapPlace::BottleneckOut => [before + forward, before + class.back + back],
            TapPlace::Receiver => {
                let after =
                    access_time(&class.egress) + self.unloaded_ack_time_over(&self.hops_after);
                [before + forward + after + class.forward, before + class.back + back + after]
            }
        }
    }

    /// Round-trip time of packets of `ack_bytes` on the unloaded path.
    pub(crate) fn unloaded_rtt(&self, class: &ClassConfig) -> Nanos {
        self.unloaded_times_around_tap(class, TapPlace::Receiver).iter().sum()
    }

    /// Properties of the connections of each class that a capture at `tap` shows.
    #[must_use]
    pub fn connection_properties(&self, tap: TapPlace) -> Vec<ConnectionProperties> {
        let row = |class: &ClassConfig| {
            let tcp = class.tcp.as_ref().unwrap_or(&self.tcp);
            let modern = tcp.modern.as_ref();
            let (rtt, [forward, back]) =
                (self.unloaded_rtt(class), self.unloaded_times_around_tap(class, tap));
            let added = UnloadedHandshakeTimes { rtt, forward, back };
            ConnectionProperties {
                packet_bytes: self.packet_bytes_of_class(class),
                packets: tcp.receiver_window,
                sack: modern.is_some_and(|modern| modern.stack.detection.uses_sack()),
                ecn: modern.is_some_and(|modern| modern.stack.ecn),
                accurate_ecn: false,
                added: (!tcp.has_handshake()).then_some(added),
            }
        };
        self.classes.iter().map(row).collect()
    }

    /// Streams of cross traffic at a hop, with their indices among all streams.
    pub fn cross_streams_at_stage(&self, stage: usize) -> Vec<(u32, &CrossConfig)> {
        (0..).zip(&self.cross).filter(|(_, stream)| stream.stage == stage).collect()
    }

    /// Largest scale factor of all classes.
    pub(crate) fn max_population_scale(&self) -> f64 {
        self.classes.iter().filter_map(|class| class.scale).fold(1.0, f64::max)
    }

    /// Whether passing packets must be reported to captures or to the random loss.
    pub(crate) fn needs_packet_reports(&self) -> bool {
        !self.probes.captures.is_empty()
            || self.loss.is_some_and(|loss| loss.model.needs_sender_events())
    }
}
