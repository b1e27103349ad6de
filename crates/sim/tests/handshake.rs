//! Handshakes in the network, compared with exact calculations.

use tcpcast_sim::clock::{MILLISECOND, Nanos, SECOND, transmission_time};
use tcpcast_sim::probe::{HandshakeSums, ProbeConfig};
use tcpcast_sim::queue::QueueConfig;
use tcpcast_sim::{
    AccessConfig, BottleneckLoss, ClassConfig, FileSize, LinkLossConfig, LossModel, Replications,
    RunConfig, RunControl, RunLimit, StopReason, Traffic,
};
use tcpcast_tcp::TcpConfig;
use tcpcast_tcp::modern::{HandshakeKind, ModernTcpConfig, Preset, Stack};

const RTT: Nanos = 100 * MILLISECOND;
const RATE: u64 = 10_000_000;

fn config(preset: Preset, handshake: HandshakeKind, loss: f64) -> RunConfig {
    let stack = Stack { mss: 1448, ..preset.stack() };
    let modern = ModernTcpConfig { stack, handshake, rtt: 0, syn_bytes: 0, closes: false };
    let access = AccessConfig { rate_bps: None, delay: 0, limit: None, loss: None };
    let class = ClassConfig {
        packet_bytes: None,
        sources: 0,
        ingress: access.clone(),
        egress: access,
        forward: RTT / 2,
        back: RTT / 2,
        traffic: Traffic::Transfers { sizes: vec![FileSize::of_full_packets(1)] },
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
        loss: Some(LinkLossConfig::before_queue(BottleneckLoss::Packet(LossModel::Bernoulli(
            loss,
        )))),
        jitter: None,
        cross: Vec::new(),
        hops_before: Vec::new(),
        hops_after: Vec::new(),
        return_link: None,
        tcp: TcpConfig::default(),
        classes: vec![class],
        warmup: 0,
        probes: ProbeConfig { size_bounds: vec![1], ..ProbeConfig::default() },
    }
}

/// Sums of the total times of transfers of one packet, and their mean delivery time in seconds.
fn run(config: &RunConfig, transfers: u64) -> (HandshakeSums, f64) {
    let mut runs = Replications::new(config, 1);
    let limit = RunLimit { transfers, until: NEVER_ENDING };
    assert_eq!(runs.advance(limit, 1, &RunControl::new(1)), StopReason::Done);
    let probes = runs.update_and_check_probes().expect("packets are conserved");
    let row = &probes[0].transfers.rows[0];
    let delivery: u128 = row.by_losses.values().map(|sums| sums.delivery).sum();
    (row.opened.clone(), delivery as f64 * 1e-9 / transfers as f64)
}

const NEVER_ENDING: Nanos = 10_000_000 * SECOND;

/// Total time and delivery time on an idle path in seconds.
fn lossless(handshake: HandshakeKind) -> (f64, f64) {
    let (opened, delivery) = run(&config(Preset::LinuxCubic, handshake, 0.0), 1);
    (opened.total as f64 * 1e-9, delivery)
}

#[test]
fn rfc_9293_section_3_5_data_follow_the_ack_of_the_syn_ack() {
    let seconds = |bytes| transmission_time(bytes, Some(RATE)) as f64 * 1e-9;
    let (total, delivery) = lossless(HandshakeKind::Tcp);
    assert!((delivery - (0.05 + seconds(1500))).abs() < 1e-9, "{delivery}");
    // SYN, SYN-ACK and ACK are 52 bytes each.
    assert!((total - (0.15 + 3.0 * seconds(52) + delivery)).abs() < 1e-8, "{total}");
}

#[test]
fn rfc_8446_section_2_tls_1_3_takes_one_rtt_and_server_flight() {
    let seconds = |bytes| transmission_time(bytes, Some(RATE)) as f64 * 1e-9;
    let (tcp, _) = lossless(HandshakeKind::Tcp);
    let (tls, _) = lossless(HandshakeKind::Tls13);
    // The flight of 3600 bytes is two full packets and one of 704 bytes, acknowledged immediately.
    let flight = 2.0 * seconds(1500) + seconds(704 + 52) + seconds(52);
    assert!((tls - tcp - 0.1 - flight).abs() < 1e-7, "{tls} and {tcp}");
}

#[test]
fn rfc_5246_section_7_3_tls_1_2_takes_two_round_trips() {
    let (tcp, _) = lossless(HandshakeKind::Tcp);
    let (tls, _) = lossless(HandshakeKind::Tls12);
    assert!(tls - tcp > 0.2 && tls - tcp < 0.205, "{tls} and {tcp}");
}

/// Times of SYN-ACKs in seconds after the first. RFC 6298 (5.5): both ends retransmit and double
/// their timeouts. SYNs arrive after 1 s, 3 s, 7 s; the server answers each immediately and
/// restarts its timeout, which expires at 2 s, 5 s, 11 s.
const SYN_ACKS: [f64; 10] = [0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 15.0, 23.0, 31.0];

/// The delay of a transfer is the time of the first SYN-ACK that is not lost.
#[test]
fn rfc_6298_section_5_5_lost_syn_acks_are_retransmitted_after_1_s() {
    let (p, transfers) = (0.1, 20_000);
    let sums = run(&config(Preset::RfcSack, HandshakeKind::Tcp, p), transfers);
    let late = mean_opening(&sums, transfers) - lossless_opening();
    let mean = |power: i32| {
        let term = |(k, time): (usize, &f64)| time.powi(power) * p.powi(k as i32) * (1.0 - p);
        SYN_ACKS.iter().enumerate().map(term).sum::<f64>()
    };
    let error = ((mean(2) - mean(1).powi(2)) / transfers as f64).sqrt();
    assert!((late - mean(1)).abs() < 4.0 * error, "{late} s, expected {} +- {error}", mean(1));
}

/// Linux retransmits the first five SYNs after a second each, and its timers expire up to 32 ms
/// late. Sometimes the timer of the server expires first, and then two SYN-ACKs are in flight.
#[test]
fn linux_doubles_the_timeout_of_a_syn_after_the_fourth_repetition() {
    let p = 0.3;
    let transfers = 20_000;
    let sums = run(&config(Preset::LinuxCubic, HandshakeKind::Tcp, p), transfers);
    let late = mean_opening(&sums, transfers) - lossless_opening();
    // One SYN-ACK per second, and two per second.
    let one = p / (1.0 - p);
    let two = p / (1.0 - p * p);
    assert!(late < one * 1.04 && late > two, "{late} s, between {two} and {one}");
    // Includes the delivery of a file of one packet, which timeouts of 264 ms may delay.
    let quantile = sums.0.totals.quantile(0.999).unwrap();
    assert!(quantile < 9.0, "{quantile}");
}

/// Mean time from SYN to the first packet of the file, in seconds.
fn mean_opening(sums: &(HandshakeSums, f64), transfers: u64) -> f64 {
    assert_eq!(sums.0.transfers, transfers);
    sums.0.total as f64 * 1e-9 / transfers as f64 - sums.1
}

fn lossless_opening() -> f64 {
    let (total, delivery) = lossless(HandshakeKind::Tcp);
    total - delivery
}
