//! Tests with the same packets on all link types.

use crate::writing::*;
use tcpcast_trace::{ReadSummary, Segment};

/// Reads packets that `wrap` converts to frames; IPv6 if `six`.
fn through(link: u32, six: bool, wrap: impl Fn(&[u8]) -> Vec<u8>) -> (Vec<Segment>, ReadSummary) {
    let packets = (0..3).map(|n| if six { packet_6(n, 6, &[]) } else { packet(n) });
    let frames: Vec<_> = packets.map(|packet| wrap(&packet)).collect();
    read(&pcap(link, &frames))
}

fn before(header: &[u8]) -> impl Fn(&[u8]) -> Vec<u8> {
    move |packet| [header, packet].concat()
}

/// Tests IPv4 after the header `four`, and IPv6 after `six`.
fn both(link: u32, four: &[u8], six: &[u8]) {
    for (is_six, header) in [(false, four), (true, six)] {
        let (segments, summary) = through(link, is_six, before(header));
        assert_packets(&segments, 3);
        assert_eq!(segments[0].source.address.is_ipv6(), is_six);
        assert_eq!(summary.wrong_lengths, 0);
    }
}

fn ethernet(rest: &[u8]) -> Vec<u8> {
    [&[2; 12][..], rest].concat()
}

#[test]
fn ethernet_is_read_with_and_without_tags() {
    both(1, &ethernet(&[8, 0]), &ethernet(&[0x86, 0xdd]));
    for tag in [[0x81, 0, 0, 5], [0x88, 0xa8, 0, 5], [0x91, 0, 0, 5]] {
        let tagged = |rest: &[u8]| ethernet(&[&tag[..], rest].concat());
        both(1, &tagged(&[8, 0]), &tagged(&[0x86, 0xdd]));
        both(1, &tagged(&[0x81, 0, 0, 7, 8, 0]), &tagged(&[0x81, 0, 0, 7, 0x86, 0xdd]));
    }
}

#[test]
fn ieee_802_3_with_snap_is_read() {
    let snap = |kind: [u8; 2]| [&[5, 0xdc, 0xaa, 0xaa, 3, 0, 0, 0][..], &kind].concat();
    both(1, &ethernet(&snap([8, 0])), &ethernet(&snap([0x86, 0xdd])));
}

#[test]
fn mpls_is_read_with_one_and_two_labels() {
    let one = [0x88, 0x47, 0, 1, 1, 64];
    let two = [0x88, 0x48, 0, 1, 0, 64, 0, 2, 1, 64];
    both(1, &ethernet(&one), &ethernet(&one));
    both(1, &ethernet(&two), &ethernet(&two));
    let wire = |kind: [u8; 2]| {
        let inner = ethernet(&kind);
        ethernet(&[&one[..], &[0, 0, 0, 0], &inner].concat())
    };
    both(1, &wire([8, 0]), &wire([0x86, 0xdd]));
}

#[test]
fn pppoe_within_two_tags_is_read() {
    let session = |protocol: &[u8]| {
        let start = [0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x88, 0x64, 0x11, 0, 0, 1, 0xff, 0xff];
        ethernet(&[&start[..], protocol].concat())
    };
    both(1, &session(&[0, 0x21]), &session(&[0, 0x57]));
}

/// An IP packet that includes the padding of its Ethernet frame: the session's length excludes it.
#[test]
fn pppoe_length_limits_packets() {
    let session = |packet: &[u8]| {
        let length = (packet.len() as u16 + 2 - 6).to_be_bytes();
        [&[0x11, 0, 0, 1][..], &length, &[0, 0x21], packet].concat()
    };
    let (bounded, _) = through(51, false, session);
    let (complete, _) = through(1, false, |packet| ethernet(&[&[8, 0][..], packet].concat()));
    for (bounded, complete) in bounded.iter().zip(&complete) {
        assert_eq!(bounded.payload + 6, complete.payload);
        assert_eq!(bounded.ip_bytes + 6, complete.ip_bytes);
    }
}

