//! How connections are opened in the network, beside what can be worked out by hand.

use tcpcast_sim::clock::{Nanos, SECOND, transmission_time};
use tcpcast_sim::probe::{OpenedSums, ProbeConfig};
use tcpcast_sim::queue::QueueConfig;
use tcpcast_sim::tcp::TcpConfig;
use tcpcast_sim::tcp::modern::{Handshake, ModernTcp, Preset, Stack};
use tcpcast_sim::{
    AccessConfig, BottleneckLoss, ClassConfig, Control, FileSize, LinkLoss, LossModel,
    Replications, RunConfig, RunLimit, StopReason, Traffic,
};

const MILLISECOND: Nanos = SECOND / 1000;
const RTT: Nanos = 100 * MILLISECOND;
const RATE: u64 = 10_000_000;

fn config(preset: Preset, handshake: Handshake, loss: f64) -> RunConfig {
    let stack = Stack { mss: 1448, ..preset.stack() };
    let modern = ModernTcp { stack, handshake, rtt: 0, syn_bytes: 0, closes: false };
    let access = AccessConfig { rate_bps: None, delay: 0, limit: None, loss: None };
    let class = ClassConfig {
        packet_bytes: None,
        sources: 0,
        ingress: access.clone(),
        egress: access,
        forward: RTT / 2,
        back: RTT / 2,
        traffic: Traffic::Transfers { sizes: vec![FileSize::of_full(1)] },
        tcp: Some(TcpConfig { modern: Some(modern), ..TcpConfig::default() }),
        scale: None,
        host_noise: 0,
    };
    RunConfig {
        seed: 1,
        packet_bytes: 1500,
        ack_bytes: 52,
        bottleneck_bps: Some(RATE),
        buffer: None,
        queue: QueueConfig::DropTail,
        loss: Some(LinkLoss::before(BottleneckLoss::Packet(LossModel::Bernoulli(loss)))),
        jitter: None,
        cross: Vec::new(),
        before: Vec::new(),
        after: Vec::new(),
        return_link: None,
        tcp: TcpConfig::default(),
        classes: vec![class],
        warmup: 0,
        probes: ProbeConfig { size_bounds: vec![1], ..ProbeConfig::default() },
    }
}

/// Sums of the total times of so many transfers of one packet, and of their delivery times.
fn run(config: &RunConfig, transfers: u64) -> (OpenedSums, f64) {
    let mut runs = Replications::new(config, 1);
    let run_limit = RunLimit { transfers, until: NEVER_ENDING };
    assert_eq!(runs.advance(run_limit, 1, &Control::new(1)), StopReason::Done);
    let probes = runs.flush().expect("packets are conserved");
    let row = &probes[0].transfers.rows[0];
    let delivery: u128 = row.by_losses.iter().map(|sums| sums.delivery).sum();
    (row.opened.clone(), delivery as f64 * 1e-9 / transfers as f64)
}

const NEVER_ENDING: Nanos = 10_000_000 * SECOND;

/// Seconds from SYN to the last byte on an empty path, and what of it is the delivery of the file.
fn lossless(handshake: Handshake) -> (f64, f64) {
    let (opened, delivery) = run(&config(Preset::LinuxCubic, handshake, 0.0), 1);
    (opened.total as f64 * 1e-9, delivery)
}

#[test]
fn rfc_9293_section_3_5_data_follow_the_acknowledgement_of_the_syn_ack() {
    let seconds = |bytes| transmission_time(bytes, Some(RATE)) as f64 * 1e-9;
    let (total, delivery) = lossless(Handshake::Tcp);
    assert!((delivery - (0.05 + seconds(1500))).abs() < 1e-9, "{delivery}");
    // SYN, SYN-ACK and its acknowledgement are 52 bytes each.
    assert!((total - (0.15 + 3.0 * seconds(52) + delivery)).abs() < 1e-8, "{total}");
}

#[test]
fn rfc_8446_section_2_tls_1_3_takes_a_round_trip_and_its_flight() {
    let seconds = |bytes| transmission_time(bytes, Some(RATE)) as f64 * 1e-9;
    let (tcp, _) = lossless(Handshake::Tcp);
    let (tls, _) = lossless(Handshake::Tls13);
    // 3600 bytes are two full packets and one of 704 bytes; they are answered at once.
    let flight = 2.0 * seconds(1500) + seconds(704 + 52) + seconds(52);
    assert!((tls - tcp - 0.1 - flight).abs() < 1e-7, "{tls} and {tcp}");
}

#[test]
fn rfc_5246_section_7_3_tls_1_2_takes_two_round_trips() {
    let (tcp, _) = lossless(Handshake::Tcp);
    let (tls, _) = lossless(Handshake::Tls12);
    assert!(tls - tcp > 0.2 && tls - tcp < 0.205, "{tls} and {tcp}");
}

/// RFC 6298 (5.5): both ends send again, and double their timeouts. SYN comes after 1 s, 3 s, 7 s;
/// the server answers each at once and begins its own timeout anew, which so expires at 2 s, 5 s,
/// 11 s. So SYN-ACKs leave at these times, in seconds after the first.
const SYN_ACKS: [f64; 10] = [0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 15.0, 23.0, 31.0];

/// A transfer is late by the time of the first SYN-ACK that is not lost.
#[test]
fn rfc_6298_section_5_5_lost_syn_acks_are_sent_again_after_1_s() {
    let (p, transfers) = (0.1, 20_000);
    let found = run(&config(Preset::RfcSack, Handshake::Tcp, p), transfers);
    let late = mean_opening(&found, transfers) - lossless_opening();
    let mean = |power: i32| {
        let term = |(k, at): (usize, &f64)| at.powi(power) * p.powi(k as i32) * (1.0 - p);
        SYN_ACKS.iter().enumerate().map(term).sum::<f64>()
    };
    let error = ((mean(2) - mean(1).powi(2)) / transfers as f64).sqrt();
    assert!((late - mean(1)).abs() < 4.0 * error, "{late} s, expected {} +- {error}", mean(1));
}

/// Linux sends the first five SYNs again after a second each, and its timers expire up to 32 ms
/// late. Sometimes the server's own timer is first, and then two answers are on their way.
#[test]
fn linux_doubles_the_timeout_of_a_syn_after_the_fourth_repetition() {
    let p = 0.3;
    let transfers = 20_000;
    let found = run(&config(Preset::LinuxCubic, Handshake::Tcp, p), transfers);
    let late = mean_opening(&found, transfers) - lossless_opening();
    // One answer a second, and two.
    let one = p / (1.0 - p);
    let two = p / (1.0 - p * p);
    assert!(late < one * 1.04 && late > two, "{late} s, between {two} and {one}");
    // Of files of one packet, which the timeout of 264 ms may delay, few take longer than this.
    let longest = found.0.totals.quantile(0.999).unwrap();
    assert!(longest < 9.0, "{longest}");
}

/// From SYN to the first packet of the file, in seconds.
fn mean_opening(found: &(OpenedSums, f64), transfers: u64) -> f64 {
    assert_eq!(found.0.transfers, transfers);
    found.0.total as f64 * 1e-9 / transfers as f64 - found.1
}

fn lossless_opening() -> f64 {
    let (total, delivery) = lossless(Handshake::Tcp);
    total - delivery
}
