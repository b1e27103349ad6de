//! TCP endpoints as pure state machines: they take time and packets and return packets to send.
//!
//! The crate has no network, no clock and no I/O: the owner of an end passes the time `now` to each
//! call.

pub mod classic;
mod connection_ends;
mod end;
mod file_size;
mod instant;
pub mod modern;
mod packet_ends;
mod packet_kind;
pub mod quic;
mod tcp_event;

pub use classic::{ArrivalResult, PacketsToSend, Receiver, RtoEstimator, Sender, cc};
pub use connection_ends::{IdleTime, SendingEnd};
pub use end::{ConnectionEnd, End, EndDeadlines, EndTcp, Transmission};
pub use file_size::FileSize;
pub use instant::{InstantFeedbackSender, InstantLossRules, WindowGrowthCondition};
pub use packet_ends::{PacketReceiver, PacketSender, PacketTcp};
pub use packet_kind::{HEADER_BYTES, PacketKind, TIMESTAMP_BYTES};
pub use tcp_event::{TcpEvent, TcpProbe, TimeoutState};

use serde::Deserialize;
use tcpcast_link::time::{Nanos, SECOND};

/// Loss recovery with several losses in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossRecovery {
    /// Tahoe: slow start from one packet follows the fast retransmit, without fast recovery
    /// (Jacobson, 1988). Packets after the lost one are retransmitted, as after a timeout.
    Tahoe,
    /// RFC 5681: recovery ends at the first new acknowledgement.
    Reno,
    /// RFC 6582: recovery ends when all packets outstanding at its start are acknowledged.
    ///
    /// `restart_timer: true` is the Engset report's "impatient" variant, which RFC 6582 section 4
    /// calls slow-but-steady: each retransmission restarts the timer. `false` is the report's
    /// "patient" variant: only the first retransmission of a recovery sets the timer. The RFC's own
    /// impatient variant also resets the timer at the first partial acknowledgement.
    #[serde(rename = "newreno")]
    NewReno {
        /// Whether each retransmission restarts the timer.
        restart_timer: bool,
    },
}

/// Event that restarts the retransmission timer outside recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerRestartEvent {
    /// An acknowledgement of new data: RFC 6298 (5.3).
    Ack,
    /// Sending a packet, as in the Engset report (section 3.1): an acknowledgement that allows no
    /// new packet does not restart the timer.
    Send,
}

/// Event that ends the exponential back-off of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackoffEndEvent {
    /// A new round-trip sample: RFC 6298, section 5. Retransmitted packets give no sample (Karn's
    /// rule, section 3).
    Sample,
    /// Any acknowledgement of new data. With the timestamp option each acknowledgement gives a
    /// sample (RFC 6298, section 3).
    Ack,
}

/// Unit of cwnd and ssthresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CwndUnit {
    /// Whole packets: one more packet per window of acknowledgements; halves are rounded down.
    Packets,
    /// Bytes, so fractions of packets count: RFC 5681, equations (3) and (4).
    Bytes,
}

/// Packets sent on duplicate acknowledgements before the number of duplicates reaches `dupthresh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedTransmit {
    /// Nothing: RFC 5681 without RFC 3042.
    Off,
    /// RFC 3042, section 2: the first two duplicates send one new packet each.
    EachDuplicate,
    /// The second duplicate sends two packets: Ayesta and Avrachenkov, section 2.1.
    OnSecond,
}

/// Condition for a slow-start restart after an idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// The connection always keeps its window.
    Never,
    /// RFC 5681, section 4.1: if nothing was sent for longer than the retransmission timeout, cwnd
    /// is reduced to at most the initial window; ssthresh is kept.
    AfterTimeout,
    /// If the last acknowledgement is older than this, window and threshold are reset to the values
    /// of a new connection; the round-trip estimate is kept.
    After(Nanos),
}

impl IdleRestart {
    /// Whether a connection restarts after this idle time, given its retransmission timeout.
    #[must_use]
    pub fn is_restart_due(self, idle: IdleTime, rto: Nanos) -> bool {
        match self {
            Self::Never => false,
            Self::AfterTimeout => idle.since_sent > rto,
            Self::After(max_idle) => idle.since_ack > max_idle,
        }
    }
}

/// TCP configuration of the sources of a run. Windows in packets, times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpConfig {
    /// Loss recovery.
    pub recovery: LossRecovery,
    /// Event that restarts the timer.
    pub timer_restart: TimerRestartEvent,
    /// Event that ends the back-off of the timeout.
    pub backoff_until: BackoffEndEvent,
    /// Duplicate acknowledgements that indicate a loss; at least 1, and 3 in RFC 5681.
    pub duplicate_threshold: u32,
    /// Threshold for the last `duplicate_threshold` packets of a file, after which too few packets
    /// follow to cause that many duplicates (Ayesta and Avrachenkov, section 3.1); at most
    /// `duplicate_threshold`.
    pub last_packets_threshold: u32,
    /// Packets sent on duplicates below the threshold.
    pub limited_transmit: LimitedTransmit,
    /// Largest burst in packets, in addition to a retransmission in recovery;
    /// `u32::MAX` if unlimited.
    pub max_burst: u32,
    /// Unit in which windows grow and shrink.
    pub window_unit: CwndUnit,
    /// Initial congestion window.
    pub initial_window: u32,
    /// Initial slow-start threshold.
    pub initial_ssthresh: u32,
    /// Slow start while cwnd <= ssthresh instead of cwnd < ssthresh; RFC 5681 allows either.
    pub slow_start_at_ssthresh: bool,
    /// Receiver window; `u32::MAX` if unlimited.
    pub receiver_window: u32,
    /// Acknowledge every second packet, or after `ack_timeout`: RFC 5681, section 4.2.
    pub delayed_acks: bool,
    /// Longest delay of an acknowledgement.
    #[serde(rename = "ack_timeout_ns")]
    pub ack_timeout: Nanos,
    /// Smallest retransmission timeout.
    #[serde(rename = "min_rto_ns")]
    pub min_rto: Nanos,
    /// Timeout before the first round-trip sample.
    #[serde(rename = "initial_rto_ns")]
    pub initial_rto: Nanos,
    /// Largest timeout.
    #[serde(rename = "max_rto_ns")]
    pub max_rto: Nanos,
    /// Clock granularity G of RFC 6298.
    #[serde(rename = "rto_granularity_ns")]
    pub rto_granularity: Nanos,
    /// Condition for a slow-start restart after an idle time.
    pub idle_restart: IdleRestart,
    /// Instantaneous loss detection; replaces most of the settings above.
    pub instant: Option<InstantLossRules>,
}

impl Default for TcpConfig {
    /// NewReno as in the Engset report, section 3.1.
    fn default() -> Self {
        Self {
            recovery: LossRecovery::NewReno { restart_timer: true },
            timer_restart: TimerRestartEvent::Ack,
            backoff_until: BackoffEndEvent::Sample,
            duplicate_threshold: 3,
            last_packets_threshold: 3,
            limited_transmit: LimitedTransmit::Off,
            max_burst: u32::MAX,
            window_unit: CwndUnit::Packets,
            initial_window: 2,
            initial_ssthresh: u32::MAX,
            slow_start_at_ssthresh: false,
            receiver_window: u32::MAX,
            delayed_acks: false,
            ack_timeout: SECOND / 5,
            min_rto: SECOND,
            initial_rto: SECOND,
            max_rto: 64 * SECOND,
            rto_granularity: 0,
            idle_restart: IdleRestart::Never,
            instant: None,
        }
    }
}
