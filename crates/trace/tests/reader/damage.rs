//! Tests with truncated, inconsistent or malicious files.

use crate::writing::*;
use std::io::{self, Read};
use tcpcast_trace::{CaptureReader, DamageKind, ReadSummary};

const RAW: u32 = 101;

fn next_generation(count: u32) -> Vec<u8> {
    let mut bytes = section(LITTLE);
    bytes.extend(interface(LITTLE, RAW as u16, &[]));
    for number in 0..count {
        bytes.extend(packet_block(LITTLE, 0, micros(number), &packet(number)));
    }
    bytes
}

fn classic(count: u32) -> Vec<u8> {
    pcap(RAW, &(0..count).map(packet).collect::<Vec<_>>())
}

/// Asserts that `count` packets are read, followed by exactly this damage.
fn assert_ends_with(bytes: &[u8], count: u32, kind: &DamageKind) -> ReadSummary {
    let (segments, summary) = read(bytes);
    assert_packets(&segments, count);
    assert_eq!(summary.damage.len(), 1, "{summary:?}");
    assert_eq!(&summary.damage[0].kind, kind);
    assert!(summary.is_damaged());
    summary
}

#[test]
fn truncated_file_gives_segments_before_the_end() {
    for (bytes, start, header, record) in
        [(classic(3), 24, 16, 1516), (next_generation(3), 48, 28, 1532)]
    {
        for end in start + 1..bytes.len() {
            let (segments, summary) = read(&bytes[..end]);
            let (complete, rest) = ((end - start) / record, (end - start) % record);
            // The available part of the last packet is used as if truncated by the capture.
            let cut = usize::from(rest >= header + 40);
            assert_eq!(segments.len(), complete + cut, "{end}");
            assert_eq!(summary.is_damaged(), rest != 0, "{end}");
            assert_packets(&segments, segments.len() as u32);
        }
    }
}

#[test]
fn record_cut_in_payload_counts() {
    let bytes = classic(3);
    let summary = assert_ends_with(&bytes[..bytes.len() - 20], 3, &DamageKind::RecordCut);
    assert_eq!((summary.damage[0].at, summary.damage[0].frame), (24 + 2 * 1516, 3));
    assert_eq!(
        summary.damage[0].to_string(),
        "after frame 3, at byte 3056: the file ends within a record"
    );
    assert_ends_with(&bytes[..24 + 1516 + 7], 1, &DamageKind::HeaderCut);
}

#[test]
fn invalid_length_ends_reading() {
    let mut bytes = classic(2);
    let third = [&[0; 8][..], &[0xff; 8]].concat();
    bytes.extend(third);
    bytes.extend([0; 4000]);
    assert_ends_with(&bytes, 2, &DamageKind::Length(u32::MAX));
}

#[test]
fn declared_length_allocates_no_memory() {
    let mut bytes = classic(1);
    bytes[16..20].fill(0xff); // the header declares a snaplen of 4 GiB
    let claimed = (100_u32 << 20).to_le_bytes();
    bytes.extend([[0; 4], [0; 4], claimed, claimed].concat());
    assert_ends_with(&bytes, 1, &DamageKind::RecordCut);
    let mut bytes = next_generation(1);
    bytes.extend(6_u32.to_le_bytes());
    bytes.extend(0xffff_fffc_u32.to_le_bytes());
    bytes.extend([0; 40]);
    let (_, summary) = read(&bytes);
    assert_eq!(summary.damage[0].kind, DamageKind::RecordCut);
}

#[test]
fn inconsistent_blocks_end_reading() {
    for length in [0, 4, 11, 13, 0xffff_ffff] {
        let mut bytes = next_generation(2);
        let third = [6_u32.to_le_bytes(), u32::to_le_bytes(length), [0; 4]].concat();
        bytes.extend(third);
        assert_ends_with(&bytes, 2, &DamageKind::BlockLength(length));
    }
    let mut bytes = next_generation(2);
    let end = bytes.len() - 4;
    bytes[end] = 0x63;
    assert_ends_with(&bytes, 1, &DamageKind::Trailer(1532, 0x0563));
    let mut bytes = next_generation(1);
    bytes.extend(block(LITTLE, 6, &[0; 16]));
    assert_ends_with(&bytes, 1, &DamageKind::BlockShort(6));
    let mut bytes = next_generation(1);
    let mut lying = packet_block(LITTLE, 0, micros(1), &packet(1));
    lying[20..24].copy_from_slice(&1501_u32.to_le_bytes());
    bytes.extend(lying);
    assert_ends_with(&bytes, 1, &DamageKind::BlockShort(6));
}

#[test]
fn invalid_sections_end_reading() {
    let mut bytes = next_generation(1);
    let mut second = section(LITTLE);
    second[8] = 0;
    bytes.extend(&second);
    assert_ends_with(&bytes, 1, &DamageKind::ByteOrder(0x003c_2b1a));
    let mut bytes = next_generation(1);
    let mut second = section(LITTLE);
    second[12] = 2;
    bytes.extend(&second);
    assert_ends_with(&bytes, 1, &DamageKind::Version(2, 0));
}

#[test]
fn frame_of_undescribed_interface_is_skipped() {
    let mut bytes = next_generation(0);
    bytes.extend(packet_block(LITTLE, 1, micros(0), &packet(0)));
    bytes.extend(packet_block(LITTLE, 0, micros(1), &packet(1)));
    let (segments, summary) = read(&bytes);
    assert_eq!((segments.len(), summary.skipped.broken), (1, 1));
    assert_eq!(summary.damage[0].kind, DamageKind::Interface(1));
}

