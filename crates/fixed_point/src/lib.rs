//! Fixed points: one flow of each class, or a few, followed exactly, among cross flows that
//! are made of what was measured on them (Baccelli, Hong and Liu, INRIA report 4154, section 5).

mod config;
mod crossing;
mod distributions;
mod events;
mod flows;
mod own;
mod probes;
mod recursion;
mod reference;
mod replications;
mod run;
mod shared;
mod window;

pub use config::{FixedPointConfig, STEP_CELLS, Scheme, StepRow};
pub use recursion::{Left, Route, Router};
pub use replications::{Iterated, replications};
pub use run::FixedPoint;

#[cfg(test)]
#[path = "fixed_point_tests.rs"]
mod tests;
