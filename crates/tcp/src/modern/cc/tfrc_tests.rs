//! One test per rule of RFC 5348; test names begin with the section.

use super::super::super::delivery_rate::{DeliveryRate, RateSample};
use super::super::path_model::SplitMix64;
use super::super::reno::RenoControl;
use super::*;
use crate::modern::presets::Preset;
use crate::modern::stack::Stack;
use tcpcast_link::time::MILLISECOND;

const RTT: Nanos = 100 * MILLISECOND;

fn stack() -> Stack {
    Preset::Tfrc.stack()
}

/// A connection with a handshake, and its path.
struct Flow {
    tfrc: Tfrc,
    window: CongestionWindow,
    now: Nanos,
    delivered: u32,
    lost: u32,
}

impl Flow {
    fn new() -> Self {
        let (mut tfrc, window) = (Tfrc::new(&stack().control_rules(), 0), CongestionWindow::new(3));
        tfrc.on_established(&window, 0, RTT);
        Self { tfrc, window, now: 0, delivered: 0, lost: 0 }
    }

    fn packets_per_second(&self) -> f64 {
        self.tfrc.rate / self.tfrc.mss
    }

    /// The next packet arrives or is lost; the acknowledgement reports the current receive rate.
    fn next_packet(&mut self, is_lost: bool) {
        let received = self.packets_per_second();
        self.next_packet_at_rate(is_lost, received, false);
    }

    fn next_packet_at_rate(&mut self, is_lost: bool, received: f64, app_limited: bool) {
        self.now += (SECOND as f64 / self.packets_per_second()) as Nanos;
        self.delivered += u32::from(!is_lost);
        self.lost += u32::from(is_lost);
        let delivered = 1000;
        let interval = (1000.0 * SECOND as f64 / received) as Nanos;
        let rate = Some(DeliveryRate { delivered, interval });
        let sample = AckSample {
            rtt: Some(RTT),
            total_delivered: self.delivered,
            total_lost: self.lost,
            rate: RateSample { rate, app_limited, ..RateSample::default() },
            ..AckSample::for_test(self.now, 1, 10)
        };
        self.tfrc.on_ack(&mut self.window, &sample);
    }
}

fn mean_and_variation(rates: &[f64]) -> (f64, f64) {
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let squares = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
    (mean, (squares / rates.len() as f64).sqrt() / mean)
}

/// Rates in packets per second in bins of a second, with random loss.
fn tfrc_rates(loss: f64, seconds: usize) -> (Vec<f64>, f64) {
    let (mut flow, mut random) = (Flow::new(), SplitMix64::new(1));
    let (mut bins, mut events) = (vec![0.0; seconds], 0.0);
    let mut event_at = 0;
    while flow.now < seconds as u64 * SECOND {
        let at = (flow.now / SECOND) as usize;
        bins[at] += 1.0;
        flow.next_packet(uniform(&mut random) < loss);
        events += f64::from(u8::from(flow.tfrc.losses.event_at != event_at));
        event_at = flow.tfrc.losses.event_at;
    }
    let packets = f64::from(flow.delivered + flow.lost);
    (bins.split_off(20), events / packets)
}

fn uniform(random: &mut SplitMix64) -> f64 {
    random.draw_below(1 << 30) as f64 / f64::from(1 << 30)
}

/// Rates of Reno as in [`tfrc_rates`].
fn reno_rates(loss: f64, seconds: usize) -> Vec<f64> {
    let (mut reno, mut random) = (RenoControl::new(&stack().control_rules()), SplitMix64::new(1));
    let mut window = CongestionWindow::new(10);
    let (mut bins, mut now, mut reduced_at) = (vec![0.0; seconds], 0, 0);
    while now < seconds as u64 * SECOND {
        bins[(now / SECOND) as usize] += 1.0;
        now += RTT / u64::from(window.cwnd);
        if uniform(&mut random) >= loss {
            let sample = AckSample::for_test(now, 1, window.cwnd);
            reno.on_ack(&mut window, &sample);
        } else if now - reduced_at >= RTT {
            window.ssthresh = reno.ssthresh(&window);
            (window.cwnd, window.credit, reduced_at) = (window.ssthresh, 0, now);
        }
    }
    bins.split_off(20)
}

#[test]
fn section_3_1_equation() {
    // p = 1 %, R = 100 ms, t_RTO = 400 ms: the terms of the denominator are 8.165 ms and 0.737 ms.
    let rate = throughput(1.0, 0.1, 0.4, 0.01);
    assert!((rate - 112.33).abs() < 0.01, "{rate} packets/s");
}

#[test]
fn section_3_1_rate_at_random_loss_is_that_of_the_equation() {
    for loss in [0.001, 0.01, 0.05] {
        let (rates, p) = tfrc_rates(loss, 2000);
        let expected = throughput(1.0, 0.1, 0.4, p);
        let error = mean_and_variation(&rates).0 / expected - 1.0;
        assert!(error.abs() < 0.1, "loss {loss}: {:.1} %", 100.0 * error);
    }
}

