//! Tests of IP and TCP headers.

use crate::writing::*;
use tcpcast_trace::{ReadSummary, Segment};

const RAW: u32 = 101;

fn one(packet: Vec<u8>) -> (Option<Segment>, ReadSummary) {
    let (segments, summary) = read(&pcap(RAW, &[packet]));
    assert!(!summary.is_damaged());
    (segments.first().copied(), summary)
}

/// Reads a frame with a recorded length of `original` bytes.
fn of_length(original: u32, packet: &[u8]) -> (Option<Segment>, ReadSummary) {
    let mut bytes = pcap(RAW, &[packet.to_vec()]);
    bytes[36..40].copy_from_slice(&original.to_le_bytes());
    let (segments, summary) = read(&bytes);
    (segments.first().copied(), summary)
}

#[test]
fn fixed_header_is_sufficient() {
    let complete = one(packet(0)).0.unwrap();
    for kept in 40..100 {
        assert_eq!(of_length(1500, &packet(0)[..kept]).0, Some(complete));
    }
    for kept in 0..40 {
        assert_eq!(of_length(1500, &packet(0)[..kept]).1.skipped.cut, 1, "{kept}");
    }
}

#[test]
fn ip_length_takes_precedence() {
    let complete = one(packet(0)).0.unwrap();
    for wrong in [0, 40, 60, 1499] {
        let (segment, summary) = of_length(wrong, &packet(0)[..60]);
        assert_eq!((segment, summary.wrong_lengths), (Some(complete), 1), "{wrong}");
    }
    let mut padded = packet(0);
    padded.resize(1600, 9);
    let (segment, summary) = one(padded);
    assert_eq!((segment, summary.wrong_lengths), (Some(complete), 0));
}

#[test]
fn link_padding_is_not_parsed() {
    let mut short = packet(0);
    short[2..4].copy_from_slice(&30_u16.to_be_bytes());
    assert_eq!(one(short).1.skipped.broken, 1);
}

#[test]
fn invalid_ipv4_headers_are_skipped() {
    let with = |at: usize, value: u8| {
        let mut bytes = packet(0);
        bytes[at] = value;
        one(bytes).1.skipped
    };
    assert_eq!(with(0, 0x44).broken, 1);
    assert_eq!(with(0, 0x40).broken, 1);
    assert_eq!(with(0, 0x25).not_ip, 1);
    assert_eq!(with(9, 17).not_tcp, 1);
    assert_eq!(with(32, 0x40).broken, 1); // a TCP header of 16 bytes
    let mut short = packet(0);
    short[2..4].copy_from_slice(&44_u16.to_be_bytes());
    short[32] = 0xf0;
    assert_eq!(one(short).1.skipped.broken, 1);
}

#[test]
fn ipv4_options_move_the_tcp_header() {
    let plain = packet(0);
    let mut bytes = [&plain[..20], &[1; 12], &plain[20..]].concat();
    bytes[0] = 0x48;
    bytes[2..4].copy_from_slice(&1512_u16.to_be_bytes());
    let segment = one(bytes).0.unwrap();
    assert_eq!((segment.sequence, segment.payload, segment.ip_bytes), (1, 1460, 1512));
}

#[test]
fn first_fragment_counts_and_is_marked() {
    let mut first = packet(0);
    first[6] = 0x20;
    let (segment, summary) = one(first);
    assert!(segment.unwrap().fragment);
    assert_eq!(summary.first_fragments, 1);
    let mut later = packet(0);
    later[7] = 185;
    let (_, summary) = one(later.clone());
    assert_eq!(summary.skipped.fragments, 1);
    later[9] = 17;
    assert_eq!(one(later).1.skipped.not_tcp, 1);
}

