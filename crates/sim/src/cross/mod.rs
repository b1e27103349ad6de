//! Cross traffic: it takes room and time at a hop, and has no sender that needs_sender_events.
//!
//! A stream is an arrival process. Where packets of all sources meet, its packets meet them too
//! ([`CrossTrafficQueue`]) and vanish when they have left; a stream is one flow there. At a hop that each
//! source has to itself there is a stream for each, as a rate that is constant in each bin
//! ([`FluidHop`]).

mod fluid;
mod fractional;
mod on_off;
mod paced;
mod queue;
mod replay;

pub use crate::queue::RateCounters;
pub use fluid::{Fluid, FluidHop, FluidStream};
pub use fractional::{FractionalNoise, eigenvalues};
pub use queue::CrossTrafficQueue;

use crate::clock::{Nanos, nanoseconds};
use crate::population::gamma;
use crate::random::{Named, Purpose, Stream};
use crate::traffic::{Distribution, not_empty};
use on_off::{OnOffRate, OnOffSources, Periods};
use paced::Paced;
use replay::Replay;
use serde::Deserialize;

/// The arrival process of one stream; its packets are of the size of the run's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "law", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ArrivalProcess {
    /// Independent packets, so many a second.
    Poisson {
        /// Mean, packets a second.
        rate: f64,
    },
    /// Of packets that are independent of one another every `shape`-th: gaps are gamma variables.
    Gamma {
        /// Mean, packets a second.
        rate: f64,
        /// At least 1.
        shape: f64,
    },
    /// A rate that is fractional Gaussian noise, cut at 0; packets evenly spaced in each bin.
    #[serde(rename = "fgn")]
    Fractional(FractionalNoise),
    /// Sources that send at one rate or not at all.
    #[serde(rename = "pareto")]
    OnOff {
        /// How many.
        sources: u32,
        /// What one sends while it is on, packets a second.
        peak: f64,
        /// Mean of the times on, in seconds; they are Pareto's.
        on: f64,
        /// Mean of the times off, likewise.
        off: f64,
        /// Index of both tails, above 1.
        alpha: f64,
        /// Whether packets are evenly spaced in what all send together, or in what each sends.
        together: bool,
    },
    /// What was measured, over and over.
    #[serde(rename = "trace")]
    Replay {
        /// When, in order.
        #[serde(rename = "times_ns", deserialize_with = "not_empty")]
        times: Vec<Nanos>,
        /// Packets at each time; what is not whole is carried to the next.
        #[serde(deserialize_with = "not_empty")]
        packets: Vec<f64>,
        /// After which time it begins anew, later than the last of `times`.
        #[serde(rename = "period_ns")]
        period: Nanos,
        /// Where in it to begin; `None`: anywhere, another place in each replication.
        #[serde(rename = "offset_ns")]
        offset: Option<Nanos>,
    },
}

/// One stream, and where it is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossConfig {
    /// The hop, counted from 0 in the order of the forward path.
    pub stage: usize,
    /// Length of a bin of the series that sources read where each has that hop to itself.
    #[serde(rename = "bin_ns")]
    pub bin: Nanos,
    /// Bins of that series.
    pub bins: usize,
    /// How many such series there are.
    pub series: usize,
    /// Its arrival process.
    pub process: ArrivalProcess,
}

/// The packets of one stream, one after the other.
#[derive(Clone, Debug)]
pub struct Arrivals(Process);

#[derive(Clone, Debug)]
enum Process {
    Poisson { gap: Distribution, last: Nanos, stream: Stream },
    Paced(Box<Paced>),
    Gamma { gap: f64, shape: f64, last: Nanos, stream: Stream },
    OnOff(OnOffSources),
    OnOffRate(Box<OnOffRate>),
    Replay(Replay),
}

impl Arrivals {
    /// The stream `entity` of a replication.
    #[must_use]
    pub fn named(process: &ArrivalProcess, seed: u64, replication: u32, entity: u32) -> Self {
        let stream = Stream::named(seed, replication, entity, Purpose::Cross);
        Self(match process {
            ArrivalProcess::Poisson { rate } => {
                let gap = Distribution::Exponential { minimum: 0.0, scale: 1.0 / rate };
                Process::Poisson { gap, last: 0, stream }
            }
            ArrivalProcess::Fractional(noise) => {
                Process::Paced(Box::new(Paced::new(*noise, stream)))
            }
            ArrivalProcess::Gamma { rate, shape } => {
                Process::Gamma { gap: 1.0 / (rate * shape), shape: *shape, last: 0, stream }
            }
            ArrivalProcess::OnOff { sources, peak, on, off, alpha, together } => {
                let periods = Periods::new(*on, *off, *alpha);
                if *together {
                    let rate = OnOffRate::new(*sources, *peak, periods, stream);
                    Process::OnOffRate(Box::new(rate))
                } else {
                    let gap = nanoseconds(1.0 / peak).max(1);
                    Process::OnOff(OnOffSources::new(*sources, gap, periods, stream))
                }
            }
            ArrivalProcess::Replay { times, packets, period, offset } => {
                let (times, packets) = (times.clone(), packets.clone());
                Process::Replay(Replay::new(times, packets, *period, *offset, stream))
            }
        })
    }

    /// When the next packet arrives; times never go back.
    pub fn next_time(&mut self) -> Nanos {
        match &mut self.0 {
            Process::Poisson { gap, last, stream } => {
                *last += nanoseconds(gap.draw(stream));
                *last
            }
            Process::Paced(paced) => paced.next_time(),
            Process::Gamma { gap, shape, last, stream } => {
                *last += nanoseconds(*gap * gamma(*shape, stream));
                *last
            }
            Process::OnOff(sources) => sources.next_time(),
            Process::OnOffRate(rate) => rate.next_time(),
            Process::Replay(replay) => replay.next_time(),
        }
    }

    /// The rates of the bins begun since the last call.
    pub(crate) fn take_rates(&mut self) -> RateCounters {
        match &mut self.0 {
            Process::Paced(paced) => std::mem::take(&mut paced.rates),
            _ => RateCounters::default(),
        }
    }
}

#[cfg(test)]
mod tests;
