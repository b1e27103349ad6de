//! Parts of the path model shared by all versions of BBR: bandwidth filters, pacing rate, detection
//! of full pipes, aggregation of acknowledgements, probes for the minimum round-trip time, random
//! numbers, and the state that probes record.

mod aggregation;
mod full_pipe;
mod max_filter;
mod pacing_rate;
mod random;
mod rtt_probe;
mod state;

pub use aggregation::AckAggregationEpoch;
pub use full_pipe::FullPipeDetection;
pub use max_filter::{TwoCycleMaxFilter, WindowedMaxFilter};
pub use pacing_rate::{
    BurstRules, INITIAL_CWND, MAX_BURST_BYTES, MIN_CWND, PacingRate, bandwidth_of, burst_bytes,
    chunk_packets, packets_carried_rounded_down, packets_carried_rounded_up,
};
pub use random::SplitMix64;
pub use rtt_probe::MinRttProbe;
pub use state::{BW_SHIFT, BbrPhase, BbrState, GAIN_UNIT};
