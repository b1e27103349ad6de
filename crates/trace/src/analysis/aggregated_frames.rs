//! Frames of several packets: segmentation offload aggregates packets in the host before
//! transmission or after reception. Counters count packets; in time, a frame is one event.

use super::flow::Flow;
use crate::segment::Segment;

/// Largest payload of a packet in a standard Ethernet frame. A larger payload is a jumbo frame or
/// several packets.
pub(crate) const MAX_ETHERNET_PAYLOAD: u32 = 1460;
/// Payloads of full packets in Ethernet frames: IPv4 and IPv6, with and without timestamps.
const COMMON_FULL_PAYLOADS: [u32; 4] = [1448, 1460, 1428, 1440];

/// Returns the payload of a full packet of this direction.
pub(crate) fn full_payload_by_mss(segment: &Segment, mss: u16) -> u32 {
    // The MSS does not include the options of a segment (RFC 6691).
    let options = if segment.options.timestamps.is_some() { 12 } else { 0 };
    u32::from(mss.saturating_sub(options))
}

/// Returns the payload of a full packet, if the payload of a frame that is larger than a packet in
/// Ethernet is a multiple of a common one.
pub(crate) fn infer_full_payload(segment: &Segment) -> Option<u32> {
    let divides = |full: &&u32| segment.payload % **full == 0;
    COMMON_FULL_PAYLOADS.iter().find(divides).copied()
}

impl Flow {
    /// Returns the number of packets in the frame. `mss`: largest segment that the receiver
    /// accepts, if known.
    #[inline]
    pub(super) fn count_packets_in_frame(&mut self, segment: &Segment, mss: Option<u16>) -> u64 {
        match mss {
            Some(mss) if segment.payload > u32::from(mss) => {
                self.count_aggregated_frame(segment, full_payload_by_mss(segment, mss))
            }
            None if segment.payload > MAX_ETHERNET_PAYLOAD => {
                self.count_packets_without_mss(segment)
            }
            _ => 1,
        }
    }

    /// Returns the number of packets if the MSS is unknown, because the SYNs are missing.
    #[cold]
    fn count_packets_without_mss(&mut self, segment: &Segment) -> u64 {
        if self.inferred_full == 0 {
            self.inferred_full = infer_full_payload(segment).unwrap_or(0);
        }
        match self.inferred_full {
            0 => 1,
            full => self.count_aggregated_frame(segment, full),
        }
    }

    /// Counts a frame of packets with `full` bytes of payload and returns the number of packets.
    fn count_aggregated_frame(&mut self, segment: &Segment, full: u32) -> u64 {
        self.counts.super_segments += 1;
        self.largest = self.largest.max(full);
        let packets = u64::from(segment.payload.div_ceil(full.max(1)));
        self.counts.packets += packets - 1;
        self.counts.aggregated += packets - 1;
        packets
    }
}
