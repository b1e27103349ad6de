//! Configuration of a fixed point.

use serde::Deserialize;
use tcpcast_link::queue::QueueConfig;
use tcpcast_sim::clock::{Nanos, transmission_time};
use tcpcast_sim::cross::{ArrivalProcess, FluidBins};
use tcpcast_sim::probe::ProbeConfig;
use tcpcast_sim::traffic::Traffic;
use tcpcast_tcp::TcpConfig;

/// Access link of a source or receiver, with an unlimited buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessConfig {
    /// Rate in bit/s; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// One-way propagation delay.
    #[serde(rename = "delay_ns")]
    pub delay: Nanos,
}

impl AccessConfig {
    /// Time of a packet of `bytes` on the idle link.
    pub(crate) fn unloaded_time(&self, bytes: u32) -> Nanos {
        transmission_time(bytes, self.rate_bps) + self.delay
    }
}

/// Drop-tail queues and links of single sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopConfig {
    /// Rate and delay of each link.
    pub link: AccessConfig,
    /// Buffer limit in packets, including the packet in transmission; `None` is unlimited.
    #[serde(rename = "limit_pkts")]
    pub limit: Option<u64>,
}

/// A stream of cross traffic.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossConfig {
    /// Index of its hop on the path: hops before the shared router, the router, hops behind it.
    pub stage: usize,
    /// Series of the fluid at hops of single sources.
    pub fluid: FluidBins,
    /// Arrival process.
    pub process: ArrivalProcess,
}

/// A class of identical sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassConfig {
    /// Number of sources.
    pub sources: u32,
    /// Link from the source.
    pub ingress: AccessConfig,
    /// Link to the receiver.
    pub egress: AccessConfig,
    /// Propagation delay behind the shared router.
    #[serde(rename = "forward_ns")]
    pub forward: Nanos,
    /// Propagation delay of acknowledgements, without the delays of links and hops.
    #[serde(rename = "back_ns")]
    pub back: Nanos,
    /// Traffic of each source.
    pub traffic: Traffic,
    /// TCP of the class.
    pub tcp: TcpConfig,
}

/// Paths of all classes over one shared router.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoadConfig {
    /// Seed of the random streams.
    pub seed: u64,
    /// Bytes per data packet, headers included.
    pub packet_bytes: u32,
    /// Bytes per acknowledgement.
    pub ack_bytes: u32,
    /// Rate of the shared router in bit/s; `None` is unlimited.
    pub router_bps: Option<u64>,
    /// Buffer limit of the shared router in packets, including the packet in transmission.
    #[serde(rename = "limit_pkts")]
    pub limit: Option<u64>,
    /// Queue discipline of the shared router.
    pub queue: QueueConfig,
    /// Cross traffic, in packets of `packet_bytes`.
    pub cross: Vec<CrossConfig>,
    /// Hops of single sources before the shared router.
    pub hops_before: Vec<HopConfig>,
    /// Hops of single sources behind the shared router.
    pub hops_after: Vec<HopConfig>,
    /// Classes of sources.
    pub classes: Vec<ClassConfig>,
    /// Recorded data.
    pub probes: ProbeConfig,
}

impl RoadConfig {
    /// Streams of cross traffic at a stage, with their indices.
    pub(crate) fn streams_at(&self, stage: usize) -> impl Iterator<Item = (u32, &CrossConfig)> {
        (0..).zip(&self.cross).filter(move |(_, stream)| stream.stage == stage)
    }

    /// Time of an acknowledgement over the hops of both sides, without queueing.
    pub(crate) fn unloaded_ack_time(&self) -> Nanos {
        let hops = self.hops_before.iter().chain(&self.hops_after);
        hops.map(|hop| hop.link.unloaded_time(self.ack_bytes)).sum()
    }

    /// Time of a data packet from the first hop to the shared router, without queueing.
    pub(crate) fn time_to_router(&self) -> Nanos {
        self.hops_before.iter().map(|hop| hop.link.unloaded_time(self.packet_bytes)).sum()
    }
}

/// Behaviour of cross flows (INRIA report 4154, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum CrossFlowScheme {
    /// Scheme 0: independent times between packets, with the mean of reference flows.
    #[serde(rename = "0")]
    Rates,
    /// Scheme 1: as scheme 0, but a packet is delayed while the shared router holds more packets of
    /// its flow than a bound drawn from the measurements on reference flows.
    #[serde(rename = "1")]
    Queues,
    /// Scheme 2: window flow control, with service times drawn from a distribution with the moments
    /// measured on reference flows.
    #[serde(rename = "2")]
    Windows,
}

/// Time of the next packet of a cross flow in scheme 1.
///
/// The report only states that packets are delayed so that the queues of cross flows and reference
/// flows are equal in distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossPacketTimeRule {
    /// A random time after the preceding packet was due: delays do not reduce the rate.
    Delay,
    /// A random time after the preceding packet: a delay postpones all later packets.
    Cap,
    /// Like `Cap`, and also at each departure that leaves fewer packets than a drawn number.
    Fill,
}

/// Configuration of a fixed point.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedPointConfig {
    /// Behaviour of cross flows.
    pub scheme: CrossFlowScheme,
    /// Rule of scheme 1.
    pub queue_rule: CrossPacketTimeRule,
    /// Whether distributions depend on the number of active flows.
    pub conditional: bool,
    /// Number of moments of the distributions, 1 or 2.
    pub moments: u8,
    /// Number of reference flows per class.
    pub references: Vec<u32>,
    /// Number of iterations before the measurement.
    pub steps: u32,
    /// Duration of an iteration.
    #[serde(rename = "step_ns")]
    pub step: Nanos,
    /// Initial time between packets and service time per class, in seconds.
    pub initial: Vec<(f64, f64)>,
}
