//! Configuration of a fixed point.

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
pub enum CrossPacketTimeRule {
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
    pub queue_rule: CrossPacketTimeRule,
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
