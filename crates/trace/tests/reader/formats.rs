//! Tests with the same packets in all file formats.

use crate::writing::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Read, Write};
use tcpcast_trace::{CaptureReader, DamageKind, ReadError, Segment};

const RAW: u32 = 101;

/// A captured transfer of 240 packets.
const GZIP: &[u8] = include_bytes!("../data/transfer.pcap.gz");
/// `GZIP`, compressed by `zstd -19 --check`.
const ZSTD: &[u8] = include_bytes!("../data/transfer.pcap.zst");

fn classic(order: Order, magic: u32, unit_per_second: u64, extra: usize) -> Vec<u8> {
    let mut bytes = pcap_header(order, magic, RAW);
    for number in 0..3 {
        let time = micros(number) * (unit_per_second / 1_000_000);
        let (seconds, fraction) = (time / unit_per_second, time % unit_per_second);
        let record = pcap_record(order, seconds as u32, fraction as u32, &packet(number));
        bytes.extend(&record[..16]);
        bytes.extend(vec![0; extra]);
        bytes.extend(&record[16..]);
    }
    bytes
}

#[test]
fn pcap_is_read_in_both_orders_and_resolutions() {
    for order in [LITTLE, BIG] {
        assert_packets(&read(&classic(order, 0xa1b2_c3d4, 1_000_000, 0)).0, 3);
        assert_packets(&read(&classic(order, 0xa1b2_3c4d, 1_000_000_000, 0)).0, 3);
        assert_packets(&read(&classic(order, 0xa1b2_cd34, 1_000_000, 8)).0, 3);
    }
}

#[test]
fn pcap_of_old_versions_has_swapped_lengths() {
    let mut frame = packet(0);
    frame.truncate(60);
    for (minor, kept, original, seen) in [
        (2, 1500_u32, 60_u32, 1), // the second field is the captured length
        (3, 60, 1500, 1),         // the smaller is the captured length
        (3, 1500, 60, 1),
    ] {
        let mut bytes = pcap(RAW, &[frame.clone()]);
        bytes[6] = minor;
        bytes[32..36].copy_from_slice(&kept.to_le_bytes());
        bytes[36..40].copy_from_slice(&original.to_le_bytes());
        let (segments, summary) = read(&bytes);
        assert!(!summary.is_damaged(), "{summary:?}");
        assert_packets(&segments, seen);
    }
}

#[test]
fn upper_bits_of_link_type_are_ignored() {
    let bytes = pcap(RAW | 0xf400_0000, &[packet(0)]);
    assert_packets(&read(&bytes).0, 1);
}

fn next_generation(order: Order, options: &[u8], ticks: impl Fn(u32) -> u64) -> Vec<u8> {
    let mut bytes = section(order);
    bytes.extend(interface(order, RAW as u16, options));
    for number in 0..3 {
        bytes.extend(packet_block(order, 0, ticks(number), &packet(number)));
    }
    bytes
}

#[test]
fn pcapng_is_read_in_both_orders_and_many_resolutions() {
    for order in [LITTLE, BIG] {
        assert_packets(&read(&next_generation(order, &[], micros)).0, 3);
        for (resolution, factor) in [(6, 1), (7, 10), (9, 1000), (10, 10_000)] {
            let options = option(order, 9, &[resolution]);
            let bytes = next_generation(order, &options, |number| micros(number) * factor);
            assert_packets(&read(&bytes).0, 3);
        }
    }
}

#[test]
fn pcapng_time_offset_is_added() {
    let mut options = option(LITTLE, 2, b"eth0");
    options.extend(option(LITTLE, 14, &1_600_000_000_i64.to_le_bytes()));
    options.extend(option(LITTLE, 0, &[]));
    let offset = 1_600_000_000_000_000;
    let bytes = next_generation(LITTLE, &options, |number| micros(number) - offset);
    assert_packets(&read(&bytes).0, 3);
}

#[test]
fn pcapng_section_resets_interfaces() {
    let mut bytes = Vec::new();
    let nanoseconds = option(BIG, 9, &[9]);
    for (number, (order, options, factor)) in
        (0..).zip([(LITTLE, &[][..], 1), (BIG, &nanoseconds[..], 1000), (LITTLE, &[][..], 1)])
    {
        bytes.extend(section(order));
        bytes.extend(interface(order, RAW as u16, options));
        bytes.extend(packet_block(order, 0, micros(number) * factor, &packet(number)));
    }
    assert_packets(&read(&bytes).0, 3);
}

#[test]
fn pcapng_interfaces_have_separate_links_and_clocks() {
    let mut bytes = section(LITTLE);
    bytes.extend(interface(LITTLE, RAW as u16, &[]));
    bytes.extend(interface(LITTLE, 0, &option(LITTLE, 9, &[9])));
    bytes.extend(packet_block(LITTLE, 0, micros(0), &packet(0)));
    let loopback = [&[2, 0, 0, 0][..], &packet(1)].concat();
    bytes.extend(packet_block(LITTLE, 1, micros(1) * 1000, &loopback));
    assert_packets(&read(&bytes).0, 2);
}

#[test]
fn pcapng_reads_simple_and_old_packets_and_skips_other_blocks() {
    let mut bytes = next_generation(LITTLE, &[], micros);
    bytes.extend(block(LITTLE, 4, b"names"));
    bytes.extend(block(LITTLE, 0x8000_0bad, &[7; 400_000]));
    let mut old = vec![0, 0, 9, 0];
    let time = micros(3);
    for field in [(time >> 32) as u32, time as u32, 1500, 1500] {
        old.extend(field.to_le_bytes());
    }
    old.extend(packet(3));
    bytes.extend(block(LITTLE, 2, &old));
    let mut simple = 1500_u32.to_le_bytes().to_vec();
    simple.extend(packet(4));
    bytes.extend(block(LITTLE, 3, &simple));
    let (mut segments, summary) = read(&bytes);
    assert!(!summary.is_damaged());
    assert_eq!(summary.untimed, 1);
    assert_eq!(segments[4].time, segments[3].time);
    segments[4].time = micros(4) * 1000;
    assert_packets(&segments, 5);
}

