//! Properties that hold for any input.

use crate::writing::*;
use proptest::collection::vec;
use proptest::prelude::*;
use tcpcast_trace::{CaptureReader, Segment};

const LINKS: [u16; 24] = [
    0, 1, 7, 9, 10, 12, 14, 50, 51, 101, 104, 105, 108, 113, 119, 127, 129, 163, 192, 228, 229,
    239, 242, 276,
];

/// Reads any bytes: each frame must be a segment or skipped, and lengths must be consistent.
pub fn survey(bytes: &[u8]) {
    let Ok(reader) = CaptureReader::new(bytes) else {
        return;
    };
    let mut last = 0;
    let summary = reader.for_each(|segment| {
        assert!(segment.frame > last);
        last = segment.frame;
        assert!(segment.payload + 40 <= segment.ip_bytes);
        assert!(segment.options.sack_blocks <= 4);
    });
    assert_eq!(summary.frames, summary.segments + summary.skipped.total());
    assert!(last <= summary.frames);
    assert_eq!(summary.segments == 0, last == 0);
}

/// Creates a file with many kinds of frames, for mutation.
fn seed(link: usize, next: bool, frames: &[Vec<u8>]) -> Vec<u8> {
    let link = LINKS[link];
    if !next {
        return pcap(link.into(), frames);
    }
    let mut bytes = section(BIG);
    bytes.extend(interface(BIG, link, &option(BIG, 9, &[0x94])));
    for (number, frame) in (0..).zip(frames) {
        bytes.extend(packet_block(BIG, 0, micros(number), frame));
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn reader_accepts_frames_of_any_bytes(
        link in 0..LINKS.len(),
        next: bool,
        frames in vec(vec(any::<u8>(), 0..120), 1..4),
    ) {
        survey(&seed(link, next, &frames));
    }

    #[test]
    fn reader_accepts_mutated_packets(
        link in 0..LINKS.len(),
        next: bool,
        six: bool,
        changes in vec((0..200_usize, any::<u8>()), 0..6),
    ) {
        let packet = if six { packet_6(0, 0, &[6, 0, 0xc2, 4, 0, 0, 5, 0xbc]) } else { packet(0) };
        let mut bytes = seed(link, next, &[packet[..100].to_vec(), packet[..90].to_vec()]);
        for (at, value) in changes {
            let length = bytes.len();
            bytes[at % length] = value;
        }
        survey(&bytes);
    }

    #[test]
    fn reader_accepts_mutated_compressed_data(
        gzip: bool,
        changes in vec((0..4000_usize, any::<u8>()), 1..3),
    ) {
        let mut bytes = match gzip {
            true => include_bytes!("../data/transfer.pcap.gz").to_vec(),
            false => include_bytes!("../data/transfer.pcap.zst").to_vec(),
        };
        for (at, value) in changes {
            let length = bytes.len();
            bytes[at % length] = value;
        }
        survey(&bytes);
    }

    #[test]
    fn reader_restores_written_segments(
        segments in vec(
            (any::<[u16; 2]>(), any::<[u32; 2]>(), any::<u8>(), any::<u16>(), 0..65_495_u16),
            0..20,
        ),
    ) {
        let sent: Vec<_> = segments
            .iter()
            .map(|&(ports, numbers, flags, window, payload)| tcpcast_wire::ZeroPayloadSegment {
                source: SOURCE.octets(),
                destination: DESTINATION.octets(),
                source_port: ports[0],
                destination_port: ports[1],
                identification: window ^ 0x5a5a,
                sequence: numbers[0],
                acknowledgement: numbers[1],
                flags,
                window,
                payload,
                ..tcpcast_wire::ZeroPayloadSegment::default()
            })
            .collect();
        let mut writer = tcpcast_wire::CaptureWriter::new(Vec::new()).unwrap();
        for (number, segment) in (0..).zip(&sent) {
            let length = u32::from(segment.payload) + 40;
            writer.write_packet(micros(number) * 1000 + 1, length, &segment.encode_headers()).unwrap();
        }
        let (received, summary) = read(&writer.into_inner());
        prop_assert!(!summary.is_damaged());
        prop_assert_eq!(received.len(), sent.len());
        for (number, (got, segment)) in (0..).zip(received.iter().zip(&sent)) {
            prop_assert_eq!(got.time, micros(number) * 1000 + 1);
            prop_assert_eq!(fields(got), *segment);
        }
    }
}

/// Converts a captured segment to the writer's type.
fn fields(segment: &Segment) -> tcpcast_wire::ZeroPayloadSegment {
    tcpcast_wire::ZeroPayloadSegment {
        source: SOURCE.octets(),
        destination: DESTINATION.octets(),
        source_port: segment.source.port,
        destination_port: segment.destination.port,
        identification: segment.ip_id.unwrap(),
        sequence: segment.sequence,
        acknowledgement: segment.acknowledgement,
        flags: segment.flags.0,
        window: segment.window,
        payload: segment.payload as u16,
        ..tcpcast_wire::ZeroPayloadSegment::default()
    }
}
