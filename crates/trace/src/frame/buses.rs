//! Links that few captures have: Netfilter's log and ARCnet.

use super::link::{Layer, Step, Version, after, head};
use crate::reader::Skip;

/// The packet among the attributes of a record (LINKTYPE_NFLOG), whose lengths and types are in the byte order of
/// the machine that captured.
pub(super) fn netfilter_log(rest: &[u8]) -> Step<'_> {
    const PAYLOAD: u16 = 9;
    let mut rest = match head(rest, 4)? {
        [_, 0, ..] => &rest[4..],
        _ => return Err(Skip::NotIp),
    };
    loop {
        let &[a, b, c, d] = head(rest, 4)? else { return Err(Skip::Cut) };
        // Types are small: the byte that is zero is the upper one.
        let read = if d == 0 { u16::from_le_bytes } else { u16::from_be_bytes };
        let (length, kind) = (usize::from(read([a, b])), read([c, d]));
        if length < 4 {
            return Err(Skip::Broken);
        }
        if kind == PAYLOAD {
            return Ok((Layer::Ip(Version::Either), &rest[4..]));
        }
        rest = after(rest, length.next_multiple_of(4))?;
    }
}

/// From the type on: IP as RFC 1201 has it, in fragments, or as RFC 1051, without.
pub(super) fn arcnet(rest: &[u8]) -> Step<'_> {
    const EXCEPTION: u8 = 0xff;
    let kind = head(rest, 1)?[0];
    let layer = match kind {
        240 => return Ok((Layer::Ip(Version::Four), &rest[1..])),
        212 => Layer::Ip(Version::Four),
        196 => Layer::Ip(Version::Six),
        _ => return Err(Skip::NotIp),
    };
    // Split flag and sequence number; after an exception they come once more.
    let (flag, length) = match head(rest, 4)?[1] {
        EXCEPTION => (head(rest, 8)?[5], 8),
        flag => (flag, 4),
    };
    if flag != 0 && flag & 1 == 0 {
        return Err(Skip::Fragment);
    }
    Ok((layer, &rest[length..]))
}
