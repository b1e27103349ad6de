//! Transfers that one thing limits, and what is said to have limited them.

mod offload;
mod path;

use path::{Capture, FULL, Path, slow_start};
use proptest::prelude::*;
use tcpcast_trace::{DirectionReport, LIMITS, Limit};

fn share(report: &DirectionReport, limit: Limit) -> f64 {
    let place = LIMITS.iter().position(|one| *one == limit).expect("listed");
    report.limitation.shares.expect("time passed")[place]
}

/// It is said to be the limit, for at least this share of the time.
fn assert_limited_by(report: &DirectionReport, limit: Limit, least: f64) {
    assert_eq!(report.limitation.limited_by, limit, "{:?}", report.limitation);
    assert!(share(report, limit) > least, "{:?}", report.limitation);
    let sum: f64 = report.limitation.shares.expect("time passed").iter().sum();
    assert!((sum - 1.0).abs() < 1e-9);
}

#[test]
fn the_receiver_s_window() {
    let path = Path { window: 20, ..Path::default() };
    assert_limited_by(&path.report(), Limit::ReceiverWindow, 0.9);
}

#[test]
fn the_receiver_s_window_without_a_handshake() {
    // Of 16 bits or less, it was never exceeded: it is not scaled.
    let mut capture = Capture::new(0);
    capture.announce(1280);
    for round in 0..20_u64 {
        (0..10).for_each(|_| capture.data(100.0 * round as f64, FULL));
        capture.ack(100.0 * round as f64 + 99.9, 10 * (round + 1));
    }
    assert_limited_by(&capture.report(), Limit::ReceiverWindow, 0.9);
}

#[test]
fn a_closed_window() {
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
    assert_limited_by(&report, Limit::ReceiverWindow, 0.9);
    assert_eq!(report.limitation.idle_s, Some(0.0));
}

#[test]
fn the_sender_s_buffer() {
    let path = Path { buffer: 20, ..Path::default() };
    assert_limited_by(&path.report(), Limit::SendBuffer, 0.9);
}

#[test]
fn slow_start_of_a_short_transfer() {
    let path = Path { application: |n| (n < 70).then_some((0.0, FULL)), ..Path::default() };
    let report = path.report();
    assert_limited_by(&report, Limit::SlowStart, 0.99);
    assert_eq!(report.rounds.len(), 3);
}

#[test]
fn the_congestion_window() {
    // One more a round, from ten on.
    let grows =
        |acked: u64| 10 + (((1.0 + 8.0 * (acked as f64 + 45.0)).sqrt() - 1.0) / 2.0) as u64 - 9;
    let path = Path { cwnd: grows, ..Path::default() };
    assert_limited_by(&path.report(), Limit::CongestionWindow, 0.8);
}

#[test]
fn the_bottleneck_whatever_lengthens_its_queue() {
    for (window, buffer) in [(60, 1000), (1000, 60)] {
        // 40 packets fill the path.
        let path = Path { service: 2.5, window, buffer, ..Path::default() };
        let report = path.report();
        assert_limited_by(&report, Limit::Bottleneck, 0.85);
        let rate = report.limitation.bottleneck_rate_bps.expect("it was full");
        assert!((rate / 3.2e6 - 1.0).abs() < 0.01, "{rate}");
        assert!(report.rtt.flight_correlation.expect("it changed") > 0.9);
    }
}

#[test]
fn a_path_that_is_just_full_has_no_queue() {
    let path = Path { service: 2.5, window: 38, ..Path::default() };
    let report = path.report();
    assert_limited_by(&report, Limit::ReceiverWindow, 0.9);
    assert_eq!(report.limitation.bottleneck_rate_bps, None);
}

#[test]
fn an_application_that_pauses() {
    for last in [FULL, 300] {
        let bursts: fn(u64) -> Option<(f64, u32)> = match last {
            FULL => |n| (n < 200).then_some((1000.0 * (n / 5) as f64, FULL)),
            _ => |n| {
                let bytes = if n % 5 == 4 { 300 } else { FULL };
                (n < 200).then_some((1000.0 * (n / 5) as f64, bytes))
            },
        };
        let report = Path { application: bursts, ..Path::default() }.report();
        assert_limited_by(&report, Limit::Application, 0.8);
        // 39 pauses of 1 s less a round trip.
        let idle = report.limitation.idle_s.expect("seen at the sender");
        assert!((34.0..36.0).contains(&idle), "{idle}");
        assert!(report.limitation.application_limited_s >= Some(idle));
    }
}

#[test]
fn an_application_that_types() {
    let types: fn(u64) -> Option<(f64, u32)> = |n| (n < 500).then_some((30.0 * n as f64, 40));
    let report = Path { application: types, ..Path::default() }.report();
    assert_limited_by(&report, Limit::Application, 0.9);
    assert_eq!(report.limitation.idle_s, Some(0.0)); // something is always in flight
}

#[test]
fn segments_that_end_a_write_are_no_pause() {
    // Every third is short, but the acknowledgements let out what was written long before.
    let writes: fn(u64) -> Option<(f64, u32)> =
        |n| (n < 2000).then_some((0.0, if n % 3 == 2 { 500 } else { FULL }));
    let report = Path { cwnd: |_| 12, application: writes, ..Path::default() }.report();
    assert!(share(&report, Limit::Application) < 0.01, "{:?}", report.limitation);
}

#[test]
fn a_server_waits_for_requests() {
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
    assert_limited_by(&report, Limit::Application, 0.9);
}

#[test]
fn a_tap_at_the_receiver_does_not_say() {
    for handshake in [true, false] {
        let report = at_receiver(handshake);
        assert_eq!(share(&report, Limit::CongestionWindow), 0.0);
        assert_eq!(report.limitation.bottleneck_rate_bps, None);
        assert_eq!(report.limitation.window_reduction, None);
        // Without the way to the sender it might have paused between its flights.
        assert_eq!(report.limitation.idle_s, handshake.then_some(0.0));
        assert_limited_by(&report, Limit::Unknown, 0.9);
    }
}

/// Flights of ten packets, as they come to the receiver.
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
fn one_packet_says_nothing() {
    let mut capture = Capture::new(64);
    capture.data(0.0, FULL);
    let report = capture.report();
    assert_eq!((report.limitation.limited_by, report.limitation.shares), (Limit::Unknown, None));
    assert_eq!(report.rounds.len(), 1);
}

#[test]
fn rounds_of_a_long_transfer_are_joined() {
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
fn a_round_lasts_until_its_first_segment_is_acknowledged() {
    let mut capture = Capture::new(64);
    capture.handshake(50.0, 50.01);
    (0..4).for_each(|n| capture.data(60.0 + f64::from(n), FULL));
    capture.ack(110.0, 2);
    (0..2).for_each(|_| capture.data(110.5, FULL));
    capture.ack(112.0, 4); // not the timed one
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
    /// Whatever limits a transfer, its time is divided without a rest.
    #[test]
    fn time_is_divided_without_rest(
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
        let path = Path { rtt, service, window, buffer, cwnd: slow_start, application, handshake };
        let report = path.report();
        let shares = report.limitation.shares.expect("time passed");
        prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let most = shares.iter().copied().fold(0.0, f64::max);
        prop_assert_eq!(share(&report, report.limitation.limited_by), most);
        let duration = report.duration_s().expect("time passed");
        let application = share(&report, Limit::Application) * duration;
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
