//! Parses IP in IP, GRE, and in UDP: VXLAN, Geneve, GTP-U and MPLS.
//!
//! A tunnel is opened only if all mandatory header fields are valid, because any UDP packet may be
//! sent to such a port. The outer headers do not identify a connection: they differ between
//! directions and packets.

use std::fmt;

use super::ip::{self, IpPayload, LengthBounds};
use super::link_layer::{IpVersion, NextLayer, bytes_after, find_ip, first_bytes};
use super::{u16_at, u32_at};
use crate::frame::SkipReason;
use crate::segment::Segment;

/// Maximum nesting of tunnels; more indicates invalid data.
const MAX_NESTED: usize = 8;
/// Ethernet in GRE (RFC 1701), also used by NVGRE (RFC 7637).
const ETHERNET_BRIDGED: u16 = 0x6558;

/// Kind of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelKind {
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
const TUNNEL_NAMES: [(TunnelKind, &str); 8] = [
    (TunnelKind::IpInIp, "IP in IP"),
    (TunnelKind::Gre, "GRE"),
    (TunnelKind::Erspan, "ERSPAN"),
    (TunnelKind::EtherIp, "EtherIP"),
    (TunnelKind::Vxlan, "VXLAN"),
    (TunnelKind::Geneve, "Geneve"),
    (TunnelKind::Gtp, "GTP-U"),
    (TunnelKind::Mpls, "MPLS in IP"),
];

/// Set of the tunnel kinds found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelKinds(u8);

impl TunnelKinds {
    /// Whether no tunnel was found.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds the kinds of another set.
    pub(crate) fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn add_kind(&mut self, kind: TunnelKind) {
        self.0 |= 1 << kind as u8;
    }
}

impl fmt::Display for TunnelKinds {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = TUNNEL_NAMES.iter().filter(|(kind, _)| self.0 & 1 << *kind as u8 != 0);
        met.enumerate().try_for_each(|(index, (_, name))| {
            write!(to, "{}{name}", if index > 0 { ", " } else { "" })
        })
    }
}

/// Content of a tunnel.
struct TunnelContent<'a> {
    kind: TunnelKind,
    layer: NextLayer,
    bytes: &'a [u8],
    /// True for mirrored frames. A mirrored frame may be truncated, so the length in the inner
    /// header may exceed the length in the outer header.
    mirrored: bool,
}

/// Content of a tunnel, or the reason why it is not a tunnel.
type OpenedTunnel<'a> = Result<TunnelContent<'a>, SkipReason>;

/// Parses the TCP segment inside the tunnels of a packet. Returns the length of the outermost
/// packet, and the tunnels.
#[cold]
pub(super) fn dissect_tunnels(
    version: IpVersion,
    packet: &[u8],
    length: LengthBounds,
    segment: &mut Segment,
) -> Result<(u32, TunnelKinds), SkipReason> {
    let mut outer = ip::non_tcp_payload(version, packet, length)?;
    let (total, mut tunnels, mut fragment) = (outer.total, TunnelKinds::default(), false);
    for _ in 0..MAX_NESTED {
        let inner = open_tunnel(&outer)?;
        tunnels.add_kind(inner.kind);
        fragment |= outer.fragment;
        let (version, packet, length) = inner_packet(&outer, &inner)?;
        match ip::dissect_ip(version, packet, length, segment) {
            Err(SkipReason::NotTcp) => outer = ip::non_tcp_payload(version, packet, length)?,
            Err(SkipReason::NotIp) => return Err(SkipReason::NotTcp),
            Err(other) => return Err(other),
            Ok(()) if !fragment && !inner.mirrored && exceeds_outer_packet(segment, length) => {
                return Err(SkipReason::Broken);
            }
            Ok(()) => {
                segment.fragment |= fragment;
                return Ok((total, tunnels));
            }
        }
    }
    Err(SkipReason::Broken)
}

