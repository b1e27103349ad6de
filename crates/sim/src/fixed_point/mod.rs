//! Fixed points: one flow of each class, or a few, followed exactly, in a crowd of cross flows that
//! are made of what was measured on them (Baccelli, Hong and Liu, INRIA report 4154, section 5).
//!
//! With [`Scheme::Served`] nothing is made of what was measured: all flows are exact, and of those that
//! are followed the answer is told. Steps are then a warm-up and nothing more. That is exact simulation
//! but for acknowledgements, which do not wait for those of other flows on their way back, and for the
//! order of packets that come at one nanosecond; a test compares its dates with the packet engine's.

mod books;
mod config;
mod crossing;
mod events;
mod exact;
mod flows;
mod laws;
mod own;
mod recursion;
mod run;
mod shared;
mod window;

pub use config::{FixedPointConfig, STEP_CELLS, Scheme, StepRow};
pub use recursion::{Left, Route, Router};
pub use run::FixedPoint;

#[cfg(test)]
#[path = "fixed_point_tests.rs"]
mod tests;
