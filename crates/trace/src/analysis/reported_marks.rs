//! Marks that accurate ECN reports: RFC 9768, section 3.2.

use crate::segment::Segment;

/// Last values of the counters in acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedMarks {
    ace: u8,
    bytes: u32,
}

impl Default for ReportedMarks {
    /// Initial values: section 3.2.
    fn default() -> Self {
        Self { ace: 5, bytes: 0 }
    }
}

impl ReportedMarks {
    /// Packets and bytes that an acknowledgement newly reports as marked.
    pub(super) fn on_ack(&mut self, segment: &Segment) -> (u64, u64) {
        let packets = segment.ace().wrapping_sub(self.ace) & 7;
        self.ace = segment.ace();
        let Some(bytes) = segment.options.ce_bytes else { return (packets.into(), 0) };
        let added = bytes.wrapping_sub(self.bytes) & 0xff_ffff;
        // An acknowledgement that was overtaken reports less.
        if added >= 1 << 23 {
            return (packets.into(), 0);
        }
        self.bytes = bytes;
        (packets.into(), added.into())
    }
}
