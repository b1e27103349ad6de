//! Finds the IP header of a frame, one link-layer header per step.

use super::{u16_at, u32_at};
use crate::frame::SkipReason;

/// Link type of an interface, by its LINKTYPE number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkType {
    /// Number of bytes to skip, and the layer that follows.
    Known(usize, NextLayer),
    /// Unknown link type.
    Unknown(u32),
    /// Interface without a description in the capture.
    Undescribed,
}

/// Next header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextLayer {
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
    Ip(IpVersion),
}

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpVersion {
    Four,
    Six,
    /// Given by the first four bits.
    Either,
}

/// Next layer and the remaining bytes.
pub(super) type ParsedLayer<'a> = Result<(NextLayer, &'a [u8]), SkipReason>;

impl LinkType {
    /// Returns the link type with this number.
    pub(crate) fn from_number(number: u32) -> Self {
        let (skipped, layer) = match number {
            0 | 108 => (0, NextLayer::Family),
            1 => (0, NextLayer::Ethernet),
            9 | 50 => (0, NextLayer::PppFraming),
            10 => (13, NextLayer::Llc),
            12 | 14 | 101 => (0, NextLayer::Ip(IpVersion::Either)),
            51 => (0, NextLayer::Pppoe),
            104 => (2, NextLayer::Type),
            113 => (14, NextLayer::Type),
            228 => (0, NextLayer::Ip(IpVersion::Four)),
            229 => (0, NextLayer::Ip(IpVersion::Six)),
            // The header follows the global route header of 40 bytes.
            242 => (40, NextLayer::Infiniband),
            276 => (0, NextLayer::Cooked2),
            _ => return Self::Unknown(number),
        };
        Self::Known(skipped, layer)
    }

    /// Whether frame headers contain the interface number, as cooked headers of version 2 do.
    pub(crate) fn has_interface(self) -> bool {
        matches!(self, Self::Known(_, NextLayer::Cooked2))
    }

    /// Returns the interface number in the frame header.
    #[cold]
    pub(crate) fn interface_number(self, frame: &[u8]) -> Option<u32> {
        frame.get(4..8).filter(|_| self.has_interface()).map(|four| u32_at(four, 0))
    }
}

/// Finds the IP packet in a frame. Returns the version, the bytes from the IP header on, and the
/// maximum length of the packet by the link layer.
#[inline(always)]
pub(super) fn find_network_layer(
    link: LinkType,
    frame: &[u8],
) -> Result<(IpVersion, &[u8], usize), SkipReason> {
    match link {
        LinkType::Known(skipped, layer) => find_ip(layer, bytes_after(frame, skipped)?),
        LinkType::Unknown(_) => Err(SkipReason::UnknownLink),
        LinkType::Undescribed => Err(SkipReason::Broken),
    }
}

/// Finds the IP packet, starting at a layer.
#[inline(always)]
pub(super) fn find_ip(
    mut layer: NextLayer,
    from: &[u8],
) -> Result<(IpVersion, &[u8], usize), SkipReason> {
    let (mut rest, mut end) = (from, usize::MAX);
    // Terminates, because each step consumes bytes or leads to IP.
    loop {
        (layer, rest) = match layer {
            NextLayer::Ethernet => parse_ethernet(rest)?,
            NextLayer::Typed(kind) => layer_of_ethertype(kind, rest)?,
            NextLayer::Ip(version) => {
                // Fails if a session declares fewer bytes than its own header.
                let max = end.checked_sub(from.len() - rest.len()).ok_or(SkipReason::Broken)?;
                return Ok((version, rest, max));
            }
            NextLayer::Pppoe => {
                let (next, inner, length) = parse_pppoe(rest)?;
                end = from.len() - inner.len() + length;
                (next, inner)
            }
            other => parse_rare_layer(other, rest)?,
        };
    }
}

/// Parses rare layers.
#[inline(never)]
fn parse_rare_layer(layer: NextLayer, rest: &[u8]) -> ParsedLayer<'_> {
    match layer {
        NextLayer::Type => Ok((NextLayer::Typed(u16_at(first_bytes(rest, 2)?, 0)), &rest[2..])),
        NextLayer::Cooked2 => {
            Ok((NextLayer::Typed(u16_at(first_bytes(rest, 20)?, 0)), &rest[20..]))
        }
        NextLayer::Llc => parse_llc(rest),
        NextLayer::PppFraming => parse_ppp_framing(rest),
        NextLayer::Ppp => parse_ppp(rest),
        NextLayer::Mpls => parse_mpls(rest),
        NextLayer::Family => parse_address_family(rest),
        NextLayer::Infiniband => {
            Ok((NextLayer::Typed(u16_at(first_bytes(rest, 4)?, 0)), &rest[4..]))
        }
        NextLayer::Ethernet | NextLayer::Typed(_) | NextLayer::Pppoe | NextLayer::Ip(_) => {
            Ok((layer, rest))
        }
    }
}

/// Returns the first `length` bytes.
#[inline(always)]
pub(super) fn first_bytes(bytes: &[u8], length: usize) -> Result<&[u8], SkipReason> {
    bytes.get(..length).ok_or(SkipReason::Truncated)
}