#[test]
fn ecn_and_ttl_are_read() {
    let mut bytes = packet(0);
    (bytes[1], bytes[8]) = (0xbb, 63);
    let segment = one(bytes).0.unwrap();
    assert_eq!((segment.ecn, segment.ttl), (3, 63));
    let mut bytes = packet_6(0, 6, &[]);
    (bytes[0], bytes[1], bytes[7]) = (0x6f, 0x2f, 62);
    let segment = one(bytes).0.unwrap();
    assert_eq!((segment.ecn, segment.ttl), (2, 62));
}

#[test]
fn big_tcp_lengths_are_read() {
    let mut four = packet(0);
    four[2..4].fill(0);
    let segment = of_length(80_040, &four).0.unwrap();
    assert_eq!((segment.payload, segment.ip_bytes), (80_000, 80_040));
    let jumbo = |length: u32| {
        let option = [&[6, 0, 0xc2, 4][..], &length.to_be_bytes()].concat();
        let mut six = packet_6(0, 0, &option);
        six[4..6].fill(0);
        of_length(80_068, &six)
    };
    let segment = jumbo(80_028).0.unwrap();
    assert_eq!((segment.payload, segment.ip_bytes), (80_000, 80_068));
    // No network carries such packets: one that is longer than its frame is invalid.
    assert_eq!(jumbo(u32::MAX).1.skipped.broken, 1);
    assert_eq!(jumbo(80_029).1.skipped.broken, 1);
    let mut bare = packet_6(0, 6, &[]);
    bare[4..6].fill(0);
    assert_eq!(of_length(80_060, &bare).0.unwrap().payload, 80_000);
}

#[test]
fn ipv6_extension_headers_are_not_payload() {
    let mut header = vec![60, 0, 1, 4, 0, 0, 0, 0]; // hop by hop
    header.extend([43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // destination
    header.extend([51, 0, 0, 0, 0, 0, 0, 0]); // routing
    header.extend([44, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]); // authentication
    header.extend([6, 0, 0, 1, 0, 0, 0, 9]); // first fragment
    let (segment, summary) = one(packet_6(0, 0, &header));
    let segment = segment.unwrap();
    assert_eq!((segment.sequence, segment.payload), (1, 1460));
    assert_eq!(segment.ip_bytes as usize, 1520 + header.len());
    assert!(segment.fragment && summary.first_fragments == 1);
    for kept in 0..40 + header.len() + 20 {
        let (none, summary) = of_length(1520, &packet_6(0, 0, &header)[..kept]);
        assert_eq!((none, summary.skipped.cut), (None, 1), "{kept}");
    }
}

#[test]
fn other_ipv6_packets_are_skipped() {
    let skipped = |next, extension: &[u8]| one(packet_6(0, next, extension)).1.skipped;
    assert_eq!(skipped(17, &[]).not_tcp, 1);
    assert_eq!(skipped(59, &[]).not_tcp, 1);
    assert_eq!(skipped(50, &[]).not_tcp, 1);
    assert_eq!(skipped(44, &[6, 0, 0, 8, 0, 0, 0, 9]).fragments, 1);
    assert_eq!(skipped(44, &[17, 0, 0, 8, 0, 0, 0, 9]).not_tcp, 1);
    assert_eq!(skipped(0, &[6, 255, 1, 4, 0, 0, 0, 0]).broken, 1); // 2048 bytes in 1508
}

#[test]
fn options_are_read_and_damaged_ones_counted() {
    let mut bytes = packet(0);
    bytes[32] = 8 << 4;
    bytes[40..52].copy_from_slice(&[1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4]);
    let (segment, summary) = one(bytes.clone());
    let segment = segment.unwrap();
    assert_eq!((segment.payload, summary.cut_options), (1448, 0));
    assert_eq!(segment.options.timestamps, Some((3, 4)));
    let (segment, summary) = of_length(1500, &bytes[..51]);
    assert_eq!((segment.unwrap().payload, summary.cut_options), (1448, 1));
    bytes[43] = 0;
    let (segment, summary) = one(bytes);
    assert_eq!((segment.unwrap().options.timestamps, summary.cut_options), (None, 1));
}
