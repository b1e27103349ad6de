//! TCP analysis of packet captures.
//!
//! A [`CaptureReader`] reads the TCP segments of a capture from a stream; [`Connections`] analyses
//! them per connection.

mod analysis;
mod between_taps;
mod connection;
mod frame;
mod named_enum;
mod reader;
mod segment;

pub use analysis::{
    AnnouncedOptions, ConnectionEnd, ConnectionReport, DEPTHS, DirectionCounts, DirectionReport,
    DurationReport, FailureDetails, FailureKind, FailureStage, INTERVAL_S, IndicationKind,
    Interruption, IntervalCounts, LimitEvidence, LossIndication, LossIndicationCounts,
    MIN_INTERRUPTION, MIN_RTT_S, PlotPoint, PointKind, RequestExchange, RequestOutcome,
    RetransCause, RetransCauses, Retransmission, Round, RttReport, SilentParty, SlowStartGrowth,
    SpuriousRetransmissions, TapSide, TimeLine, TransferLimit, TransferLimits, credible_rtt_s,
};
pub use between_taps::{ClockOffset, Comparison, DirectionBetweenTaps, TapComparison};
pub use connection::{Connections, MemoryLimits};
pub use frame::{SkipReason, TunnelKinds};
pub use reader::{
    CaptureReader, Damage, DamageKind, HostNames, ReadError, ReadSummary, ServerName,
    SkippedFrames, StopRequested,
};
pub use segment::{Endpoint, Flags, MAX_SACK_BLOCKS, Nanos, Options, Segment};
