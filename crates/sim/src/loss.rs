//! Random loss, decided packet by packet.

use crate::packet::Packet;
use crate::random::Stream;
use crate::rounds::RoundLoss;

/// How a link loses packets at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossLaw {
    /// Each packet independently.
    Bernoulli(f64),
    /// Two states, a step a packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability of going from good to bad after a packet.
        to_bad: f64,
        /// Probability of going from bad to good after a packet.
        to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

/// How the bottleneck loses packets at random: it knows flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BottleneckLoss {
    /// Packet by packet, whoever sent it.
    Packet(LossLaw),
    /// With this probability, unless one before it in its flow's round was lost; then with it.
    RestOfRound(f64),
}

impl BottleneckLoss {
    /// Whether it must be told what senders send and hear.
    pub(crate) fn listens(self) -> bool {
        matches!(self, Self::RestOfRound(_))
    }
}

/// A loss law at work on the bottleneck, with its own stream.
#[derive(Clone, Debug)]
pub(crate) enum BottleneckLosses {
    Packet(LossProcess),
    RestOfRound(RoundLoss),
}

impl BottleneckLosses {
    pub(crate) fn new(law: BottleneckLoss, sources: usize, stream: Stream) -> Self {
        match law {
            BottleneckLoss::Packet(law) => Self::Packet(LossProcess::new(law, stream)),
            BottleneckLoss::RestOfRound(rate) => {
                Self::RestOfRound(RoundLoss::new(rate, sources, stream))
            }
        }
    }

    /// Whether the packet of `source` that arrives now is lost.
    #[inline]
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

/// A loss law at work on one link, with its own stream.
#[derive(Clone, Debug)]
pub struct LossProcess {
    law: LossLaw,
    stream: Stream,
    bad: bool,
}

impl LossProcess {
    /// Starts the process; Gilbert-Elliott starts in its stationary law.
    #[must_use]
    pub fn new(law: LossLaw, mut stream: Stream) -> Self {
        let bad = match law {
            LossLaw::GilbertElliott { to_bad, to_good, .. } if to_bad > 0.0 => {
                stream.chance(to_bad / (to_bad + to_good))
            }
            _ => false,
        };
        Self { law, stream, bad }
    }

    /// Starts the process again, with what is left of its stream.
    pub fn restart(&mut self) {
        *self = Self::new(self.law, self.stream.clone());
    }

    /// Whether the packet that arrives now is lost; in two states the state moves afterwards.
    #[inline]
    pub fn loses(&mut self) -> bool {
        match self.law {
            LossLaw::Bernoulli(rate) => self.stream.chance(rate),
            LossLaw::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let lost = self.stream.chance(if self.bad { loss_bad } else { loss_good });
                if self.stream.chance(if self.bad { to_good } else { to_bad }) {
                    self.bad = !self.bad;
                }
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn run(law: LossLaw) -> (f64, f64) {
        let mut process = LossProcess::new(law, Stream::named(1, 0, 0, Purpose::BottleneckLoss));
        let losses: Vec<bool> = (0..500_000).map(|_| process.loses()).collect();
        let lost = losses.iter().filter(|l| **l).count() as f64;
        let bursts = losses.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        (lost / losses.len() as f64, lost / bursts)
    }

    #[test]
    fn independent_loss() {
        let (rate, burst) = run(LossLaw::Bernoulli(0.1));
        assert!((rate - 0.1).abs() < 0.002, "{rate}");
        assert!((burst - 1.0 / 0.9).abs() < 0.02, "{burst}");
    }

    #[test]
    fn losses_in_bursts() {
        let (to_bad, to_good) = (0.01, 0.25);
        let law = LossLaw::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 };
        let (rate, burst) = run(law);
        assert!((rate - to_bad / (to_bad + to_good)).abs() < 0.003, "{rate}");
        assert!((burst - 1.0 / to_good).abs() < 0.15, "{burst}");
    }
}
