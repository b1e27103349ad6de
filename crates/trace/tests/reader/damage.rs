//! Files that are cut, contradict themselves, or want to do harm.

use crate::writing::*;
use std::io::{self, Read};
use tcpcast_trace::{DamageKind, Reader, Summary};

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

/// Requires that `count` packets are read, and then just this fault found.
fn ends_by(bytes: &[u8], count: u32, fault: &DamageKind) -> Summary {
    let (segments, summary) = read(bytes);
    assert_packets(&segments, count);
    assert_eq!(summary.damage.len(), 1, "{summary:?}");
    assert_eq!(&summary.damage[0].kind, fault);
    assert!(summary.is_damaged());
    summary
}

#[test]
fn a_file_may_end_anywhere() {
    for (bytes, start, header, record) in
        [(classic(3), 24, 16, 1516), (next_generation(3), 48, 28, 1532)]
    {
        for end in start + 1..bytes.len() {
            let (segments, summary) = read(&bytes[..end]);
            let (whole, rest) = ((end - start) / record, (end - start) % record);
            // What there is of the last packet serves as if it had been captured so.
            let cut = usize::from(rest >= header + 40);
            assert_eq!(segments.len(), whole + cut, "{end}");
            assert_eq!(summary.is_damaged(), rest != 0, "{end}");
            assert_packets(&segments, segments.len() as u32);
        }
    }
}

#[test]
fn a_record_cut_in_its_payload_counts() {
    let bytes = classic(3);
    let summary = ends_by(&bytes[..bytes.len() - 20], 3, &DamageKind::RecordCut);
    assert_eq!((summary.damage[0].at, summary.damage[0].frame), (24 + 2 * 1516, 3));
    assert_eq!(
        summary.damage[0].to_string(),
        "after frame 3, at byte 3056: the file ends within a record"
    );
    ends_by(&bytes[..24 + 1516 + 7], 1, &DamageKind::HeaderCut);
}

#[test]
fn a_length_that_cannot_be_ends_a_file() {
    let mut bytes = classic(2);
    let third = [&[0; 8][..], &[0xff; 8]].concat();
    bytes.extend(third);
    bytes.extend([0; 4000]);
    ends_by(&bytes, 2, &DamageKind::Length(u32::MAX));
}

#[test]
fn a_declared_length_sets_no_memory_aside() {
    let mut bytes = classic(1);
    bytes[16..20].fill(0xff); // it keeps up to 4 GiB of each, says the header
    let claimed = (100_u32 << 20).to_le_bytes();
    bytes.extend([[0; 4], [0; 4], claimed, claimed].concat());
    ends_by(&bytes, 1, &DamageKind::RecordCut);
    let mut bytes = next_generation(1);
    bytes.extend(6_u32.to_le_bytes());
    bytes.extend(0xffff_fffc_u32.to_le_bytes());
    bytes.extend([0; 40]);
    let (_, summary) = read(&bytes);
    assert_eq!(summary.damage[0].kind, DamageKind::RecordCut);
}

#[test]
fn blocks_that_contradict_themselves() {
    for length in [0, 4, 11, 13, 0xffff_ffff] {
        let mut bytes = next_generation(2);
        let third = [6_u32.to_le_bytes(), u32::to_le_bytes(length), [0; 4]].concat();
        bytes.extend(third);
        ends_by(&bytes, 2, &DamageKind::BlockLength(length));
    }
    let mut bytes = next_generation(2);
    let end = bytes.len() - 4;
    bytes[end] = 0x63;
    ends_by(&bytes, 1, &DamageKind::Trailer(1532, 0x0563));
    let mut bytes = next_generation(1);
    bytes.extend(block(LITTLE, 6, &[0; 16]));
    ends_by(&bytes, 1, &DamageKind::BlockShort(6));
    let mut bytes = next_generation(1);
    let mut lying = packet_block(LITTLE, 0, micros(1), &packet(1));
    lying[20..24].copy_from_slice(&1501_u32.to_le_bytes());
    bytes.extend(lying);
    ends_by(&bytes, 1, &DamageKind::BlockShort(6));
}

#[test]
fn sections_that_cannot_be() {
    let mut bytes = next_generation(1);
    let mut second = section(LITTLE);
    second[8] = 0;
    bytes.extend(&second);
    ends_by(&bytes, 1, &DamageKind::ByteOrder(0x003c_2b1a));
    let mut bytes = next_generation(1);
    let mut second = section(LITTLE);
    second[12] = 2;
    bytes.extend(&second);
    ends_by(&bytes, 1, &DamageKind::Version(2, 0));
}

#[test]
fn a_frame_of_an_interface_that_is_not_there_is_left_out() {
    let mut bytes = next_generation(0);
    bytes.extend(packet_block(LITTLE, 1, micros(0), &packet(0)));
    bytes.extend(packet_block(LITTLE, 0, micros(1), &packet(1)));
    let (segments, summary) = read(&bytes);
    assert_eq!((segments.len(), summary.skipped.broken), (1, 1));
    assert_eq!(summary.damage[0].kind, DamageKind::Interface(1));
}

