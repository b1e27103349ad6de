//! Random loss at the bottleneck: packet by packet, as on any link, or by flows and their rounds.

use crate::packet::Packet;
use crate::random::Stream;
use crate::rounds::RoundLoss;
use serde::Deserialize;
pub use tcpcast_link::loss::{LossModel, LossProcess};

/// How the bottleneck loses packets at random: it knows flows.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckLoss {
    /// Packet by packet, whoever sent it.
    Packet(LossModel),
    /// With this probability, unless one before it in its flow's round was lost; then with it.
    RestOfRound(f64),
}

impl BottleneckLoss {
    /// Whether it must be told what senders send and hear.
    pub(crate) fn listens(self) -> bool {
        matches!(self, Self::RestOfRound(_))
    }
}

/// A loss model at work on the bottleneck, with its own stream.
#[derive(Clone, Debug)]
pub(crate) enum BottleneckLosses {
    Packet(LossProcess),
    RestOfRound(RoundLoss),
}

impl BottleneckLosses {
    pub(crate) fn new(model: BottleneckLoss, sources: usize, stream: Stream) -> Self {
        match model {
            BottleneckLoss::Packet(model) => Self::Packet(LossProcess::new(model, stream)),
            BottleneckLoss::RestOfRound(rate) => {
                Self::RestOfRound(RoundLoss::new(rate, sources, stream))
            }
        }
    }

    /// Whether the packet of `source` that arrives now is lost.
    #[inline(never)]
    pub(crate) fn loses(&mut self, source: u32) -> bool {
        match self {
            Self::Packet(process) => process.loses(),
            Self::RestOfRound(process) => process.loses(source),
        }
    }

    /// A sender sends a packet, or hears an acknowledgement.
    pub(crate) fn at_sender(&mut self, packet: &Packet) {
        if let Self::RestOfRound(process) = self {
            process.at_sender(packet);
        }
    }

    /// Starts the process again; a connection begins with a round of its own anyway.
    pub(crate) fn restart(&mut self) {
        if let Self::Packet(process) = self {
            process.restart();
        }
    }

    /// The packet that `source` has just sent was lost on its own link.
    pub(crate) fn lost_before(&mut self, source: u32) {
        if let Self::RestOfRound(process) = self {
            process.lost_before(source);
        }
    }
}
