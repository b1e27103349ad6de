//! Possible limits of a transfer.

/// Possible limits of a transfer; for equal shares, the first in this order is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransferLimit {
    /// No data to send.
    Application,
    /// The receive window was full.
    ReceiverWindow,
    /// The flight stayed constant below the receive window, without loss.
    SendBuffer,
    /// The window grew exponentially.
    SlowStart,
    /// The congestion window, without a standing queue.
    CongestionWindow,
    /// From a fast retransmit, or the first segment after a timeout, until all losses are repaired.
    LossRecovery,
    /// Waiting for the retransmission timer.
    Timeout,
    /// Acknowledgements arrived at the path's rate, with a standing queue.
    Bottleneck,
    /// Unknown.
    #[default]
    Unknown,
}

/// All limits, in order.
pub const TRANSFER_LIMITS: [TransferLimit; 9] = [
    TransferLimit::Application,
    TransferLimit::ReceiverWindow,
    TransferLimit::SendBuffer,
    TransferLimit::SlowStart,
    TransferLimit::CongestionWindow,
    TransferLimit::LossRecovery,
    TransferLimit::Timeout,
    TransferLimit::Bottleneck,
    TransferLimit::Unknown,
];
