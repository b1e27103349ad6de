//! The TCP header (RFC 9293, section 3.1).

use super::tcp_options::read_options;
use super::{u16_at, u32_at};
use crate::frame::SkipReason;
use crate::segment::{Flags, Segment};

/// Length of the fixed header, which must be available.
const MIN_TCP_HEADER: usize = 20;

/// Parses the header. `bytes`: available bytes; `length`: length of the TCP segment.
#[inline(always)]
pub(super) fn dissect_tcp(
    bytes: &[u8],
    length: u32,
    segment: &mut Segment,
) -> Result<(), SkipReason> {
    let Some(header) = bytes.first_chunk::<MIN_TCP_HEADER>() else {
        return Err(if (length as usize) < MIN_TCP_HEADER {
            SkipReason::Broken
        } else {
            SkipReason::Truncated
        });
    };
    let header_length = usize::from(header[12] >> 4) * 4;
    if header_length < MIN_TCP_HEADER || header_length > length as usize {
        return Err(SkipReason::Broken);
    }
    segment.source.port = u16_at(header, 0);
    segment.destination.port = u16_at(header, 2);
    segment.sequence = u32_at(header, 4);
    segment.acknowledgement = u32_at(header, 8);
    segment.flags = Flags(header[13]);
    segment.ae = header[12] & 1 != 0;
    segment.window = u16_at(header, 14);
    segment.payload = length - header_length as u32;
    let kept = &bytes[MIN_TCP_HEADER..header_length.min(bytes.len())];
    segment.options =
        read_options(kept, header_length - MIN_TCP_HEADER, segment.flags.contains_any(Flags::SYN));
    Ok(())
}
