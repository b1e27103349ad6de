//! Configuration and results of a fixed point.

use serde::Deserialize;
use tcpcast_sim::clock::Nanos;

/// Behaviour of cross flows (INRIA report 4154, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum CrossFlowScheme {
    /// Scheme 0: independent times between packets, with the mean of reference flows.
    #[serde(rename = "0")]
    Rates,
    /// Scheme 1: as scheme 0, but a packet is delayed while the shared router holds more packets of
    /// its flow than a bound drawn from the measurements on reference flows.
    #[serde(rename = "1")]
    Queues,
    /// Scheme 2: window flow control, with service times drawn from a distribution with the moments
    /// measured on reference flows.
    #[serde(rename = "2")]
    Windows,
}

/// Time of the next packet of a cross flow in scheme 1.
///
/// The report only states that packets are delayed so that the queues of cross flows and reference
/// flows are equal in distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueRule {
    /// A random time after the preceding packet was due: delays do not reduce the rate.
    Delay,
    /// A random time after the preceding packet: a delay postpones all later packets.
    Cap,
    /// As `Cap`, but also at each departure that leaves fewer packets than a drawn number.
    Fill,
}

/// Configuration of a fixed point.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedPointConfig {
    /// Behaviour of cross flows.
    pub scheme: CrossFlowScheme,
    /// Rule of scheme 1.
    pub queue_rule: QueueRule,
    /// Whether distributions depend on the number of active flows.
    pub conditional: bool,
    /// Number of moments of the distributions, 1 or 2.
    pub moments: u8,
    /// Number of reference flows per class.
    pub references: Vec<u32>,
    /// Number of iterations before the measurement.
    pub steps: u32,
    /// Duration of an iteration.
    #[serde(rename = "step_ns")]
    pub step: Nanos,
    /// Initial time between packets and service time per class, in seconds.
    pub initial: Vec<(f64, f64)>,
}

/// Results of a step for one class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepRow {
    /// Number of the step.
    pub step: u32,
    /// Index of the class.
    pub class: u32,
    /// Packets per second of a reference flow while on.
    pub rate: f64,
    /// Packets per second of a cross flow while on.
    pub cross_rate: f64,
    /// Mean time between packets of reference flows while on, in seconds.
    pub gap: f64,
    /// Mean time between packets of the distribution used by cross flows, in seconds.
    pub gap_used: f64,
    /// Mean aggregated service time of reference flows, in seconds.
    pub service: f64,
    /// Mean service time of the distribution used by cross flows, in seconds.
    pub service_used: f64,
    /// Mean number of packets of the same flow that a packet of a reference flow finds in the
    /// shared router.
    pub own_found: f64,
    /// Mean number of packets of the same flow that a packet of a cross flow finds in the shared
    /// router.
    pub cross_own_found: f64,
    /// Mean ON time of reference flows, in seconds.
    pub on_time: f64,
    /// Mean ON time of cross flows, in seconds.
    pub cross_on_time: f64,
    /// Fraction of packets of reference flows dropped by the shared router.
    pub loss: f64,
    /// Fraction of packets of cross flows dropped by the shared router.
    pub cross_loss: f64,
}

/// Names of the cells of a row, in order.
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
    /// Cells of the row, in the order of [`STEP_CELLS`].
    #[must_use]
    pub fn to_cells(&self) -> [f64; STEP_CELLS.len()] {
        [
            f64::from(self.step),
            f64::from(self.class),
            self.rate,
            self.cross_rate,
            self.gap,
            self.gap_used,
            self.service,
            self.service_used,
            self.own_found,
            self.cross_own_found,
            self.on_time,
            self.cross_on_time,
            self.loss,
            self.cross_loss,
        ]
    }
}