/// Returns the bytes after the first `length`.
#[inline(always)]
pub(super) fn bytes_after(bytes: &[u8], length: usize) -> Result<&[u8], SkipReason> {
    bytes.get(length..).ok_or(SkipReason::Truncated)
}

#[inline(always)]
fn parse_ethernet(rest: &[u8]) -> ParsedLayer<'_> {
    Ok((NextLayer::Typed(u16_at(first_bytes(rest, 14)?, 12)), &rest[14..]))
}

#[inline(always)]
fn layer_of_ethertype(kind: u16, rest: &[u8]) -> ParsedLayer<'_> {
    match kind {
        0x0800 => Ok((NextLayer::Ip(IpVersion::Four), rest)),
        0x86dd => Ok((NextLayer::Ip(IpVersion::Six), rest)),
        // Customer and service tags, and the service tags used before IEEE 802.1ad.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => {
            Ok((NextLayer::Typed(u16_at(first_bytes(rest, 4)?, 2)), &rest[4..]))
        }
        0x8847 | 0x8848 => Ok((NextLayer::Mpls, rest)),
        0x8864 => Ok((NextLayer::Pppoe, rest)),
        // The field is not a type, but the length of an IEEE 802.3 frame.
        0..0x0600 => Ok((NextLayer::Llc, rest)),
        _ => Err(SkipReason::NotIp),
    }
}

fn parse_llc(rest: &[u8]) -> ParsedLayer<'_> {
    match first_bytes(rest, 3)? {
        // SNAP with an organisation code that uses Ethernet types.
        [0xaa, 0xaa, 3] => match first_bytes(rest, 8)?[3..6] {
            [0, 0, 0] | [0, 0, 0xf8] => Ok((NextLayer::Typed(u16_at(rest, 6)), &rest[8..])),
            _ => Err(SkipReason::NotIp),
        },
        [6, 6, 3] => Ok((NextLayer::Ip(IpVersion::Four), &rest[3..])),
        _ => Err(SkipReason::NotIp),
    }
}

fn parse_ppp_framing(rest: &[u8]) -> ParsedLayer<'_> {
    match first_bytes(rest, 2)? {
        [0xff, 3] => Ok((NextLayer::Ppp, &rest[2..])),
        // Cisco's framing under the same link type, followed by an Ethernet type.
        [0x0f | 0x8f, _] => Ok((NextLayer::Type, &rest[2..])),
        _ => Ok((NextLayer::Ppp, rest)),
    }
}

fn parse_ppp(rest: &[u8]) -> ParsedLayer<'_> {
    // A zero upper byte may be omitted; the lower byte is odd (RFC 1661, section 2).
    let (protocol, rest) = match *rest {
        [first, ..] if first & 1 == 1 => (u16::from(first), &rest[1..]),
        _ => (u16_at(first_bytes(rest, 2)?, 0), &rest[2..]),
    };
    match protocol {
        0x0021 => Ok((NextLayer::Ip(IpVersion::Four), rest)),
        0x0057 => Ok((NextLayer::Ip(IpVersion::Six), rest)),
        0x0281 | 0x0283 => Ok((NextLayer::Mpls, rest)),
        _ => Err(SkipReason::NotIp),
    }
}

/// Returns the next layer, its bytes and length. A longer length than the available bytes includes
/// padding (RFC 2516, section 4).
fn parse_pppoe(rest: &[u8]) -> Result<(NextLayer, &[u8], usize), SkipReason> {
    match first_bytes(rest, 6)? {
        [0x11, 0, .., a, b] => {
            Ok((NextLayer::Ppp, &rest[6..], usize::from(u16::from_be_bytes([*a, *b]))))
        }
        _ => Err(SkipReason::NotIp),
    }
}

fn parse_mpls(mut rest: &[u8]) -> ParsedLayer<'_> {
    const BOTTOM: u32 = 0x100;
    loop {
        let label = u32_at(first_bytes(rest, 4)?, 0);
        rest = &rest[4..];
        if label & BOTTOM != 0 {
            break;
        }
    }
    // The label does not show the payload type; like routers, use the first four bits.
    match first_bytes(rest, 1)?[0] >> 4 {
        4 => Ok((NextLayer::Ip(IpVersion::Four), rest)),
        6 => Ok((NextLayer::Ip(IpVersion::Six), rest)),
        // The control word of a pseudowire (RFC 4385), nearly always Ethernet.
        0 => Ok((NextLayer::Ethernet, bytes_after(rest, 4)?)),
        _ => Err(SkipReason::NotIp),
    }
}

fn parse_address_family(rest: &[u8]) -> ParsedLayer<'_> {
    let value = u32_at(first_bytes(rest, 4)?, 0);
    // The capturing machine has the byte order in which the value is small.
    let version = match value.min(value.swap_bytes()) {
        2 => IpVersion::Four,
        // Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 23 | 24 | 28 | 30 => IpVersion::Six,
        _ => return Err(SkipReason::NotIp),
    };
    Ok((NextLayer::Ip(version), &rest[4..]))
}
