//! Finds the IP header of a frame, one link-layer header per step.

use super::{u16_at, u32_at};
use crate::reader::Skip;

/// Link type of an interface, by its LINKTYPE number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Number of bytes to skip, and the layer that follows.
    Known(usize, Layer),
    /// Unknown link type.
    Unknown(u32),
    /// Interface without a description in the capture.
    Undescribed,
}

/// Next header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Ethernet,
    /// Payload of this Ethernet type.
    Typed(u16),
    /// An Ethernet type and its payload.
    Type,
    /// Linux's cooked capture, version 2: type, 18 other bytes, payload.
    Cooked2,
    /// IEEE 802.2.
    Llc,
    /// Optional address and control bytes, then PPP.
    PppFraming,
    Ppp,
    Pppoe,
    Mpls,
    /// An address family of BSD, in either byte order.
    Family,
    /// IP over InfiniBand (RFC 4391): type, two reserved bytes.
    Infiniband,
    Ip(Version),
}

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Four,
    Six,
    /// Given by the first four bits.
    Either,
}

/// Next layer and the remaining bytes.
pub(super) type Step<'a> = Result<(Layer, &'a [u8]), Skip>;

impl Link {
    /// Returns the link type with this number.
    pub(crate) fn of(number: u32) -> Self {
        let (skipped, layer) = match number {
            0 | 108 => (0, Layer::Family),
            1 => (0, Layer::Ethernet),
            9 | 50 => (0, Layer::PppFraming),
            10 => (13, Layer::Llc),
            12 | 14 | 101 => (0, Layer::Ip(Version::Either)),
            51 => (0, Layer::Pppoe),
            104 => (2, Layer::Type),
            113 => (14, Layer::Type),
            228 => (0, Layer::Ip(Version::Four)),
            229 => (0, Layer::Ip(Version::Six)),
            // After the global route header.
            242 => (40, Layer::Infiniband),
            276 => (0, Layer::Cooked2),
            _ => return Self::Unknown(number),
        };
        Self::Known(skipped, layer)
    }

    /// Whether frame headers contain the interface number, as cooked headers of version 2 do.
    pub(crate) fn has_interface(self) -> bool {
        matches!(self, Self::Known(_, Layer::Cooked2))
    }

    /// Returns the interface number in the frame header.
    #[cold]
    pub(crate) fn interface(self, frame: &[u8]) -> Option<u32> {
        frame.get(4..8).filter(|_| self.has_interface()).map(|four| u32_at(four, 0))
    }
}

/// Finds the IP packet in a frame. Returns the version, the bytes from the IP header on, and the
/// maximum length of the packet by the link layer.
#[inline(always)]
pub(super) fn network_layer(link: Link, frame: &[u8]) -> Result<(Version, &[u8], usize), Skip> {
    match link {
        Link::Known(skipped, layer) => find_ip(layer, after(frame, skipped)?),
        Link::Unknown(_) => Err(Skip::UnknownLink),
        Link::Undescribed => Err(Skip::Broken),
    }
}

/// Finds the IP packet, starting at a layer.
#[inline(always)]
pub(super) fn find_ip(mut layer: Layer, from: &[u8]) -> Result<(Version, &[u8], usize), Skip> {
    let (mut rest, mut end) = (from, usize::MAX);
    // Terminates, because each step consumes bytes or leads to IP.
    loop {
        (layer, rest) = match layer {
            Layer::Ethernet => ethernet(rest)?,
            Layer::Typed(kind) => typed(kind, rest)?,
            Layer::Ip(version) => {
                // Fails if a session declares fewer bytes than its own header.
                let max = end.checked_sub(from.len() - rest.len()).ok_or(Skip::Broken)?;
                return Ok((version, rest, max));
            }
            Layer::Pppoe => {
                let (next, inner, length) = pppoe(rest)?;
                end = from.len() - inner.len() + length;
                (next, inner)
            }
            other => rare_step(other, rest)?,
        };
    }
}

/// Parses rare layers.
#[inline(never)]
fn rare_step(layer: Layer, rest: &[u8]) -> Step<'_> {
    match layer {
        Layer::Type => Ok((Layer::Typed(u16_at(head(rest, 2)?, 0)), &rest[2..])),
        Layer::Cooked2 => Ok((Layer::Typed(u16_at(head(rest, 20)?, 0)), &rest[20..])),
        Layer::Llc => llc(rest),
        Layer::PppFraming => ppp_framing(rest),
        Layer::Ppp => ppp(rest),
        Layer::Mpls => mpls(rest),
        Layer::Family => family(rest),
        Layer::Infiniband => Ok((Layer::Typed(u16_at(head(rest, 4)?, 0)), &rest[4..])),
        Layer::Ethernet | Layer::Typed(_) | Layer::Pppoe | Layer::Ip(_) => Ok((layer, rest)),
    }
}