#[test]
fn an_interface_that_is_wrong_is_read_as_far_as_it_goes() {
    let mut bytes = section(LITTLE);
    bytes.extend(interface(LITTLE, RAW as u16, &[2, 0, 99, 0]));
    bytes.extend(packet_block(LITTLE, 0, micros(0), &packet(0)));
    ends_by(&bytes, 1, &DamageKind::Option);
    let mut bytes = section(LITTLE);
    bytes.extend(interface(LITTLE, RAW as u16, &option(LITTLE, 9, &[40])));
    bytes.extend(packet_block(LITTLE, 0, micros(0), &packet(0)));
    ends_by(&bytes, 1, &DamageKind::Resolution(40));
}

#[test]
fn interfaces_and_faults_without_end_take_no_memory() {
    let mut bytes = section(LITTLE);
    for _ in 0..70_000 {
        bytes.extend(interface(LITTLE, RAW as u16, &[]));
    }
    ends_by(&bytes, 0, &DamageKind::Interfaces(65_536));
    let mut bytes = section(LITTLE);
    for number in 0..1000 {
        bytes.extend(packet_block(LITTLE, 5, micros(number), &[]));
    }
    let (_, summary) = read(&bytes);
    assert_eq!(summary.damage.len() as u64 + summary.more_damage, 1000);
    assert!(summary.damage.len() < 100);
}

#[test]
fn another_version_is_tried_and_told() {
    let mut bytes = classic(2);
    (bytes[4], bytes[6]) = (9, 9);
    ends_by(&bytes, 2, &DamageKind::Version(9, 9));
}

#[test]
fn time_that_goes_back_is_counted() {
    let mut bytes = pcap_header(LITTLE, 0xa1b2_c3d4, RAW);
    for (number, seconds) in (0..).zip([5, 9, 8, 8, 2, 3]) {
        bytes.extend(pcap_record(LITTLE, seconds, 0, &packet(number)));
    }
    let (_, summary) = read(&bytes);
    assert_eq!((summary.backwards, summary.longest_back), (2, 6_000_000_000));
}

#[test]
fn a_stream_that_fails_gives_what_came_before() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let bytes = classic(2);
    for end in [bytes.len(), bytes.len() - 100] {
        let stream = bytes[..end].chain(Failing);
        let summary = Reader::new(stream).unwrap().for_each(|_| {});
        assert_eq!(summary.segments, 2);
        assert_eq!(summary.damage[0].kind, DamageKind::Source("the disk is gone".into()));
    }
    assert!(Reader::new(Failing).is_err());
}

/// How many segments a stream gives, and its fault.
fn count(bytes: &[u8]) -> (u64, Option<DamageKind>) {
    let Ok(reader) = Reader::new(bytes) else {
        return (0, None);
    };
    let summary = reader.for_each(|_| {});
    (summary.segments, summary.damage.first().map(|damage| damage.kind.clone()))
}

#[test]
fn compressed_data_may_be_cut_or_wrong() {
    let gzip = include_bytes!("../data/transfer.pcap.gz");
    let (segments, fault) = count(&gzip[..gzip.len() / 2]);
    assert!((60..240).contains(&segments), "{segments}");
    assert!(matches!(fault, Some(DamageKind::Source(_))), "{fault:?}");
    let mut wrong = gzip.to_vec();
    let at = gzip.len() - 6; // in the checksum
    wrong[at] ^= 1;
    let (segments, fault) = count(&wrong);
    assert_eq!(segments, 240);
    assert!(matches!(fault, Some(DamageKind::Source(_))), "{fault:?}");
}

#[test]
fn what_came_before_the_damage_of_zstd_is_not_lost() {
    // Blocks hold 128 KiB each.
    let bytes = classic(400);
    let whole = zstd::encode_all(&bytes[..], 1).unwrap();
    assert_eq!(count(&whole), (400, None));
    let (segments, fault) = count(&whole[..whole.len() - 20]);
    assert!((300..400).contains(&segments), "{segments}");
    assert_eq!(fault, Some(DamageKind::Source("zstd: the data end early".into())));
    let mut wrong = whole.clone();
    let at = blocks(&whole)[3];
    wrong[at] |= 6; // a kind of block that there is not
    let (segments, fault) = count(&wrong);
    assert_eq!(segments, (3 * 128 * 1024 - 24) / 1516 + 1);
    assert!(matches!(fault, Some(DamageKind::Source(_))), "{fault:?}");
    let mut wrong = include_bytes!("../data/transfer.pcap.zst").to_vec();
    *wrong.last_mut().unwrap() ^= 1; // in the checksum
    let (segments, fault) = count(&wrong);
    assert_eq!(segments, 240);
    let text = fault.map_or(String::new(), |fault| fault.to_string());
    assert!(text.contains("zstd") && text.contains("checksum"), "{text}");
}

/// Where the blocks of a frame begin whose header has 6 bytes (RFC 8878, section 3.1.1.2).
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
fn a_window_of_zstd_beyond_reason_is_refused() {
    for (window, refused) in [(17 << 3, false), (17 << 3 | 1, true), (31 << 3, true)] {
        let huge = [0x28, 0xb5, 0x2f, 0xfd, 0, window, 1, 0, 0];
        let error = Reader::new(&huge[..]).err().unwrap().to_string();
        assert_eq!(error.contains("without --long"), refused, "{error}");
    }
}
