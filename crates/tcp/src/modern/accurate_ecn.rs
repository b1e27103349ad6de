//! Accurate ECN feedback: RFC 9768, with the choices of Linux 7.0.
//!
//! ```text
//!  receiver: counts marked packets, and bytes by codepoint        sender: counters of the same kind
//!      |                                                              ^
//!      '-- ACE: marked packets modulo 8 in AE, CWR, ECE of each ------'
//!          packet; option: bytes modulo 2^24, on some packets
//! ```
//!
//! If an acknowledgement covers so many packets that ACE may have wrapped, the option decides, and
//! without an option as many packets count as marked as ACE permits.

use tcpcast_link::Ecn;
use tcpcast_link::time::Nanos;

/// Counters of ACE.
const ACE_MASK: u32 = 7;
/// Counters of the option.
const BYTES_MASK: u32 = 0xff_ffff;
/// Initial number of marked packets: section 3.2.1. A middlebox that clears the field is noticed.
const FIRST_CE_PACKETS: u32 = 5;
/// Initial number of bytes with ECT(0), and with ECT(1).
const FIRST_ECT_BYTES: u32 = 1;
/// Marked packets after which an acknowledgement is sent at once: Linux, `TCP_ACCECN_ACE_MAX_DELTA`.
const MAX_PENDING_MARKS: u8 = 6;
/// Bytes of all options of a packet.
const OPTION_SPACE: u32 = 40;
/// Minimum number of packets with the option per round trip: `TCP_ACCECN_BEACON_FREQ_SHIFT`.
const OPTIONS_PER_ROUND: Nanos = 4;
/// Bytes with one codepoint after which the option is sent: 2^22.
const BYTES_PER_OPTION: u32 = 22;
/// ACE counts as wrapped only if the option reports at least half (a shift of 1) of the bytes that
/// the wrap implies: `TCP_ACCECN_SAFETY_SHIFT`.
const SAFETY_SHIFT: u32 = 1;

/// The option with the order EE1B, ECEB, EE0B (kind 174), which Linux sends: section 3.2.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccEcnOption {
    /// Number of fields, from 1 to 3; fields behind them have no meaning.
    pub fields: u8,
    /// Bytes received with ECT(1), with CE and with ECT(0), modulo 2^24 and with their initial
    /// values.
    pub bytes: [u32; 3],
}

impl AccEcnOption {
    /// Length with padding to a multiple of 4.
    #[must_use]
    pub fn padded_bytes(self) -> u32 {
        (2 + 3 * u32::from(self.fields)).next_multiple_of(4)
    }

    fn ce_bytes(self) -> Option<u32> {
        (self.fields >= 2).then_some(self.bytes[1])
    }
}

/// ACE of an answer to a packet of the handshake, which reports its codepoint: tables 2 and 3.
pub(super) fn ace_of_handshake(codepoint: Ecn) -> u8 {
    match codepoint {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// Feedback that a SYN-ACK selects after an offer of accurate ECN: table 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsweredFeedback {
    None,
    Classic,
    Accurate,
}

impl AnsweredFeedback {
    pub fn from_ace(ace: u8) -> Self {
        match ace {
            0 | 7 => Self::None,
            1 | 5 => Self::Classic,
            _ => Self::Accurate,
        }
    }
}

/// Feedback of a receiver.
#[derive(Clone, Debug)]
pub struct ReceivedMarks {
    ce_packets: u32,
    /// Bytes by codepoint, in the order of the option.
    bytes: [u32; 3],
    /// Marked packets since the last acknowledgement.
    pending: u8,
    /// Number of next packets that carry the option, however recently it was sent.
    demanded: u8,
    option_sent_at: Nanos,
    last: Ecn,
    /// Number of fields that include the last codepoint received.
    required: u8,
    /// ACE of the first packet of a client: it acknowledges the SYN-ACK.
    handshake_ace: Option<u8>,
}

impl ReceivedMarks {
    /// Initial counters. `syn_ack`: codepoint of the SYN-ACK that the client received; `None` at the
    /// server.
    pub(super) fn new(syn_ack: Option<Ecn>) -> Self {
        let marked = syn_ack == Some(Ecn::Ce);
        Self {
            ce_packets: FIRST_CE_PACKETS + u32::from(marked),
            bytes: [FIRST_ECT_BYTES, 0, FIRST_ECT_BYTES],
            pending: 0,
            demanded: 2,
            option_sent_at: 0,
            last: Ecn::NotEct,
            required: 1,
            handshake_ace: syn_ack.map(ace_of_handshake),
        }
    }

    /// Counts `packets` of a burst, or one packet, with `len` bytes of data; returns whether an
    /// acknowledgement is due at once.
    pub(super) fn on_packets(&mut self, packets: u32, len: u32, ecn: Ecn) -> bool {
        if ecn == Ecn::Ce {
            self.ce_packets = self.ce_packets.wrapping_add(packets);
            self.pending = self.pending.saturating_add(packets.min(255) as u8);
        }
        let field = match ecn {
            Ecn::Ect1 => 0,
            Ecn::Ce => 1,
            Ecn::Ect0 => 2,
            Ecn::NotEct => 3,
        };
        if let Some(bytes) = self.bytes.get_mut(field).filter(|_| len > 0) {
            let before = *bytes;
            *bytes = bytes.wrapping_add(len);
            self.required = self.required.max(field as u8 + 1);
            if ecn != self.last || (before ^ *bytes) >> BYTES_PER_OPTION != 0 {
                self.demanded = self.demanded.max(1);
            }
        }
        if len > 0 {
            self.last = ecn;
        }
        self.pending >= MAX_PENDING_MARKS
    }

    /// ACE of a packet that is sent now.
    #[inline(always)]
    pub(super) fn take_ace(&mut self) -> u8 {
        self.pending = 0;
        self.handshake_ace.take().unwrap_or((self.ce_packets & ACE_MASK) as u8)
    }

    /// Option of a packet without data that is sent now. `used` is the space of the other options.
    pub(super) fn take_option(
        &mut self,
        now: Nanos,
        srtt: Option<Nanos>,
        used: u32,
    ) -> Option<AccEcnOption> {
        let since = now - self.option_sent_at;
        if self.demanded == 0 && since < srtt.unwrap_or(0) / OPTIONS_PER_ROUND {
            return None;
        }
        let space = OPTION_SPACE.saturating_sub(used);
        let fitting = (1..=3_u8).rev().map(|fields| {
            let bytes = self.bytes.map(|bytes| bytes & BYTES_MASK);
            AccEcnOption { fields, bytes }
        });
        let option = fitting
            .take_while(|option| option.fields >= self.required)
            .find(|option| option.padded_bytes() <= space)?;
        self.demanded = self.demanded.saturating_sub(1);
        self.option_sent_at = now;
        Some(option)
    }

    /// Packets received with CE.
    #[must_use]
    pub fn ce_packets(&self) -> u32 {
        self.ce_packets.wrapping_sub(FIRST_CE_PACKETS)
    }
}

/// Data that an acknowledgement delivers.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewlyDelivered {
    pub packets: u32,
    pub mss: u32,
}

