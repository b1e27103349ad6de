//! Tests of the limits of transfers.

mod offload;
mod path;

use path::{Capture, FULL, Path, slow_start};
use proptest::prelude::*;
use tcpcast_trace::{DirectionReport, TransferLimit};

fn share(report: &DirectionReport, limit: TransferLimit) -> f64 {
    let index = TransferLimit::ALL.iter().position(|one| *one == limit).expect("listed");
    report.limitation.shares.expect("time passed")[index]
}

/// Asserts the limit and its minimum share of the time.
fn assert_limited_by(report: &DirectionReport, limit: TransferLimit, min: f64) {
    assert_eq!(report.limitation.limited_by, limit, "{:?}", report.limitation);
    assert!(share(report, limit) > min, "{:?}", report.limitation);
    let sum: f64 = report.limitation.shares.expect("time passed").iter().sum();
    assert!((sum - 1.0).abs() < 1e-9);
}

#[test]
fn limit_is_receive_window() {
    let path = Path { window: 20, ..Path::default() };
    assert_limited_by(&path.report(), TransferLimit::ReceiverWindow, 0.9);
}

#[test]
fn limit_is_receive_window_without_handshake() {
    // The window has at most 16 bits and was never exceeded, so it is not scaled.
    let mut capture = Capture::new(0);
    capture.announce(1280);
    for round in 0..20_u64 {
        (0..10).for_each(|_| capture.data(100.0 * round as f64, FULL));
        capture.ack(100.0 * round as f64 + 99.9, 10 * (round + 1));
    }
    assert_limited_by(&capture.report(), TransferLimit::ReceiverWindow, 0.9);
}

#[test]
fn limit_is_closed_receive_window() {
    let mut capture = Capture::new(64);
    capture.handshake(50.0, 50.01);
    capture.data(60.0, FULL);
    capture.announce(0);
    capture.ack(110.0, 1);
    capture.announce(64);
    capture.ack(4110.0, 1);
    capture.data(4110.1, FULL);
    capture.ack(4160.1, 2);
    let report = capture.report();
    assert_limited_by(&report, TransferLimit::ReceiverWindow, 0.9);
    assert_eq!(report.limitation.idle_s, Some(0.0));
}

#[test]
fn limit_is_send_buffer() {
    let path = Path { buffer: 20, ..Path::default() };
    assert_limited_by(&path.report(), TransferLimit::SendBuffer, 0.9);
}

#[test]
fn limit_with_ecn_marks_is_not_send_buffer() {
    let path = Path { buffer: 20, packets_per_mark: 100, ..Path::default() };
    let report = path.report();
    assert_limited_by(&report, TransferLimit::CongestionWindow, 0.9);
    // The SYN and the SYN-ACK also have these flags, but offer and accept ECN only.
    assert_eq!((report.counts.ecn_echoes, report.counts.window_reductions), (20, 19));
}

#[test]
fn limit_of_short_transfer_is_slow_start() {
    let path = Path { application: |n| (n < 70).then_some((0.0, FULL)), ..Path::default() };
    let report = path.report();
    assert_limited_by(&report, TransferLimit::SlowStart, 0.99);
    assert_eq!(report.rounds.len(), 3);
}

#[test]
fn limit_is_congestion_window() {
    // Grows by one packet per round, from ten.
    let grows =
        |acked: u64| 10 + (((1.0 + 8.0 * (acked as f64 + 45.0)).sqrt() - 1.0) / 2.0) as u64 - 9;
    let path = Path { cwnd: grows, ..Path::default() };
    assert_limited_by(&path.report(), TransferLimit::CongestionWindow, 0.8);
}

#[test]
fn limit_is_bottleneck_with_any_window_limit() {
    for (window, buffer) in [(60, 1000), (1000, 60)] {
        // The path holds 40 packets.
        let path = Path { service: 2.5, window, buffer, ..Path::default() };
        let report = path.report();
        assert_limited_by(&report, TransferLimit::Bottleneck, 0.85);
        let rate = report.limitation.bottleneck_rate_bps.expect("it was full");
        assert!((rate / 3.2e6 - 1.0).abs() < 0.01, "{rate}");
        assert!(report.rtt.flight_correlation.expect("it changed") > 0.9);
    }
}

