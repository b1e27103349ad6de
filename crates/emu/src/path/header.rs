//! Reads the IP header fields that a link needs, and sets the ECN mark.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpcast_link::Ecn;
use tcpcast_link::random::mix_bits;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;

/// Header fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Destination address.
    pub destination: IpAddr,
    /// Hash of addresses, protocol and ports. Fragments have no ports, so ports are omitted for all
    /// fragments of a packet.
    pub flow: u32,
    /// Hashes of the source and destination address.
    pub hosts: [u32; 2],
    /// Differentiated services codepoint (RFC 2474).
    pub dscp: u8,
    /// ECN codepoint.
    pub ecn: Ecn,
}

impl IpHeader {
    /// Parses an IPv4 or IPv6 packet; `None` for other or truncated packets.
    #[must_use]
    pub fn parse_ip(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 if packet.len() >= IPV4_HEADER_BYTES => Some(Self::parse_ipv4(packet)),
            6 if packet.len() >= IPV6_HEADER_BYTES => Some(Self::parse_ipv6(packet)),
            _ => None,
        }
    }

    fn parse_ipv4(packet: &[u8]) -> Self {
        let address = |at: usize| read_word(packet, at);
        let (source, destination) = (address(12), address(16));
        let protocol = packet[9];
        let is_fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
        let ports =
            if is_fragment { 0 } else { read_ports(packet, ipv4_header_bytes(packet), protocol) };
        let addresses = u64::from(source) << 32 | u64::from(destination);
        Self {
            destination: Ipv4Addr::from(destination).into(),
            flow: hash_flow(&[addresses, u64::from(protocol) << 32 | u64::from(ports)]),
            hosts: [source, destination].map(|host| hash_flow(&[u64::from(host)])),
            dscp: packet[1] >> 2,
            ecn: Ecn::from_bits(packet[1]),
        }
    }

    fn parse_ipv6(packet: &[u8]) -> Self {
        let pair = |at: usize| {
            u64::from(read_word(packet, at)) << 32 | u64::from(read_word(packet, at + 4))
        };
        let protocol = packet[6];
        // If extension headers precede the ports, the flow label identifies the flow.
        let label = u64::from(read_word(packet, 0) & 0x000f_ffff);
        let ports = u64::from(read_ports(packet, IPV6_HEADER_BYTES, protocol));
        let rest = [u64::from(protocol), if ports == 0 { label } else { ports }];
        let flow = hash_flow(&[pair(8), pair(16), pair(24), pair(32), rest[0], rest[1]]);
        let to = u128::from(pair(24)) << 64 | u128::from(pair(32));
        Self {
            destination: Ipv6Addr::from(to).into(),
            flow,
            hosts: [8, 24].map(|at| hash_flow(&[pair(at), pair(at + 8)])),
            dscp: (read_word(packet, 0) >> 22) as u8 & 63,
            ecn: Ecn::from_bits(packet[1] >> 4),
        }
    }
}

pub(super) fn read_word(packet: &[u8], start: usize) -> u32 {
    u32::from_be_bytes([packet[start], packet[start + 1], packet[start + 2], packet[start + 3]])
}

fn ipv4_header_bytes(packet: &[u8]) -> usize {
    usize::from(packet[0] & 15) * 4
}

fn read_ports(packet: &[u8], start: usize, protocol: u8) -> u32 {
    let has_ports = matches!(protocol, PROTOCOL_TCP | PROTOCOL_UDP) && packet.len() >= start + 4;
    if has_ports { read_word(packet, start) } else { 0 }
}

fn hash_flow(words: &[u64]) -> u32 {
    (words.iter().fold(0, |hash, word| mix_bits(hash ^ word)) >> 32) as u32
}

