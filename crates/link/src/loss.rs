//! Random loss per packet, before the queue or behind the transmitter of a link.

use crate::random::{RandomSource, RandomStream};
use serde::Deserialize;

/// Model of random packet loss.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossModel {
    /// Independent loss per packet with this probability.
    Bernoulli(f64),
    /// Two-state Markov chain with one step per packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Transition probability from good to bad after a packet.
        to_bad: f64,
        /// Transition probability from bad to good after a packet.
        to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

/// Position of random loss on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossPlace {
    /// Before the queue: a lost packet takes neither buffer space nor transmission time.
    #[default]
    Before,
    /// Behind the transmitter: a lost packet was queued and transmitted.
    Behind,
}

/// Random loss of a link.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkLossConfig<M = LossModel> {
    /// Loss model.
    pub model: M,
    /// Position on the link.
    pub at: LossPlace,
}

impl<M> LinkLossConfig<M> {
    /// Loss before the queue.
    #[must_use]
    pub fn before_queue(model: M) -> Self {
        Self { model, at: LossPlace::Before }
    }

    /// Loss behind the transmitter.
    #[must_use]
    pub fn behind_transmitter(model: M) -> Self {
        Self { model, at: LossPlace::Behind }
    }
}

/// State of the random loss of one link. Call [`LinkLossState::loses_packet_at`] at both positions.
#[derive(Clone, Debug)]
pub struct LinkLossState<D = RandomStream> {
    model: LossModel,
    at: LossPlace,
    draws: D,
    bad: bool,
}

impl<D: RandomSource> LinkLossState<D> {
    /// Creates the loss process of a link. Gilbert-Elliott starts in its stationary distribution.
    #[must_use]
    pub fn new(loss: LinkLossConfig, draws: D) -> Self {
        let mut process = Self { model: loss.model, at: loss.at, draws, bad: false };
        process.restart_process();
        process
    }

    /// Returns true if the packet that passes this position now is lost.
    #[inline]
    pub fn loses_packet_at(&mut self, at: LossPlace) -> bool {
        self.at == at && self.loses_packet()
    }

    /// Restarts the process without resetting its random stream.
    pub fn restart_process(&mut self) {
        self.bad = match self.model {
            LossModel::GilbertElliott { to_bad, to_good, .. } if to_bad > 0.0 => {
                self.draws.draw_chance(to_bad / (to_bad + to_good))
            }
            _ => false,
        };
    }

    /// Returns true if the current packet is lost, and then makes the transition of
    /// Gilbert-Elliott.
    #[inline]
    fn loses_packet(&mut self) -> bool {
        match self.model {
            LossModel::Bernoulli(probability) => self.draws.draw_chance(probability),
            LossModel::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let lost = self.draws.draw_chance(if self.bad { loss_bad } else { loss_good });
                if self.draws.draw_chance(if self.bad { to_good } else { to_bad }) {
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

    const PACKETS: usize = 400_000;

    fn process(model: LossModel, name: u64) -> LinkLossState {
        LinkLossState::new(LinkLossConfig::before_queue(model), RandomStream::from_seed(name))
    }

    fn losses(model: LossModel, name: u64) -> Vec<bool> {
        let mut process = process(model, name);
        (0..PACKETS).map(|_| process.loses_packet()).collect()
    }

    /// Lengths of the runs of `value`, without the runs truncated at the ends.
    fn runs(losses: &[bool], value: bool) -> Vec<u32> {
        let mut runs: Vec<u32> = Vec::new();
        let mut length = None;
        for lost in losses {
            if *lost == value {
                length = length.map(|length: u32| length + 1);
            } else {
                runs.extend(length.filter(|length| *length > 0));
                length = Some(0);
            }
        }
        runs
    }

    /// Kolmogorov-Smirnov statistic of `runs` against the geometric distribution on 1, 2, ... with
    /// stopping probability `ends`, times sqrt(n); the 1 % critical value is 1.63.
    fn distance(runs: &[u32], ends: f64) -> f64 {
        let mut counts = vec![0_u32; *runs.iter().max().unwrap() as usize + 1];
        runs.iter().for_each(|run| counts[*run as usize] += 1);
        let count = runs.len() as f64;
        let (mut seen, mut survival, mut max) = (0.0, 1.0, 0.0_f64);
        for of_length in &counts[1..] {
            seen += f64::from(*of_length);
            survival *= 1.0 - ends;
            max = max.max((seen / count - (1.0 - survival)).abs());
        }
        max * count.sqrt()
    }

    #[test]
    fn bernoulli_has_its_rate_and_geometric_gaps() {
        for (name, rate) in [(1, 0.01), (2, 0.1), (3, 0.5)] {
            let losses = losses(LossModel::Bernoulli(rate), name);
            let lost = losses.iter().filter(|lost| **lost).count() as f64;
            let sd = (PACKETS as f64 * rate * (1.0 - rate)).sqrt();
            assert!((lost - PACKETS as f64 * rate).abs() < 3.0 * sd, "{rate}: {lost}");
            assert!(distance(&runs(&losses, false), rate) < 1.63, "{rate}");
            assert!(distance(&runs(&losses, true), 1.0 - rate) < 1.63, "{rate}");
        }
    }

    #[test]
    fn gilbert_1960_bursts_and_gaps_are_geometric() {
        let (to_bad, to_good) = (0.01, 0.25);
        let model = LossModel::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 };
        let losses = losses(model, 4);
        let rate = losses.iter().filter(|lost| **lost).count() as f64 / PACKETS as f64;
        assert!((rate - to_bad / (to_bad + to_good)).abs() < 0.003, "{rate}");
        assert!(distance(&runs(&losses, true), to_good) < 1.63);
        assert!(distance(&runs(&losses, false), to_bad) < 1.63);
    }

    #[test]
    fn gilbert_elliott_starts_stationary() {
        let model =
            LossModel::GilbertElliott { to_bad: 0.1, to_good: 0.3, loss_good: 0.0, loss_bad: 0.8 };
        let lost = (0..20_000).filter(|name| process(model, *name).loses_packet()).count();
        assert!((lost as f64 / 20_000.0 - 0.2).abs() < 0.01, "{lost}");
    }

    #[test]
    fn link_losses_apply_only_at_their_position() {
        let model = LossModel::Bernoulli(1.0);
        let losses = |loss| {
            let mut losses = LinkLossState::new(loss, RandomStream::from_seed(1));
            [LossPlace::Before, LossPlace::Behind].map(|at| losses.loses_packet_at(at))
        };
        assert_eq!(losses(LinkLossConfig::before_queue(model)), [true, false]);
        assert_eq!(losses(LinkLossConfig::behind_transmitter(model)), [false, true]);
    }

    #[test]
    fn bernoulli_is_exact_for_zero_and_one_and_reproducible() {
        assert!(!losses(LossModel::Bernoulli(0.0), 1).contains(&true));
        assert!(!losses(LossModel::Bernoulli(1.0), 1).contains(&false));
        let model = LossModel::Bernoulli(0.3);
        assert_eq!(losses(model, 9), losses(model, 9));
    }
}