/// Returns the inner packet and its length bounds.
fn inner_packet<'a>(
    outer: &IpPayload<'_>,
    inner: &TunnelContent<'a>,
) -> Result<(IpVersion, &'a [u8], LengthBounds), SkipReason> {
    let inner_packet = find_ip(inner.layer, inner.bytes);
    let (version, packet, max) = inner_packet.map_err(|reason| match reason {
        SkipReason::NotIp => SkipReason::NotTcp,
        other => other,
    })?;
    let before = (outer.bytes.len() - packet.len()) as u32;
    Ok((version, packet, LengthBounds { original: outer.length.saturating_sub(before), max }))
}

/// Whether the inner packet declares more bytes than the outer packet has.
fn exceeds_outer_packet(segment: &Segment, length: LengthBounds) -> bool {
    segment.ip_bytes > length.original
}

fn open_tunnel<'a>(outer: &IpPayload<'a>) -> OpenedTunnel<'a> {
    let bytes = outer.bytes;
    match outer.protocol {
        4 => Ok(tunnel_content(TunnelKind::IpInIp, NextLayer::Ip(IpVersion::Four), bytes)),
        41 => Ok(tunnel_content(TunnelKind::IpInIp, NextLayer::Ip(IpVersion::Six), bytes)),
        47 => open_gre(bytes),
        97 => match first_bytes(bytes, 2)? {
            [0x30, _] => Ok(tunnel_content(TunnelKind::EtherIp, NextLayer::Ethernet, &bytes[2..])),
            _ => Err(SkipReason::NotTcp),
        },
        137 => Ok(tunnel_content(TunnelKind::Mpls, NextLayer::Mpls, bytes)),
        17 => open_udp_tunnel(outer),
        _ => Err(SkipReason::NotTcp),
    }
}

fn tunnel_content(kind: TunnelKind, layer: NextLayer, bytes: &[u8]) -> TunnelContent<'_> {
    TunnelContent { kind, layer, bytes, mirrored: false }
}

/// RFC 2784 with the key and sequence number of RFC 2890; version 1 is PPTP's (RFC 2637).
fn open_gre(bytes: &[u8]) -> OpenedTunnel<'_> {
    let (flags, protocol) = (u16_at(first_bytes(bytes, 4)?, 0), u16_at(bytes, 2));
    let field = |bit: u16| if flags & bit != 0 { 4 } else { 0 };
    let (checksum, routing, key, sequence) = (0x8000, 0x4000, 0x2000, 0x1000);
    match (flags & 7, protocol) {
        (0, _) if flags & routing != 0 => Err(SkipReason::NotTcp),
        (0, 0x88be) => {
            // A packet without a sequence number is ERSPAN type I, which has no header.
            let length = if flags & sequence != 0 { 16 } else { 4 };
            open_erspan(bytes, length)
        }
        (0, 0x22eb) => {
            let erspan = bytes_after(bytes, 4 + field(sequence))?;
            // ERSPAN type III, with an optional platform-specific header.
            let more = if first_bytes(erspan, 12)?[11] & 1 != 0 { 8 } else { 0 };
            open_erspan(erspan, 12 + more)
        }
        (0, _) => {
            let rest = bytes_after(bytes, 4 + field(checksum) + field(key) + field(sequence))?;
            let layer = match protocol {
                ETHERNET_BRIDGED => NextLayer::Ethernet,
                // The field is not an Ethernet type, but shows keepalives or protocols without IP.
                0..0x0600 => return Err(SkipReason::NotTcp),
                _ => NextLayer::Typed(protocol),
            };
            Ok(tunnel_content(TunnelKind::Gre, layer, rest))
        }
        (1, 0x880b) if flags & key != 0 => {
            let acknowledgement = 0x0080;
            let rest = bytes_after(bytes, 8 + field(sequence) + field(acknowledgement))?;
            Ok(tunnel_content(TunnelKind::Gre, NextLayer::PppFraming, rest))
        }
        _ => Err(SkipReason::NotTcp),
    }
}

fn open_erspan(bytes: &[u8], header: usize) -> OpenedTunnel<'_> {
    let bytes = bytes_after(bytes, header)?;
    Ok(TunnelContent {
        kind: TunnelKind::Erspan,
        layer: NextLayer::Ethernet,
        bytes,
        mirrored: true,
    })
}

