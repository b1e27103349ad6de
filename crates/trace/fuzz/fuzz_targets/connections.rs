//! Converts any bytes to segments of a few connections: `cargo +nightly fuzz run connections` in
//! this directory.
//!
//! Sequence and acknowledgement numbers are differences from the connection's state, so that most
//! of them are plausible and some are far away.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::{IpAddr, Ipv4Addr};
use tcpcast_trace::{
    ConnectionReport, Connections, DirectionReport, DurationReport, Endpoint, Flags, MemoryLimits,
    Options, Segment,
};

/// Bytes per segment.
const STEP: usize = 10;
const LIMITS: MemoryLimits = MemoryLimits { connections: 2, events: 8, points: 6 };
const FLAGS: [u8; 8] = [
    Flags::ACK,
    Flags::ACK | Flags::PSH,
    Flags::SYN,
    Flags::SYN | Flags::ACK,
    Flags::FIN | Flags::ACK,
    Flags::RST,
    Flags::ACK | Flags::ECE,
    0,
];
const PAYLOADS: [u32; 8] = [0, 0, 1, 100, 100, 1000, 1000, 65_000];
/// Time differences, ns: within a burst, a round trip, a timeout, an interval.
const GAPS: [u64; 8] =
    [0, 1_000, 1_000_000, 3_000_000, 50_000_000, 300_000_000, 2_000_000_000, 150_000_000_000];

/// Sequence numbers of the connections, and the time.
struct Driver {
    next: [[u32; 2]; 3],
    time: u64,
    frame: u64,
}

impl Driver {
    fn segment(&mut self, bytes: &[u8; STEP]) -> Segment {
        let [which, gap, flags, sequence, ack, payload, window, id, clock, sack] = *bytes;
        let (connection, from) = (usize::from(which & 3) % 3, usize::from(which >> 2 & 1));
        let flags = Flags(FLAGS[usize::from(flags & 7)]);
        let payload = if flags.contains_any(Flags::SYN) { 0 } else { PAYLOADS[usize::from(payload & 7)] };
        let next = self.next[connection];
        let own = next[from].wrapping_add_signed(near(sequence));
        let ahead = own.wrapping_add(payload);
        if (ahead.wrapping_sub(next[from]) as i32) > 0 {
            self.next[connection][from] = ahead;
        }
        let gap = GAPS[usize::from(gap & 7)] * u64::from(gap >> 3 & 15);
        self.time = if which & 0x80 == 0 { self.time + gap } else { self.time.saturating_sub(gap) };
        self.frame += 1;
        let other = next[1 - from].wrapping_add_signed(near(ack));
        let ends = [end(1, connection), end(2, connection)];
        Segment {
            frame: self.frame,
            time: self.time,
            source: ends[from],
            destination: ends[1 - from],
            ip_id: (which & 0x40 == 0).then_some(u16::from(id)),
            ttl: 64,
            ecn: id & 3,
            ip_bytes: payload + 40,
            payload,
            sequence: own,
            acknowledgement: other,
            flags,
            ae: false,
            window: if window < 16 { 0 } else { u16::from(window) << 8 },
            options: options(flags, other, clock, sack),
            fragment: false,
        }
    }
}

/// Returns a small difference: usually zero or a segment of 100 or 1000 bytes in either direction,
/// rarely a large one.
fn near(byte: u8) -> i32 {
    let steps = i32::from(byte & 31) - 16;
    match byte >> 5 {
        0..=2 => 0,
        3 => steps,
        4 => steps * 100,
        5 => steps * 1000,
        6 => steps << 16,
        _ => steps << 27,
    }
}

fn end(host: u8, connection: usize) -> Endpoint {
    let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
    Endpoint { address, port: 1000 + connection as u16 }
}

