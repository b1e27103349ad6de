//! Workloads of the comparison with other simulators, for measuring time and instructions.
//!
//! - `peers w134 TRANSFERS SEED [SOURCES]`: on/off NewReno sources, 10 Mbit/s per 134 sources;
//! - `peers even TRANSFERS SEED [SOURCES]`: as `w134`, with doubled OFF times and equal receiver
//!   and initial windows for all stacks, so that each stack loses less than 1 % of packets;
//! - `peers long FLOWS MBIT BUFFER LOSS SECONDS SEED [QUANTUM]`: endless flows with an RTT of 60
//!   ms, through deficit round robin if a quantum in bytes is given;
//! - `peers path FLOWS MBIT RTT_MS BUFFER LOSS SECONDS SEED`: endless flows with any RTT;
//! - `peers hops FLOWS MBIT BUFFER SECONDS SEED`: endless flows with an RTT of 60 ms and two
//!   additional shared hops, one before and one behind the bottleneck, each 10 % faster;
//! - `peers web USERS SECONDS SEED`: HTTP users with one connection per file, behind FQ-CoDel;
//! - `peers short COUNT SEED`: isolated transfers of 1 to 30 packets, `COUNT` per size;
//! - `peers loop SOURCES SECONDS SEED [DROP [MBIT BUFFER]]`: HTTP sources behind one fair queue,
//!   with instantaneous loss feedback; DROP is `arriving`, or `longest` with a start in
//!   equilibrium.
//!
//! `STACK=linux-cubic` (or another modern stack) in the environment sets the stack of the senders.
//! `NETWORK=1` runs modern stacks over a network of links, and there `QUIC=1` replaces TCP by QUIC.

#[path = "../tests/one_road/mod.rs"]
mod one_road;

use one_road::network_of_one_road;
use std::time::Instant;
use tcpcast_sim::clock::{Nanos, SECOND, transmission_time};
use tcpcast_sim::flows::create_network_replications;
use tcpcast_sim::probe::{ClassCell, ProbeConfig};
use tcpcast_sim::queue::disciplines::{self, FqCodelConfig};
use tcpcast_sim::queue::{
    BufferAssignment, DropPolicy, FairConfig, HeadOfLine, LinkRate, ManagedConfig, QueueConfig,
    TieBreakRule,
};
use tcpcast_sim::{
    AccessConfig, BottleneckLoss, BulkStartTimes, ClassConfig, Distribution, FileSize, HopConfig,
    LinkLossConfig, LossModel, OnOffInitialState, Replications, RunConfig, RunControl, RunLimit,
    SizeRounding, Traffic,
};
use tcpcast_tcp::modern::{HandshakeKind, ModernTcpConfig, Preset, Stack};
use tcpcast_tcp::quic::QuicRules;
use tcpcast_tcp::{IdleRestart, InstantLossRules, TcpConfig, WindowGrowthCondition};

