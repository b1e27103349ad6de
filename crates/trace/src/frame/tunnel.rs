//! Parses IP in IP, GRE, and in UDP: VXLAN, Geneve, GTP-U and MPLS.
//!
//! A tunnel is opened only if all mandatory header fields are valid, because any UDP packet may be
//! sent to such a port. The outer headers do not identify a connection: they differ between
//! directions and packets.

use std::fmt;

use super::ip::{self, IpPayload, Length};
use super::link::{Layer, Version, after, find_ip, head};
use super::{u16_at, u32_at};
use crate::reader::Skip;
use crate::segment::Segment;

/// Maximum nesting of tunnels; more indicates invalid data.
const MAX_NESTED: usize = 8;
/// Ethernet in GRE (RFC 1701), also used by NVGRE (RFC 7637).
const ETHERNET_BRIDGED: u16 = 0x6558;

/// Kind of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    IpInIp,
    Gre,
    Erspan,
    EtherIp,
    Vxlan,
    Geneve,
    Gtp,
    Mpls,
}

/// All kinds, with their common names.
const NAMES: [(Kind, &str); 8] = [
    (Kind::IpInIp, "IP in IP"),
    (Kind::Gre, "GRE"),
    (Kind::Erspan, "ERSPAN"),
    (Kind::EtherIp, "EtherIP"),
    (Kind::Vxlan, "VXLAN"),
    (Kind::Geneve, "Geneve"),
    (Kind::Gtp, "GTP-U"),
    (Kind::Mpls, "MPLS in IP"),
];

/// Set of the tunnel kinds found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnels(u8);

impl Tunnels {
    /// Whether no tunnel was found.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds the kinds of another set.
    pub(crate) fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn add(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }
}

impl fmt::Display for Tunnels {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = NAMES.iter().filter(|(kind, _)| self.0 & 1 << *kind as u8 != 0);
        met.enumerate().try_for_each(|(index, (_, name))| {
            write!(to, "{}{name}", if index > 0 { ", " } else { "" })
        })
    }
}

/// Content of a tunnel.
struct Inner<'a> {
    kind: Kind,
    layer: Layer,
    bytes: &'a [u8],
    /// True for mirrored frames, which may be truncated, so the inner length may exceed the outer
    /// one.
    mirrored: bool,
}

/// Content of a tunnel, or the reason why it is not a tunnel.
type Opened<'a> = Result<Inner<'a>, Skip>;

/// Parses the TCP segment inside the tunnels of a packet. Returns the length of the outermost
/// packet, and the tunnels.
#[cold]
pub(super) fn dissect(
    version: Version,
    packet: &[u8],
    length: Length,
    segment: &mut Segment,
) -> Result<(u32, Tunnels), Skip> {
    let mut outer = ip::payload(version, packet, length)?;
    let (total, mut tunnels, mut fragment) = (outer.total, Tunnels::default(), false);
    for _ in 0..MAX_NESTED {
        let inner = open(&outer)?;
        tunnels.add(inner.kind);
        fragment |= outer.fragment;
        let (version, packet, length) = unwrap(&outer, &inner)?;
        match ip::dissect(version, packet, length, segment) {
            Err(Skip::NotTcp) => outer = ip::payload(version, packet, length)?,
            Err(Skip::NotIp) => return Err(Skip::NotTcp),
            Err(other) => return Err(other),
            Ok(()) if !fragment && !inner.mirrored && exceeds(segment, length) => {
                return Err(Skip::Broken);
            }
            Ok(()) => {
                segment.fragment |= fragment;
                return Ok((total, tunnels));
            }
        }
    }
    Err(Skip::Broken)
}

/// Returns the inner packet and its length bounds.
fn unwrap<'a>(
    outer: &IpPayload<'_>,
    inner: &Inner<'a>,
) -> Result<(Version, &'a [u8], Length), Skip> {
    let inner_packet = find_ip(inner.layer, inner.bytes);
    let (version, packet, max) = inner_packet.map_err(|reason| match reason {
        Skip::NotIp => Skip::NotTcp,
        other => other,
    })?;
    let before = (outer.bytes.len() - packet.len()) as u32;
    Ok((version, packet, Length { original: outer.length.saturating_sub(before), max }))
}

/// Whether the inner packet declares more bytes than the outer packet has.
fn exceeds(segment: &Segment, length: Length) -> bool {
    segment.ip_bytes > length.original
}

fn open<'a>(outer: &IpPayload<'a>) -> Opened<'a> {
    let bytes = outer.bytes;
    match outer.protocol {
        4 => Ok(plain(Kind::IpInIp, Layer::Ip(Version::Four), bytes)),
        41 => Ok(plain(Kind::IpInIp, Layer::Ip(Version::Six), bytes)),
        47 => gre(bytes),
        97 => match head(bytes, 2)? {
            [0x30, _] => Ok(plain(Kind::EtherIp, Layer::Ethernet, &bytes[2..])),
            _ => Err(Skip::NotTcp),
        },
        137 => Ok(plain(Kind::Mpls, Layer::Mpls, bytes)),
        17 => udp(outer),
        _ => Err(Skip::NotTcp),
    }
}

fn plain(kind: Kind, layer: Layer, bytes: &[u8]) -> Inner<'_> {
    Inner { kind, layer, bytes, mirrored: false }
}

