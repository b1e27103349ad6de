//! Parts of the path model shared by all versions of BBR: bandwidth filters, pacing rate, detection
//! of full pipes, aggregation of acknowledgements, probes for the minimum round-trip time, and
//! random numbers.

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
    BW_SHIFT, INITIAL_CWND, LARGEST_BURST, MIN_CWND, Pace, UNIT, bandwidth, burst_bytes, carried,
    chunk_packets, packets,
};
pub use random::Random;
pub use rtt_probe::RttProbe;