/// Selects the tunnel by the destination port.
fn open_udp_tunnel<'a>(outer: &IpPayload<'a>) -> OpenedTunnel<'a> {
    let port = u16_at(first_bytes(outer.bytes, 8)?, 2);
    let tunnel = match port {
        // 8472: used by Linux before the number was assigned.
        4789 | 8472 => open_vxlan,
        4790 => open_vxlan_gpe,
        6081 => open_geneve,
        2152 => open_gtp,
        6635 => open_mpls_in_udp,
        _ => return Err(SkipReason::NotTcp),
    };
    let length = u32::from(u16_at(outer.bytes, 4));
    // 0 if the packet is too long for the field.
    if length != 0 && (length < 8 || length > outer.length) && !outer.fragment {
        return Err(SkipReason::NotTcp);
    }
    tunnel(&outer.bytes[8..])
}

/// RFC 7348, section 5: the identifier flag must be set and reserved bits zero; the bits that
/// Cisco's group policy uses are not checked.
fn open_vxlan(bytes: &[u8]) -> OpenedTunnel<'_> {
    match first_bytes(bytes, 8)? {
        [flags, .., 0] if flags & 0x77 == 0 && flags & 8 != 0 => {
            Ok(tunnel_content(TunnelKind::Vxlan, NextLayer::Ethernet, &bytes[8..]))
        }
        _ => Err(SkipReason::NotTcp),
    }
}

/// draft-ietf-nvo3-vxlan-gpe: the header contains the next protocol.
fn open_vxlan_gpe(bytes: &[u8]) -> OpenedTunnel<'_> {
    let header = first_bytes(bytes, 8)?;
    let layer = match (header[0] & 0xf8, header[0] & 4 != 0, header[3]) {
        (8, true, 1) => NextLayer::Ip(IpVersion::Four),
        (8, true, 2) => NextLayer::Ip(IpVersion::Six),
        (8, true, 3) | (8, false, 0) => NextLayer::Ethernet,
        _ => return Err(SkipReason::NotTcp),
    };
    Ok(tunnel_content(TunnelKind::Vxlan, layer, &bytes[8..]))
}

/// RFC 8926, section 3.4: version 0, not a control packet, valid option length.
fn open_geneve(bytes: &[u8]) -> OpenedTunnel<'_> {
    let header = first_bytes(bytes, 8)?;
    if header[0] >> 6 != 0 || header[1] & 0xbf != 0 || header[7] != 0 {
        return Err(SkipReason::NotTcp);
    }
    let options = usize::from(header[0] & 0x3f) * 4;
    let layer = match u16_at(header, 2) {
        ETHERNET_BRIDGED => NextLayer::Ethernet,
        kind @ (0x0800 | 0x86dd) => NextLayer::Typed(kind),
        _ => return Err(SkipReason::NotTcp),
    };
    Ok(tunnel_content(TunnelKind::Geneve, layer, bytes_after(bytes, 8 + options)?))
}

/// 3GPP TS 29.281, section 5: version 1, G-PDU, optional fields and extension headers.
fn open_gtp(bytes: &[u8]) -> OpenedTunnel<'_> {
    const DATA: u8 = 255;
    let header = first_bytes(bytes, 8)?;
    if header[0] & 0xf8 != 0x30 || header[1] != DATA {
        return Err(SkipReason::NotTcp);
    }
    let mut at = 8;
    if header[0] & 7 != 0 {
        let mut next = first_bytes(bytes, 12)?[11];
        at = 12;
        while header[0] & 4 != 0 && next != 0 {
            let length = usize::from(first_bytes(bytes_after(bytes, at)?, 1)?[0]) * 4;
            if length == 0 {
                return Err(SkipReason::NotTcp);
            }
            next = first_bytes(bytes, at + length)?[at + length - 1];
            at += length;
        }
    }
    Ok(tunnel_content(TunnelKind::Gtp, NextLayer::Ip(IpVersion::Either), bytes_after(bytes, at)?))
}

/// RFC 7510.
fn open_mpls_in_udp(bytes: &[u8]) -> OpenedTunnel<'_> {
    match u32_at(first_bytes(bytes, 4)?, 0) {
        0 => Err(SkipReason::NotTcp),
        _ => Ok(tunnel_content(TunnelKind::Mpls, NextLayer::Mpls, bytes)),
    }
}
