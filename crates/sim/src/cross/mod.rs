//! Cross traffic: packets that occupy buffer space and link time at a hop and do not react to
//! congestion.
//!
//! A stream is an arrival process. On a shared link its packets enter the queue as one flow and are
//! discarded after the link. On the link of a single source each source has a separate stream,
//! modelled as a rate that is constant per time bin ([`FluidHop`]).

mod fluid;
mod fractional_noise;
mod on_off;
mod paced_arrivals;
mod replay;

pub use crate::queue::CrossRateCounters;
pub use fluid::{FluidHop, FluidHopSourceState, FluidStream};
pub use fractional_noise::{FractionalNoise, eigenvalues};

use crate::clock::{Nanos, seconds_to_nanos};
use crate::population::draw_gamma;
use crate::random::{NamedStream, RandomStream, StreamPurpose};
use crate::traffic::{Distribution, deserialize_non_empty};
use on_off::{OnOffRate, OnOffSources, OnOffTimes};
use paced_arrivals::PacedArrivals;
use replay::ReplayArrivals;
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
        #[serde(rename = "times_ns", deserialize_with = "deserialize_non_empty")]
        times: Vec<Nanos>,
        /// Packets at each time; fractions are carried over to the next entry.
        #[serde(deserialize_with = "deserialize_non_empty")]
        packets: Vec<f64>,
        /// Period of the repetition, longer than the last of `times`.
        #[serde(rename = "period_ns")]
        period: Nanos,
        /// Start position in the period; `None` for a random position per replication.
        #[serde(rename = "offset_ns")]
        offset: Option<Nanos>,
    },
}

/// Series of a fluid at the hops of single sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FluidBins {
    /// Length of a bin.
    #[serde(rename = "bin_ns")]
    pub bin: Nanos,
    /// Bins per series.
    pub bins: usize,
    /// Number of series.
    pub series: usize,
}

/// Arrival times of one stream.
#[derive(Clone, Debug)]
pub struct CrossArrivals(CrossProcess);

#[derive(Clone, Debug)]
enum CrossProcess {
    Poisson { gap: Distribution, last: Nanos, stream: RandomStream },
    Paced(Box<PacedArrivals>),
    Gamma { gap: f64, shape: f64, last: Nanos, stream: RandomStream },
    OnOff(OnOffSources),
    OnOffRate(Box<OnOffRate>),
    Replay(ReplayArrivals),
}

impl CrossArrivals {
    /// Creates stream `entity` of a replication.
    #[must_use]
    pub fn for_stream(process: &ArrivalProcess, seed: u64, replication: u32, entity: u32) -> Self {
        let stream = RandomStream::for_entity(seed, replication, entity, StreamPurpose::Cross);
        Self(match process {
            ArrivalProcess::Poisson { rate } => {
                let gap = Distribution::Exponential { minimum: 0.0, scale: 1.0 / rate };
                CrossProcess::Poisson { gap, last: 0, stream }
            }
            ArrivalProcess::Fractional(noise) => {
                CrossProcess::Paced(Box::new(PacedArrivals::new(*noise, stream)))
            }
            ArrivalProcess::Gamma { rate, shape } => {
                CrossProcess::Gamma { gap: 1.0 / (rate * shape), shape: *shape, last: 0, stream }
            }
            ArrivalProcess::OnOff { sources, peak, on, off, alpha, together } => {
                let periods = OnOffTimes::new(*on, *off, *alpha);
                if *together {
                    let rate = OnOffRate::new(*sources, *peak, periods, stream);
                    CrossProcess::OnOffRate(Box::new(rate))
                } else {
                    let gap = seconds_to_nanos(1.0 / peak).max(1);
                    CrossProcess::OnOff(OnOffSources::new(*sources, gap, periods, stream))
                }
            }
            ArrivalProcess::Replay { times, packets, period, offset } => {
                let (times, packets) = (times.clone(), packets.clone());
                CrossProcess::Replay(ReplayArrivals::new(times, packets, *period, *offset, stream))
            }
        })
    }

    /// Arrival time of the next packet, in ascending order.
    pub fn next_arrival_time(&mut self) -> Nanos {
        match &mut self.0 {
            CrossProcess::Poisson { gap, last, stream } => {
                *last += seconds_to_nanos(gap.draw_value(stream));
                *last
            }
            CrossProcess::Paced(paced) => paced.next_arrival_time(),
            CrossProcess::Gamma { gap, shape, last, stream } => {
                *last += seconds_to_nanos(*gap * draw_gamma(*shape, stream));
                *last
            }
            CrossProcess::OnOff(sources) => sources.next_arrival_time(),
            CrossProcess::OnOffRate(rate) => rate.next_arrival_time(),
            CrossProcess::Replay(replay) => replay.next_arrival_time(),
        }
    }

    /// Takes the rates of the bins that started since the last call.
    pub fn take_rate_counters(&mut self) -> CrossRateCounters {
        match &mut self.0 {
            CrossProcess::Paced(paced) => std::mem::take(&mut paced.rates),
            _ => CrossRateCounters::default(),
        }
    }
}

#[cfg(test)]
mod tests;
