//! State of one acknowledgement while it is processed.

use super::sender::Sender;
use tcpcast_link::time::Nanos;

/// Facts about the current acknowledgement, collected step by step.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    /// Arrival time.
    pub now: Nanos,
    /// First unacknowledged byte before this acknowledgement.
    pub prior_una: u64,
    /// Numbers of packets outstanding, in flight, delivered and lost before this acknowledgement.
    pub prior_out: u32,
    pub prior_in_flight: u32,
    pub prior_delivered: u32,
    pub prior_lost: u64,
    /// Number of SACKed packets before this acknowledgement.
    pub prior_sacked: u32,
    /// End of the highest SACKed packet before this acknowledgement.
    pub prior_highest: u64,
    /// Whether new data is acknowledged cumulatively.
    pub advanced: bool,
    /// Packets acknowledged cumulatively.
    pub acked: u32,
    /// Whether the packet carries data or opens the window, so it is not a duplicate.
    pub not_duplicate: bool,
    /// Whether a packet is SACKed for the first time.
    pub sacked: bool,
    /// Whether a duplicate is reported (DSACK), and whether the duplicate is a tail loss probe.
    pub dsack: bool,
    pub dsack_of_probe: bool,
    /// ECN echo.
    pub ece: bool,
    /// Whether a packet is acknowledged that was sent before the current phase and never
    /// retransmitted.
    pub original_acked: bool,
    /// Whether a retransmitted packet is acknowledged cumulatively.
    pub retransmission_acked: bool,
    /// Whether a retransmission was detected as lost.
    pub retransmission_lost: bool,
    /// Whether the first unacknowledged packet is marked as SACKed.
    pub reneged: bool,
    /// Whether the timer must be set again.
    pub set_timer: bool,
    /// Send times of the first and last packet acknowledged cumulatively, and by SACK.
    pub acked_sent: Option<(Nanos, Nanos)>,
    pub sacked_sent: Option<(Nanos, Nanos)>,
    /// Round-trip time of the packet delivered last.
    pub rtt: Option<Nanos>,
    /// Whether only one packet is acknowledged, possibly by a delayed acknowledgement.
    pub maybe_delayed: bool,
    /// Echoed timestamp.
    pub echo: Option<u32>,
}

impl AckContext {
    /// Initial state.
    #[inline(always)]
    pub fn from_sender(now: Nanos, sender: &Sender) -> Self {
        let flight = sender.flight();
        Self {
            prior_in_flight: flight.in_flight(),
            prior_sacked: flight.sacked,
            prior_highest: flight.byte_after_highest_sacked(),
            ..Self::from_in_order_sender(now, sender)
        }
    }

    /// Initial state if no packet is missing and none was retransmitted.
    #[inline(always)]
    pub fn from_in_order_sender(now: Nanos, sender: &Sender) -> Self {
        let flight = sender.flight();
        Self {
            now,
            prior_una: sender.una(),
            prior_out: flight.packets_out(),
            prior_in_flight: flight.packets_out(),
            prior_delivered: sender.delivery_counter().delivered,
            prior_lost: flight.lost_total,
            prior_sacked: 0,
            prior_highest: flight.first_byte,
            advanced: false,
            acked: 0,
            not_duplicate: false,
            sacked: false,
            dsack: false,
            dsack_of_probe: false,
            ece: false,
            original_acked: false,
            retransmission_acked: false,
            retransmission_lost: false,
            reneged: false,
            set_timer: false,
            rtt: None,
            acked_sent: None,
            sacked_sent: None,
            maybe_delayed: false,
            echo: None,
        }
    }

    /// Whether any packet is delivered.
    pub fn has_delivery(&self) -> bool {
        self.acked > 0 || self.sacked
    }

    /// Number of duplicate acknowledgements to count for this acknowledgement: 0 or 1.
    pub fn duplicate_ack_count(&self) -> u32 {
        let is_new = self.advanced || self.not_duplicate || self.acked > 0 || self.dsack;
        u32::from(!is_new)
    }
}

/// Extends a span of send times by a later one.
#[inline(always)]
pub(super) fn extend_time_span(
    span: Option<(Nanos, Nanos)>,
    sent_at: Nanos,
) -> Option<(Nanos, Nanos)> {
    Some((span.map_or(sent_at, |(first, _)| first), sent_at))
}
