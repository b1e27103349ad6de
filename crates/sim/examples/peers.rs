//! Workloads of the benchmarks, run by the engine without Python, for timing and for counting
//! instructions.
//!
//! - `peers w134 TRANSFERS SEED [SOURCES]`: on/off NewReno sources, 134 per 10 Mbit/s
//! - `peers even TRANSFERS SEED [SOURCES]`: the same with doubled OFF times and equal receiver and
//!   initial windows for all stacks, so that each loses less than 1 % of the packets
//! - `peers long FLOWS MBIT BUFFER LOSS SECONDS SEED [QUANTUM]`: endless flows over 60 ms, with
//!   deficit round robin if there is a quantum, in bytes
//! - `peers path FLOWS MBIT RTT_MS BUFFER LOSS SECONDS SEED`: endless flows with any round-trip time
//! - `peers hops FLOWS MBIT BUFFER SECONDS SEED`: endless flows over 60 ms and two more shared hops,
//!   one before and one behind the bottleneck, each 10 % faster
//! - `peers web USERS SECONDS SEED`: HTTP users with one connection per file and FQ-CoDel
//! - `peers short COUNT SEED`: single transfers of 1 to 30 packets, `COUNT` of each size
//! - `peers loop SOURCES SECONDS SEED [DROP [MBIT BUFFER]]`: HTTP sources with one fair queue and
//!   instantaneous loss feedback; DROP is `arriving`, or `longest` with a start in equilibrium
//!
//! `STACK=linux-cubic` or another modern stack in the environment replaces NewReno.

use std::time::Instant;
use tcpcast_sim::clock::{Nanos, SECOND, transmission_time};
use tcpcast_sim::probe::{ClassCell, ProbeConfig};
use tcpcast_sim::queue::disciplines::{self, FqCodelConfig};
use tcpcast_sim::queue::{
    Buffers, DropPolicy, FairConfig, LinkRate, ManagedConfig, QueueConfig, Ties,
};
use tcpcast_sim::tcp::modern::{Handshake, ModernTcp, Preset, Stack};
use tcpcast_sim::tcp::{Growth, IdleRestart, InstantLoss, TcpConfig};
use tcpcast_sim::{
    AccessConfig, Begin, BottleneckLoss, ClassConfig, Control, Distribution, FileSize, Goal,
    HopConfig, LinkLoss, LossModel, Replications, Rounding, RunConfig, Start, Traffic,
};