#[test]
fn limit_is_receive_window_without_standing_queue() {
    let path = Path { service: 2.5, window: 38, ..Path::default() };
    let report = path.report();
    assert_limited_by(&report, TransferLimit::ReceiverWindow, 0.9);
    assert_eq!(report.limitation.bottleneck_rate_bps, None);
}

#[test]
fn limit_is_pausing_application() {
    for last in [FULL, 300] {
        let bursts: fn(u64) -> Option<(f64, u32)> = match last {
            FULL => |n| (n < 200).then_some((1000.0 * (n / 5) as f64, FULL)),
            _ => |n| {
                let bytes = if n % 5 == 4 { 300 } else { FULL };
                (n < 200).then_some((1000.0 * (n / 5) as f64, bytes))
            },
        };
        let report = Path { application: bursts, ..Path::default() }.report();
        assert_limited_by(&report, TransferLimit::Application, 0.8);
        // 39 pauses of 1 s minus a round trip.
        let idle = report.limitation.idle_s.expect("seen at the sender");
        assert!((34.0..36.0).contains(&idle), "{idle}");
        assert!(report.limitation.application_limited_s >= Some(idle));
    }
}

#[test]
fn limit_is_interactive_application() {
    let types: fn(u64) -> Option<(f64, u32)> = |n| (n < 500).then_some((30.0 * n as f64, 40));
    let report = Path { application: types, ..Path::default() }.report();
    assert_limited_by(&report, TransferLimit::Application, 0.9);
    assert_eq!(report.limitation.idle_s, Some(0.0)); // something is always in flight
}

#[test]
fn short_segments_at_end_of_writes_are_not_pauses() {
    // Every third segment is short, but acknowledgements trigger data that were written long
    // before.
    let writes: fn(u64) -> Option<(f64, u32)> =
        |n| (n < 2000).then_some((0.0, if n % 3 == 2 { 500 } else { FULL }));
    let report = Path { cwnd: |_| 12, application: writes, ..Path::default() }.report();
    assert!(share(&report, TransferLimit::Application) < 0.01, "{:?}", report.limitation);
}

#[test]
fn limit_of_server_is_application() {
    let mut capture = Capture::new(64);
    capture.handshake(50.0, 50.01);
    for request in 0..20_u64 {
        let ms = 100.0 * (request + 1) as f64;
        if request > 0 {
            capture.request(ms, request);
        }
        capture.data(ms + 0.1, 300);
    }
    let report = capture.report();
    assert_limited_by(&report, TransferLimit::Application, 0.9);
}

#[test]
fn limit_is_unknown_at_receiver() {
    for handshake in [true, false] {
        let report = at_receiver(handshake);
        assert_eq!(share(&report, TransferLimit::CongestionWindow), 0.0);
        assert_eq!(report.limitation.bottleneck_rate_bps, None);
        assert_eq!(report.limitation.window_reduction, None);
        // If the RTT to the sender is unknown, idle time cannot be excluded.
        assert_eq!(report.limitation.idle_s, handshake.then_some(0.0));
        assert_limited_by(&report, TransferLimit::Unknown, 0.9);
    }
}

/// Flights of ten packets, captured at the receiver.
fn at_receiver(handshake: bool) -> DirectionReport {
    let mut capture = Capture::new(64);
    if handshake {
        capture.handshake(0.01, 100.0);
    }
    for round in 0..20_u64 {
        let ms = 100.0 * (round + 2) as f64;
        (0..10).for_each(|_| capture.data(ms, FULL));
        capture.ack(ms + 0.01, 10 * (round + 1));
    }
    capture.report()
}

