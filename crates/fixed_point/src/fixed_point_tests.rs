use super::*;
use proptest::prelude::*;
use std::num::NonZeroU32;
use std::sync::Arc;
use tcpcast_sim::clock::{Nanos, SECOND, transmission_time};
use tcpcast_sim::cross::{ArrivalProcess, FractionalNoise};
use tcpcast_sim::flows::{
    CrossStreamConfig, FlowClassConfig, FlowTcp, FlowTraffic, LinkInstances, NetworkConfig,
    NetworkLinkConfig, SendingEnds, create_network_replications,
};
use tcpcast_sim::probe::{ClassCell, ProbeConfig, Probes};
use tcpcast_sim::queue::LinkRate;
use tcpcast_sim::queue::disciplines::{
    BufferAssignment, DropPolicy, DrrConfig, HeadOfLine, QueueConfig, RedConfig, RedUnit,
    TieBreakRule,
};
use tcpcast_sim::traffic::{
    BulkStartTimes, Distribution, OnOffInitialState, SizeRounding, Traffic,
};
use tcpcast_sim::{Replication, RunControl, RunLimit, RunWatch, StopReason};
use tcpcast_tcp::{IdleRestart, InstantLossRules, TcpConfig, WindowGrowthCondition};

const RULE_B: InstantLossRules = InstantLossRules {
    growth: WindowGrowthCondition::AfterHalving,
    whole_halves: true,
    halve_once: false,
    timeout: true,
    retransmit: true,
};

const INGRESS_BPS: u64 = 10_000_000;
const EGRESS_BPS: u64 = 7_000_000;
const DELAY: Nanos = SECOND / 100;
const BACK_DELAY: Nanos = SECOND / 20;

/// Numbers of the links of [`configuration`].
const INGRESS: usize = 0;
const ROUTER: usize = 1;
const EGRESS: usize = 2;

fn link(rate_bps: u64, limit: Option<u64>, each: LinkInstances) -> NetworkLinkConfig {
    NetworkLinkConfig {
        rate: LinkRate::Constant(Some(rate_bps)),
        policer: None,
        delay: DELAY,
        limit,
        limit_bytes: None,
        queue: QueueConfig::DropTail,
        loss: None,
        jitter: None,
        each,
        remark: None,
        changes: Vec::new(),
    }
}

fn tcp() -> TcpConfig {
    TcpConfig {
        initial_window: 1,
        receiver_window: 40,
        idle_restart: IdleRestart::After(10 * SECOND),
        instant: Some(RULE_B),
        ..TcpConfig::default()
    }
}

/// Flows over an ingress link, the router and an egress link.
fn configuration(
    flows: u32,
    traffic: Traffic,
    tcp: TcpConfig,
    rate_bps: u64,
    buffer: u64,
) -> NetworkConfig {
    let class = FlowClassConfig {
        site: None,
        flows,
        routes: vec![vec![INGRESS, ROUTER, EGRESS]],
        back: vec![Vec::new()],
        delay: 0,
        back_delay: BACK_DELAY,
        packet_bytes: 1500,
        ack_bytes: 40,
        tso: false,
        gro: true,
        sends: SendingEnds::Server,
        traffic: FlowTraffic::Files(traffic),
        reading: None,
        writing: None,
        tcp: Some(FlowTcp::Packets(tcp)),
        host_noise: 0,
        host: None,
        dscp: 0,
        scale: None,
    };
    NetworkConfig {
        seed: 1,
        links: vec![
            link(INGRESS_BPS, None, LinkInstances::Sender),
            link(rate_bps, Some(buffer), LinkInstances::All),
            link(EGRESS_BPS, None, LinkInstances::Sender),
        ],
        sites: Vec::new(),
        classes: vec![class],
        cross: Vec::new(),
        round_loss: None,
        headline: ROUTER,
        warmup: 0,
        probes: ProbeConfig { size_bounds: vec![40], ..ProbeConfig::default() },
    }
}

/// A hop of each flow, with the mean load of its cross traffic as a fraction of the rate.
#[derive(Clone, Copy, Debug)]
struct PerSource {
    rate_bps: u64,
    buffer: Option<u64>,
    cross_load: Option<f64>,
}

impl PerSource {
    fn cross(self, link: usize) -> Option<CrossStreamConfig> {
        let packets_per_bin = self.rate_bps as f64 / 12_000.0 / 10.0;
        let process = ArrivalProcess::Fractional(FractionalNoise {
            mean: self.cross_load? * packets_per_bin,
            sd: self.cross_load? * packets_per_bin / 2.0,
            hurst: 0.7,
            bin: SECOND / 10,
            bins: 1024,
        });
        Some(CrossStreamConfig { link, packet_bytes: 1500, process })
    }
}