/// Returns the first `length` bytes.
#[inline(always)]
pub(super) fn head(bytes: &[u8], length: usize) -> Result<&[u8], Skip> {
    bytes.get(..length).ok_or(Skip::Cut)
}

/// Returns the bytes after the first `length`.
#[inline(always)]
pub(super) fn after(bytes: &[u8], length: usize) -> Result<&[u8], Skip> {
    bytes.get(length..).ok_or(Skip::Cut)
}

#[inline(always)]
fn ethernet(rest: &[u8]) -> Step<'_> {
    Ok((Layer::Typed(u16_at(head(rest, 14)?, 12)), &rest[14..]))
}

#[inline(always)]
fn typed(kind: u16, rest: &[u8]) -> Step<'_> {
    match kind {
        0x0800 => Ok((Layer::Ip(Version::Four), rest)),
        0x86dd => Ok((Layer::Ip(Version::Six), rest)),
        // Customer and service tags, and the service tags used before IEEE 802.1ad.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => {
            Ok((Layer::Typed(u16_at(head(rest, 4)?, 2)), &rest[4..]))
        }
        0x8847 | 0x8848 => Ok((Layer::Mpls, rest)),
        0x8864 => Ok((Layer::Pppoe, rest)),
        // Not a type, but the length of an IEEE 802.3 frame.
        0..0x0600 => Ok((Layer::Llc, rest)),
        _ => Err(Skip::NotIp),
    }
}

fn llc(rest: &[u8]) -> Step<'_> {
    match head(rest, 3)? {
        // SNAP with an organisation code that uses Ethernet types.
        [0xaa, 0xaa, 3] => match head(rest, 8)?[3..6] {
            [0, 0, 0] | [0, 0, 0xf8] => Ok((Layer::Typed(u16_at(rest, 6)), &rest[8..])),
            _ => Err(Skip::NotIp),
        },
        [6, 6, 3] => Ok((Layer::Ip(Version::Four), &rest[3..])),
        _ => Err(Skip::NotIp),
    }
}

fn ppp_framing(rest: &[u8]) -> Step<'_> {
    match head(rest, 2)? {
        [0xff, 3] => Ok((Layer::Ppp, &rest[2..])),
        // Cisco's framing under the same link type, followed by an Ethernet type.
        [0x0f | 0x8f, _] => Ok((Layer::Type, &rest[2..])),
        _ => Ok((Layer::Ppp, rest)),
    }
}

fn ppp(rest: &[u8]) -> Step<'_> {
    // A zero upper byte may be omitted; the lower byte is odd (RFC 1661, section 2).
    let (protocol, rest) = match *rest {
        [first, ..] if first & 1 == 1 => (u16::from(first), &rest[1..]),
        _ => (u16_at(head(rest, 2)?, 0), &rest[2..]),
    };
    match protocol {
        0x0021 => Ok((Layer::Ip(Version::Four), rest)),
        0x0057 => Ok((Layer::Ip(Version::Six), rest)),
        0x0281 | 0x0283 => Ok((Layer::Mpls, rest)),
        _ => Err(Skip::NotIp),
    }
}

/// Returns the next layer, its bytes and length. A longer length than the available bytes includes
/// padding (RFC 2516, section 4).
fn pppoe(rest: &[u8]) -> Result<(Layer, &[u8], usize), Skip> {
    match head(rest, 6)? {
        [0x11, 0, .., a, b] => {
            Ok((Layer::Ppp, &rest[6..], usize::from(u16::from_be_bytes([*a, *b]))))
        }
        _ => Err(Skip::NotIp),
    }
}

fn mpls(mut rest: &[u8]) -> Step<'_> {
    const BOTTOM: u32 = 0x100;
    loop {
        let label = u32_at(head(rest, 4)?, 0);
        rest = &rest[4..];
        if label & BOTTOM != 0 {
            break;
        }
    }
    // The label does not show the payload type; like routers, use the first four bits.
    match head(rest, 1)?[0] >> 4 {
        4 => Ok((Layer::Ip(Version::Four), rest)),
        6 => Ok((Layer::Ip(Version::Six), rest)),
        // The control word of a pseudowire (RFC 4385), nearly always Ethernet.
        0 => Ok((Layer::Ethernet, after(rest, 4)?)),
        _ => Err(Skip::NotIp),
    }
}

fn family(rest: &[u8]) -> Step<'_> {
    let value = u32_at(head(rest, 4)?, 0);
    // The byte order of the capturing machine is the one in which the value is small.
    let version = match value.min(value.swap_bytes()) {
        2 => Version::Four,
        // Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 23 | 24 | 28 | 30 => Version::Six,
        _ => return Err(Skip::NotIp),
    };
    Ok((Layer::Ip(version), &rest[4..]))
}
