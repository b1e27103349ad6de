//! Tests with TCP inside tunnels: the same packets in each kind.

use crate::properties::survey;
use crate::writing::*;
use proptest::prelude::*;
use tcpcast_trace::{ReadSummary, Segment};

/// Creates an IPv4 packet with this protocol.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 9, 0, 0, 63, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    bytes.extend(payload);
    bytes
}

/// Creates an IPv6 packet with this protocol, after a header of destination options.
fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((8 + payload.len() as u16).to_be_bytes());
    bytes.extend([60, 64]);
    bytes.extend([[0xfd; 16], [0xfe; 16]].concat());
    bytes.extend([protocol, 0, 1, 4, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xc0, 1];
    bytes.extend(port.to_be_bytes());
    bytes.extend((8 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

/// Creates an Ethernet frame for an IP packet.
fn ethernet(packet: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    [&[2; 12][..], &kind, packet].concat()
}

/// Returns the Ethernet type for the packet's IP version.
fn kind(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] }
}

type Wrap = fn(&[u8]) -> Vec<u8>;

/// Tunnels: name, protocol number, and function that creates the payload.
const TUNNELS: &[(&str, u8, Wrap)] = &[
    ("GRE", 47, |packet| [&[0, 0][..], &kind(packet), packet].concat()),
    ("GRE", 47, |packet| {
        // Checksum, key, sequence number.
        [&[0xb0, 0][..], &kind(packet), &[1; 12], packet].concat()
    }),
    ("GRE", 47, |packet| [&[0x20, 0, 0x65, 0x58, 0, 0, 5, 1][..], &ethernet(packet)].concat()),
    ("GRE", 47, |packet| {
        // PPTP: key and acknowledgement.
        let ppp = if packet[0] >> 4 == 4 { [0xff, 3, 0, 0x21] } else { [0xff, 3, 0, 0x57] };
        [&[0x20, 0x81, 0x88, 0x0b, 5, 0xdc, 0, 1, 0, 0, 0, 7][..], &ppp, packet].concat()
    }),
    ("ERSPAN", 47, |packet| [&[0, 0, 0x88, 0xbe][..], &ethernet(packet)].concat()),
    ("ERSPAN", 47, |packet| [&[0x10, 0, 0x88, 0xbe][..], &[1; 12], &ethernet(packet)].concat()),
    ("ERSPAN", 47, |packet| [&[0x10, 0, 0x22, 0xeb][..], &[2; 16], &ethernet(packet)].concat()),
    ("ERSPAN", 47, |packet| [&[0x10, 0, 0x22, 0xeb][..], &[3; 24], &ethernet(packet)].concat()),
    ("EtherIP", 97, |packet| [&[0x30, 0][..], &ethernet(packet)].concat()),
    ("MPLS in IP", 137, |packet| [&[0, 1, 1, 64][..], packet].concat()),
    ("MPLS in IP", 17, |packet| udp(6635, &[&[0, 1, 1, 64][..], packet].concat())),
    ("VXLAN", 17, |packet| udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(packet)].concat())),
    ("VXLAN", 17, |packet| udp(8472, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(packet)].concat())),
    ("VXLAN", 17, |packet| {
        let next = if packet[0] >> 4 == 4 { 1 } else { 2 };
        udp(4790, &[&[12, 0, 0, next, 0, 0, 7, 0][..], packet].concat())
    }),
    ("Geneve", 17, |packet| {
        let header = [2, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 1, 1, 1, 0, 0, 0, 0];
        udp(6081, &[&header[..], &ethernet(packet)].concat())
    }),
    ("Geneve", 17, |packet| {
        udp(6081, &[&[0, 0][..], &kind(packet), &[0, 0, 7, 0], packet].concat())
    }),
    ("GTP-U", 17, |packet| udp(2152, &[&[0x30, 255, 0, 0, 0, 0, 0, 1][..], packet].concat())),
    ("GTP-U", 17, |packet| {
        // This packet carries the extension header of 5G.
        let header = [0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0];
        udp(2152, &[&header[..], packet].concat())
    }),
];

fn through(six: bool, wrap: impl Fn(&[u8]) -> Vec<u8>) -> (Vec<Segment>, ReadSummary) {
    let packets = (0..3).map(|n| if six { packet_6(n, 6, &[]) } else { packet(n) });
    let frames: Vec<_> = packets.map(|packet| wrap(&packet)).collect();
    read(&pcap(101, &frames))
}

fn assert_opened(name: &str, six: bool, wrap: impl Fn(&[u8]) -> Vec<u8>) {
    let (segments, summary) = through(six, wrap);
    assert_packets(&segments, 3);
    assert_eq!(segments[0].source.address.is_ipv6(), six, "{name}");
    assert_eq!((summary.wrong_lengths, summary.tunnelled), (0, 3), "{name}");
    assert_eq!(summary.tunnels.to_string(), name);
    let warning = format!("3 segments inside tunnels ({name}); tcpcast used the inner addresses");
    assert_eq!(summary.warnings(), [warning]);
}

