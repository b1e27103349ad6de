//! Tests of files that contain the same frames repeatedly.

use crate::writing::*;

/// Records of packets `from..to` with increasing times.
fn records(from: u32, to: u32) -> Vec<u8> {
    let of = |number| {
        let time = micros(number);
        let (seconds, fraction) = ((time / 1_000_000) as u32, (time % 1_000_000) as u32);
        pcap_record(LITTLE, seconds, fraction, &packet(number)[..60])
    };
    (from..to).flat_map(of).collect()
}

fn joined(parts: &[(u32, u32)]) -> Vec<u8> {
    let mut bytes = pcap_header(LITTLE, 0xa1b2_c3d4, 101);
    parts.iter().for_each(|&(from, to)| bytes.extend(records(from, to)));
    bytes
}

#[test]
fn file_joined_to_itself_counts_once() {
    for times in [2, 3] {
        let (segments, summary) = read(&joined(&vec![(0, 500); times]));
        assert_eq!(segments.len(), 500);
        assert_eq!(summary.skipped.repeated, 500 * (times as u64 - 1));
        assert_eq!(summary.backwards, 0);
        let warnings: Vec<_> = summary
            .warnings()
            .into_iter()
            .filter(|line| !line.contains("below the IP length"))
            .collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("repeated in the same order"), "{warnings:?}");
    }
}

#[test]
fn overlapping_files_count_once() {
    let (segments, summary) = read(&joined(&[(0, 500), (200, 800)]));
    assert_eq!((segments.len(), summary.skipped.repeated, summary.backwards), (800, 300, 0));
    assert!(segments.windows(2).all(|pair| pair[0].time < pair[1].time));
}

#[test]
fn clock_step_is_not_repetition() {
    let mut bytes = joined(&[(0, 500)]);
    // The following packets repeat the times of the first ones.
    for number in 0..500 {
        let time = micros(number);
        let (seconds, fraction) = ((time / 1_000_000) as u32, (time % 1_000_000) as u32);
        bytes.extend(pcap_record(LITTLE, seconds, fraction, &packet(500 + number)[..60]));
    }
    let (segments, summary) = read(&bytes);
    assert_eq!((segments.len(), summary.skipped.repeated, summary.backwards), (1000, 0, 1));
}

#[test]
fn packets_on_two_pcapng_interfaces_count_once() {
    let mut bytes = section(LITTLE);
    bytes.extend(interface(LITTLE, 101, &[]));
    bytes.extend(interface(LITTLE, 101, &[]));
    for number in 0..100 {
        for (at, later) in [(0, 0), (1, 10)] {
            let frame = &packet(number)[..60];
            bytes.extend(packet_block(LITTLE, at, micros(number) + later, frame));
        }
    }
    let (segments, summary) = read(&bytes);
    assert_eq!((segments.len(), summary.skipped.other_interface), (100, 100));
    assert_eq!(summary.other_interfaces, "1");
}
