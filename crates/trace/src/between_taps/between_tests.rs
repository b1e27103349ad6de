//! Tests with packets that pass two taps. Times are in ms.

use std::net::IpAddr;

use super::*;
use crate::segment::{Endpoint, Flags, Options};

const MS: u64 = 1_000_000;
const BEGIN: u64 = 1_000_000;

/// The data of a connection and its acknowledgements on the return path, seen at two taps.
struct Path {
    matching: PacketMatcher,
    /// Lead of the second clock, ms.
    ahead: u64,
}

impl Path {
    fn new(ahead: u64) -> Self {
        let mut matching = PacketMatcher::new();
        matching.offset = i128::from(ahead * MS);
        Self { matching, ahead }
    }

    fn data(&mut self, tap: usize, ms: u64, number: u32) {
        let id = 1 + number as u16;
        self.add(tap, ms, &segment(true, 1000 * number, 1000, id));
    }

    fn ack(&mut self, tap: usize, ms: u64, number: u32) {
        self.add(tap, ms, &segment(false, 1000 * number, 0, 1 + number as u16));
    }

    fn add(&mut self, tap: usize, ms: u64, segment: &Segment) {
        let ahead = if tap == SECOND_TAP { self.ahead } else { 0 };
        let segment = Segment { time: (BEGIN + ms + ahead) * MS, ..*segment };
        self.matching.add_segment(tap, &segment, (tap == FIRST_TAP).then_some(5));
    }

    /// Returns the passage of the data and the comparison.
    fn finish(mut self) -> (DirectionBetweenTaps, Comparison) {
        self.matching.ended = [true; 2];
        let comparison = self.matching.into_comparison();
        let data = |passage: &&DirectionBetweenTaps| passage.source.port == 1;
        (*comparison.passages.iter().find(data).unwrap(), comparison)
    }
}

fn segment(data: bool, number: u32, payload: u32, id: u16) -> Segment {
    let ends =
        [1, 2].map(|end| Endpoint { address: IpAddr::from([10, 0, 0, end]), port: u16::from(end) });
    let [source, destination] = if data { ends } else { [ends[1], ends[0]] };
    Segment {
        frame: 0,
        time: 0,
        source,
        destination,
        ip_id: (id > 0).then_some(id),
        ttl: 64,
        ecn: 0,
        ip_bytes: 40 + payload,
        payload,
        sequence: if data { number } else { 1 },
        acknowledgement: if data { 1 } else { number },
        flags: Flags(Flags::ACK),
        ae: false,
        window: 1000,
        options: Options::default(),
        fragment: false,
    }
}

#[test]
fn missing_packets_are_lost_and_others_timed() {
    let mut path = Path::new(0);
    for number in 0..10 {
        path.data(FIRST_TAP, u64::from(number) * 10, number);
        if number != 3 && number != 4 {
            path.data(SECOND_TAP, u64::from(number) * 10 + 5 + u64::from(number % 2), number);
        }
    }
    let (data, comparison) = path.finish();
    assert_eq!((data.seen_before, data.seen_after, data.lost), (10, 8, 2));
    assert_eq!((data.in_flight, data.matched, data.forward), (0, 8, true));
    let [min, mean, max] = data.transit_s.unwrap();
    assert!((min - 0.005).abs() < 1e-9 && (max - 0.006).abs() < 1e-9);
    assert!((mean - 0.0055).abs() < 1e-9, "{mean}");
    assert_eq!((comparison.clocks.min_s, comparison.only_after), (None, 0));
}

#[test]
fn packet_shortly_before_end_is_in_flight() {
    let mut path = Path::new(0);
    for number in 0..5 {
        path.data(FIRST_TAP, u64::from(number), number);
    }
    for number in [0, 2] {
        path.data(SECOND_TAP, 40 + u64::from(number), number);
    }
    let (data, _) = path.finish();
    assert_eq!((data.lost, data.in_flight), (1, 2), "1 was overtaken, 3 and 4 were not");
}

#[test]
fn last_packet_is_lost_if_capture_continues() {
    let mut path = Path::new(0);
    path.data(FIRST_TAP, 0, 0);
    path.data(SECOND_TAP, 5, 0);
    path.data(FIRST_TAP, 10, 1);
    path.ack(SECOND_TAP, 200, 1);
    path.ack(FIRST_TAP, 205, 1);
    let (data, _) = path.finish();
    assert_eq!((data.lost, data.in_flight), (1, 0));
}

