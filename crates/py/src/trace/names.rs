//! Names of states and causes in columns.

use tcpcast_trace::{Cause, End, Limit, Side};

pub(super) fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Application => "application",
        Limit::ReceiverWindow => "receiver_window",
        Limit::SendBuffer => "send_buffer",
        Limit::SlowStart => "slow_start",
        Limit::CongestionWindow => "congestion_window",
        Limit::LossRecovery => "loss_recovery",
        Limit::Timeout => "timeout",
        Limit::Bottleneck => "bottleneck",
        Limit::Unknown => "unknown",
    }
}

pub(super) fn side(side: Side) -> &'static str {
    match side {
        Side::Sender => "sender",
        Side::Receiver => "receiver",
        Side::Middle => "middle",
        Side::Unknown => "unknown",
    }
}

pub(super) fn end(end: End) -> &'static str {
    match end {
        End::Open => "open",
        End::Closed => "closed",
        End::Reset => "reset",
        End::Evicted => "evicted",
    }
}

pub(super) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Duplicates => "duplicates",
        Cause::Sack => "sack",
        Cause::Rack => "rack",
        Cause::Timeout { .. } => "timeout",
        Cause::AfterTimeout => "after-timeout",
        Cause::TailLossProbe => "tail-loss-probe",
        Cause::Unexplained => "unexplained",
    }
}