fn add_per_source_hops(
    config: &mut NetworkConfig,
    before: Option<PerSource>,
    after: Option<PerSource>,
) {
    for (hop, place) in [(after, 2), (before, 1)] {
        let Some(hop) = hop else { continue };
        let number = config.links.len();
        config.links.push(link(hop.rate_bps, hop.buffer, LinkInstances::Sender));
        config.classes[0].routes[0].insert(place, number);
        config.cross.extend(hop.cross(number));
    }
}

fn per_source_hop() -> impl Strategy<Value = Option<PerSource>> {
    let buffer = prop_oneof![Just(None), (1_u64..40).prop_map(Some)];
    let cross_load = prop::option::of(0.1_f64..1.1);
    let hop = (1_000_000_u64..30_000_000, buffer, cross_load)
        .prop_map(|(rate_bps, buffer, cross_load)| PerSource { rate_bps, buffer, cross_load });
    prop::option::of(hop)
}

fn bulk() -> Traffic {
    Traffic::Bulk {
        start: BulkStartTimes::Drawn(Distribution::Uniform { low: 0.0, high: 0.1 }),
        stop: None,
    }
}

fn web(off_time: f64) -> Traffic {
    coupled(off_time, 0.0)
}

fn coupled(off_time: f64, coupling: f64) -> Traffic {
    Traffic::OnOff {
        off: Distribution::Exponential { minimum: 0.0, scale: off_time },
        size: Distribution::Lognormal { mu: 3.5, sigma: 0.8, minimum: 0.0 },
        rounding: SizeRounding::Nearest,
        persistent: true,
        coupling,
        begin: OnOffInitialState::Off,
    }
}

/// A hop that loses packets.
const LOSSY: PerSource = PerSource { rate_bps: 2_000_000, buffer: Some(8), cross_load: Some(0.9) };

fn fixed_point_config(scheme: CrossFlowScheme, references: u32) -> FixedPointConfig {
    FixedPointConfig {
        scheme,
        queue_rule: CrossPacketTimeRule::Delay,
        conditional: false,
        moments: 2,
        references: vec![references],
        steps: 0,
        step: SECOND,
        initial: vec![(0.3, 0.3)],
    }
}

fn fair(buffers: BufferAssignment, drop: DropPolicy, ties: TieBreakRule) -> QueueConfig {
    let quantum_bytes = NonZeroU32::new(1500).unwrap();
    let head_of_line = HeadOfLine::InBuffer;
    QueueConfig::Drr(DrrConfig { quantum_bytes, buffers, drop, ties, head_of_line, heavy: None })
}

fn until(seconds: u64) -> RunLimit {
    RunLimit { transfers: u64::MAX, until: seconds * SECOND }
}

/// Counters that depend on packet times to the nanosecond.
fn dates(probes: &Probes) -> [u64; 6] {
    [
        ClassCell::Sent,
        ClassCell::FastRetransmits,
        ClassCell::Timeouts,
        ClassCell::RttSamples,
        ClassCell::RttSum,
        ClassCell::OnTime,
    ]
    .map(|cell| probes.counters.total_over_classes(cell))
}