#[test]
fn reordered_packets_are_not_lost() {
    let mut path = Path::new(0);
    for number in 0..4 {
        path.data(FIRST_TAP, u64::from(number) * 10, number);
    }
    for (ms, number) in [(50, 1), (51, 0), (62, 3)] {
        path.data(SECOND_TAP, ms, number);
    }
    let (data, _) = path.finish();
    // Packet 2 may still arrive, 10 ms late like packet 0.
    assert_eq!((data.lost, data.in_flight, data.matched), (0, 1, 3));
}

#[test]
fn clock_offset_of_an_hour_is_reported() {
    let mut path = Path::new(3_600_000);
    for number in 0..100_u32 {
        let ms = u64::from(number) * 10;
        path.data(FIRST_TAP, ms, number);
        path.data(SECOND_TAP, ms + 20, number);
        path.ack(SECOND_TAP, ms + 21, number);
        path.ack(FIRST_TAP, ms + 41, number);
    }
    let (data, comparison) = path.finish();
    assert_eq!((data.matched, data.lost, data.in_flight, data.forward), (100, 0, 0, true));
    let acks = comparison.passages.iter().find(|passage| passage.source.port == 2).unwrap();
    assert!(!acks.forward);
    assert_eq!((acks.lost, acks.in_flight), (0, 0));
    let (min, max) = (comparison.clocks.min_s.unwrap(), comparison.clocks.max_s.unwrap());
    assert!((min - 3599.98).abs() < 1e-6 && (max - 3600.02).abs() < 1e-6, "{min} {max}");
}

#[test]
fn packets_before_start_of_second_capture_are_excluded() {
    let mut path = Path::new(0);
    for number in 0..100 {
        let ms = u64::from(number) * 10;
        path.data(FIRST_TAP, ms, number);
        if number >= 50 && number != 60 {
            path.data(SECOND_TAP, ms + 5, number);
        }
    }
    let (data, _) = path.finish();
    assert_eq!((data.not_covered, data.seen_before, data.lost), (50, 50, 1));
}

#[test]
fn copies_count_once_and_packets_without_id_are_counted() {
    let mut path = Path::new(0);
    path.data(FIRST_TAP, 0, 0);
    path.data(FIRST_TAP, 1, 0);
    path.data(SECOND_TAP, 5, 0);
    for ms in [10, 20, 30] {
        path.add(FIRST_TAP, ms, &segment(true, 7000, 0, 0));
    }
    for ms in [25, 35] {
        path.add(SECOND_TAP, ms, &segment(true, 7000, 0, 0));
    }
    path.data(FIRST_TAP, 90, 9);
    path.data(SECOND_TAP, 95, 9);
    let (data, _) = path.finish();
    assert_eq!((data.seen_before, data.seen_after, data.matched, data.lost), (5, 4, 4, 1));
}

#[test]
fn connection_on_another_path_is_not_lost() {
    let mut path = Path::new(0);
    let mut foreign = segment(true, 0, 9, 9);
    foreign.source.port = 3;
    path.add(SECOND_TAP, 0, &foreign);
    for number in 0..10 {
        path.data(FIRST_TAP, u64::from(number), number);
    }
    path.add(SECOND_TAP, 5000, &Segment { ip_id: Some(10), ..foreign });
    let (data, comparison) = path.finish();
    assert_eq!((data.seen_before, data.matched, data.lost, data.transit_s), (10, 0, 0, None));
    assert_eq!(comparison.only_after, 1);
}

#[test]
fn busiest_directions_are_kept_and_others_counted() {
    let mut path = Path::new(0);
    for number in 0..10 {
        path.data(FIRST_TAP, 0, number);
    }
    // A scan follows, with one packet per port and connection.
    let scanned: u32 = (1 << 17) + 1000;
    for number in 0..scanned {
        let mut probe = segment(true, 0, 0, 1 + (number % 60_000) as u16);
        probe.source.address = IpAddr::from((7 << 24 | (number >> 16)).to_be_bytes());
        probe.source.port = number as u16;
        probe.time = BEGIN * MS;
        path.matching.add_segment(FIRST_TAP, &probe, Some(100 + u64::from(number)));
    }
    for number in 0..9 {
        path.data(SECOND_TAP, 5, number);
    }
    let (data, comparison) = path.finish();
    assert_eq!((data.matched, data.lost, data.in_flight), (9, 0, 1));
    assert_eq!(comparison.dropped, 1 << 16);
    assert_eq!(comparison.passages.len() as u64 + comparison.dropped, 1 + u64::from(scanned));
    assert_eq!(comparison.forgotten, comparison.dropped, "packets of dropped directions");
}
