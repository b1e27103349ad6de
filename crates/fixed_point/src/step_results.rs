//! Results of the iterations of a fixed point.

/// Results of one iteration for one class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassStepResult {
    /// Number of the iteration, from 1; the measurement after all iterations has the last number.
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

/// Names of the cells of a [`ClassStepResult`], in order.
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

impl ClassStepResult {
    /// Values of the cells, in the order of [`STEP_CELLS`].
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
