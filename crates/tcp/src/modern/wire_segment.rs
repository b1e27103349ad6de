//! Segments that connections exchange.

use super::accurate_ecn::AccEcnOption;
use super::segment::{SackBlock, SackBlocks, Timestamps};
use crate::packet_kind::{HEADER_BYTES, TIMESTAMP_BYTES};
use tcpcast_link::Ecn;

/// SACK option with padding, without its blocks, and one block (RFC 2018, section 3).
const SACK_OPTION_BYTES: u32 = 4;
const SACK_BLOCK_BYTES: u32 = 8;

/// Flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SegmentFlags {
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    pub ack: bool,
    pub ae: bool,
    pub ece: bool,
    pub cwr: bool,
    pub psh: bool,
}

impl SegmentFlags {
    /// The field ACE of accurate ECN: RFC 9768, section 3.2.2.
    #[inline(always)]
    #[must_use]
    pub fn ace(self) -> u8 {
        u8::from(self.ae) << 2 | u8::from(self.cwr) << 1 | u8::from(self.ece)
    }

    /// Sets the field ACE.
    #[inline(always)]
    pub fn set_ace(&mut self, ace: u8) {
        (self.ae, self.cwr, self.ece) = (ace & 4 != 0, ace & 2 != 0, ace & 1 != 0);
    }
}

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Maximum segment size; only in SYN.
    pub mss: Option<u32>,
    /// Window scale; only in SYN.
    pub window_scale: Option<u8>,
    /// SACK permitted; only in SYN.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks.
    pub sacks: SackBlocks,
    /// Bytes received by codepoint: accurate ECN.
    pub accurate_ecn: Option<AccEcnOption>,
}

impl SegmentOptions {
    /// Bytes of timestamps and SACK blocks.
    #[must_use]
    pub fn ack_option_bytes(&self) -> u32 {
        let stamps = if self.timestamps.is_some() { TIMESTAMP_BYTES } else { 0 };
        let blocks = self.sacks.as_slice().len() as u32;
        let sacks = if blocks > 0 { SACK_OPTION_BYTES + SACK_BLOCK_BYTES * blocks } else { 0 };
        stamps + sacks
    }
}

/// A segment on the wire. Sequence numbers begin with 0 for SYN in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number.
    pub seq: u64,
    /// Bytes of data.
    pub len: u32,
    /// Acknowledgement number.
    pub ack: u64,
    /// Window field, not scaled. Simulated segments hold windows of any size.
    pub window: u64,
    /// Flags.
    pub flags: SegmentFlags,
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
    /// Messages that a simulated application has sent so far to open its session, without bytes.
    pub messages: u8,
    /// Options.
    pub options: SegmentOptions,
}

impl Segment {
    /// Makes this an empty segment, like the default, without writing to unused SACK blocks.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.copy_from(&Self::default());
    }

    /// Describes a datagram of QUIC: other fields than these are those of an earlier segment, so that
    /// their memory is not touched.
    #[inline(always)]
    pub fn describe_datagram(&mut self, len: u32, ecn: Ecn) {
        (self.len, self.ecn) = (len, ecn);
        (self.flags, self.messages) = (SegmentFlags::default(), 0);
    }

    /// Copies a segment without its unused SACK blocks.
    #[inline(always)]
    pub fn copy_from(&mut self, other: &Self) {
        let Self { seq, len, ack, window, flags, ecn, messages, options } = other;
        (self.seq, self.len, self.ack, self.window) = (*seq, *len, *ack, *window);
        (self.flags, self.ecn, self.messages) = (*flags, *ecn, *messages);
        let SegmentOptions { mss, window_scale, sack_permitted, timestamps, sacks, accurate_ecn } =
            options;
        (self.options.mss, self.options.window_scale) = (*mss, *window_scale);
        self.options.sack_permitted = *sack_permitted;
        self.options.timestamps = *timestamps;
        self.options.sacks.copy_from(sacks);
        self.options.accurate_ecn = *accurate_ecn;
    }

    /// Bytes of an acknowledgement's headers with their options.
    #[must_use]
    pub fn ack_bytes(&self) -> u32 {
        let accurate = self.options.accurate_ecn.map_or(0, AccEcnOption::padded_bytes);
        HEADER_BYTES + self.options.ack_option_bytes() + accurate
    }

    /// Whether `older` is a pure acknowledgement without information that this later segment of the
    /// same connection and direction lacks: what the ack filter of Linux's `sch_cake.c` may drop. It
    /// drops no packet with flag AE or with an option of accurate ECN.
    #[must_use]
    pub fn supersedes(&self, older: &Self) -> bool {
        let only_ack = SegmentFlags { ece: older.flags.ece, cwr: older.flags.cwr, ..PURE_ACK };
        let stamps = |segment: &Self| segment.options.timestamps;
        let is_newer = match (stamps(older), stamps(self)) {
            (Some(before), Some(after)) => before.value <= after.value && before.echo <= after.echo,
            (before, _) => before.is_none(),
        };
        self.flags.ack
            && !self.flags.syn
            && older.options.accurate_ecn.is_none()
            && older.len == 0
            && older.flags == only_ack
            && is_newer
            && older.ack <= self.ack
            && self.sacks_added_to(older).is_some_and(|added| added > 0 || older.ack < self.ack)
    }

    /// Bytes that the SACK blocks report in addition to those of an older acknowledgement; `None` if
    /// a block of the older one is not contained in a block, or reports a duplicate (RFC 2883).
    fn sacks_added_to(&self, older: &Self) -> Option<u64> {
        let (before, after) = (older.options.sacks.as_slice(), self.options.sacks.as_slice());
        let is_kept = |block: &SackBlock| {
            block.start >= older.ack && after.iter().any(|newer| newer.contains(*block))
        };
        let bytes = |blocks: &[SackBlock]| blocks.iter().map(|block| block.end - block.start).sum();
        let (reported, reports): (u64, u64) = (bytes(before), bytes(after));
        before.iter().all(is_kept).then(|| reports.saturating_sub(reported))
    }
}