fn options(flags: Flags, acknowledged: u32, clock: u8, sack: u8) -> Options {
    let syn = flags.contains_any(Flags::SYN);
    let block = |place: i32| {
        let left = acknowledged.wrapping_add_signed(near(sack) + place * 1000);
        (left, left.wrapping_add(u32::from(sack & 3) * 500))
    };
    Options {
        mss: (syn && clock & 1 == 0).then_some(1000),
        window_scale: (syn && clock & 2 == 0).then_some(7),
        sack_permitted: syn && clock & 4 == 0,
        sack: [block(1), block(3), block(2), block(0)],
        sack_blocks: if syn { 0 } else { sack % 5 },
        timestamps: (clock >= 16).then_some((u32::from(clock), u32::from(clock / 2))),
        cut: clock == 15,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((start, rest)) = bytes.split_first() else {
        return;
    };
    let first = u32::from(*start).wrapping_mul(0x0101_0101);
    let mut driver = Driver { next: [[first, !first]; 3], time: 1 << 40, frame: 0 };
    let mut connections = Connections::new(LIMITS);
    let mut reports = Vec::new();
    for step in rest.chunks_exact(STEP) {
        if let Ok(step) = step.try_into() {
            connections.push_segment(&driver.segment(step));
        }
        if driver.frame % 16 == 0 {
            reports.extend(connections.take_finished());
        }
    }
    let count = connections.connection_count();
    reports.extend(connections.into_remaining_reports());
    assert_eq!(reports.len() as u64, count);
    let total: u64 = reports.iter().map(check).sum();
    assert_eq!(total, driver.frame);
});

/// Checks the invariants of a connection. Returns its number of segments.
fn check(report: &ConnectionReport) -> u64 {
    assert!(report.first_frame > 0 && report.first <= report.last);
    report.directions.iter().map(check_direction).sum()
}

fn check_direction(direction: &DirectionReport) -> u64 {
    let counts = &direction.counts;
    assert!(counts.data_packets <= counts.packets);
    assert!(counts.unique_bytes <= counts.bytes, "{counts:?}");
    assert!(counts.retransmissions + counts.out_of_order <= counts.data_packets);
    assert!(counts.retransmitted_bytes <= counts.bytes);
    assert_eq!(direction.causes.all_retransmissions(), counts.retransmissions);
    let indications = &direction.indications;
    assert!(indications.timeouts >= indications.timeout_count());
    assert_eq!(direction.causes.timeout, indications.timeouts);
    assert!(indications.td + indications.timeout_count() <= counts.retransmissions);
    assert!(indications.td_paper + indications.to_paper <= counts.retransmissions);
    assert!(direction.spurious.dsack + direction.spurious.eifel <= counts.retransmissions);
    let listed = direction.retransmitted.len() + direction.loss_times.len();
    let events = counts.retransmissions + indications.td + indications.timeout_count();
    assert_eq!(listed as u64 + direction.omitted, events);
    assert!(direction.retransmitted.len() <= LIMITS.events);
    assert_eq!(sum(direction, |interval| interval.data_packets), counts.data_packets);
    assert_eq!(sum(direction, |interval| interval.retransmissions), counts.retransmissions);
    assert_eq!(sum(direction, |interval| interval.bytes), counts.bytes);
    check_round_trips(direction);
    counts.packets + counts.capture_duplicates
}

fn sum(direction: &DirectionReport, of: impl Fn(&tcpcast_trace::IntervalCounts) -> u64) -> u64 {
    direction.intervals.iter().map(of).sum()
}

fn check_round_trips(direction: &DirectionReport) {
    let rtt = &direction.rtt;
    for DurationReport { min_s, mean_s, max_s, p50_s, p95_s, p99_s, .. } in
        [rtt.karn, rtt.sender, rtt.timestamps].into_iter().flatten()
    {
        assert!(min_s <= p50_s && p50_s <= p95_s && p95_s <= p99_s && p99_s <= max_s);
        // A sum of many values is rounded.
        assert!(min_s <= mean_s * (1.0 + 1e-9) && mean_s <= max_s * (1.0 + 1e-9));
    }
    assert!(rtt.flight_correlation.is_none_or(|value| value.abs() <= 1.0));
    assert!(direction.t0_s.is_none_or(|value| value >= 0.0));
    assert!(direction.duration_s().is_none_or(|value| value > 0.0));
    let mean = direction.flight_mean_bytes.unwrap_or(0.0);
    assert!(mean <= direction.flight_max_bytes as f64 * (1.0 + 1e-9));
    assert!(direction.flight_max_bytes <= 1 << 30);
}