/// What a sender knows of the marks of its packets.
#[derive(Clone, Debug)]
pub struct ReportedMarks {
    ce_packets: u32,
    ce_bytes: u32,
    /// Whether packets are ECN-capable: no middlebox has cleared ACE.
    pub(super) sends_ect: bool,
    /// Whether a packet after the handshake has arrived.
    is_checked: bool,
}

impl ReportedMarks {
    /// A server has received the acknowledgement of its SYN-ACK with this ACE; `None` for a client.
    /// Table 4.
    pub(super) fn new(ace: Option<u8>) -> Self {
        Self {
            ce_packets: FIRST_CE_PACKETS + u32::from(ace == Some(0b110)),
            ce_bytes: 0,
            sends_ect: ace != Some(0),
            is_checked: ace.is_some(),
        }
    }

    /// The first packet after the handshake: section 3.2.2.4.
    #[inline(always)]
    pub(super) fn check_first_packet(&mut self, ace: u8) {
        if !self.is_checked {
            self.is_checked = true;
            self.sends_ect &= ace != 0;
        }
    }

    /// Whether an acknowledgement may report marks, provided that it acknowledges no more than
    /// `packets`.
    #[inline(always)]
    pub(super) fn may_report_marks(&self, ace: u8, packets: u64) -> bool {
        u32::from(ace) != self.ce_packets & ACE_MASK || packets > u64::from(ACE_MASK)
    }

    /// Packets that an acknowledgement newly reports as marked: appendix A.2, and Linux's
    /// `tcp_accecn_process`.
    pub(super) fn on_ack(
        &mut self,
        ace: u8,
        option: Option<AccEcnOption>,
        new: NewlyDelivered,
    ) -> u32 {
        let ce_bytes = option.and_then(AccEcnOption::ce_bytes);
        let added = ce_bytes.map(|bytes| {
            let added = bytes.wrapping_sub(self.ce_bytes) & BYTES_MASK;
            // Fewer than estimated.
            if added > BYTES_MASK / 2 { 0 } else { added }
        });
        let delta = u32::from(ace).wrapping_sub(self.ce_packets) & ACE_MASK;
        let marked = new.resolve_wrap(delta, added);
        self.ce_packets = self.ce_packets.wrapping_add(marked);
        // Without the option, packets are assumed to be full.
        let estimate = self.ce_bytes.wrapping_add(marked * new.mss) & BYTES_MASK;
        self.ce_bytes = ce_bytes.unwrap_or(estimate);
        marked
    }
}