fn argument<T: std::str::FromStr>(at: usize, default: T) -> T {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn access(rate_bps: Option<u64>) -> AccessConfig {
    AccessConfig { rate_bps, delay: 0, limit: None, loss: None }
}

fn propagation(rtt: Nanos, rates: [Option<u64>; 3]) -> Nanos {
    let taken: Nanos = rates
        .iter()
        .map(|rate| transmission_time(1500, *rate) + transmission_time(40, *rate))
        .sum();
    (rtt - taken) / 2
}

/// Like [`w134`], at a load without a standing queue for any stack.
fn even() -> (RunConfig, Goal) {
    let (mut config, goal) = w134();
    if let Traffic::OnOff { off, .. } = &mut config.classes[0].traffic {
        *off = Distribution::Exponential { minimum: 0.0, scale: 2.0 };
    }
    config.tcp.initial_window = 10;
    (config, goal)
}

fn w134() -> (RunConfig, Goal) {
    let sources: u32 = argument(4, 134);
    let rate = u64::from(sources) * 10_000_000 / 134;
    let delay = propagation(SECOND / 20, [Some(100_000_000), Some(rate), Some(2_000_000)]);
    let class = ClassConfig {
        packet_bytes: None,
        sources,
        ingress: access(Some(100_000_000)),
        egress: access(Some(2_000_000)),
        forward: delay,
        back: delay,
        traffic: Traffic::OnOff {
            off: Distribution::Exponential { minimum: 0.0, scale: 1.0 },
            size: Distribution::Exponential { minimum: 3.0, scale: 9.0 },
            rounding: Rounding::Nearest,
            persistent: false,
            coupling: 0.0,
            begin: Begin::Off,
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
        ..common()
    };
    (config, Goal { transfers: argument(2, 200_000), until: 1_000_000 * SECOND })
}

fn long() -> (RunConfig, Goal) {
    let (mut config, until) = bulk(60, argument(4, 500), argument(5, 0.0), argument(6, 300));
    let quantum_bytes = argument(8, 0);
    if quantum_bytes > 0 {
        let fair = FairConfig { quantum_bytes, ..round_robin(DropPolicy::LongestHead) };
        config.queue = QueueConfig::Fair(fair);
    }
    config.seed = argument(7, 1);
    (config, until)
}

fn path() -> (RunConfig, Goal) {
    let (config, until) =
        bulk(argument(4, 138), argument(5, 115_000), argument(6, 0.0), argument(7, 60));
    (RunConfig { seed: argument(8, 1), ..config }, until)
}

fn through_hops() -> (RunConfig, Goal) {
    let (mut config, until) = bulk(48, argument(4, 500), 0.0, argument(5, 300));
    let hop = HopConfig {
        shared: true,
        rate_bps: config.bottleneck_bps.map(|rate| rate + rate / 10),
        delay: SECOND / 1000 * 3,
        buffer: config.buffer,
        queue: QueueConfig::DropTail,
        loss: None,
    };
    (config.before, config.after) = (vec![hop.clone()], vec![hop]);
    config.seed = argument(6, 1);
    (config, until)
}

/// Endless flows through one drop-tail buffer.
fn bulk(rtt_ms: u64, buffer: u64, loss: f64, seconds: u64) -> (RunConfig, Goal) {
    let rate = argument(3, 100) * 1_000_000;
    let delay = propagation(rtt_ms * SECOND / 1000, [None, Some(rate), None]);
    let class = ClassConfig {
        packet_bytes: None,
        sources: argument(2, 10),
        ingress: access(None),
        egress: access(None),
        forward: delay,
        back: delay,
        traffic: Traffic::Bulk {
            start: Start::Drawn(Distribution::Uniform { low: 0.0, high: 1.0 }),
            stop: None,
        },
        tcp: None,
        host_noise: 0,
        scale: None,
    };
    let config = RunConfig {
        bottleneck_bps: Some(rate),
        buffer: Some(buffer),
        loss: (loss > 0.0)
            .then_some(LinkLoss::before(BottleneckLoss::Packet(LossModel::Bernoulli(loss)))),
        tcp: TcpConfig { initial_window: 10, ..TcpConfig::default() },
        classes: vec![class],
        ..common()
    };
    (config, Goal { transfers: u64::MAX, until: seconds * SECOND })
}

/// The users of the local loop with a modern queue.
fn web() -> (RunConfig, Goal) {
    let (config, until) = local_loop();
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

fn short() -> (RunConfig, Goal) {
    let sizes = vec![1, 2, 4, 8, 16, 30];
    let rate = 100_000_000;
    let taken = transmission_time(540, Some(rate)) + transmission_time(40, Some(rate));
    let delay = (SECOND / 10 - taken) / 2;
    let transfers = argument(2, 50_000) * sizes.len() as u64;
    let class = ClassConfig {
        packet_bytes: None,
        sources: 0,
        ingress: access(None),
        egress: access(None),
        forward: delay,
        back: delay,
        traffic: Traffic::Transfers {
            sizes: sizes.iter().copied().map(FileSize::of_full).collect(),
        },
        tcp: None,
        host_noise: 0,
        scale: None,
    };
    let config = RunConfig {
        seed: argument(3, 1),
        packet_bytes: 540,
        bottleneck_bps: Some(rate),
        loss: Some(LinkLoss::before(BottleneckLoss::Packet(LossModel::Bernoulli(0.1)))),
        tcp: TcpConfig { receiver_window: 30, initial_ssthresh: 30, ..TcpConfig::default() },
        classes: vec![class],
        probes: ProbeConfig { size_bounds: sizes, ..ProbeConfig::default() },
        ..common()
    };
    (config, Goal { transfers, until: 2_000_000_000 * SECOND })
}

/// Round robin by packets, with one buffer for all flows.
fn round_robin(drop: DropPolicy) -> FairConfig {
    let ties = Ties::Latest;
    FairConfig { quantum_bytes: 1500, packet_bytes: 1500, buffers: Buffers::Shared, drop, ties }
}

/// A lognormal distribution with equal mean and standard deviation.
fn lognormal(mean: f64) -> Distribution {
    let variance = 2_f64.ln();
    Distribution::Lognormal { mu: mean.ln() - variance / 2.0, sigma: variance.sqrt(), minimum: 0.0 }
}

fn local_loop() -> (RunConfig, Goal) {
    let longest = argument(5, String::new()) == "longest";
    let rate = argument(6, 100) * 1_000_000;
    let own = Some(10_000_000);
    let delay = propagation(SECOND / 10, [own, Some(rate), own]);
    let class = ClassConfig {
        packet_bytes: None,
        sources: argument(2, 10_000),
        ingress: access(own),
        egress: access(own),
        forward: delay,
        back: delay,
        traffic: Traffic::OnOff {
            off: lognormal(30.0),
            size: lognormal(50.0),
            rounding: Rounding::Nearest,
            persistent: true,
            coupling: 0.0,
            begin: if longest {
                Begin::Equilibrium { active: 0.5, within: 0.1 }
            } else {
                Begin::Off
            },
        },
        tcp: None,
        host_noise: 0,
        scale: None,
    };
    let queue = round_robin(if longest { DropPolicy::LongestTail } else { DropPolicy::Arriving });
    let rules = InstantLoss {
        growth: Growth::AfterHalving,
        whole_halves: true,
        halve_once: false,
        timeout: true,
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
        ..common()
    };
    (config, Goal { transfers: u64::MAX, until: argument(3, 600) * SECOND })
}

fn common() -> RunConfig {
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
        before: Vec::new(),
        after: Vec::new(),
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

fn stack(packet_bytes: u32) -> Option<ModernTcp> {
    let preset = Preset::named(&std::env::var("STACK").ok()?)?.stack();
    let headers = if preset.timestamps { 52 } else { 40 };
    let stack = Stack { mss: packet_bytes - headers, ..preset };
    Some(ModernTcp { stack, handshake: Handshake::None, rtt: 0, syn_bytes: 0, closes: false })
}

/// Hosts of modern stacks have random delays, as in their presets.
const HOST_NOISE: Nanos = SECOND / 10_000;

fn main() {
    let scenario: String = argument(1, "w134".to_string());
    let (mut config, goal) = match scenario.as_str() {
        "even" => even(),
        "long" => long(),
        "path" => path(),
        "hops" => through_hops(),
        "web" => web(),
        "short" => short(),
        "loop" => local_loop(),
        _ => w134(),
    };
    config.tcp.modern = stack(config.packet_bytes);
    if let (Some(modern), "even") = (&mut config.tcp.modern, scenario.as_str()) {
        let window = u64::from(config.tcp.receiver_window);
        modern.stack.receiving.buffer = window * u64::from(modern.stack.mss);
    }
    if config.tcp.modern.is_some() {
        config.classes.iter_mut().for_each(|class| class.host_noise = HOST_NOISE);
    }
    let mut runs = Replications::new(&config, 1);
    let started = Instant::now();
    runs.advance(goal, 1, &Control::new(1));
    let wall = started.elapsed().as_secs_f64();
    let now = runs.runs().map(|run| run.now()).sum::<u64>() as f64 * 1e-9;
    let probes = &runs.settle().expect("packets are conserved")[0];
    let total = |cell| probes.counters.total(cell) as f64;
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
        probes.occupancy.busy() as f64 * 1e-9 / now,
    );
}