fn argument<T: std::str::FromStr>(index: usize, default: T) -> T {
    std::env::args().nth(index).and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn access_link(rate_bps: Option<u64>) -> AccessConfig {
    AccessConfig { rate_bps, delay: 0, limit: None, loss: None }
}

fn one_way_propagation(rtt: Nanos, rates: [Option<u64>; 3]) -> Nanos {
    let transmission: Nanos = rates
        .iter()
        .map(|rate| transmission_time(1500, *rate) + transmission_time(40, *rate))
        .sum();
    (rtt - transmission) / 2
}

/// As [`w134`], at a load at which no stack builds a standing queue.
fn even_loss_workload() -> (RunConfig, RunLimit) {
    let (mut config, limit) = w134_workload();
    if let Traffic::OnOff { off, .. } = &mut config.classes[0].traffic {
        *off = Distribution::Exponential { minimum: 0.0, scale: 2.0 };
    }
    config.tcp.initial_window = 10;
    (config, limit)
}

fn w134_workload() -> (RunConfig, RunLimit) {
    let sources: u32 = argument(4, 134);
    let rate = u64::from(sources) * 10_000_000 / 134;
    let delay = one_way_propagation(SECOND / 20, [Some(100_000_000), Some(rate), Some(2_000_000)]);
    let class = ClassConfig {
        packet_bytes: None,
        sources,
        ingress: access_link(Some(100_000_000)),
        egress: access_link(Some(2_000_000)),
        forward: delay,
        back: delay,
        traffic: Traffic::OnOff {
            off: Distribution::Exponential { minimum: 0.0, scale: 1.0 },
            size: Distribution::Exponential { minimum: 3.0, scale: 9.0 },
            rounding: SizeRounding::Nearest,
            persistent: false,
            coupling: 0.0,
            begin: OnOffInitialState::Off,
        },
        tcp: None,
        host_noise: 0,
        scale: None,
    };
    let config = RunConfig {
        seed: argument(3, 1),
        bottleneck_bps: Some(rate),
        buffer: Some(u64::from(sources) * 150 / 134),
        loss: None,
        tcp: TcpConfig { receiver_window: 44, initial_ssthresh: 44, ..TcpConfig::default() },
        classes: vec![class],
        ..default_config()
    };
    (config, RunLimit { transfers: argument(2, 200_000), until: 1_000_000 * SECOND })
}

fn long_flows_workload() -> (RunConfig, RunLimit) {
    let (mut config, until) =
        endless_flows(60, argument(4, 500), argument(5, 0.0), argument(6, 300));
    let quantum_bytes = argument(8, 0);
    if quantum_bytes > 0 {
        let fair = FairConfig { quantum_bytes, ..round_robin(DropPolicy::LongestHead) };
        config.queue = QueueConfig::Fair(fair);
    }
    config.seed = argument(7, 1);
    (config, until)
}

fn any_path_workload() -> (RunConfig, RunLimit) {
    let (config, until) =
        endless_flows(argument(4, 138), argument(5, 115_000), argument(6, 0.0), argument(7, 60));
    (RunConfig { seed: argument(8, 1), ..config }, until)
}

fn hops_workload() -> (RunConfig, RunLimit) {
    let (mut config, until) = endless_flows(48, argument(4, 500), 0.0, argument(5, 300));
    let hop = HopConfig {
        shared: true,
        rate_bps: config.bottleneck_bps.map(|rate| rate + rate / 10),
        delay: SECOND / 1000 * 3,
        buffer: config.buffer,
        queue: QueueConfig::DropTail,
        loss: None,
    };
    (config.hops_before, config.hops_after) = (vec![hop.clone()], vec![hop]);
    config.seed = argument(6, 1);
    (config, until)
}

/// Endless flows through one drop-tail buffer.
fn endless_flows(rtt_ms: u64, buffer: u64, loss: f64, seconds: u64) -> (RunConfig, RunLimit) {
    let rate = argument(3, 100) * 1_000_000;
    let delay = one_way_propagation(rtt_ms * SECOND / 1000, [None, Some(rate), None]);
    let class = ClassConfig {
        packet_bytes: None,
        sources: argument(2, 10),
        ingress: access_link(None),
        egress: access_link(None),
        forward: delay,
        back: delay,
        traffic: Traffic::Bulk {
            start: BulkStartTimes::Drawn(Distribution::Uniform { low: 0.0, high: 1.0 }),
            stop: None,
        },
        tcp: None,
        host_noise: 0,
        scale: None,
    };
    let config = RunConfig {
        bottleneck_bps: Some(rate),
        buffer: Some(buffer),
        loss: (loss > 0.0).then_some(LinkLossConfig::before_queue(BottleneckLoss::Packet(
            LossModel::Bernoulli(loss),
        ))),
        tcp: TcpConfig { initial_window: 10, ..TcpConfig::default() },
        classes: vec![class],
        ..default_config()
    };
    (config, RunLimit { transfers: u64::MAX, until: seconds * SECOND })
}

/// The users of the local loop behind FQ-CoDel.
fn web_users_workload() -> (RunConfig, RunLimit) {
    let (config, until) = local_loop_workload();
    let managed = ManagedConfig {
        discipline: disciplines::QueueConfig::FqCodel(FqCodelConfig::default()),
        rate: LinkRate::Constant(config.bottleneck_bps),
        limit_bytes: None,
    };
    let mut classes = config.classes;
    for class in &mut classes {
        if let Traffic::OnOff { persistent, .. } = &mut class.traffic {
            *persistent = false;
        }
    }
    let (queue, tcp) = (QueueConfig::Managed(managed), TcpConfig::default());
    (RunConfig { classes, queue, tcp, ..config }, until)
}

fn short_transfers_workload() -> (RunConfig, RunLimit) {
    let sizes = vec![1, 2, 4, 8, 16, 30];
    let rate = 100_000_000;
    let taken = transmission_time(540, Some(rate)) + transmission_time(40, Some(rate));
    let delay = (SECOND / 10 - taken) / 2;
    let transfers = argument(2, 50_000) * sizes.len() as u64;
    let class = ClassConfig {
        packet_bytes: None,
        sources: 0,
        ingress: access_link(None),
        egress: access_link(None),
        forward: delay,
        back: delay,
        traffic: Traffic::Transfers {
            sizes: sizes.iter().copied().map(FileSize::of_full_packets).collect(),
        },
        tcp: None,
        host_noise: 0,
        scale: None,
    };
    let config = RunConfig {
        seed: argument(3, 1),
        packet_bytes: 540,
        bottleneck_bps: Some(rate),
        loss: Some(LinkLossConfig::before_queue(BottleneckLoss::Packet(LossModel::Bernoulli(0.1)))),
        tcp: TcpConfig { receiver_window: 30, initial_ssthresh: 30, ..TcpConfig::default() },
        classes: vec![class],
        probes: ProbeConfig { size_bounds: sizes, ..ProbeConfig::default() },
        ..default_config()
    };
    (config, RunLimit { transfers, until: 2_000_000_000 * SECOND })
}

/// Packet-by-packet round robin with a shared buffer.
fn round_robin(drop: DropPolicy) -> FairConfig {
    let ties = TieBreakRule::Latest;
    FairConfig {
        quantum_bytes: 1500,
        packet_bytes: 1500,
        buffers: BufferAssignment::Shared,
        drop,
        ties,
        head_of_line: HeadOfLine::InBuffer,
    }
}

/// Lognormal distribution with equal mean and standard deviation.
fn lognormal(mean: f64) -> Distribution {
    let variance = 2_f64.ln();
    Distribution::Lognormal { mu: mean.ln() - variance / 2.0, sigma: variance.sqrt(), minimum: 0.0 }
}

fn local_loop_workload() -> (RunConfig, RunLimit) {
    let longest = argument(5, String::new()) == "longest";
    let rate = argument(6, 100) * 1_000_000;
    let access_rate = Some(10_000_000);
    let delay = one_way_propagation(SECOND / 10, [access_rate, Some(rate), access_rate]);
    let class = ClassConfig {
        packet_bytes: None,
        sources: argument(2, 10_000),
        ingress: access_link(access_rate),
        egress: access_link(access_rate),
        forward: delay,
        back: delay,
        traffic: Traffic::OnOff {
            off: lognormal(30.0),
            size: lognormal(50.0),
            rounding: SizeRounding::Nearest,
            persistent: true,
            coupling: 0.0,
            begin: if longest {
                OnOffInitialState::Equilibrium { active: 0.5, within: 0.1 }
            } else {
                OnOffInitialState::Off
            },
        },
        tcp: None,
        host_noise: 0,
        scale: None,
    };
    let queue = round_robin(if longest { DropPolicy::LongestTail } else { DropPolicy::Arriving });
    let rules = InstantLossRules {
        growth: WindowGrowthCondition::AfterHalving,
        whole_halves: true,
        halve_once: false,
        timeout: true,
        retransmit: false,
    };
    let config = RunConfig {
        seed: argument(4, 1),
        bottleneck_bps: Some(rate),
        buffer: Some(argument(7, 10_000)),
        queue: QueueConfig::Fair(queue),
        tcp: TcpConfig {
            initial_window: 1,
            initial_ssthresh: 40,
            receiver_window: 40,
            idle_restart: IdleRestart::After(10 * SECOND),
            instant: Some(rules),
            ..TcpConfig::default()
        },
        classes: vec![class],
        warmup: 120 * SECOND,
        ..default_config()
    };
    (config, RunLimit { transfers: u64::MAX, until: argument(3, 600) * SECOND })
}

fn default_config() -> RunConfig {
    RunConfig {
        seed: 1,
        packet_bytes: 1500,
        ack_bytes: 40,
        bottleneck_bps: None,
        buffer: None,
        queue: QueueConfig::DropTail,
        loss: None,
        jitter: None,
        cross: Vec::new(),
        hops_before: Vec::new(),
        hops_after: Vec::new(),
        return_link: None,
        tcp: TcpConfig::default(),
        classes: Vec::new(),
        warmup: 0,
        probes: ProbeConfig {
            size_bounds: vec![2, 6, 14, 30, 62, 128, 256, 512, 1024, 2048, 4096],
            ..ProbeConfig::default()
        },
    }
}

fn modern_stack_from_environment(packet_bytes: u32) -> Option<ModernTcpConfig> {
    let preset = Preset::from_name(&std::env::var("STACK").ok()?)?.stack();
    let quic = std::env::var_os("QUIC").map(|_| QuicRules::RFC);
    let headers = match (quic, preset.timestamps) {
        (Some(_), _) => 63,
        (None, true) => 52,
        (None, false) => 40,
    };
    let stack = Stack { mss: packet_bytes - headers, quic, ..preset };
    Some(ModernTcpConfig {
        stack,
        handshake: HandshakeKind::None,
        rtt: 0,
        syn_bytes: 0,
        closes: false,
    })
}

/// Mean processing delay of hosts with modern stacks, as in their presets.
const HOST_NOISE: Nanos = SECOND / 10_000;

fn main() {
    let scenario: String = argument(1, "w134".to_string());
    let (mut config, limit) = match scenario.as_str() {
        "even" => even_loss_workload(),
        "long" => long_flows_workload(),
        "path" => any_path_workload(),
        "hops" => hops_workload(),
        "web" => web_users_workload(),
        "short" => short_transfers_workload(),
        "loop" => local_loop_workload(),
        _ => w134_workload(),
    };
    config.tcp.modern = modern_stack_from_environment(config.packet_bytes);
    if let (Some(modern), "even") = (&mut config.tcp.modern, scenario.as_str()) {
        let window = u64::from(config.tcp.receiver_window);
        modern.stack.receiving.buffer = window * u64::from(modern.stack.mss);
    }
    if config.tcp.modern.is_some() {
        config.classes.iter_mut().for_each(|class| class.host_noise = HOST_NOISE);
    }
    let mut runs = if std::env::var_os("NETWORK").is_some() {
        let network = network_of_one_road(&config).expect("a network can have all features");
        create_network_replications(&network, 1)
    } else {
        Replications::new(&config, 1)
    };
    let started = Instant::now();
    runs.advance(limit, 1, &RunControl::new(1));
    let wall = started.elapsed().as_secs_f64();
    let now = runs.created_replications().map(|run| run.now()).sum::<u64>() as f64 * 1e-9;
    let probes = &runs.update_and_check_probes().expect("packets are conserved")[0];
    let total = |cell| probes.counters.total_over_classes(cell) as f64;
    let delivered = total(ClassCell::Delivered);
    println!(
        "packet {scenario} simulated_s={now:.1} warmup_s={:.1} wall_s={wall:.3} \
         delivered={delivered} wall_per_million_s={:.4}",
        config.warmup as f64 * 1e-9,
        wall / delivered * 1e6
    );
    let size = total(ClassCell::TransferPackets);
    println!(
        "   h={:.2} kbit/s ON={:.2} ms F={:.3} L={:.3} % goodput={:.1} pkt/s utilisation={:.4}",
        size * 12e3 / (total(ClassCell::OnTime) * 1e-9) / 1e3,
        total(ClassCell::OnTime) * 1e-6 / total(ClassCell::Transfers),
        size / total(ClassCell::Transfers),
        100.0 * (total(ClassCell::QueueDrops) + total(ClassCell::RandomDrops))
            / total(ClassCell::Arrived),
        delivered / now,
        probes.occupancy.busy_time() as f64 * 1e-9 / now,
    );
}