const PURE_ACK: SegmentFlags = SegmentFlags {
    ack: true,
    syn: false,
    fin: false,
    rst: false,
    psh: false,
    ae: false,
    ece: false,
    cwr: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(ack: u64, sacks: &[(u64, u64)]) -> Segment {
        let sacks = sacks.iter().map(|&(start, end)| SackBlock { start, end }).collect();
        let options = SegmentOptions { sacks, ..SegmentOptions::default() };
        Segment { ack, flags: PURE_ACK, options, ..Segment::default() }
    }

    #[test]
    fn later_acks_supersede_pure_acks_with_less_information() {
        let newer = ack(10, &[(20, 40)]);
        assert!(newer.supersedes(&ack(9, &[])));
        assert!(newer.supersedes(&ack(10, &[(20, 30)])));
        assert!(newer.supersedes(&ack(9, &[(20, 40)])));
        // An ack supersedes neither an equal ack, nor an ack with additional information, nor one
        // that reports a duplicate.
        assert!(!newer.supersedes(&newer));
        assert!(!newer.supersedes(&ack(11, &[])));
        assert!(!newer.supersedes(&ack(9, &[(50, 60)])));
        assert!(!newer.supersedes(&ack(9, &[(5, 8)])));
        // An ack supersedes neither data nor flags. An ack with an older timestamp supersedes
        // nothing.
        assert!(!newer.supersedes(&Segment { len: 1, ..ack(9, &[]) }));
        let fin = SegmentFlags { fin: true, ..PURE_ACK };
        assert!(!newer.supersedes(&Segment { flags: fin, ..ack(9, &[]) }));
        let stamped = |segment: Segment, value| {
            let timestamps = Some(Timestamps { value, echo: 7 });
            Segment { options: SegmentOptions { timestamps, ..segment.options }, ..segment }
        };
        assert!(stamped(newer, 5).supersedes(&stamped(ack(9, &[]), 5)));
        assert!(!stamped(newer, 4).supersedes(&stamped(ack(9, &[]), 5)));
        // Accurate ECN.
        let ace = SegmentFlags { ae: true, ..PURE_ACK };
        assert!(!newer.supersedes(&Segment { flags: ace, ..ack(9, &[]) }));
        let accurate_ecn = Some(AccEcnOption::default());
        let options = SegmentOptions { accurate_ecn, ..SegmentOptions::default() };
        assert!(!newer.supersedes(&Segment { options, ..ack(9, &[]) }));
        // A packet with data acknowledges as well.
        assert!(Segment { len: 1, ..newer }.supersedes(&ack(9, &[])));
    }

    #[test]
    fn length_includes_options() {
        let stamped = SegmentOptions {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..SegmentOptions::default()
        };
        let sacks = [SackBlock::default(); 3].into_iter().collect();
        let bytes = |options| Segment { options, ..Segment::default() }.ack_bytes();
        assert_eq!(bytes(SegmentOptions::default()), 40);
        assert_eq!(bytes(stamped), 52);
        assert_eq!(bytes(SegmentOptions { sacks, ..stamped }), 80);
    }
}
