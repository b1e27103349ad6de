//! One test per rule of RFC 9438 or of Linux's `tcp_cubic.c`; test names refer to the rule.

use super::super::AnyCongestionControl;
use super::*;
use crate::modern::presets::Preset;
use crate::modern::segment::{ArrivingAck, Timestamps, timestamp_at};
use crate::modern::sender::Sender;
use tcpcast_link::time::MILLISECOND;

fn control(options: CubicOptions) -> CubicControl {
    CubicControl::new(options, &Preset::LinuxCubic.stack().control_rules(), 0, 1)
}

/// Window after a loss at a window of `cwnd` packets.
fn reduced(cubic: &mut CubicControl, cwnd: u32) -> CongestionWindow {
    let ssthresh = cubic.ssthresh(&CongestionWindow::new(cwnd));
    CongestionWindow { ssthresh, ..CongestionWindow::new(ssthresh) }
}

fn ack(now: Nanos, rtt: Nanos, cwnd: u32) -> AckSample {
    AckSample { rtt: Some(rtt), srtt: Some(rtt), ..AckSample::for_test(now, 1, cwnd) }
}

/// Acknowledges packets one by one, a window per round-trip time.
fn acknowledge(
    cubic: &mut CubicControl,
    window: &mut CongestionWindow,
    rtt: Nanos,
    time: std::ops::Range<Nanos>,
) {
    let mut now = time.start;
    while now < time.end {
        let sample = ack(now, rtt, window.cwnd);
        cubic.on_rtt_sample(window, &sample);
        cubic.on_ack(window, &sample);
        now += rtt / u64::from(window.cwnd);
    }
}

#[test]
fn rfc_9438_4_2_window_follows_curve_to_plateau_and_beyond() {
    let (w_max, rtt) = (1000_u32, 100 * MILLISECOND);
    let mut cubic = control(CubicOptions::LINUX);
    let mut window = reduced(&mut cubic, w_max);
    let k = ((f64::from(w_max) - 700.0) / 0.4).cbrt();
    let mut before = 0;
    for seconds in [4, 9, 18, 30] {
        acknowledge(&mut cubic, &mut window, rtt, before * SECOND..seconds * SECOND);
        let curve = 0.4 * (seconds as f64 - k).powi(3) + f64::from(w_max);
        let error = f64::from(window.cwnd) / curve - 1.0;
        assert!(error.abs() < 0.005, "after {seconds} s {} of {curve}", window.cwnd);
        before = seconds;
    }
}

#[test]
fn rfc_9438_4_2_idle_time_does_not_count() {
    let rtt = 100 * MILLISECOND;
    let grown = |idle| {
        let mut cubic = control(CubicOptions::LINUX);
        let mut window = reduced(&mut cubic, 1000);
        acknowledge(&mut cubic, &mut window, rtt, 0..SECOND);
        let now = SECOND + idle;
        cubic.on_transmit_start(&mut window, now, TransmitStart { idle, app_limited: true });
        acknowledge(&mut cubic, &mut window, rtt, now..now + 3 * SECOND);
        window.cwnd
    };
    let (without, after_idle) = (grown(0), grown(5 * SECOND));
    assert!(without.abs_diff(after_idle) <= 1, "{without} and {after_idle}");
}

#[test]
fn rfc_9438_4_3_window_grows_by_alpha_cubic_per_short_round_trip() {
    let rtt = 10 * MILLISECOND;
    let mut cubic = control(CubicOptions::LINUX);
    let mut window = reduced(&mut cubic, 10);
    acknowledge(&mut cubic, &mut window, rtt, 0..3 * SECOND);
    // 3 (1 - beta) / (1 + beta) per round trip, for 300 round trips.
    let reno = 7.0 + 300.0 * 9.0 / 17.0;
    assert!((f64::from(window.cwnd) - reno).abs() < 4.0, "{} of {reno}", window.cwnd);
    // Without Reno-friendliness, the curve is hardly above its plateau.
    let mut cubic = control(CubicOptions { reno_friendly: false, ..CubicOptions::LINUX });
    let mut window = reduced(&mut cubic, 10);
    acknowledge(&mut cubic, &mut window, rtt, 0..3 * SECOND);
    assert!(window.cwnd < 15, "{}", window.cwnd);
}

