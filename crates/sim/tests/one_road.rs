//! Both simulations agree on one-road scenarios of modern TCP.
//!
//! They differ in the order of simultaneous events and in the times of acknowledgements that follow
//! each other closely, so single runs differ, and means agree.

#[path = "one_road/mod.rs"]
mod conversion;

use conversion::network_of_one_road;
use tcpcast_sim::clock::{MILLISECOND, SECOND};
use tcpcast_sim::cross::{ArrivalProcess, CrossConfig};
use tcpcast_sim::flows::create_network_replications;
use tcpcast_sim::probe::{ClassCell, ProbeConfig};
use tcpcast_sim::queue::disciplines::{self, CodelConfig, FqCodelConfig};
use tcpcast_sim::queue::{LinkRate, ManagedConfig, QueueConfig};
use tcpcast_sim::{
    AccessConfig, BottleneckLoss, BulkStartTimes, ClassConfig, Distribution, HopConfig,
    LinkLossConfig, LossModel, OnOffInitialState, Replications, ReturnLinkConfig, RunConfig,
    RunControl, RunLimit, SizeRounding, Traffic,
};
use tcpcast_tcp::modern::{HandshakeKind, ModernTcpConfig, Preset, Stack};
use tcpcast_tcp::{FileSize, TcpConfig};

const REPLICATIONS: u32 = 8;

fn access(rate_bps: Option<u64>) -> AccessConfig {
    AccessConfig { rate_bps, delay: MILLISECOND, limit: None, loss: None }
}

fn bulk() -> Traffic {
    let start = BulkStartTimes::Drawn(Distribution::Uniform { low: 0.0, high: 0.5 });
    Traffic::Bulk { start, stop: None }
}

fn files() -> Traffic {
    Traffic::OnOff {
        off: Distribution::Exponential { minimum: 0.0, scale: 0.5 },
        size: Distribution::Exponential { minimum: 3.0, scale: 30.0 },
        rounding: SizeRounding::Nearest,
        persistent: false,
        coupling: 0.0,
        begin: OnOffInitialState::Off,
    }
}

fn class(sources: u32, traffic: Traffic) -> ClassConfig {
    ClassConfig {
        sources,
        ingress: access(None),
        egress: access(None),
        forward: 8 * MILLISECOND,
        back: 8 * MILLISECOND,
        packet_bytes: None,
        traffic,
        tcp: None,
        host_noise: 100_000,
        scale: None,
    }
}

fn road(preset: Preset, handshake: HandshakeKind, classes: Vec<ClassConfig>) -> RunConfig {
    let stack = Stack { mss: 1448, ..preset.stack() };
    let modern = ModernTcpConfig { stack, handshake, rtt: 0, syn_bytes: 0, closes: false };
    RunConfig {
        seed: 3,
        packet_bytes: 1500,
        ack_bytes: 52,
        bottleneck_bps: Some(10_000_000),
        buffer: Some(50),
        queue: QueueConfig::DropTail,
        loss: None,
        jitter: None,
        cross: Vec::new(),
        hops_before: Vec::new(),
        hops_after: Vec::new(),
        return_link: None,
        tcp: TcpConfig { modern: Some(modern), ..TcpConfig::default() },
        classes,
        warmup: 2 * SECOND,
        probes: ProbeConfig { size_bounds: vec![10, 100], ..ProbeConfig::default() },
    }
}

/// Quantities of all classes together: packets delivered and sent again per second, share of drops,
/// mean wait in seconds, mean round-trip time, and mean time of a file.
fn quantities(mut runs: Replications) -> [f64; 6] {
    let limit = RunLimit { transfers: u64::MAX, until: 22 * SECOND };
    runs.advance(limit, 1, &RunControl::new(REPLICATIONS as usize));
    let probes = runs.update_and_check_probes().expect("packets are conserved");
    let total =
        |cell| probes.iter().map(|each| each.counters.total_over_classes(cell) as f64).sum::<f64>();
    let ratio = |part, whole| total(part) / total(whole).max(1.0);
    let seconds = f64::from(REPLICATIONS) * 20.0;
    [
        total(ClassCell::Delivered) / seconds,
        total(ClassCell::Retransmitted) / seconds,
        (total(ClassCell::QueueDrops) + total(ClassCell::RandomDrops)) / total(ClassCell::Arrived),
        ratio(ClassCell::Waited, ClassCell::Passed) * 1e-9,
        ratio(ClassCell::RttSum, ClassCell::RttSamples) * 1e-9,
        ratio(ClassCell::OnTime, ClassCell::Transfers) * 1e-9,
    ]
}