/// RFC 2784 with the key and sequence number of RFC 2890; version 1 is PPTP's (RFC 2637).
fn gre(bytes: &[u8]) -> Opened<'_> {
    let (flags, protocol) = (u16_at(head(bytes, 4)?, 0), u16_at(bytes, 2));
    let field = |bit: u16| if flags & bit != 0 { 4 } else { 0 };
    let (checksum, routing, key, sequence) = (0x8000, 0x4000, 0x2000, 0x1000);
    match (flags & 7, protocol) {
        (0, _) if flags & routing != 0 => Err(Skip::NotTcp),
        (0, 0x88be) => {
            // Without a sequence number, ERSPAN type I, which has no header.
            let length = if flags & sequence != 0 { 16 } else { 4 };
            mirrored(bytes, length)
        }
        (0, 0x22eb) => {
            let erspan = after(bytes, 4 + field(sequence))?;
            // ERSPAN type III, with an optional platform-specific header.
            let more = if head(erspan, 12)?[11] & 1 != 0 { 8 } else { 0 };
            mirrored(erspan, 12 + more)
        }
        (0, _) => {
            let rest = after(bytes, 4 + field(checksum) + field(key) + field(sequence))?;
            let layer = match protocol {
                ETHERNET_BRIDGED => Layer::Ethernet,
                // Not an Ethernet type: keepalives, and protocols without IP.
                0..0x0600 => return Err(Skip::NotTcp),
                _ => Layer::Typed(protocol),
            };
            Ok(plain(Kind::Gre, layer, rest))
        }
        (1, 0x880b) if flags & key != 0 => {
            let acknowledgement = 0x0080;
            let rest = after(bytes, 8 + field(sequence) + field(acknowledgement))?;
            Ok(plain(Kind::Gre, Layer::PppFraming, rest))
        }
        _ => Err(Skip::NotTcp),
    }
}

fn mirrored(bytes: &[u8], header: usize) -> Opened<'_> {
    let bytes = after(bytes, header)?;
    Ok(Inner { kind: Kind::Erspan, layer: Layer::Ethernet, bytes, mirrored: true })
}

/// Selects the tunnel by the destination port.
fn udp<'a>(outer: &IpPayload<'a>) -> Opened<'a> {
    let port = u16_at(head(outer.bytes, 8)?, 2);
    let tunnel = match port {
        // 8472: used by Linux before the number was assigned.
        4789 | 8472 => vxlan,
        4790 => vxlan_generic,
        6081 => geneve,
        2152 => gtp,
        6635 => mpls,
        _ => return Err(Skip::NotTcp),
    };
    let length = u32::from(u16_at(outer.bytes, 4));
    // 0 if the packet is too long for the field.
    if length != 0 && (length < 8 || length > outer.length) && !outer.fragment {
        return Err(Skip::NotTcp);
    }
    tunnel(&outer.bytes[8..])
}

/// RFC 7348, section 5: the identifier flag must be set and reserved bits zero; those of Cisco's
/// group policy are not checked.
fn vxlan(bytes: &[u8]) -> Opened<'_> {
    match head(bytes, 8)? {
        [flags, .., 0] if flags & 0x77 == 0 && flags & 8 != 0 => {
            Ok(plain(Kind::Vxlan, Layer::Ethernet, &bytes[8..]))
        }
        _ => Err(Skip::NotTcp),
    }
}

/// draft-ietf-nvo3-vxlan-gpe: the header contains the next protocol.
fn vxlan_generic(bytes: &[u8]) -> Opened<'_> {
    let header = head(bytes, 8)?;
    let layer = match (header[0] & 0xf8, header[0] & 4 != 0, header[3]) {
        (8, true, 1) => Layer::Ip(Version::Four),
        (8, true, 2) => Layer::Ip(Version::Six),
        (8, true, 3) | (8, false, 0) => Layer::Ethernet,
        _ => return Err(Skip::NotTcp),
    };
    Ok(plain(Kind::Vxlan, layer, &bytes[8..]))
}

/// RFC 8926, section 3.4: version 0, not a control packet, valid option length.
fn geneve(bytes: &[u8]) -> Opened<'_> {
    let header = head(bytes, 8)?;
    if header[0] >> 6 != 0 || header[1] & 0xbf != 0 || header[7] != 0 {
        return Err(Skip::NotTcp);
    }
    let options = usize::from(header[0] & 0x3f) * 4;
    let layer = match u16_at(header, 2) {
        ETHERNET_BRIDGED => Layer::Ethernet,
        kind @ (0x0800 | 0x86dd) => Layer::Typed(kind),
        _ => return Err(Skip::NotTcp),
    };
    Ok(plain(Kind::Geneve, layer, after(bytes, 8 + options)?))
}

/// 3GPP TS 29.281, section 5: version 1, G-PDU, optional fields and extension headers.
fn gtp(bytes: &[u8]) -> Opened<'_> {
    const DATA: u8 = 255;
    let header = head(bytes, 8)?;
    if header[0] & 0xf8 != 0x30 || header[1] != DATA {
        return Err(Skip::NotTcp);
    }
    let mut at = 8;
    if header[0] & 7 != 0 {
        let mut next = head(bytes, 12)?[11];
        at = 12;
        while header[0] & 4 != 0 && next != 0 {
            let length = usize::from(head(after(bytes, at)?, 1)?[0]) * 4;
            if length == 0 {
                return Err(Skip::NotTcp);
            }
            next = head(bytes, at + length)?[at + length - 1];
            at += length;
        }
    }
    Ok(plain(Kind::Gtp, Layer::Ip(Version::Either), after(bytes, at)?))
}

/// RFC 7510.
fn mpls(bytes: &[u8]) -> Opened<'_> {
    match u32_at(head(bytes, 4)?, 0) {
        0 => Err(Skip::NotTcp),
        _ => Ok(plain(Kind::Mpls, Layer::Mpls, bytes)),
    }
}
