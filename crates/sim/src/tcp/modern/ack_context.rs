//! What one acknowledgement has said, as its parts are understood one after another.

use super::sender::Sender;
use crate::clock::Nanos;

/// Gathers it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckContext {
    /// When it came.
    pub now: Nanos,
    /// The first byte that was not acknowledged before.
    pub prior_una: u64,
    /// Packets out, in flight, delivered and lost before.
    pub prior_out: u32,
    pub prior_in_flight: u32,
    pub prior_delivered: u32,
    pub prior_lost: u64,
    /// Packets that the receiver held before.
    pub prior_sacked: u32,
    /// The byte after the highest packet that the receiver held before.
    pub prior_highest: u64,
    /// Whether it acknowledges new data cumulatively.
    pub advanced: bool,
    /// How many packets.
    pub acked: u32,
    /// Whether it carries data or opens the window: then it is no duplicate.
    pub not_duplicate: bool,
    /// Whether a packet is acknowledged by SACK for the first time.
    pub sacked: bool,
    /// Whether it reports a duplicate, and whether that of a tail loss probe.
    pub dsack: bool,
    pub dsack_of_probe: bool,
    /// ECN echo.
    pub ece: bool,
    /// Whether a packet of before the phase that was not retransmitted is acknowledged.
    pub original_acked: bool,
    /// Whether a retransmitted packet is acknowledged cumulatively.
    pub retransmission_acked: bool,
    /// Whether a retransmission was found lost.
    pub retransmission_lost: bool,
    /// Whether the first packet not acknowledged is one that the receiver held.
    pub reneged: bool,
    /// Whether the timer is to be set anew.
    pub set_timer: bool,
    /// When the first and the last packet that is acknowledged of either kind was sent.
    pub acked_sent: Option<(Nanos, Nanos)>,
    pub sacked_sent: Option<(Nanos, Nanos)>,
    /// The round-trip time of the packet delivered last.
    pub rtt: Option<Nanos>,
    /// Whether only one packet is acknowledged, perhaps late.
    pub maybe_delayed: bool,
    /// The stamp that it echoes.
    pub echo: Option<u32>,
}

impl AckContext {
    /// Nothing yet.
    #[inline(always)]
    pub fn begin(now: Nanos, sender: &Sender) -> Self {
        let flight = sender.flight();
        Self {
            prior_in_flight: flight.in_flight(),
            prior_sacked: flight.sacked,
            prior_highest: flight.highest_sacked(),
            ..Self::begin_in_order(now, sender)
        }
    }

    /// The same, where nothing is missing and nothing was retransmitted.
    #[inline(always)]
    pub fn begin_in_order(now: Nanos, sender: &Sender) -> Self {
        let flight = sender.flight();
        Self {
            now,
            prior_una: sender.una(),
            prior_out: flight.out(),
            prior_in_flight: flight.out(),
            prior_delivered: sender.delivery().delivered,
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

    /// Whether something was delivered.
    pub fn progress(&self) -> bool {
        self.acked > 0 || self.sacked
    }

    /// How many duplicate acknowledgements it is.
    pub fn duplicates(&self) -> u32 {
        let none = self.advanced || self.not_duplicate || self.acked > 0 || self.dsack;
        u32::from(!none)
    }
}

/// The span from the first to the last, with one more.
#[inline(always)]
pub(super) fn widen(span: Option<(Nanos, Nanos)>, sent_at: Nanos) -> Option<(Nanos, Nanos)> {
    Some((span.map_or(sent_at, |(first, _)| first), sent_at))
}