/// Asserts that all quantities agree: within a share, or within a small absolute difference.
fn assert_agreement(name: &str, config: &RunConfig, share: f64) {
    let road = quantities(Replications::new(config, REPLICATIONS));
    let network = network_of_one_road(config).expect("a network can have all features");
    let links = quantities(create_network_replications(&network, REPLICATIONS));
    let small = [1.0, 2.0, 0.002, 0.0005, 0.0005, 0.005];
    for (index, small) in small.iter().enumerate() {
        let difference = (road[index] - links[index]).abs();
        let allowed = (share * road[index]).max(*small);
        assert!(difference <= allowed, "{name}, {index}: {road:?} and {links:?}");
    }
}

#[test]
fn one_road_and_network_of_links_agree() {
    let cubic = |classes| road(Preset::LinuxCubic, HandshakeKind::None, classes);
    assert_agreement("CUBIC", &cubic(vec![class(4, bulk())]), 0.03);
    let bbr = road(Preset::LinuxBbr, HandshakeKind::None, vec![class(4, bulk())]);
    assert_agreement("BBR", &bbr, 0.05);
    let limited = ClassConfig {
        ingress: access(Some(50_000_000)),
        egress: access(Some(4_000_000)),
        ..class(9, files())
    };
    assert_agreement("files", &cubic(vec![limited.clone()]), 0.04);
    let tls = road(Preset::LinuxCubic, HandshakeKind::Tls13, vec![limited]);
    assert_agreement("files over TLS", &tls, 0.04);
    let codel = CodelConfig::default();
    let fq_codel = FqCodelConfig { codel, ..FqCodelConfig::default() };
    let managed = QueueConfig::Managed(ManagedConfig {
        discipline: disciplines::QueueConfig::FqCodel(fq_codel),
        rate: LinkRate::Constant(Some(10_000_000)),
        limit_bytes: None,
    });
    let classes = vec![class(3, bulk()), class(5, files())];
    // The 45 retransmissions per second differ by 5 %.
    assert_agreement("FQ-CoDel", &RunConfig { queue: managed, ..cubic(classes.clone()) }, 0.06);
    let model = BottleneckLoss::Packet(LossModel::Bernoulli(0.01));
    let loss = Some(LinkLossConfig::before_queue(model));
    assert_agreement("loss", &RunConfig { loss, ..cubic(classes.clone()) }, 0.06);
    let hop = HopConfig {
        rate_bps: Some(12_000_000),
        delay: 2 * MILLISECOND,
        buffer: Some(50),
        queue: QueueConfig::DropTail,
        loss: None,
        shared: true,
    };
    let hops = vec![hop];
    let with_hops =
        RunConfig { hops_before: hops.clone(), hops_after: hops, ..cubic(classes.clone()) };
    assert_agreement("hops", &with_hops, 0.05);
    let return_link = ReturnLinkConfig {
        rate_bps: Some(300_000),
        buffer: Some(20),
        queue: QueueConfig::DropTail,
        loss: Some(LossModel::Bernoulli(0.02)),
    };
    let with_return = RunConfig { return_link: Some(return_link), ..cubic(classes) };
    assert_agreement("return link", &with_return, 0.05);
}

#[test]
fn special_traffic_and_losses_agree() {
    let cubic = |classes| road(Preset::LinuxCubic, HandshakeKind::None, classes);
    let stream = CrossConfig {
        stage: 0,
        bin: SECOND,
        bins: 1,
        series: 1,
        process: ArrivalProcess::Poisson { rate: 400.0 },
    };
    let crossed = RunConfig { cross: vec![stream], ..cubic(vec![class(4, bulk())]) };
    assert_agreement("cross traffic", &crossed, 0.05);
    let loss = Some(LinkLossConfig::before_queue(BottleneckLoss::RestOfRound(0.01)));
    let rounds = RunConfig { loss, ..cubic(vec![class(4, bulk())]) };
    assert_agreement("correlated loss", &rounds, 0.06);
    let sizes = [1, 30, 200].map(FileSize::of_full_packets).to_vec();
    let isolated = cubic(vec![class(0, Traffic::Transfers { sizes })]);
    assert_agreement("isolated transfers", &RunConfig { warmup: 0, ..isolated }, 0.04);
}