/// Checks that a single flow of the packet engine and a reference flow agree.
fn check_exact(config: &NetworkConfig) {
    let mut exact = create_network_replications(config, 1);
    exact.advance(until(200), 1, &RunControl::new(1));
    let mut runs = create_replications(config, &fixed_point_config(CrossFlowScheme::Rates, 1), 1);
    runs.advance(until(200), 1, &RunControl::new(1));
    let (exact, probes) =
        (exact.update_and_check_probes().unwrap()[0], runs.update_and_check_probes().unwrap()[0]);
    let expected = dates(exact);
    assert!(expected[0] > 100, "no packets were sent: {expected:?}");
    assert_eq!(dates(probes), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn single_flow_agrees_with_packet_engine(
        rate in 500_000_u64..9_000_000,
        buffer in 2_u64..60,
        off_time in prop::option::of(0.1_f64..30.0),
        window in 2_u32..60,
        coupling in prop_oneof![Just(0.0), -0.9_f64..0.9],
        (before, after) in (per_source_hop(), per_source_hop()),
    ) {
        let traffic = off_time.map_or_else(bulk, |off_time| coupled(off_time, coupling));
        let tcp = TcpConfig { receiver_window: window, ..tcp() };
        let mut config = configuration(1, traffic, tcp, rate, buffer);
        add_per_source_hops(&mut config, before, after);
        check_exact(&config);
        let (drop, ties) = (DropPolicy::Arriving, TieBreakRule::Latest);
        config.links[ROUTER].queue = fair(BufferAssignment::PerFlow, drop, ties);
        check_exact(&config);
    }
}

#[test]
fn constant_window_v_sends_packet_n_after_ack_of_packet_n_minus_v() {
    // The recursion of INRIA report 4154, section 5.1, with K = 3, the maximum window from the
    // beginning, and a service time s of 6 ms at the shared router:
    // x(0, n) = max(x(K+1, n - v) + d(K+1, 0), x(0, n-1)) + s(0, n)
    // x(i, n) = max(x(i-1, n) + d(i-1, i), x(i, n-1)) + s(i, n)
    let start = BulkStartTimes::Times(vec![0.0]);
    let tcp = TcpConfig { initial_window: 40, ..tcp() };
    let traffic = Traffic::Bulk { start, stop: None };
    let config = Arc::new(configuration(1, traffic, tcp, 2_000_000, 1000));
    let point = fixed_point_config(CrossFlowScheme::Rates, 1);
    let mut run = FixedPointReplication::new(&config, &point, 0);
    run.advance(until(10), &mut RunWatch::without_control());
    let services = [INGRESS_BPS, 2_000_000, EGRESS_BPS]
        .map(|rate_bps| transmission_time(1500, Some(rate_bps)) as f64);
    let services = services.map(|service| service as Nanos);
    let (mut left, mut ack_times) = ([0; 3], Vec::new());
    let (mut rtt_sum, v) = (0, 40);
    loop {
        let n = ack_times.len();
        let ready = if n < v { 0 } else { ack_times[n - v] };
        let mut at: Nanos = ready;
        for (left, service) in left.iter_mut().zip(services) {
            *left = at.max(*left) + service;
            at = *left + DELAY;
        }
        let back = at + BACK_DELAY;
        if back > 10 * SECOND {
            break;
        }
        ack_times.push(back);
        rtt_sum += back - ready;
    }
    let probes = run.update_and_check_probes().unwrap();
    assert!(ack_times.len() > 1000);
    assert_eq!(probes.counters.total_over_classes(ClassCell::RttSamples), ack_times.len() as u64);
    // Links carry fractions of a nanosecond over.
    let sum = probes.counters.total_over_classes(ClassCell::RttSum);
    assert!(sum.abs_diff(rtt_sum) <= ack_times.len() as u64 * 2, "{sum} and {rtt_sum}");
}

#[test]
fn replications_support_all_queues_and_report_cross_flows() {
    let red = RedConfig {
        unit: RedUnit::Packets,
        ecn: false,
        min_threshold: 20.0,
        max_threshold: 60.0,
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        packets_per_second: 2_000_000.0 / 12_000.0,
    };
    let (shared, latest) = (BufferAssignment::Shared, TieBreakRule::Latest);
    for queue in [
        QueueConfig::DropTail,
        QueueConfig::Red(red),
        fair(shared, DropPolicy::Arriving, latest),
        fair(shared, DropPolicy::LongestTail, TieBreakRule::Random),
    ] {
        let mut config = configuration(40, web(2.0), tcp(), 2_000_000, 100);
        config.links[ROUTER].queue = queue;
        let mut point = fixed_point_config(CrossFlowScheme::Windows, 4);
        (point.steps, point.step) = (2, 5 * SECOND);
        let mut runs = create_replications(&config, &point, 2);
        assert_eq!(runs.advance(until(20), 2, &RunControl::new(2)), StopReason::Done);
        assert!(runs.update_and_check_probes().is_ok());
        for run in runs.created_replications() {
            let rows = run.step_results().unwrap().len() / STEP_CELLS.len();
            assert_eq!((rows, run.records().count()), (3, 4));
            assert!(
                run.cross_flow_probes().unwrap().counters.total_over_classes(ClassCell::Delivered)
                    > 100,
                "{queue:?}"
            );
        }
    }
}

#[test]
fn packets_are_conserved_for_all_schemes_and_queues() {
    let schemes = [CrossFlowScheme::Rates, CrossFlowScheme::Queues, CrossFlowScheme::Windows];
    let policies = [DropPolicy::Arriving, DropPolicy::LongestTail, DropPolicy::LongestHead];
    for scheme in schemes {
        for drop in policies {
            for buffers in [BufferAssignment::Shared, BufferAssignment::PerFlow] {
                for (traffic, hop) in [
                    (web(2.0), None),
                    (coupled(2.0, 0.5), Some(LOSSY)),
                    (bulk(), None),
                    (bulk(), Some(LOSSY)),
                ] {
                    let mut config = configuration(60, traffic, tcp(), 2_000_000, 300);
                    add_per_source_hops(&mut config, hop, hop);
                    let mut point = fixed_point_config(scheme, 3);
                    (point.steps, point.step, point.conditional) = (4, 5 * SECOND, true);
                    config.links[ROUTER].queue = fair(buffers, drop, TieBreakRule::Latest);
                    let mut run = FixedPointReplication::new(&Arc::new(config), &point, 0);
                    run.advance(until(30), &mut RunWatch::without_control());
                    assert!(run.update_and_check_probes().is_ok());
                    let (reference, cross) = (run.probes(), run.cross_flow_probes().unwrap());
                    for probes in [reference, cross] {
                        assert!(
                            probes.counters.total_over_classes(ClassCell::Delivered) > 20,
                            "{scheme:?}"
                        );
                    }
                    assert_eq!(run.step_results().unwrap().len(), 5 * STEP_CELLS.len());
                }
            }
        }
    }
}
