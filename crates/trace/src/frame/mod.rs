//! What is in a frame: link, IP and TCP headers.
//!
//! Headers are read where they lie, by what is certain to be there: nothing is copied, and a
//! length is believed only as far as there are bytes. General libraries refuse packets that are
//! cut, do not know of labels of MPLS, sessions of PPPoE and BIG TCP, or build what is not needed.

mod ip;
mod link;
mod options;
mod tcp;
mod tunnel;

pub(crate) use link::Link;
pub use tunnel::Tunnels;

use crate::reader::Skip;
use crate::segment::{Endpoint, Flags, Options, Segment};
use std::net::{IpAddr, Ipv4Addr};

const NOWHERE: Endpoint = Endpoint { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };

/// A segment to be filled in.
pub(crate) const BLANK: Segment = Segment {
    frame: 0,
    time: 0,
    source: NOWHERE,
    destination: NOWHERE,
    ip_id: None,
    ttl: 0,
    ecn: 0,
    ip_bytes: 0,
    payload: 0,
    sequence: 0,
    acknowledgement: 0,
    flags: Flags(0),
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
    cut: false,
};

/// Fills in `segment`, but for number and time, from the bytes that were kept of a frame of
/// `original` bytes. Returns the bytes that the frame must have had, and the tunnels that it came through.
#[inline(always)]
pub(crate) fn dissect(
    link: Link,
    frame: &[u8],
    original: u32,
    segment: &mut Segment,
) -> Result<(u32, Tunnels), Skip> {
    let (version, packet, max) = link::network_layer(link, frame)?;
    let before = (frame.len() - packet.len()) as u32;
    let length = ip::Length { original: original.saturating_sub(before), max };
    let (bytes, tunnels) = match ip::dissect(version, packet, length, segment) {
        Ok(()) => (segment.ip_bytes, Tunnels::default()),
        Err(Skip::NotTcp) => tunnel::dissect(version, packet, length, segment)?,
        Err(other) => return Err(other),
    };
    Ok((before.saturating_add(bytes), tunnels))
}

/// Two bytes in network order.
#[inline(always)]
fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

/// Four bytes in network order.
#[inline(always)]
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}
