//! Parses IPv4 and IPv6 headers.

use super::link_layer::IpVersion;
use super::{tcp, u16_at, u32_at};
use crate::frame::SkipReason;
use crate::segment::Segment;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const TCP: u8 = 6;
/// Protocols that may contain another IP packet: IPv4, UDP, IPv6, GRE, Ethernet (RFC 3378), MPLS
/// (RFC 4023).
const TUNNEL_PROTOCOLS: [u8; 6] = [4, 17, 41, 47, 97, 137];

/// Bounds of a packet's length, in addition to its own header.
#[derive(Clone, Copy, Debug)]
pub(super) struct LengthBounds {
    /// Recorded length of the rest of the frame, used if the IP header has no length.
    pub(super) original: u32,
    /// Maximum by the link layer.
    pub(super) max: usize,
}

impl LengthBounds {
    fn limit_to_bounds(self, total: u32) -> u32 {
        u32::try_from(self.max).map_or(total, |max| total.min(max))
    }
}

/// Parses the IP and TCP headers.
#[inline(always)]
pub(super) fn dissect_ip(
    version: IpVersion,
    packet: &[u8],
    length: LengthBounds,
    segment: &mut Segment,
) -> Result<(), SkipReason> {
    let Some(first) = packet.first() else {
        return Err(SkipReason::Truncated);
    };
    match (first >> 4, version) {
        (4, IpVersion::Four | IpVersion::Either) => dissect_ipv4(packet, length, segment),
        (6, IpVersion::Six | IpVersion::Either) => dissect_ipv6(packet, length, segment),
        (_, IpVersion::Either) => Err(SkipReason::NotIp),
        _ => Err(SkipReason::Broken),
    }
}

#[inline(always)]
fn dissect_ipv4(
    packet: &[u8],
    length: LengthBounds,
    segment: &mut Segment,
) -> Result<(), SkipReason> {
    let Some(header) = packet.first_chunk::<20>() else {
        return Err(SkipReason::Truncated);
    };
    let header_length = usize::from(header[0] & 0xf) * 4;
    let total = match u16_at(header, 2) {
        // BIG TCP, or a frame before segmentation offload: the length does not fit into the field.
        0 => length.original,
        total => length.limit_to_bounds(u32::from(total)),
    };
    if header_length < 20 || (total as usize) < header_length {
        return Err(SkipReason::Broken);
    }
    if header[9] != TCP {
        return Err(SkipReason::NotTcp);
    }
    let fragment = u16_at(header, 6);
    if fragment & 0x1fff != 0 {
        return Err(SkipReason::Fragment);
    }
    segment.fragment = fragment & 0x2000 != 0;
    segment.ip_id = Some(u16_at(header, 4));
    segment.ecn = header[1] & 3;
    segment.ttl = header[8];
    segment.ip_bytes = total;
    let address = |at: usize| IpAddr::V4(Ipv4Addr::from(u32_at(header, at)));
    segment.source.address = address(12);
    segment.destination.address = address(16);
    // The rest is padding of the link layer.
    let kept = &packet[..packet.len().min(total as usize)];
    let rest = kept.get(header_length..).ok_or(SkipReason::Truncated)?;
    tcp::dissect_tcp(rest, total - header_length as u32, segment)
}

fn dissect_ipv6(
    packet: &[u8],
    length: LengthBounds,
    segment: &mut Segment,
) -> Result<(), SkipReason> {
    let Some(header) = packet.first_chunk::<40>() else {
        return Err(SkipReason::Truncated);
    };
    let mut walk = ExtensionHeaderWalk::new(header, length);
    while walk.next != TCP {
        walk.skip_header(packet)?;
    }
    if walk.at > walk.total as usize {
        return Err(SkipReason::Broken);
    }
    segment.fragment = walk.fragment;
    segment.ip_id = None;
    segment.ecn = header[1] >> 4 & 3;
    segment.ttl = header[7];
    segment.ip_bytes = walk.total;
    segment.source.address = ipv6_address(&packet[8..]);
    segment.destination.address = ipv6_address(&packet[24..]);
    let kept = &packet[..packet.len().min(walk.total as usize)];
    let rest = kept.get(walk.at..).ok_or(SkipReason::Truncated)?;
    tcp::dissect_tcp(rest, walk.total - walk.at as u32, segment)
}

/// Payload of an IP packet other than TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct IpPayload<'a> {
    /// Protocol number.
    pub(super) protocol: u8,
    /// Available bytes.
    pub(super) bytes: &'a [u8],
    /// Length of the payload, bytes.
    pub(super) length: u32,
    /// Length of the IP packet, bytes.
    pub(super) total: u32,
    /// True if the packet is fragmented.
    pub(super) fragment: bool,
}

