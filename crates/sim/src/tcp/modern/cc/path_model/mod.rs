//! What every version of BBR makes its model of: filters of the bandwidth, the pace that follows
//! from it, how much more than it is acknowledged at once, and random draws.

mod aggregation;
mod draws;
mod filter;
mod pace;

pub use aggregation::Epoch;
pub use draws::Draws;
pub use filter::{MaxFilter, TwoCycles};
pub use pace::{BW_SHIFT, INITIAL_CWND, MIN_CWND, Pace, UNIT, bandwidth, burst_packets, packets};
