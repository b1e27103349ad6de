//! Fixed points: a few reference flows per class, simulated exactly, among cross flows drawn from
//! distributions measured on the reference flows (Baccelli, Hong and Liu, INRIA report 4154,
//! section 5).

mod config;
mod cross_flows;
mod distributions;
mod events;
mod flows;
mod per_source;
mod probes;
mod recursion;
mod reference_flows;
mod replications;
mod run;
mod shared;
mod window;

pub use config::{FixedPointConfig, STEP_CELLS, Scheme, StepRow};
pub use recursion::{Left, Route, Router};
pub use replications::{IteratedRun, replications};
pub use run::FixedPoint;

#[cfg(test)]
#[path = "fixed_point_tests.rs"]
mod tests;
