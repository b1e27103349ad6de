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
//! `STACK=linux-cubic` (or another modern stack) in the environment sets the stack of the senders,
//! `QUIC=1` replaces its TCP by QUIC, and `TSO=1` sends bursts of segmentation offload.

use std::num::NonZeroU32;
use std::time::Instant;
use tcpcast_sim::clock::{Nanos, SECOND, transmission_time};
use tcpcast_sim::flows::{
    FlowClassConfig, FlowTcp, FlowTraffic, LinkInstances, NetworkConfig, NetworkLinkConfig,
    SendingEnds, create_network_replications,
};
use tcpcast_sim::probe::{ClassCell, ProbeConfig};
use tcpcast_sim::queue::LinkRate;
use tcpcast_sim::queue::disciplines::{
    BufferAssignment, DropPolicy, DrrConfig, FqCodelConfig, HeadOfLine, QueueConfig, TieBreakRule,
};
use tcpcast_sim::{
    BulkStartTimes, Distribution, FileSize, LinkLossConfig, LossModel, OnOffInitialState,
    RunControl, RunLimit, SizeRounding, Traffic,
};
use tcpcast_tcp::modern::{HandshakeKind, ModernTcpConfig, Preset, Stack};
use tcpcast_tcp::quic::QuicRules;
use tcpcast_tcp::{IdleRestart, InstantLossRules, TcpConfig, WindowGrowthCondition};

/// Sources of one class behind one bottleneck.
struct Workload {
    seed: u64,
    packet_bytes: u32,
    sources: u32,
    /// Rates of the access links of each source and receiver.
    access_bps: [Option<u64>; 2],
    bottleneck_bps: u64,
    limit: Option<u64>,
    queue: QueueConfig,
    loss: f64,
    /// Rate and delay of a shared link on each side of the bottleneck.
    hops: Option<(u64, Nanos)>,
    /// Propagation delay of each direction, without that of the hops.
    delay: Nanos,
    traffic: Traffic,
    tcp: TcpConfig,
    warmup: Nanos,
    size_bounds: Vec<u32>,
}

impl Workload {
    /// NewReno sources behind a drop-tail queue.
    fn new(sources: u32, bottleneck_bps: u64, delay: Nanos, traffic: Traffic) -> Self {
        Self {
            seed: 1,
            packet_bytes: 1500,
            sources,
            access_bps: [None; 2],
            bottleneck_bps,
            limit: None,
            queue: QueueConfig::DropTail,
            loss: 0.0,
            hops: None,
            delay,
            traffic,
            tcp: TcpConfig::default(),
            warmup: 0,
            size_bounds: vec![2, 6, 14, 30, 62, 128, 256, 512, 1024, 2048, 4096],
        }
    }

    fn network(&self, modern: Option<ModernTcpConfig>) -> NetworkConfig {
        let link = |rate_bps, each| NetworkLinkConfig {
            rate: LinkRate::Constant(rate_bps),
            policer: None,
            delay: 0,
            limit: None,
            limit_bytes: None,
            queue: QueueConfig::DropTail,
            remark: None,
            loss: None,
            jitter: None,
            docsis: None,
            each,
            changes: Vec::new(),
        };
        let bottleneck = NetworkLinkConfig {
            limit: self.limit,
            queue: self.queue,
            loss: (self.loss > 0.0)
                .then_some(LinkLossConfig::before_queue(LossModel::Bernoulli(self.loss))),
            ..link(Some(self.bottleneck_bps), LinkInstances::All)
        };
        let hop = self.hops.map(|(rate_bps, delay)| NetworkLinkConfig {
            delay,
            limit: self.limit,
            ..link(Some(rate_bps), LinkInstances::All)
        });
        let [ingress, egress] = self
            .access_bps
            .map(|rate_bps| rate_bps.map(|rate_bps| link(Some(rate_bps), LinkInstances::Sender)));
        let before = [ingress, hop.clone()].into_iter().flatten();
        let mut links: Vec<_> = before.collect();
        let headline = links.len();
        links.push(bottleneck);
        links.extend([hop, egress].into_iter().flatten());
        let ack_bytes = 40;
        let ack_times = links.iter().map(|link| link.transmission_time(ack_bytes) + link.delay);
        let back_delay = self.delay + ack_times.sum::<Nanos>();
        NetworkConfig {
            seed: self.seed,
            sites: Vec::new(),
            classes: vec![FlowClassConfig {
                site: None,
                flows: self.sources,
                routes: vec![(0..links.len()).collect()],
                back: vec![Vec::new()],
                delay: self.delay,
                back_delay,
                packet_bytes: self.packet_bytes,
                ack_bytes,
                tso: std::env::var_os("TSO").is_some(),
                gro: true,
                sends: SendingEnds::Server,
                traffic: FlowTraffic::Files(self.traffic.clone()),
                reading: None,
                writing: None,
                tcp: Some(match modern {
                    Some(modern) => FlowTcp::Modern(modern),
                    None => FlowTcp::Packets(self.tcp.clone()),
                }),
                host_noise: if modern.is_some() { HOST_NOISE } else { 0 },
                host: None,
                dscp: 0,
                scale: None,
            }],
            cross: Vec::new(),
            round_loss: None,
            rtt_spread: 0.0,
            headline,
            links,
            warmup: self.warmup,
            probes: ProbeConfig { size_bounds: self.size_bounds.clone(), ..ProbeConfig::default() },
        }
    }
}

