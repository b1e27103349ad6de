//! Analysis of one direction of a TCP connection, segment by segment.
//!
//! A [`Flow`](flow::Flow) tracks the data of one end. It processes the segments sent by this end
//! ([`flow`]) and the acknowledgements of the other end ([`acknowledgements`]).
//! Memory per live connection is bounded: segments in flight, counters, and a few hundred recent
//! events.

mod acknowledgements;
mod aggregated_frames;
mod direction_counts;
mod direction_stats;
mod duplicates;
mod exchanges;
mod failure;
mod flight;
mod flow;
mod histogram;
mod interruption_kinds;
mod interruptions;
mod intervals;
mod ip_id_steps;
mod limit_evidence;
mod limit_kinds;
mod loss_indications;
mod negotiated_options;
mod out_of_window;
mod packed_rounds;
mod recovery;
mod report;
mod reported_marks;
mod retransmission_cause;
mod round_record;
mod rounds;
mod rtt;
mod scoreboard;
mod sender_state;
mod sequence_numbers;
mod sequence_plot;
mod slow_start;
mod tap_side;
mod transfer_limits;

pub(crate) use aggregated_frames::{MAX_ETHERNET_PAYLOAD, full_payload_by_mss, infer_full_payload};
pub(crate) use direction_stats::EventQuota;
pub(crate) use duplicates::{RecentSegments, SAME_IDS, is_copy_of_recent};
pub(crate) use exchanges::{DataSegmentEvent, ExchangeTracker, FlowState};
pub(crate) use failure::{ConnectionView, FinRstTracker};
pub(crate) use flow::{ConnectionContext, Flow};
pub(crate) use negotiated_options::NegotiatedOptions;
pub(crate) use tap_side::TapRtts;

pub use direction_counts::DirectionCounts;
pub use direction_stats::{Retransmission, SpuriousRetransmissions};
pub use exchanges::{RequestExchange, RequestOutcome, TimeLine};
pub(crate) use failure::ObservedEnd;
pub use failure::{ConnectionEnd, FailureDetails, FailureKind, FailureStage};
pub use interruption_kinds::{Interruption, SilentParty};
pub use interruptions::MIN_INTERRUPTION;
pub use intervals::{INTERVAL_S, IntervalCounts};
pub use limit_evidence::LimitEvidence;
pub use limit_kinds::TransferLimit;
pub use loss_indications::{DEPTHS, LossIndication, LossIndicationCounts};
pub use negotiated_options::AnnouncedOptions;
pub use report::{ConnectionReport, DirectionReport};
pub use retransmission_cause::{IndicationKind, RetransCause, RetransCauses};
pub use round_record::Round;
pub use rtt::{DurationReport, MIN_RTT_S, RttReport, credible_rtt_s};
pub use sequence_plot::{PlotPoint, PointKind};
pub use slow_start::SlowStartGrowth;
pub use tap_side::TapSide;
pub use transfer_limits::TransferLimits;
