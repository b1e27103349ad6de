//! Cross traffic: packets that occupy buffer space and link time at a hop and do not react to
//! congestion.
//!
//! A stream is an arrival process. At a shared hop its packets enter the queue as one flow and are
//! discarded after the hop ([`CrossTrafficQueue`]). At a per-source hop each source has a separate
//! stream, modelled as a rate that is constant per time bin ([`FluidHop`]).

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

/// Arrival process of one stream, with packets of the size of the run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ArrivalProcess {
    /// Poisson process.
    Poisson {
        /// Mean rate in packets per second.
        rate: f64,
    },
    /// Every `shape`-th packet of a Poisson process: gaps are gamma distributed.
    Gamma {
        /// Mean rate in packets per second.
        rate: f64,
        /// Shape of the gamma distribution, at least 1.
        shape: f64,
    },
    /// A rate of fractional Gaussian noise, at least 0; packets are evenly spaced in each bin.
    #[serde(rename = "fgn")]
    Fractional(FractionalNoise),
    /// On/off sources with a constant rate while on.
    #[serde(rename = "pareto")]
    OnOff {
        /// Number of sources.
        sources: u32,
        /// Rate of a source while it is on, in packets per second.
        peak: f64,
        /// Mean on time in seconds; Pareto distributed.
        on: f64,
        /// Mean off time in seconds; Pareto distributed.
        off: f64,
        /// Index of both tails, above 1.
        alpha: f64,
        /// Whether packets are evenly spaced in the aggregate of all sources rather than per
        /// source.
        together: bool,
    },
    /// Repeated replay of a measured series.
    #[serde(rename = "trace")]
    Replay {
        /// Times, ascending.
        #[serde(rename = "times_ns", deserialize_with = "not_empty")]
        times: Vec<Nanos>,
        /// Packets at each time; fractions are carried over to the next entry.
        #[serde(deserialize_with = "not_empty")]
        packets: Vec<f64>,
        /// Period of the repetition, longer than the last of `times`.
        #[serde(rename = "period_ns")]
        period: Nanos,
        /// Start position in the period; `None` for a random position per replication.
        #[serde(rename = "offset_ns")]
        offset: Option<Nanos>,
    },
}

/// One stream and its hop.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossConfig {
    /// Index of the hop on the forward path.
    pub stage: usize,
    /// Bin length of the series at a per-source hop.
    #[serde(rename = "bin_ns")]
    pub bin: Nanos,
    /// Bins per series at a per-source hop.
    pub bins: usize,
    /// Number of series at a per-source hop.
    pub series: usize,
    /// Arrival process.
    pub process: ArrivalProcess,
}

/// Arrival times of one stream.
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
    /// Creates stream `entity` of a replication.
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

    /// Arrival time of the next packet, in ascending order.
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

    /// Takes the rates of the bins that started since the last call.
    pub(crate) fn take_rates(&mut self) -> RateCounters {
        match &mut self.0 {
            Process::Paced(paced) => std::mem::take(&mut paced.rates),
            _ => RateCounters::default(),
        }
    }
}

#[cfg(test)]
mod tests;