/// Sets the ECN codepoint of an IP packet (RFC 3168, section 5), and updates the checksum of an IPv4
/// header (RFC 1624, eqn. 3).
pub fn set_codepoint(packet: &mut [u8], ecn: Ecn) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= IPV4_HEADER_BYTES && packet[1] & 3 != ecn as u8 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] = packet[1] & !3 | ecn as u8;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            let mut new = u32::from(!sum) + u32::from(!before) + u32::from(after);
            new = (new & 0xffff) + (new >> 16);
            new = (new & 0xffff) + (new >> 16);
            packet[10..12].copy_from_slice(&(!(new as u16)).to_be_bytes());
        }
        Some(6) if packet.len() >= IPV6_HEADER_BYTES => {
            packet[1] = packet[1] & !(3 << 4) | (ecn as u8) << 4;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpcast_wire::ZeroPayloadSegment;

    fn segment(source_port: u16, codepoint: u8) -> Vec<u8> {
        ZeroPayloadSegment {
            source: [10, 0, 0, 1],
            destination: [10, 128, 0, 1],
            source_port,
            destination_port: 80,
            codepoint,
            identification: 0xbeef,
            ..ZeroPayloadSegment::default()
        }
        .encode_headers()
    }

    fn sum(packet: &[u8]) -> u32 {
        let words = packet[..20].chunks(2);
        let sum: u32 = words.map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        (sum & 0xffff) + (sum >> 16)
    }

    #[test]
    fn flow_depends_on_addresses_protocol_and_ports() {
        let of = |port| IpHeader::parse_ip(&segment(port, 2)).unwrap();
        assert_eq!(of(1).destination, Ipv4Addr::new(10, 128, 0, 1));
        assert_eq!((of(1).flow, of(1).ecn), (of(1).flow, Ecn::Ect0));
        assert_ne!(of(1).flow, of(2).flow);
        let mut udp = segment(1, 0);
        udp[9] = PROTOCOL_UDP;
        assert_ne!(IpHeader::parse_ip(&udp).unwrap().flow, of(1).flow);
    }

    #[test]
    fn hosts_and_codepoint_are_those_of_the_header() {
        let header = IpHeader::parse_ip(&segment(1, 46 << 2 | 2)).unwrap();
        let other = IpHeader::parse_ip(&segment(2, 0)).unwrap();
        assert_eq!((header.dscp, header.ecn, other.dscp), (46, Ecn::Ect0, 0));
        assert_eq!(header.hosts, other.hosts);
        assert_ne!(header.hosts[0], header.hosts[1]);
    }

    #[test]
    fn fragments_of_a_packet_have_the_same_flow() {
        let (mut first, mut second) = (segment(1, 0), segment(2, 0));
        first[6] = 0x20; // more fragments
        (second[6], second[7]) = (0, 100);
        assert_eq!(
            IpHeader::parse_ip(&first).unwrap().flow,
            IpHeader::parse_ip(&second).unwrap().flow
        );
    }

    #[test]
    fn mark_keeps_checksum_valid() {
        for codepoint in [1, 2, 3] {
            let mut packet = segment(9, codepoint);
            assert_eq!(sum(&packet), 0xffff);
            set_codepoint(&mut packet, Ecn::Ce);
            assert_eq!((packet[1], sum(&packet)), (3, 0xffff));
        }
    }

    #[test]
    fn ipv6_packet_is_read_and_marked() {
        let mut packet = [0_u8; 48];
        (packet[0], packet[1], packet[6]) = (0x60, 0x20, PROTOCOL_TCP);
        packet[24..40].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        let before = IpHeader::parse_ip(&packet).unwrap();
        assert_eq!((before.ecn, before.destination), (Ecn::Ect0, Ipv6Addr::LOCALHOST.into()));
        packet[0..2].copy_from_slice(&[0x6b, 0xa0]);
        let marked = IpHeader::parse_ip(&packet).unwrap();
        assert_eq!((marked.dscp, marked.hosts), (46, before.hosts));
        packet[0..2].copy_from_slice(&[0x60, 0x20]);
        packet[41] = 7;
        assert_ne!(IpHeader::parse_ip(&packet).unwrap().flow, before.flow);
        set_codepoint(&mut packet, Ecn::Ce);
        assert_eq!(packet[1], 0x30);
    }

    #[test]
    fn read_rejects_other_packets() {
        for packet in [&[][..], &[0x45; 19], &[0x60; 39], &[0x10; 60]] {
            assert_eq!(IpHeader::parse_ip(packet), None);
        }
        // A header length beyond the packet means that there are no ports.
        let mut long = segment(1, 0);
        long[0] = 0x4f;
        assert!(IpHeader::parse_ip(&long[..24]).is_some());
    }
}