#[test]
fn tunnels_are_opened_in_ipv4_and_ipv6() {
    for (name, protocol, wrap) in TUNNELS {
        for six in [false, true] {
            assert_opened(name, six, |packet| ipv4(*protocol, &wrap(packet)));
            assert_opened(name, six, |packet| ipv6(*protocol, &wrap(packet)));
        }
    }
    assert_opened("IP in IP", false, |packet| ipv4(4, packet));
    assert_opened("IP in IP", false, |packet| ipv6(4, packet));
    assert_opened("IP in IP", true, |packet| ipv4(41, packet));
    assert_opened("IP in IP", true, |packet| ipv6(41, packet));
}

#[test]
fn nested_tunnels_are_opened_up_to_limit() {
    let nested = |packet: &[u8], depth: usize| {
        (0..depth).fold(packet.to_vec(), |inside, _| ipv4(4, &inside))
    };
    assert_opened("IP in IP", false, |packet| nested(packet, 8));
    let (none, summary) = through(false, |packet| nested(packet, 9));
    assert_eq!((none.len(), summary.skipped.broken), (0, 3));
    assert_opened("GRE, VXLAN", false, |packet| {
        let inner = [&[0, 0, 8, 0][..], packet].concat();
        let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(&ipv4(47, &inner))].concat();
        ipv6(17, &udp(4789, &vxlan))
    });
}

#[test]
fn invalid_tunnel_headers_are_skipped() {
    let other: &[(u8, Wrap)] = &[
        (17, |packet| udp(53, packet)),
        (17, |packet| udp(4789, packet)),
        (17, |packet| udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 1][..], &ethernet(packet)].concat())),
        (17, |packet| udp(6081, &[&[0x40, 0, 8, 0, 0, 0, 7, 0][..], packet].concat())),
        (17, |packet| udp(6081, &[&[0, 0x80, 8, 0, 0, 0, 7, 0][..], packet].concat())),
        (17, |packet| udp(2152, &[&[0x30, 1, 0, 0, 0, 0, 0, 1][..], packet].concat())),
        (17, |packet| udp(2152, &[&[0x10, 255, 0, 0, 0, 0, 0, 1][..], packet].concat())),
        (47, |packet| [&[0x40, 0, 8, 0][..], packet].concat()),
        (47, |packet| [&[0, 2, 8, 0][..], packet].concat()),
        (47, |_| vec![0; 4]),
        (97, |packet| [&[0x20, 0][..], &ethernet(packet)].concat()),
        (50, |packet| packet.to_vec()),
    ];
    for (index, (protocol, wrap)) in other.iter().enumerate() {
        let (none, summary) = through(false, |packet| ipv4(*protocol, &wrap(packet)));
        assert_eq!((none.len(), summary.skipped.not_tcp), (0, 3), "{index}");
    }
    // Other contents: UDP, ARP.
    let inner = |inside: Vec<u8>| [&[0, 0, 0x65, 0x58][..], &inside].concat();
    let (_, summary) = through(false, |_| ipv4(47, &inner(ethernet(&ipv4(17, &[0; 20])))));
    assert_eq!(summary.skipped.not_tcp, 3);
    let (_, summary) = through(false, |_| ipv4(47, &inner([&[2; 12][..], &[8, 6]].concat())));
    assert_eq!(summary.skipped.not_tcp, 3);
}

#[test]
fn inner_packet_must_fit_into_tunnel() {
    // The inner packet declares more bytes than the outer one has.
    let (none, summary) = through(false, |packet| ipv4(4, &packet[..1400]));
    assert_eq!((none.len(), summary.skipped.broken), (0, 3));
    // The first of two fragments: the rest is in the second.
    let (segments, _) = through(false, |packet| {
        let mut outer = ipv4(4, &packet[..1400]);
        outer[6] = 0x20;
        outer
    });
    assert!(segments.iter().all(|one| one.payload == 1460 && one.fragment));
    // A mirror truncates frames.
    let (segments, _) = through(false, |packet| {
        ipv4(47, &[&[0, 0, 0x88, 0xbe][..], &ethernet(&packet[..100])].concat())
    });
    assert!(segments.len() == 3 && segments.iter().all(|one| one.payload == 1460));
}

#[test]
fn truncated_tunnels_are_skipped() {
    for (name, protocol, wrap) in TUNNELS {
        let complete = ipv4(*protocol, &wrap(&packet(0)));
        let inner = complete.len() - 1500;
        for kept in 20..complete.len() {
            let mut bytes = pcap(101, &[complete[..kept].to_vec()]);
            bytes[36..40].copy_from_slice(&(complete.len() as u32).to_le_bytes());
            let (segments, summary) = read(&bytes);
            let read = kept >= inner + 40;
            assert_eq!(segments.len(), usize::from(read), "{name} {kept}");
            assert_eq!(summary.skipped.cut + summary.skipped.not_tcp, u64::from(!read), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn reader_accepts_mutated_tunnels(
        outer in 0..TUNNELS.len(),
        inner in 0..TUNNELS.len(),
        six: bool,
        changes in prop::collection::vec((0..180_usize, any::<u8>()), 0..6),
    ) {
        let wrap = |index: usize, packet: &[u8]| {
            let (_, protocol, wrap) = TUNNELS[index];
            if six { ipv6(protocol, &wrap(packet)) } else { ipv4(protocol, &wrap(packet)) }
        };
        let mut frame = wrap(outer, &wrap(inner, &packet(0)));
        for (at, value) in changes {
            frame[at] = value;
        }
        survey(&pcap(101, &[frame.clone(), frame[..120].to_vec()]));
    }
}