#[test]
fn rfc_9438_4_6_and_4_7_loss_keeps_717_of_1024_and_second_loss_lowers_plateau() {
    let mut cubic = control(CubicOptions::LINUX);
    assert_eq!(reduced(&mut cubic, 1024).cwnd, 717);
    assert_eq!(cubic.w_max, 1024);
    // Fast convergence: the plateau is (1 + beta) / 2 of the window.
    assert_eq!(reduced(&mut cubic, 800).cwnd, 560);
    assert_eq!(cubic.w_max, 800 * (1024 + 717) / 2048);
    let mut cubic = control(CubicOptions { fast_convergence: false, ..CubicOptions::LINUX });
    let widths = [1024, 800].map(|cwnd| (reduced(&mut cubic, cwnd).cwnd, cubic.w_max));
    assert_eq!(widths, [(717, 1024), (560, 800)]);
    assert_eq!(reduced(&mut cubic, 2).cwnd, 2, "at least two packets");
}

#[test]
fn linux_bictcp_update_grows_by_a_twentieth_at_unknown_capacity() {
    let rtt = 100 * MILLISECOND;
    let mut cubic = control(CubicOptions::LINUX);
    let mut window = CongestionWindow { ssthresh: 100, ..CongestionWindow::new(100) };
    acknowledge(&mut cubic, &mut window, rtt, 0..rtt);
    assert_eq!(window.cwnd, 105);
}

#[test]
fn linux_cubictcp_acked_ignores_delays_in_first_second_of_epoch() {
    let (long, short) = (100 * MILLISECOND, 50 * MILLISECOND);
    let mut cubic = control(CubicOptions::LINUX);
    let mut window = reduced(&mut cubic, 100);
    acknowledge(&mut cubic, &mut window, long, 0..long);
    let mut min_delay_at = |now| {
        cubic.on_rtt_sample(&mut window, &ack(now, short, 70));
        cubic.min_delay
    };
    assert_eq!(min_delay_at(SECOND - 4 * MILLISECOND), Some(long));
    assert_eq!(min_delay_at(SECOND), Some(short));
}

#[test]
fn linux_cubictcp_state_resets_at_each_timeout() {
    let stack = Preset::LinuxCubic.stack();
    let mut sender = Sender::new(0, 1, 1, &stack);
    sender.on_established(0, Some(50 * MILLISECOND), 1 << 40, &stack);
    sender.write_bytes(0, 1 << 20, &stack, &mut ());
    let min_delay = |sender: &Sender| match &sender.control {
        AnyCongestionControl::Cubic(control) => control.min_delay,
        other => panic!("{other:?}"),
    };
    let send = |sender: &mut Sender, now| {
        while sender.poll_transmit(now, &stack).is_some() {}
    };
    let time_out = |sender: &mut Sender| {
        let mut now = 0;
        while sender.timeouts_without_progress() == 0 {
            now = sender.deadline();
            sender.on_deadline(now, &stack, &mut ());
            send(sender, now);
        }
        now
    };
    send(&mut sender, 0);
    let mut now = time_out(&mut sender);
    assert_eq!(min_delay(&sender), None);
    // A retransmitted packet is acknowledged.
    now += 60 * MILLISECOND;
    let stamps = Timestamps { value: 1, echo: timestamp_at(now - 50 * MILLISECOND) };
    let (ack, window) = (1 + u64::from(stack.mss), 1 << 40);
    let ack =
        ArrivingAck { ack, window, seq: 1, timestamps: Some(stamps), ..ArrivingAck::default() };
    sender.on_ack(now, &ack, &stack, &mut ());
    send(&mut sender, now);
    assert!(min_delay(&sender).is_some());
    time_out(&mut sender);
    assert_eq!(min_delay(&sender), None);
}
