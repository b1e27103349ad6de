//! Parses the link, IP and TCP headers of a frame.
//!
//! Headers are parsed in place, without copying, and lengths are checked against the available
//! bytes. General libraries reject truncated packets, lack MPLS, PPPoE and BIG TCP, or create
//! unneeded objects.

mod ip;
mod link_layer;
mod tcp;
mod tcp_options;
mod tunnel;

pub(crate) use link_layer::LinkType;
pub use tunnel::TunnelKinds;

use crate::segment::{Endpoint, Flags, Options, Segment};
use std::net::{IpAddr, Ipv4Addr};

/// Reason why a frame contains no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The frame contains no IP packet.
    NotIp,
    /// The frame contains IP, but not TCP.
    NotTcp,
    /// A later fragment of a TCP packet, without a TCP header.
    Fragment,
    /// The frame is truncated before the end of the fixed TCP header.
    Truncated,
    /// The headers are inconsistent.
    Broken,
    /// The link type is unknown.
    UnknownLink,
}

const UNSPECIFIED_ENDPOINT: Endpoint =
    Endpoint { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };

/// A segment with default values.
pub(crate) const EMPTY_SEGMENT: Segment = Segment {
    frame: 0,
    time: 0,
    source: UNSPECIFIED_ENDPOINT,
    destination: UNSPECIFIED_ENDPOINT,
    ip_id: None,
    ttl: 0,
    ecn: 0,
    ip_bytes: 0,
    payload: 0,
    sequence: 0,
    acknowledgement: 0,
    flags: Flags(0),
    ae: false,
    window: 0,
    options: NO_OPTIONS,
    fragment: false,
};

const NO_OPTIONS: Options = Options {
    mss: None,
    window_scale: None,
    sack_permitted: false,
    sack: [(0, 0); crate::segment::MAX_SACK_BLOCKS],
    sack_blocks: 0,
    timestamps: None,
    ce_bytes: None,
    cut: false,
};

/// Parses a frame into `segment`, except for its number and time. `original`: length of the frame
/// on the wire. Returns the minimum length of the frame by its headers, and the tunnels found.
#[inline(always)]
pub(crate) fn dissect_frame(
    link: LinkType,
    frame: &[u8],
    original: u32,
    segment: &mut Segment,
) -> Result<(u32, TunnelKinds), SkipReason> {
    let (version, packet, max) = link_layer::find_network_layer(link, frame)?;
    let before = (frame.len() - packet.len()) as u32;
    let length = ip::LengthBounds { original: original.saturating_sub(before), max };
    let (bytes, tunnels) = match ip::dissect_ip(version, packet, length, segment) {
        Ok(()) => (segment.ip_bytes, TunnelKinds::default()),
        Err(SkipReason::NotTcp) => tunnel::dissect_tunnels(version, packet, length, segment)?,
        Err(other) => return Err(other),
    };
    Ok((before.saturating_add(bytes), tunnels))
}

/// Returns the UDP header and payload of a frame without a tunnel, as far as captured.
#[cold]
pub(crate) fn udp_datagram(link: LinkType, frame: &[u8], original: u32) -> Option<&[u8]> {
    const UDP: u8 = 17;
    let (version, packet, max) = link_layer::find_network_layer(link, frame).ok()?;
    let before = (frame.len() - packet.len()) as u32;
    let length = ip::LengthBounds { original: original.saturating_sub(before), max };
    let payload = ip::non_tcp_payload(version, packet, length).ok()?;
    (payload.protocol == UDP && !payload.fragment).then_some(payload.bytes)
}

/// Reads two bytes in network order.
#[inline(always)]
fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

/// Reads four bytes in network order.
#[inline(always)]
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}
