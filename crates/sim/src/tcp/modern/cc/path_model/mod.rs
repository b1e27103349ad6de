//! What every version of BBR makes its model of: filters of the bandwidth, the pace that follows
//! from it, whether the pipe is full, how much more than it is acknowledged at once, the probe for
//! the smallest round-trip time, and random draws.

mod aggregation;
mod filter;
mod full_pipe;
mod pace;
mod random;
mod rtt_probe;

pub use aggregation::AckEpoch;
pub use filter::{MaxFilter, TwoCycles};
pub use full_pipe::FullPipe;
pub use pace::{
    BW_SHIFT, INITIAL_CWND, LARGEST_BURST, MIN_CWND, Pace, UNIT, bandwidth, burst_bytes,
    burst_packets, carried, chunk_packets, packets,
};
pub use random::SplitMix64;
pub use rtt_probe::RttProbe;