#[test]
fn pppoe_session_too_short_for_packet_is_broken() {
    for length in [0, 1, 2, 12] {
        let start = [0x11, 0, 0, 1, 0, length, 0, 0x21];
        let (segments, summary) = through(51, false, before(&start));
        assert_eq!((segments.len(), summary.skipped.broken), (0, 3), "{length}");
    }
}

#[test]
fn ppp_is_read_with_and_without_compression() {
    both(9, &[0, 0x21], &[0, 0x57]);
    both(9, &[0xff, 3, 0, 0x21], &[0xff, 3, 0, 0x57]);
    both(9, &[0x21], &[0x57]); // the protocol field compressed
    both(50, &[0xff, 3, 0x21], &[0xff, 3, 0x57]);
    both(50, &[0x0f, 0, 8, 0], &[0x0f, 0, 0x86, 0xdd]);
    both(104, &[0x0f, 0, 8, 0], &[0x8f, 0, 0x86, 0xdd]);
    both(51, &[0x11, 0, 0, 1, 255, 255, 0, 0x21], &[0x11, 0, 0, 1, 255, 255, 0, 0x57]);
}

#[test]
fn raw_ip_is_read() {
    for link in [12, 14, 101] {
        both(link, &[], &[]);
    }
    assert_packets(&through(228, false, before(&[])).0, 3);
    assert_packets(&through(229, true, before(&[])).0, 3);
    assert_eq!(through(228, true, before(&[])).1.skipped.broken, 3);
    assert_eq!(through(229, false, before(&[])).1.skipped.broken, 3);
}

#[test]
fn loopback_is_read_for_all_systems_and_byte_orders() {
    for family in [10, 23, 24, 28, 30] {
        both(0, &[2, 0, 0, 0], &[family, 0, 0, 0]);
        both(108, &[0, 0, 0, 2], &[0, 0, 0, family]);
        both(0, &[0, 0, 0, 2], &[0, 0, 0, family]);
    }
    assert_eq!(through(0, false, before(&[7, 0, 0, 0])).1.skipped.not_ip, 3);
}

#[test]
fn cooked_captures_are_read() {
    let first = |kind: [u8; 2]| [&[0; 14][..], &kind].concat();
    both(113, &first([8, 0]), &first([0x86, 0xdd]));
    let second = |kind: [u8; 2]| [&kind[..], &[0; 18]].concat();
    both(276, &second([8, 0]), &second([0x86, 0xdd]));
    both(113, &[&first([0x81, 0])[..], &[0, 5, 8, 0]].concat(), &first([0x86, 0xdd]));
}

#[test]
fn fddi_with_snap_is_read() {
    let frame = |kind: [u8; 2]| [&[0x50; 13][..], &[0xaa, 0xaa, 3, 0, 0, 0], &kind].concat();
    both(10, &frame([8, 0]), &frame([0x86, 0xdd]));
}

#[test]
fn infiniband_is_read() {
    let global = |kind: [u8; 2]| [&[0; 40][..], &kind, &[0, 0]].concat();
    both(242, &global([8, 0]), &global([0x86, 0xdd]));
}

#[test]
fn other_links_and_types_are_skipped() {
    let (_, summary) = through(147, false, before(&[]));
    assert_eq!((summary.skipped.unknown_link, summary.unknown_link), (3, Some(147)));
    assert_eq!(through(1, false, before(&ethernet(&[8, 6]))).1.skipped.not_ip, 3);
    assert_eq!(through(1, true, before(&ethernet(&[8, 0]))).1.skipped.broken, 3);
    assert_eq!(through(9, false, before(&[0xc0, 0x21])).1.skipped.not_ip, 3);
}

#[test]
fn truncated_link_headers_are_skipped() {
    let complete = ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x88, 0x64, 0x11, 0, 0, 1, 5, 0xde]);
    for length in 0..=complete.len() {
        let (_, summary) = read(&pcap(1, &[complete[..length].to_vec()]));
        assert_eq!(summary.skipped.cut, 1, "{length}");
    }
}