impl NewlyDelivered {
    /// Number of marked packets, which equals `delta` modulo 8. `ce_bytes`: bytes of their data, if
    /// known.
    fn resolve_wrap(self, delta: u32, ce_bytes: Option<u32>) -> u32 {
        let Self { packets, mss } = self;
        if packets <= ACE_MASK {
            return delta;
        }
        let safe = packets - (packets.wrapping_sub(delta) & ACE_MASK);
        match ce_bytes {
            Some(0) => delta,
            Some(bytes) if packets >= 2 * (ACE_MASK + 1) => {
                let delivered = u64::from(packets) * u64::from(mss);
                if delivered <= u64::from(bytes) {
                    return safe;
                }
                let estimated = (u64::from(bytes) * u64::from(packets)).div_ceil(delivered) as u32;
                safe.min(delta + (estimated & !ACE_MASK))
            }
            Some(bytes) if bytes > delta * mss => safe,
            Some(bytes) if bytes < (safe * mss) >> SAFETY_SHIFT => delta,
            _ => safe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn reported(marks: u32) -> ReportedMarks {
        ReportedMarks { ce_packets: marks, ..ReportedMarks::new(Some(0b101)) }
    }

    fn newly(packets: u32) -> NewlyDelivered {
        NewlyDelivered { packets, mss: MSS }
    }

    fn ce_option(bytes: u32) -> Option<AccEcnOption> {
        Some(AccEcnOption { fields: 2, bytes: [1, bytes, 0] })
    }

    #[test]
    fn ace_counts_up_to_seven_packets_exactly() {
        for marked in 0..8 {
            let ace = ((5 + marked) & 7) as u8;
            assert_eq!(reported(5).on_ack(ace, None, newly(7)), marked);
        }
    }

    #[test]
    fn without_option_as_many_packets_as_possible_are_marked() {
        // 9 packets, ACE + 1: 1 or 9 marks; 12 packets: 1 or 9.
        assert_eq!(reported(5).on_ack(6, None, newly(9)), 9);
        assert_eq!(reported(5).on_ack(6, None, newly(12)), 9);
        assert_eq!(reported(5).on_ack(5, None, newly(9)), 8);
    }

    #[test]
    fn option_decides_whether_ace_has_wrapped() {
        assert_eq!(reported(5).on_ack(6, ce_option(MSS), newly(9)), 1);
        assert_eq!(reported(5).on_ack(6, ce_option(9 * MSS), newly(9)), 9);
        assert_eq!(reported(5).on_ack(5, ce_option(0), newly(40)), 0);
        // An estimate from the share of marked bytes: 17 of 40 packets.
        assert_eq!(reported(5).on_ack(6, ce_option(17 * MSS), newly(40)), 17);
        let mut marks = reported(5);
        marks.ce_bytes = BYTES_MASK - 499;
        assert_eq!(marks.on_ack(6, ce_option(500), newly(9)), 1);
        assert_eq!(marks.ce_bytes, 500);
        // Without the option, the bytes are estimated.
        assert_eq!((marks.on_ack(7, None, newly(1)), marks.ce_bytes), (1, 1500));
        assert_eq!((marks.on_ack(7, ce_option(1400), newly(9)), marks.ce_bytes), (0, 1400));
    }

    #[test]
    fn feedback_counts_packets_and_bytes_by_codepoint() {
        let mut marks = ReceivedMarks::new(None);
        assert_eq!(marks.take_ace(), 5);
        for (len, ecn) in
            [(100, Ecn::Ect1), (200, Ecn::Ce), (0, Ecn::Ce), (400, Ecn::Ect0), (800, Ecn::NotEct)]
        {
            assert!(!marks.on_packets(1, len, ecn));
        }
        assert_eq!((marks.take_ace(), marks.ce_packets()), (7, 2));
        assert_eq!(marks.take_option(0, None, 12).unwrap().bytes, [101, 200, 401]);
    }

    #[test]
    fn option_needs_space_and_is_sent_four_times_per_round() {
        let mut marks = ReceivedMarks::new(None);
        assert_eq!(marks.take_option(0, None, 12).unwrap().fields, 3);
        marks.on_packets(1, 1, Ecn::Ce);
        // Two SACK blocks leave space for two fields, three for none.
        assert_eq!(marks.take_option(0, None, 40), None);
        assert_eq!(marks.take_option(0, None, 32).unwrap().fields, 2);
        marks.on_packets(1, 1, Ecn::Ce);
        assert_eq!(marks.take_option(24, Some(100), 12), None);
        assert!(marks.take_option(25, Some(100), 12).is_some());
        // A change of the codepoint.
        marks.on_packets(1, 1, Ecn::Ect0);
        assert!(marks.take_option(26, Some(100), 12).is_some());
        // The third field is required now.
        marks.on_packets(1, 1, Ecn::Ce);
        assert_eq!(marks.take_option(27, Some(100), 32), None);
    }

    #[test]
    fn six_marks_are_acknowledged_at_once() {
        let mut marks = ReceivedMarks::new(None);
        let due: Vec<_> = (0..7).map(|_| marks.on_packets(1, 9, Ecn::Ce)).collect();
        assert_eq!(due, [false, false, false, false, false, true, true]);
    }
}