#[test]
fn damaged_interface_is_read_partially() {
    let mut bytes = section(LITTLE);
    bytes.extend(interface(LITTLE, RAW as u16, &[2, 0, 99, 0]));
    bytes.extend(packet_block(LITTLE, 0, micros(0), &packet(0)));
    assert_ends_with(&bytes, 1, &DamageKind::Option);
    let mut bytes = section(LITTLE);
    bytes.extend(interface(LITTLE, RAW as u16, &option(LITTLE, 9, &[40])));
    bytes.extend(packet_block(LITTLE, 0, micros(0), &packet(0)));
    assert_ends_with(&bytes, 1, &DamageKind::Resolution(40));
}

#[test]
fn interfaces_and_damaged_places_are_limited() {
    let mut bytes = section(LITTLE);
    for _ in 0..70_000 {
        bytes.extend(interface(LITTLE, RAW as u16, &[]));
    }
    assert_ends_with(&bytes, 0, &DamageKind::Interfaces(65_536));
    let mut bytes = section(LITTLE);
    for number in 0..1000 {
        bytes.extend(packet_block(LITTLE, 5, micros(number), &[]));
    }
    let (_, summary) = read(&bytes);
    assert_eq!(summary.damage.len() as u64 + summary.more_damage, 1000);
    assert!(summary.damage.len() < 100);
}

#[test]
fn unknown_version_is_read_and_reported() {
    let mut bytes = classic(2);
    (bytes[4], bytes[6]) = (9, 9);
    assert_ends_with(&bytes, 2, &DamageKind::Version(9, 9));
}

#[test]
fn backward_time_steps_are_counted() {
    let mut bytes = pcap_header(LITTLE, 0xa1b2_c3d4, RAW);
    for (number, seconds) in (0..).zip([5, 9, 8, 8, 2, 3]) {
        bytes.extend(pcap_record(LITTLE, seconds, 0, &packet(number)));
    }
    let (_, summary) = read(&bytes);
    assert_eq!((summary.backwards, summary.longest_back), (2, 6_000_000_000));
}

#[test]
fn failing_stream_gives_preceding_segments() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let bytes = classic(2);
    for end in [bytes.len(), bytes.len() - 100] {
        let stream = bytes[..end].chain(Failing);
        let summary = CaptureReader::new(stream).unwrap().for_each(|_| {});
        assert_eq!(summary.segments, 2);
        assert_eq!(summary.damage[0].kind, DamageKind::Source("the disk is gone".into()));
    }
    assert!(CaptureReader::new(Failing).is_err());
}

/// Returns the number of segments of a stream, and its damage.
fn count(bytes: &[u8]) -> (u64, Option<DamageKind>) {
    let Ok(reader) = CaptureReader::new(bytes) else {
        return (0, None);
    };
    let summary = reader.for_each(|_| {});
    (summary.segments, summary.damage.first().map(|damage| damage.kind.clone()))
}

#[test]
fn damaged_compressed_data_are_reported() {
    let gzip = include_bytes!("../data/transfer.pcap.gz");
    let (segments, kind) = count(&gzip[..gzip.len() / 2]);
    assert!((60..240).contains(&segments), "{segments}");
    assert!(matches!(kind, Some(DamageKind::Source(_))), "{kind:?}");
    let mut wrong = gzip.to_vec();
    let position = gzip.len() - 6; // in the checksum
    wrong[position] ^= 1;
    let (segments, kind) = count(&wrong);
    assert_eq!(segments, 240);
    assert!(matches!(kind, Some(DamageKind::Source(_))), "{kind:?}");
}

#[test]
fn segments_before_damaged_zstd_block_are_read() {
    // Blocks have 128 KiB each.
    let bytes = classic(400);
    let complete = zstd::encode_all(&bytes[..], 1).unwrap();
    assert_eq!(count(&complete), (400, None));
    let (segments, kind) = count(&complete[..complete.len() - 20]);
    assert!((300..400).contains(&segments), "{segments}");
    assert_eq!(kind, Some(DamageKind::Source("zstd: the data are truncated".into())));
    let mut wrong = complete.clone();
    let at = blocks(&complete)[3];
    wrong[at] |= 6; // an unknown kind of block
    let (segments, kind) = count(&wrong);
    assert_eq!(segments, (3 * 128 * 1024 - 24) / 1516 + 1);
    assert!(matches!(kind, Some(DamageKind::Source(_))), "{kind:?}");
    let mut wrong = include_bytes!("../data/transfer.pcap.zst").to_vec();
    *wrong.last_mut().unwrap() ^= 1; // in the checksum
    let (segments, kind) = count(&wrong);
    assert_eq!(segments, 240);
    let text = kind.map_or(String::new(), |kind| kind.to_string());
    assert!(text.contains("zstd") && text.contains("checksum"), "{text}");
}

/// Returns the starts of the blocks in a frame with a header of 6 bytes (RFC 8878, section
/// 3.1.1.2).
fn blocks(frame: &[u8]) -> Vec<usize> {
    let mut starts = vec![6];
    while let Some(header) = frame.get(starts[starts.len() - 1]..) {
        let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        if header & 1 == 1 {
            break;
        }
        let length = if header >> 1 & 3 == 1 { 1 } else { header >> 3 };
        starts.push(starts[starts.len() - 1] + 3 + length as usize);
    }
    starts
}

#[test]
fn excessive_zstd_window_is_rejected() {
    for (window, refused) in [(17 << 3, false), (17 << 3 | 1, true), (31 << 3, true)] {
        let huge = [0x28, 0xb5, 0x2f, 0xfd, 0, window, 1, 0, 0];
        let error = CaptureReader::new(&huge[..]).err().unwrap().to_string();
        assert_eq!(error.contains("without --long"), refused, "{error}");
    }
}