#[test]
fn limit_of_single_packet_is_unknown() {
    let mut capture = Capture::new(64);
    capture.data(0.0, FULL);
    let report = capture.report();
    assert_eq!(
        (report.limitation.limited_by, report.limitation.shares),
        (TransferLimit::Unknown, None)
    );
    assert_eq!(report.rounds.len(), 1);
}

#[test]
fn rounds_of_long_transfer_are_merged() {
    let long: fn(u64) -> Option<(f64, u32)> = |n| (n < 50_000).then_some((0.0, FULL));
    let path = Path { rtt: 10.0, window: 8, application: long, ..Path::default() };
    let report = path.report();
    assert!((1024..=2048).contains(&report.rounds.len()), "{}", report.rounds.len());
    let sent: u64 = report.rounds.iter().map(|round| round.sent_bytes).sum();
    let acked: u64 = report.rounds.iter().map(|round| round.acked_bytes).sum();
    assert_eq!((sent, acked), (50_000_000, 50_000_000));
    assert!(report.rounds.windows(2).all(|pair| pair[0].time < pair[1].time));
    let mean = report.rtt.round_mean_s.expect("samples");
    assert!((mean / 0.010_01 - 1.0).abs() < 0.01, "{mean}");
    assert_eq!(report.rtt.round_samples, 50_000 / 8);
    assert!(report.rounds.iter().all(|round| round.flight_bytes == 8 * FULL));
}

#[test]
fn round_ends_with_acknowledgement_of_timed_segment() {
    let mut capture = Capture::new(64);
    capture.handshake(50.0, 50.01);
    (0..4).for_each(|n| capture.data(60.0 + f64::from(n), FULL));
    capture.ack(110.0, 2);
    (0..2).for_each(|_| capture.data(110.5, FULL));
    capture.ack(112.0, 4); // does not cover the timed segment
    capture.ack(162.5, 6);
    let report = capture.report();
    let rounds: Vec<_> = report
        .rounds
        .iter()
        .map(|round| ((round.duration_s() * 1e4) as u32, round.sent_bytes, round.acked_bytes))
        .collect();
    assert_eq!(rounds, [(500, 4000, 2000), (520, 2000, 4000)]);
    assert!((report.rtt.round_mean_s.expect("two") - 0.051).abs() < 1e-9);
    assert_eq!(report.rounds[0].flight_bytes, 4000);
    assert_eq!(report.rounds[0].rtt_s(), Some(0.05));
}

proptest! {
    /// Shares of the time add up to 1 for any limit.
    #[test]
    fn shares_of_time_add_up(
        rtt in 1.0_f64..300.0,
        service in 0.001_f64..20.0,
        window in 1_u64..200,
        buffer in 1_u64..200,
        chatty: bool,
        handshake: bool,
    ) {
        let application: fn(u64) -> Option<(f64, u32)> = if chatty {
            |n| (n < 300).then_some((40.0 * (n / 3) as f64, FULL - (n % 7 * 100) as u32))
        } else {
            |n| (n < 300).then_some((0.0, FULL))
        };
        let path = Path {
            rtt, service, window, buffer, application, handshake,
            cwnd: slow_start,
            packets_per_mark: 0,
        };
        let report = path.report();
        let shares = report.limitation.shares.expect("time passed");
        prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let max = shares.iter().copied().fold(0.0, f64::max);
        prop_assert_eq!(share(&report, report.limitation.limited_by), max);
        let duration = report.duration_s().expect("time passed");
        let application = share(&report, TransferLimit::Application) * duration;
        if let Some(limited) = report.limitation.application_limited_s {
            prop_assert!((limited - application).abs() < 1e-6);
            prop_assert!(report.limitation.idle_s.is_some_and(|idle| idle <= limited + 1e-6));
        } else {
            prop_assert_eq!(application, 0.0);
        }
        let sent: u64 = report.rounds.iter().map(|round| round.sent_bytes).sum();
        prop_assert_eq!(sent, report.counts.bytes);
    }
}