fn argument<T: std::str::FromStr>(index: usize, default: T) -> T {
    std::env::args().nth(index).and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn one_way_propagation(rtt: Nanos, rates: [Option<u64>; 3]) -> Nanos {
    let transmission: Nanos = rates
        .iter()
        .map(|rate| transmission_time(1500, *rate) + transmission_time(40, *rate))
        .sum();
    (rtt - transmission) / 2
}

/// Like [`w134_workload`], at a load at which no stack builds a standing queue.
fn even_loss_workload() -> (Workload, RunLimit) {
    let (mut workload, limit) = w134_workload();
    if let Traffic::OnOff { off, .. } = &mut workload.traffic {
        *off = Distribution::Exponential { minimum: 0.0, scale: 2.0 };
    }
    workload.tcp.initial_window = 10;
    (workload, limit)
}

fn w134_workload() -> (Workload, RunLimit) {
    let sources: u32 = argument(4, 134);
    let rate = u64::from(sources) * 10_000_000 / 134;
    let access_bps = [Some(100_000_000), Some(2_000_000)];
    let delay = one_way_propagation(SECOND / 20, [access_bps[0], Some(rate), access_bps[1]]);
    let traffic = Traffic::OnOff {
        off: Distribution::Exponential { minimum: 0.0, scale: 1.0 },
        size: Distribution::Exponential { minimum: 3.0, scale: 9.0 },
        rounding: SizeRounding::Nearest,
        persistent: false,
        coupling: 0.0,
        begin: OnOffInitialState::Off,
    };
    let workload = Workload {
        seed: argument(3, 1),
        access_bps,
        limit: Some(u64::from(sources) * 150 / 134),
        tcp: TcpConfig { receiver_window: 44, initial_ssthresh: 44, ..TcpConfig::default() },
        ..Workload::new(sources, rate, delay, traffic)
    };
    (workload, RunLimit { transfers: argument(2, 200_000), until: 1_000_000 * SECOND })
}

fn long_flows_workload() -> (Workload, RunLimit) {
    let (mut workload, until) =
        endless_flows(60, argument(4, 500), argument(5, 0.0), argument(6, 300));
    if let Some(quantum_bytes) = NonZeroU32::new(argument(8, 0)) {
        let drr = DrrConfig { quantum_bytes, ..round_robin(DropPolicy::LongestHead) };
        workload.queue = QueueConfig::Drr(drr);
    }
    workload.seed = argument(7, 1);
    (workload, until)
}

fn any_path_workload() -> (Workload, RunLimit) {
    let (workload, until) =
        endless_flows(argument(4, 138), argument(5, 115_000), argument(6, 0.0), argument(7, 60));
    (Workload { seed: argument(8, 1), ..workload }, until)
}

fn hops_workload() -> (Workload, RunLimit) {
    let (workload, until) = endless_flows(48, argument(4, 500), 0.0, argument(5, 300));
    let rate = workload.bottleneck_bps;
    let hops = Some((rate + rate / 10, SECOND / 1000 * 3));
    (Workload { seed: argument(6, 1), hops, ..workload }, until)
}

/// Endless flows through one drop-tail buffer.
fn endless_flows(rtt_ms: u64, buffer: u64, loss: f64, seconds: u64) -> (Workload, RunLimit) {
    let rate = argument(3, 100) * 1_000_000;
    let delay = one_way_propagation(rtt_ms * SECOND / 1000, [None, Some(rate), None]);
    let start = BulkStartTimes::Drawn(Distribution::Uniform { low: 0.0, high: 1.0 });
    let workload = Workload {
        limit: Some(buffer),
        loss,
        tcp: TcpConfig { initial_window: 10, ..TcpConfig::default() },
        ..Workload::new(argument(2, 10), rate, delay, Traffic::Bulk { start, stop: None })
    };
    (workload, RunLimit { transfers: u64::MAX, until: seconds * SECOND })
}

/// The users of the local loop behind FQ-CoDel.
fn web_users_workload() -> (Workload, RunLimit) {
    let (mut workload, until) = local_loop_workload();
    if let Traffic::OnOff { persistent, .. } = &mut workload.traffic {
        *persistent = false;
    }
    let queue = QueueConfig::FqCodel(FqCodelConfig::default());
    (Workload { queue, tcp: TcpConfig::default(), ..workload }, until)
}

fn short_transfers_workload() -> (Workload, RunLimit) {
    let sizes = vec![1, 2, 4, 8, 16, 30];
    let rate = 100_000_000;
    let taken = transmission_time(540, Some(rate)) + transmission_time(40, Some(rate));
    let delay = (SECOND / 10 - taken) / 2;
    let transfers = argument(2, 50_000) * sizes.len() as u64;
    let files = sizes.iter().copied().map(FileSize::of_full_packets).collect();
    let workload = Workload {
        seed: argument(3, 1),
        packet_bytes: 540,
        loss: 0.1,
        tcp: TcpConfig { receiver_window: 30, initial_ssthresh: 30, ..TcpConfig::default() },
        size_bounds: sizes,
        ..Workload::new(0, rate, delay, Traffic::Transfers { sizes: files })
    };
    (workload, RunLimit { transfers, until: 2_000_000_000 * SECOND })
}

/// Packet-by-packet round robin with a shared buffer.
fn round_robin(drop: DropPolicy) -> DrrConfig {
    DrrConfig {
        quantum_bytes: NonZeroU32::new(1500).expect("not zero"),
        buffers: BufferAssignment::Shared,
        drop,
        ties: TieBreakRule::Latest,
        head_of_line: HeadOfLine::InBuffer,
        heavy: None,
    }
}

/// Lognormal distribution with equal mean and standard deviation.
fn lognormal(mean: f64) -> Distribution {
    let variance = 2_f64.ln();
    Distribution::Lognormal { mu: mean.ln() - variance / 2.0, sigma: variance.sqrt(), minimum: 0.0 }
}

fn local_loop_workload() -> (Workload, RunLimit) {
    let longest = argument(5, String::new()) == "longest";
    let rate = argument(6, 100) * 1_000_000;
    let access = Some(10_000_000);
    let delay = one_way_propagation(SECOND / 10, [access, Some(rate), access]);
    let traffic = Traffic::OnOff {
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
    };
    let queue = round_robin(if longest { DropPolicy::LongestTail } else { DropPolicy::Arriving });
    let rules = InstantLossRules {
        growth: WindowGrowthCondition::AfterHalving,
        whole_halves: true,
        halve_once: false,
        timeout: true,
        retransmit: false,
    };
    let workload = Workload {
        seed: argument(4, 1),
        access_bps: [access; 2],
        limit: Some(argument(7, 10_000)),
        queue: QueueConfig::Drr(queue),
        tcp: TcpConfig {
            initial_window: 1,
            initial_ssthresh: 40,
            receiver_window: 40,
            idle_restart: IdleRestart::After(10 * SECOND),
            instant: Some(rules),
            ..TcpConfig::default()
        },
        warmup: 120 * SECOND,
        ..Workload::new(argument(2, 10_000), rate, delay, traffic)
    };
    (workload, RunLimit { transfers: u64::MAX, until: argument(3, 600) * SECOND })
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
    Some(ModernTcpConfig { stack, handshake: HandshakeKind::None, rtt: 0, closes: false })
}

/// Mean processing delay of hosts with modern stacks, as in their presets.
const HOST_NOISE: Nanos = SECOND / 10_000;

fn main() {
    let scenario: String = argument(1, "w134".to_string());
    let (workload, limit) = match scenario.as_str() {
        "even" => even_loss_workload(),
        "long" => long_flows_workload(),
        "path" => any_path_workload(),
        "hops" => hops_workload(),
        "web" => web_users_workload(),
        "short" => short_transfers_workload(),
        "loop" => local_loop_workload(),
        _ => w134_workload(),
    };
    let mut modern = modern_stack_from_environment(workload.packet_bytes);
    if let (Some(modern), "even") = (&mut modern, scenario.as_str()) {
        let window = u64::from(workload.tcp.receiver_window);
        modern.stack.receiving.buffer = window * u64::from(modern.stack.mss);
    }
    let mut runs = create_network_replications(&workload.network(modern), 1);
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
        workload.warmup as f64 * 1e-9,
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
