//! Random loss at the bottleneck: per packet, as on any link, or correlated within the rounds of a
//! flow.

use crate::packet::Packet;
use crate::random::RandomStream;
use crate::round_loss::RoundLoss;
use serde::Deserialize;
pub use tcpcast_link::loss::{LinkLossConfig, LinkLossState, LossModel, LossPlace, LossProcess};

/// Model of the random loss at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckLoss {
    /// Loss per packet, independent of flows.
    Packet(LossModel),
    /// Correlated loss: each packet is lost with this probability; after a loss, the rest of the
    /// flow's round is also lost.
    RestOfRound(f64),
}

impl BottleneckLoss {
    /// Whether sent packets and received acknowledgements must be reported to the loss process.
    pub(crate) fn needs_sender_events(self) -> bool {
        matches!(self, Self::RestOfRound(_))
    }
}

/// State of a loss model, with its random stream.
#[derive(Clone, Debug)]
enum BottleneckLossProcess {
    Packet(LossProcess),
    RestOfRound(RoundLoss),
}

/// Loss process of the bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct BottleneckLosses {
    process: BottleneckLossProcess,
    at: LossPlace,
}

impl BottleneckLosses {
    pub(crate) fn new(
        loss: LinkLossConfig<BottleneckLoss>,
        sources: usize,
        stream: RandomStream,
    ) -> Self {
        let process = match loss.model {
            BottleneckLoss::Packet(model) => {
                BottleneckLossProcess::Packet(LossProcess::new(model, stream))
            }
            BottleneckLoss::RestOfRound(rate) => {
                BottleneckLossProcess::RestOfRound(RoundLoss::new(rate, sources, stream))
            }
        };
        Self { process, at: loss.at }
    }

    /// Whether the packet of `source` that passes this place is lost there.
    #[inline(never)]
    pub(crate) fn loses_packet_at(&mut self, at: LossPlace, source: u32) -> bool {
        self.at == at
            && match &mut self.process {
                BottleneckLossProcess::Packet(process) => process.loses_packet(),
                BottleneckLossProcess::RestOfRound(process) => process.loses_next_packet(source),
            }
    }

    /// Handles a packet that a sender sends or an acknowledgement that it receives.
    pub(crate) fn record_sent_packet_or_ack(&mut self, packet: &Packet) {
        if let BottleneckLossProcess::RestOfRound(process) = &mut self.process {
            process.record_sent_packet_or_ack(packet);
        }
    }

    /// Restarts the process; rounds need no restart, because each connection starts a new one.
    pub(crate) fn restart_process(&mut self) {
        if let BottleneckLossProcess::Packet(process) = &mut self.process {
            process.restart_process();
        }
    }

    /// Handles the loss before the bottleneck of the packet that `source` sent last.
    pub(crate) fn on_loss_before_bottleneck(&mut self, source: u32) {
        if let BottleneckLossProcess::RestOfRound(process) = &mut self.process {
            process.on_loss_before_bottleneck(source);
        }
    }
}
