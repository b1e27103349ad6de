//! Names of states and causes in columns.

use tcpcast_trace::{ConnectionEnd, RetransCause, TapSide, TransferLimit};

pub(super) fn limit_name(limit: TransferLimit) -> &'static str {
    match limit {
        TransferLimit::Application => "application",
        TransferLimit::ReceiverWindow => "receiver_window",
        TransferLimit::SendBuffer => "send_buffer",
        TransferLimit::SlowStart => "slow_start",
        TransferLimit::CongestionWindow => "congestion_window",
        TransferLimit::LossRecovery => "loss_recovery",
        TransferLimit::Timeout => "timeout",
        TransferLimit::Bottleneck => "bottleneck",
        TransferLimit::Unknown => "unknown",
    }
}

pub(super) fn side_name(side: TapSide) -> &'static str {
    match side {
        TapSide::Sender => "sender",
        TapSide::Receiver => "receiver",
        TapSide::Middle => "middle",
        TapSide::Unknown => "unknown",
    }
}

pub(super) fn connection_end_name(end: ConnectionEnd) -> &'static str {
    match end {
        ConnectionEnd::Open => "open",
        ConnectionEnd::Closed => "closed",
        ConnectionEnd::Reset => "reset",
        ConnectionEnd::Evicted => "evicted",
    }
}

pub(super) fn cause_name(cause: RetransCause) -> &'static str {
    match cause {
        RetransCause::Duplicates => "duplicates",
        RetransCause::Sack => "sack",
        RetransCause::Rack => "rack",
        RetransCause::Timeout { .. } => "timeout",
        RetransCause::AfterTimeout => "after-timeout",
        RetransCause::TailLossProbe => "tail-loss-probe",
        RetransCause::Unexplained => "unexplained",
    }
}
