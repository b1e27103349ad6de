//! Possible limits of a transfer.

use crate::named_enum::named_enum;

named_enum! {
    /// Possible limits of a transfer; for equal shares, the first in this order is reported.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum TransferLimit {
        /// No data to send.
        Application = "application",
        /// The receive window was full.
        ReceiverWindow = "receiver_window",
        /// The flight stayed constant below the receive window, without loss.
        SendBuffer = "send_buffer",
        /// The window grew exponentially.
        SlowStart = "slow_start",
        /// The congestion window, without a standing queue.
        CongestionWindow = "congestion_window",
        /// From a fast retransmit, or the first segment after a timeout, until all lost data are
        /// acknowledged.
        LossRecovery = "loss_recovery",
        /// Waiting for the retransmission timer.
        Timeout = "timeout",
        /// Acknowledgements arrived at the path's rate, with a standing queue.
        Bottleneck = "bottleneck",
        /// Unknown.
        #[default]
        Unknown = "unknown",
    }
}