#[test]
fn section_1_rate_is_smoother_than_renos() {
    // At this loss there are no timeouts, which make Reno's rate vary at a higher loss.
    for loss in [0.001, 0.01] {
        let tfrc = mean_and_variation(&tfrc_rates(loss, 1000).0).1;
        let reno = mean_and_variation(&reno_rates(loss, 1000)).1;
        assert!(tfrc < 0.9 * reno, "loss {loss}: {tfrc:.2} and {reno:.2}");
    }
}

#[test]
fn section_4_2_initial_rate_is_initial_window_per_round_trip() {
    let flow = Flow::new();
    assert!((flow.packets_per_second() - 30.0).abs() < 1e-6);
    assert_eq!(
        Tfrc::new(&stack().control_rules(), 0).requested_pacing_rate(),
        Some(1448),
        "a packet per second"
    );
}

#[test]
fn section_4_3_slow_start_doubles_up_to_twice_the_receive_rate() {
    let mut flow = Flow::new();
    while flow.now < 4 * RTT {
        flow.next_packet(false);
    }
    assert!(flow.packets_per_second() >= 240.0, "{}", flow.packets_per_second());
    for _ in 0..1000 {
        flow.next_packet_at_rate(false, 200.0, false);
    }
    assert!((flow.packets_per_second() - 400.0).abs() < 1e-3);
}

#[test]
fn section_4_3_data_limited_sender_keeps_largest_receive_rate() {
    let mut flow = Flow::new();
    for _ in 0..100 {
        flow.next_packet(false);
    }
    let before = flow.tfrc.max_receive_rate();
    for _ in 0..1000 {
        flow.next_packet_at_rate(false, 10.0, true);
    }
    assert!(flow.tfrc.max_receive_rate() >= before);
}

#[test]
fn section_4_4_rate_is_halved_per_nofeedback_interval() {
    let mut flow = Flow::new();
    for number in 0..2000 {
        flow.next_packet(number % 100 == 99);
    }
    let (before, since) = (flow.tfrc.rate, flow.now);
    flow.tfrc.expire_nofeedback_timer(since + 4 * RTT - MILLISECOND, false);
    assert_eq!(flow.tfrc.rate, before);
    flow.tfrc.expire_nofeedback_timer(since + 12 * RTT + MILLISECOND, false);
    assert!((flow.tfrc.rate / before - 0.125).abs() < 0.01, "{}", flow.tfrc.rate / before);
    flow.now = since + 13 * RTT;
    // Feedback raises the rate again, to at most twice the receive rate.
    let received = flow.packets_per_second();
    for _ in 0..20 {
        flow.next_packet_at_rate(false, received, false);
    }
    assert!(flow.packets_per_second() <= 2.0 * received * (1.0 + 1e-6));
}

#[test]
fn section_4_4_idle_sender_keeps_the_initial_rate() {
    let mut flow = Flow::new();
    for _ in 0..500 {
        flow.next_packet(false);
    }
    let idle = TransmitStart { idle: 100 * SECOND, app_limited: true };
    flow.tfrc.on_transmit_start(&mut flow.window, flow.now + 100 * SECOND, idle);
    assert!((30.0..60.0).contains(&flow.packets_per_second()), "{}", flow.packets_per_second());
}

#[test]
fn section_5_2_losses_of_one_round_trip_are_one_loss_event() {
    let mut flow = Flow::new();
    for _ in 0..300 {
        flow.next_packet(false);
    }
    for _ in 0..3 {
        flow.next_packet(true);
    }
    assert_eq!(flow.tfrc.losses.closed.len(), 1);
    let began = flow.now;
    while flow.now < began + RTT {
        flow.next_packet(false);
    }
    flow.next_packet(true);
    assert_eq!(flow.tfrc.losses.closed.len(), 2);
}

#[test]
fn section_5_4_open_interval_counts_if_it_increases_the_average() {
    let mut losses = LossHistory::default();
    for event in 1..=9 {
        losses.begin_event(0, 100 * event, || 100.0);
    }
    assert_eq!(losses.closed, [100.0; 8]);
    assert_eq!(losses.loss_event_rate(950), Some(0.01), "a short open interval does not count");
    // Weights are 1 of 6, and the oldest interval, with a weight of 0.2, is omitted.
    let mean = (700.0 + 100.0 * 5.0) / 6.0;
    let p = losses.loss_event_rate(900 + 700).unwrap();
    assert!((1.0 / p - mean).abs() < 1e-9, "{}", 1.0 / p);
}

#[test]
fn section_6_3_1_first_interval_gives_the_receive_rate() {
    let mut flow = Flow::new();
    for _ in 0..500 {
        flow.next_packet(false);
    }
    let received = 200.0;
    flow.next_packet_at_rate(true, received, false);
    let ratio = flow.packets_per_second() / received;
    assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
}
