//! IEEE 802.11, and what capture drivers put before it.

use super::link::{Layer, Step, after, head};
use crate::reader::Skip;

const DATA_FRAME: u8 = 2;

/// A data frame (IEEE 802.11, section 9.3.2.1), down to IEEE 802.2; `padded`: the driver has filled the header up to
/// four bytes.
pub(super) fn dot11(rest: &[u8], padded: bool) -> Step<'_> {
    let header = head(rest, 24)?;
    let (kind, flags) = (header[0], header[1]);
    let (version, class) = (kind & 3, kind >> 2 & 3);
    let (empty, quality) = (kind & 0x40 != 0, kind & 0x80 != 0);
    if version != 0 || class != DATA_FRAME || empty {
        return Err(Skip::NotIp);
    }
    if flags & 0x40 != 0 {
        return Err(Skip::Encrypted);
    }
    if header[22] & 0x0f != 0 {
        return Err(Skip::Fragment);
    }
    let mut length = 24;
    // From one access point to another there is a fourth address.
    length += if flags & 3 == 3 { 6 } else { 0 };
    if quality {
        // Several packets in one (A-MSDU).
        if head(rest, length + 2)?[length] & 0x80 != 0 {
            return Err(Skip::Aggregate);
        }
        length += if flags & 0x80 != 0 { 6 } else { 2 };
    }
    length = if padded { length.next_multiple_of(4) } else { length };
    Ok((Layer::Llc, after(rest, length)?))
}

/// radiotap.org: a length, which fields there are, the fields, each at a multiple of its own size.
pub(super) fn radiotap(rest: &[u8]) -> Step<'_> {
    const PADDED: u8 = 0x20;
    const BAD_CHECKSUM: u8 = 0x40;
    let header = head(rest, 8)?;
    if header[0] != 0 {
        return Err(Skip::NotIp);
    }
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    if length < 8 {
        return Err(Skip::Broken);
    }
    let header = head(rest, length)?;
    let (clock, flagged) = (header[4] & 1 != 0, header[4] & 2 != 0);
    let mut at = 8;
    // More words of which fields there are.
    while header.get(at - 1).is_some_and(|byte| byte & 0x80 != 0) {
        at += 4;
    }
    if clock {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if flagged { *header.get(at).ok_or(Skip::Broken)? } else { 0 };
    if flags & BAD_CHECKSUM != 0 {
        return Err(Skip::Broken);
    }
    dot11(&rest[length..], flags & PADDED != 0)
}

/// The header of Prism cards, or AVS's under the same link type.
pub(super) fn prism(rest: &[u8]) -> Step<'_> {
    const LENGTH: usize = 144;
    if head(rest, 4)?.starts_with(&[0x80, 0x21, 0x10]) {
        return avs(rest);
    }
    dot11(after(rest, LENGTH)?, false)
}

/// AVS: magic, length.
pub(super) fn avs(rest: &[u8]) -> Step<'_> {
    match *head(rest, 8)? {
        [0x80, 0x21, 0x10, _, 0, 0, a, b] => {
            dot11(after(rest, usize::from(u16::from_be_bytes([a, b])))?, false)
        }
        _ => Err(Skip::NotIp),
    }
}

/// Per-packet information: a header with the link type of what follows.
pub(super) fn ppi(rest: &[u8]) -> Step<'_> {
    let header = head(rest, 8)?;
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let rest = after(rest, length.max(8))?;
    match u32::from_le_bytes([header[4], header[5], header[6], header[7]]) {
        1 => Ok((Layer::Ethernet, rest)),
        105 => dot11(rest, false),
        _ => Err(Skip::NotIp),
    }
}
