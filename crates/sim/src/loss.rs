//! Random loss at the bottleneck: packet by packet, as on any link, or by flows and their rounds.

use crate::packet::Packet;
use crate::random::Stream;
use crate::rounds::RoundLoss;
use serde::Deserialize;
pub use tcpcast_link::loss::{LinkLoss, LinkLosses, LossModel, LossPlace, LossProcess};

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
    pub(crate) fn needs_sender_events(self) -> bool {
        matches!(self, Self::RestOfRound(_))
    }
}

/// A loss model at work on the bottleneck, with its own stream.
#[derive(Clone, Debug)]
enum Process {
    Packet(LossProcess),
    RestOfRound(RoundLoss),
}

/// The random loss of the bottleneck at work.
#[derive(Clone, Debug)]
pub(crate) struct BottleneckLosses {
    process: Process,
    at: LossPlace,
}

impl BottleneckLosses {
    pub(crate) fn new(loss: LinkLoss<BottleneckLoss>, sources: usize, stream: Stream) -> Self {
        let process = match loss.model {
            BottleneckLoss::Packet(model) => Process::Packet(LossProcess::new(model, stream)),
            BottleneckLoss::RestOfRound(rate) => {
                Process::RestOfRound(RoundLoss::new(rate, sources, stream))
            }
        };
        Self { process, at: loss.at }
    }

    /// Returns true if the packet of `source` that passes this place now is lost there.
    #[inline(never)]
    pub(crate) fn loses(&mut self, at: LossPlace, source: u32) -> bool {
        self.at == at
            && match &mut self.process {
                Process::Packet(process) => process.loses(),
                Process::RestOfRound(process) => process.loses(source),
            }
    }

    /// A sender sends a packet, or hears an acknowledgement.
    pub(crate) fn at_sender(&mut self, packet: &Packet) {
        if let Process::RestOfRound(process) = &mut self.process {
            process.at_sender(packet);
        }
    }

    /// Starts the process again; a connection begins with a round of its own anyway.
    pub(crate) fn restart(&mut self) {
        if let Process::Packet(process) = &mut self.process {
            process.restart();
        }
    }

    /// The packet that `source` has just sent was lost on its own link.
    pub(crate) fn lost_before(&mut self, source: u32) {
        if let Process::RestOfRound(process) = &mut self.process {
            process.lost_before(source);
        }
    }
}
