//! Writes captures for the tests: packets, frames and files.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpcast_trace::{CaptureReader, ReadSummary, Segment};
use tcpcast_wire::{ACK, ZeroPayloadSegment as Headers};

pub const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Headers of packet `number`, which has 1500 bytes.
pub fn headers(number: u32) -> Headers {
    Headers {
        source: SOURCE.octets(),
        destination: DESTINATION.octets(),
        source_port: 1025,
        destination_port: 80,
        identification: number as u16,
        sequence: 1 + number.wrapping_mul(1460),
        acknowledgement: 7,
        flags: ACK,
        window: 512,
        payload: 1460,
        ..Headers::default()
    }
}

/// Returns an IPv4 packet of 1500 bytes.
pub fn packet(number: u32) -> Vec<u8> {
    let mut bytes = headers(number).encode_headers().to_vec();
    bytes.resize(1500, 0);
    bytes
}

/// Returns the same packet in IPv6 with extension headers before TCP; `next` is the type of the
/// first.
pub fn packet_6(number: u32, next: u8, extensions: &[u8]) -> Vec<u8> {
    let tcp = &packet(number)[20..];
    let length = (extensions.len() + tcp.len()) as u16;
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend(address_6(1).octets());
    bytes.extend(address_6(2).octets());
    bytes.extend(extensions);
    bytes.extend(tcp);
    bytes
}

pub fn address_6(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host)
}

/// Capture time of packet `number`, µs.
pub fn micros(number: u32) -> u64 {
    1_700_000_000_000_000 + u64::from(number) * 1_250
}

pub type Put32 = fn(u32) -> [u8; 4];
pub type Put16 = fn(u16) -> [u8; 2];

/// Byte order of a file.
#[derive(Clone, Copy)]
pub struct Order {
    pub long: Put32,
    pub word: Put16,
}

pub const LITTLE: Order = Order { long: u32::to_le_bytes, word: u16::to_le_bytes };
pub const BIG: Order = Order { long: u32::to_be_bytes, word: u16::to_be_bytes };

pub fn pcap_header(order: Order, magic: u32, link: u32) -> Vec<u8> {
    let mut bytes = (order.long)(magic).to_vec();
    bytes.extend((order.word)(2));
    bytes.extend((order.word)(4));
    for field in [0, 0, 65_535, link] {
        bytes.extend((order.long)(field));
    }
    bytes
}

pub fn pcap_record(order: Order, seconds: u32, fraction: u32, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let mut bytes = Vec::new();
    for field in [seconds, fraction, length, length] {
        bytes.extend((order.long)(field));
    }
    bytes.extend(frame);
    bytes
}

/// Creates a little-endian file with these frames and timestamps in µs.
pub fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = pcap_header(LITTLE, 0xa1b2_c3d4, link);
    for (number, frame) in (0..).zip(frames) {
        let time = micros(number);
        let (seconds, fraction) = ((time / 1_000_000) as u32, (time % 1_000_000) as u32);
        bytes.extend(pcap_record(LITTLE, seconds, fraction, frame));
    }
    bytes
}

pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = (order.long)(padded as u32 + 12);
    let mut bytes = (order.long)(kind).to_vec();
    bytes.extend(length);
    bytes.extend(body);
    bytes.resize(8 + padded, 0);
    bytes.extend(length);
    bytes
}

pub fn section(order: Order) -> Vec<u8> {
    let mut body = (order.long)(0x1a2b_3c4d).to_vec();
    body.extend((order.word)(1));
    body.extend((order.word)(0));
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

pub fn interface(order: Order, link: u16, options: &[u8]) -> Vec<u8> {
    let mut body = (order.word)(link).to_vec();
    body.extend([0; 6]);
    body.extend(options);
    block(order, 1, &body)
}

pub fn option(order: Order, kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (order.word)(kind).to_vec();
    bytes.extend((order.word)(value.len() as u16));
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub fn packet_block(order: Order, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let mut body = Vec::new();
    for field in [interface, (ticks >> 32) as u32, ticks as u32, length, length] {
        body.extend((order.long)(field));
    }
    body.extend(frame);
    block(order, 6, &body)
}

/// Reads a complete capture.
pub fn read(bytes: &[u8]) -> (Vec<Segment>, ReadSummary) {
    let mut segments = Vec::new();
    let summary = CaptureReader::new(bytes).unwrap().for_each(|segment| segments.push(*segment));
    assert_eq!(summary.segments, segments.len() as u64);
    assert_eq!(summary.frames, summary.segments + summary.skipped.total());
    (segments, summary)
}

/// Asserts that the segments are the complete packets 0, 1, ... of `packet` or `packet_6`.
pub fn assert_packets(segments: &[Segment], count: u32) {
    assert_eq!(segments.len(), count as usize);
    for (number, segment) in (0..).zip(segments) {
        let sent = headers(number);
        assert_eq!(segment.frame, u64::from(number) + 1);
        assert_eq!(segment.time, micros(number) * 1000);
        assert_eq!((segment.source.port, segment.destination.port), (1025, 80));
        assert_eq!((segment.sequence, segment.acknowledgement), (sent.sequence, 7));
        assert_eq!((segment.payload, segment.window, segment.flags.0), (1460, 512, ACK));
        assert_eq!(segment.ttl, 64);
        match segment.source.address {
            IpAddr::V4(address) => {
                assert_eq!((address, segment.ip_bytes), (SOURCE, 1500));
                assert_eq!(segment.destination.address, IpAddr::V4(DESTINATION));
                assert_eq!(segment.ip_id, Some(number as u16));
            }
            IpAddr::V6(address) => {
                assert_eq!(address, address_6(1));
                assert_eq!(segment.destination.address, IpAddr::V6(address_6(2)));
                assert_eq!(segment.ip_id, None);
            }
        }
    }
}