/// Returns the payload of a packet in which [`dissect_ip`] found no TCP. Only the first fragment of
/// a packet is parsed.
pub(super) fn non_tcp_payload(
    version: IpVersion,
    packet: &[u8],
    length: LengthBounds,
) -> Result<IpPayload<'_>, SkipReason> {
    let (at, total, protocol, fragment) = match (packet.first_chunk::<40>(), packet) {
        (Some(header), _) if version == IpVersion::Six || header[0] >> 4 == 6 => {
            let mut walk = ExtensionHeaderWalk::new(header, length);
            while !TUNNEL_PROTOCOLS.contains(&walk.next) {
                walk.skip_header(packet)?;
            }
            (walk.at, walk.total, walk.next, walk.fragment)
        }
        (_, [first, ..]) if first >> 4 == 4 && packet.len() >= 20 => {
            let total = match u16_at(packet, 2) {
                0 => length.original,
                total => length.limit_to_bounds(u32::from(total)),
            };
            if u16_at(packet, 6) & 0x1fff != 0 {
                return Err(SkipReason::NotTcp);
            }
            let fragment = u16_at(packet, 6) & 0x2000 != 0;
            (usize::from(first & 0xf) * 4, total, packet[9], fragment)
        }
        _ => return Err(SkipReason::Truncated),
    };
    let left = total.checked_sub(at as u32).ok_or(SkipReason::Broken)?;
    let kept = &packet[..packet.len().min(total as usize)];
    let bytes = kept.get(at..).ok_or(SkipReason::Truncated)?;
    Ok(IpPayload { protocol, bytes, length: left, total, fragment })
}

fn ipv6_address(bytes: &[u8]) -> IpAddr {
    let bytes = bytes.first_chunk().copied().unwrap_or_default();
    IpAddr::V6(Ipv6Addr::from_bits(u128::from_be_bytes(bytes)))
}

/// Iterates over the extension headers (RFC 8200, section 4).
struct ExtensionHeaderWalk {
    /// Type of the header at `at`.
    next: u8,
    at: usize,
    /// Length of the packet, bytes.
    total: u32,
    /// The length field is zero, so a jumbo option may contain the length (RFC 2675).
    jumbo: bool,
    fragment: bool,
}

impl ExtensionHeaderWalk {
    fn new(header: &[u8; 40], length: LengthBounds) -> Self {
        Self {
            next: header[6],
            at: 40,
            total: match u16_at(header, 4) {
                0 => length.original.max(40),
                payload => length.limit_to_bounds(40 + u32::from(payload)),
            },
            jumbo: u16_at(header, 4) == 0,
            fragment: false,
        }
    }

    /// Skips one header of at least eight bytes.
    fn skip_header(&mut self, packet: &[u8]) -> Result<(), SkipReason> {
        const HOP_BY_HOP: u8 = 0;
        let header = packet.get(self.at..).unwrap_or_default();
        let length = match self.next {
            // Routing, destination, mobility, HIP, Shim6, and two experimental types.
            HOP_BY_HOP | 43 | 60 | 135 | 139 | 140 | 253 | 254 => {
                8 + 8 * usize::from(*header.get(1).ok_or(self.missing_bytes_reason(2))?)
            }
            44 => 8,
            51 => 8 + 4 * usize::from(*header.get(1).ok_or(self.missing_bytes_reason(2))?),
            _ => return Err(SkipReason::NotTcp), // the payload begins here
        };
        let header = header.get(..length).ok_or(self.missing_bytes_reason(length))?;
        if self.next == HOP_BY_HOP && self.jumbo {
            self.read_jumbo_length(&header[2..])?;
        }
        if self.next == 44 {
            let fragment = u16_at(header, 2);
            if fragment & 0xfff8 != 0 {
                return Err(if header[0] == TCP {
                    SkipReason::Fragment
                } else {
                    SkipReason::NotTcp
                });
            }
            self.fragment = fragment & 1 != 0;
        }
        self.next = header[0];
        self.at += length;
        Ok(())
    }

    /// Returns the reason why `length` bytes are missing: the capture is truncated, or the packet
    /// is inconsistent.
    fn missing_bytes_reason(&self, length: usize) -> SkipReason {
        if self.at + length > self.total as usize {
            SkipReason::Broken
        } else {
            SkipReason::Truncated
        }
    }

    fn read_jumbo_length(&mut self, mut options: &[u8]) -> Result<(), SkipReason> {
        const JUMBO: u8 = 0xc2;
        loop {
            match options {
                [0, rest @ ..] => options = rest,
                [JUMBO, 4, rest @ ..] if rest.len() >= 4 => {
                    // Only the sending host creates such packets, and knows their length.
                    let total = u64::from(u32_at(rest, 0)) + 40;
                    if total > u64::from(self.total) {
                        return Err(SkipReason::Broken);
                    }
                    self.total = total as u32;
                    return Ok(());
                }
                [_, length, rest @ ..] => {
                    options = rest.get(usize::from(*length)..).ok_or(SkipReason::Broken)?;
                }
                _ => return Ok(()),
            }
        }
    }
}