#[test]
fn dropped_frames_are_counted_once() {
    let mut bytes = next_generation(LITTLE, &[], micros);
    for dropped in [3_u64, 8, 8] {
        let mut statistics = vec![0; 12];
        statistics.extend(option(LITTLE, 5, &dropped.to_le_bytes()));
        bytes.extend(block(LITTLE, 5, &statistics));
    }
    assert_eq!(read(&bytes).1.dropped, 8);
}

#[test]
fn records_larger_than_buffer_are_read() {
    let mut frames = vec![packet(0), packet(1), packet(2)];
    frames[1].resize(900_000, 9);
    let bytes = pcap(RAW, &frames);
    assert_packets(&read(&bytes).0, 3);
    let mut bytes = section(BIG);
    bytes.extend(interface(BIG, RAW as u16, &[]));
    for (number, frame) in (0..).zip(&frames) {
        bytes.extend(packet_block(BIG, 0, micros(number), frame));
    }
    assert_packets(&read(&bytes).0, 3);
}

fn transfer(stream: impl Read) -> Vec<Segment> {
    let mut segments = Vec::new();
    let reader = CaptureReader::new(stream).unwrap();
    let summary = reader.for_each(|segment| segments.push(*segment));
    assert!(!summary.is_damaged(), "{:?}", summary.damage);
    segments
}

#[test]
fn compressed_files_are_read() {
    let segments = transfer(GZIP);
    assert_eq!(segments.len(), 240);
    let data = segments.iter().filter(|segment| segment.payload > 0);
    assert_eq!(data.clone().count(), 136);
    assert_eq!(data.map(|segment| segment.payload).sum::<u32>(), 196_928);
    assert_eq!(segments, transfer(ZSTD));
}

/// Returns one byte per read, like a slow pipe.
struct Drops<'a>(&'a [u8]);

impl Read for Drops<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(1);
        self.0.read(&mut into[..count])
    }
}

#[test]
fn stream_of_single_bytes_is_read() {
    let bytes = next_generation(BIG, &[], micros);
    assert_packets(&transfer(Drops(&bytes)), 3);
    assert_eq!(transfer(Drops(GZIP)), transfer(GZIP));
    assert_eq!(transfer(Drops(ZSTD)), transfer(ZSTD));
}

#[test]
fn concatenated_compressed_parts_are_read() {
    let bytes = pcap(RAW, &[packet(0), packet(1), packet(2)]);
    let mut parts = Vec::new();
    for part in bytes.chunks(1000) {
        let mut encoder = GzEncoder::new(&mut parts, Compression::fast());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap();
    }
    assert_packets(&transfer(&parts[..]), 3);
}

#[test]
fn concatenated_zstd_frames_are_read() {
    let bytes = pcap(RAW, &[packet(0), packet(1), packet(2)]);
    let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"any"].concat();
    let mut parts = skipped.clone();
    for part in bytes.chunks(1000) {
        parts.extend(zstd::encode_all(part, 1).unwrap());
        parts.extend(&skipped);
    }
    assert_packets(&transfer(&parts[..]), 3);
    assert_packets(&transfer(Drops(&parts)), 3);
}

#[test]
fn long_zstd_files_are_read() {
    // Several blocks of 128 KiB, many windows, and a complete frame with its content size.
    let bytes = pcap(RAW, &(0..5000).map(packet).collect::<Vec<_>>());
    for packed in [zstd::encode_all(&bytes[..], 1), zstd::bulk::compress(&bytes, 9)] {
        assert_packets(&transfer(&packed.unwrap()[..]), 5000);
    }
}

#[test]
fn next_segment_returns_one_segment() {
    let bytes = pcap(RAW, &[packet(0), packet(1)]);
    let mut reader = CaptureReader::new(&bytes[..]).unwrap();
    assert_eq!(reader.next_segment().unwrap().sequence, 1);
    assert_eq!(reader.summary().segments, 1);
    assert_eq!(reader.next_segment().unwrap().sequence, 1461);
    assert!(reader.next_segment().is_none());
    assert!(reader.next_segment().is_none());
    assert_eq!(reader.summary().segments, 2);
}

#[test]
fn other_formats_are_named() {
    let error = |bytes: &[u8]| CaptureReader::new(bytes).err().map(|error| error.to_string());
    assert_eq!(error(&[]), Some("the file is empty".into()));
    let text = error(b"12:00:01.000 IP 10.0.0.1.1000 > 10.0.0.2.80: Flags [S]").unwrap();
    assert!(text.contains("text"), "{text}");
    assert!(error(b"BZh91AY").unwrap().contains("bzip2"));
    assert!(error(&[0xd4, 0xc3]).unwrap().contains("fewer than 4 bytes"));
    assert!(matches!(CaptureReader::new(io::empty()), Err(ReadError::Empty)));
}

#[test]
fn header_only_is_empty_capture() {
    let (segments, summary) = read(&pcap(RAW, &[]));
    assert!(segments.is_empty() && !summary.is_damaged());
    assert_eq!(summary.warnings(), ["no TCP segment in 0 frames"]);
    let (_, summary) = read(&pcap(RAW, &[])[..23]);
    assert_eq!(summary.damage[0].kind, DamageKind::HeaderCut);
}
