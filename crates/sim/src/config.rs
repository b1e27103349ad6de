//! What a run is given: plain numbers, checked by whoever made them.

use crate::clock::Nanos;
use crate::loss::{BottleneckLoss, LossLaw};
use crate::probe::ProbeConfig;
use crate::queue::QueueConfig;
use crate::tcp::TcpConfig;
use crate::traffic::Traffic;

/// A link of a source's own.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessConfig {
    /// Bits a second; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// Propagation one way.
    pub delay: Nanos,
    /// Most packets held, the one in transmission included; `u64::MAX` where unlimited.
    pub limit: u64,
    /// Random loss of data packets.
    pub loss: Option<LossLaw>,
}

/// A class of sources that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConfig {
    /// How many.
    pub sources: u32,
    /// From the source to the bottleneck.
    pub ingress: AccessConfig,
    /// From the bottleneck to the receiver.
    pub egress: AccessConfig,
    /// Propagation from the bottleneck to the egress link.
    pub forward: Nanos,
    /// Propagation from the return bottleneck to the ingress link, for acknowledgements.
    pub back: Nanos,
    /// What they send.
    pub traffic: Traffic,
    /// How many sources of a larger population each of them stands for, if it does; on/off traffic
    /// only. Rates and buffers are then those of so much smaller a network.
    pub stands_for: Option<f64>,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Names the random streams.
    pub seed: u64,
    /// Bytes of a data packet, with its headers.
    pub packet_bytes: u32,
    /// Bytes of an acknowledgement.
    pub ack_bytes: u32,
    /// Bits a second of the bottleneck, both ways; `None` is unlimited.
    pub bottleneck_bps: Option<u64>,
    /// Packets that it holds at the most, the one in transmission included; `None` is unlimited.
    pub buffer: Option<u64>,
    /// Its queue discipline.
    pub queue: QueueConfig,
    /// Its random loss of data packets, before the queue.
    pub loss: Option<BottleneckLoss>,
    /// The TCP of all sources.
    pub tcp: TcpConfig,
    /// The sources.
    pub classes: Vec<ClassConfig>,
    /// Nothing before this is counted.
    pub warmup: Nanos,
    /// What to record.
    pub probes: ProbeConfig,
}

impl RunConfig {
    /// Whether anything is to be told of packets that pass: captures, or the random loss.
    pub(crate) fn is_watched(&self) -> bool {
        !self.probes.captures.is_empty() || self.loss.is_some_and(BottleneckLoss::listens)
    }
}
