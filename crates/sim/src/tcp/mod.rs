//! TCP endpoints without I/O: what arrives and what time it is go in, what to send comes out.

mod any;
mod burst;
pub mod classic;
mod ends;
mod headers;
mod instant;
pub mod modern;

pub use any::{AnyReceiver, AnySender};
pub use classic::{Arrival, Receiver, RtoEstimator, Sender, Transmission, cc};
pub use ends::{AckHeaderOf, Echo, Idle, ReceivingEnd, SendingEnd};
pub use instant::{Growth, InstantLoss, MaxPlus};

use crate::clock::{Nanos, SECOND};
use modern::{Handshake, ModernTcp};
use serde::Deserialize;

/// How the loss of several packets of one window is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Recovery {
    /// RFC 5681: recovery ends at the first new acknowledgement.
    Reno,
    /// RFC 6582: it ends when all that was outstanding is acknowledged.
    ///
    /// `restart_timer` restarts the timer at each retransmission: the Engset report's "impatient"
    /// variant, which RFC 6582 section 4 calls slow-but-steady. Without it only the retransmission
    /// that begins recovery sets the timer: the report's "patient". The RFC's own impatient variant
    /// also resets it at the first partial acknowledgement.
    #[serde(rename = "newreno")]
    NewReno {
        /// Whether each retransmission restarts the timer.
        restart_timer: bool,
    },
}

/// What restarts the retransmission timer outside recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerRestart {
    /// An acknowledgement of new data: RFC 6298 (5.3).
    Ack,
    /// The sending of a packet, as in the Engset report (section 3.1): an acknowledgement that
    /// releases nothing leaves the timer running.
    Send,
}

/// What ends the doubling of the timeout after a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackoffUntil {
    /// A new sample of the round-trip time, which what was retransmitted does not give: RFC 6298,
    /// section 5, with Karn's rule (section 3).
    Sample,
    /// Any acknowledgement of new data, as where the timestamp option makes each a sample (RFC
    /// 6298, section 3).
    Ack,
}

/// In what cwnd and ssthresh are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowUnit {
    /// Whole packets: a packet more for a window of acknowledgements, halves rounded down.
    Packets,
    /// Bytes, and so fractions of packets: equations (3) and (4) of RFC 5681 as they stand.
    Bytes,
}

/// What the first duplicate acknowledgements send while there are too few for a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedTransmit {
    /// Nothing: RFC 5681 without RFC 3042.
    Off,
    /// RFC 3042, section 2: the first and the second send a new packet each.
    EachDuplicate,
    /// The second sends two, as Ayesta and Avrachenkov describe it (section 2.1).
    OnSecond,
}

/// When a connection that goes on after an idle time restarts in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// It keeps its window.
    Never,
    /// RFC 5681, section 4.1: when nothing was sent for longer than the retransmission timeout,
    /// cwnd is at most the initial window, and ssthresh stays.
    AfterTimeout,
    /// After an idle time longer than this, from its last acknowledgement on, window and threshold
    /// are those of a new connection; the round-trip estimate stays.
    After(Nanos),
}

impl IdleRestart {
    /// Whether a connection restarts after such an idle time, with this retransmission timeout.
    #[must_use]
    pub fn is_due(self, idle: Idle, rto: Nanos) -> bool {
        match self {
            Self::Never => false,
            Self::AfterTimeout => idle.since_sent > rto,
            Self::After(longest) => idle.since_ack > longest,
        }
    }
}

/// The TCP all sources of a run have. Windows in packets, times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpConfig {
    /// How losses are repaired.
    pub recovery: Recovery,
    /// What restarts the timer.
    pub timer_restart: TimerRestart,
    /// What ends the doubling of the timeout.
    pub backoff_until: BackoffUntil,
    /// Duplicate acknowledgements that are a loss; at least 1, and 3 in RFC 5681.
    pub duplicate_threshold: u32,
    /// The same where the missing packet is one of the last `duplicate_threshold` of a file, which
    /// too few packets follow (Ayesta and Avrachenkov, section 3.1); at most `duplicate_threshold`.
    pub last_packets_threshold: u32,
    /// What fewer duplicates send.
    pub limited_transmit: LimitedTransmit,
    /// In what the windows below are counted while they change.
    pub window_unit: WindowUnit,
    /// First congestion window.
    pub initial_window: u32,
    /// First slow-start threshold.
    pub initial_ssthresh: u32,
    /// Slow start while cwnd <= ssthresh instead of cwnd < ssthresh; RFC 5681 allows either.
    pub slow_start_at_ssthresh: bool,
    /// Receiver window; `u32::MAX` where it is unlimited.
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
    /// When a connection that goes on after an idle time restarts.
    pub idle_restart: IdleRestart,
    /// Instantaneous loss detection with these rules, in place of most of the above.
    pub instant: Option<InstantLoss>,
    /// Today's TCP, in place of all of the above.
    pub modern: Option<ModernTcp>,
}

impl TcpConfig {
    /// Whether a connection begins with a handshake.
    #[must_use]
    pub fn has_handshake(&self) -> bool {
        self.modern.is_some_and(|modern| modern.handshake != Handshake::None)
    }
}

impl Default for TcpConfig {
    /// NewReno as in the Engset report, section 3.1.
    fn default() -> Self {
        Self {
            recovery: Recovery::NewReno { restart_timer: true },
            timer_restart: TimerRestart::Ack,
            backoff_until: BackoffUntil::Sample,
            duplicate_threshold: 3,
            last_packets_threshold: 3,
            limited_transmit: LimitedTransmit::Off,
            window_unit: WindowUnit::Packets,
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
            modern: None,
        }
    }
}
