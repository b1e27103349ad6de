//! What a fixed point is asked.

use serde::Deserialize;
use tcpcast_sim::clock::Nanos;

/// How cross flows behave (INRIA report 4154, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Scheme {
    /// Scheme 0: independent times between packets, of the mean that reference flows have.
    #[serde(rename = "0")]
    Rates,
    /// Scheme 1: likewise, but a packet is delayed until no more of its flow are in the shared
    /// router than a draw from what reference flows find there.
    #[serde(rename = "1")]
    Queues,
    /// Scheme 2: a window flow control of its own, with service times drawn from a distribution
    /// that has the moments of those of reference flows.
    #[serde(rename = "2")]
    Windows,
}

/// A fixed point of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedPointConfig {
    /// How cross flows behave.
    pub scheme: Scheme,
    /// Whether distributions are by the number of active flows.
    pub conditional: bool,
    /// Moments of the distributions, 1 or 2.
    pub moments: u8,
    /// Reference flows of each class.
    pub references: Vec<u32>,
    /// Iterations before the measurement.
    pub steps: u32,
    /// How long each is.
    #[serde(rename = "step_ns")]
    pub step: Nanos,
    /// Of each class, the time between packets and the service time, in seconds, to begin with.
    pub initial: Vec<(f64, f64)>,
}

/// What a step found, of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepRow {
    /// Which step.
    pub step: u32,
    /// Which class.
    pub class: u32,
    /// Packets a second of a reference flow while on.
    pub rate: f64,
    /// Likewise of cross flows.
    pub cross_rate: f64,
    /// Mean time between packets of reference flows while on, in seconds.
    pub gap: f64,
    /// The mean that cross flows drew from.
    pub gap_used: f64,
    /// Mean aggregated service time of reference flows, in seconds.
    pub service: f64,
    /// The mean that cross flows drew from.
    pub service_used: f64,
    /// Packets of its own flow that an arrival of a reference flow finds in the shared router.
    pub found: f64,
    /// Likewise of cross flows.
    pub cross_found: f64,
    /// Mean time on of reference flows, in seconds.
    pub on_time: f64,
    /// Likewise of cross flows.
    pub cross_on_time: f64,
    /// Share of packets of reference flows that the shared router drops.
    pub loss: f64,
    /// Likewise of cross flows.
    pub cross_loss: f64,
}

/// The names of a row's cells, in their order.
pub const STEP_CELLS: [&str; 14] = [
    "step",
    "class",
    "rate_pps",
    "cross_rate_pps",
    "gap_s",
    "gap_used_s",
    "service_s",
    "service_used_s",
    "own_found",
    "cross_own_found",
    "on_time_s",
    "cross_on_time_s",
    "loss",
    "cross_loss",
];

impl StepRow {
    /// The cells of a row, as [`STEP_CELLS`] names them.
    #[must_use]
    pub fn cells(&self) -> [f64; STEP_CELLS.len()] {
        [
            f64::from(self.step),
            f64::from(self.class),
            self.rate,
            self.cross_rate,
            self.gap,
            self.gap_used,
            self.service,
            self.service_used,
            self.found,
            self.cross_found,
            self.on_time,
            self.cross_on_time,
            self.loss,
            self.cross_loss,
        ]
    }
}
