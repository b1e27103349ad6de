use super::*;
use proptest::prelude::*;
use std::num::NonZeroU32;
use tcpcast_link::queue::{
    BufferAssignment, DropPolicy, DrrConfig, HeadOfLine, QueueConfig, RedConfig, RedRules,
    TieBreakRule,
};
use tcpcast_sim::clock::{Nanos, SECOND, transmission_time};
use tcpcast_sim::cross::{ArrivalProcess, FluidBins, FractionalNoise};
use tcpcast_sim::flows::{
    CrossStreamConfig, FlowClassConfig, FlowTcp, FlowTraffic, LinkInstances, NetworkConfig,
    NetworkLinkConfig, SendingEnds, create_network_replications,
};
use tcpcast_sim::probe::{ClassCell, ProbeConfig, Probes};
use tcpcast_sim::queue::LinkRate;
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

fn class(sources: u32, traffic: Traffic) -> ClassConfig {
    let access = |rate_bps| AccessConfig { rate_bps: Some(rate_bps), delay: SECOND / 100 };
    ClassConfig {
        sources,
        ingress: access(10_000_000),
        egress: access(6_000_000),
        forward: SECOND / 100,
        back: SECOND / 50,
        traffic,
        tcp: TcpConfig {
            initial_window: 1,
            receiver_window: 40,
            idle_restart: IdleRestart::After(10 * SECOND),
            instant: Some(RULE_B),
            ..TcpConfig::default()
        },
    }
}

fn configuration(class: ClassConfig, router_bps: u64, limit: u64) -> RoadConfig {
    RoadConfig {
        seed: 1,
        packet_bytes: 1500,
        ack_bytes: 40,
        router_bps: Some(router_bps),
        limit: Some(limit),
        queue: QueueConfig::DropTail,
        cross: Vec::new(),
        hops_before: Vec::new(),
        hops_after: Vec::new(),
        classes: vec![class],
        probes: ProbeConfig { size_bounds: vec![40], ..ProbeConfig::default() },
    }
}

/// The same path as links of the packet engine.
fn network(road: &RoadConfig) -> NetworkConfig {
    let link = |access: AccessConfig, limit, queue, each| NetworkLinkConfig {
        rate: LinkRate::Constant(access.rate_bps),
        policer: None,
        delay: access.delay,
        limit,
        limit_bytes: None,
        queue,
        remark: None,
        loss: None,
        jitter: None,
        docsis: None,
        each,
        changes: Vec::new(),
    };
    let own = |access, limit| link(access, limit, QueueConfig::DropTail, LinkInstances::Sender);
    let class = &road.classes[0];
    let router = AccessConfig { rate_bps: road.router_bps, delay: class.forward };
    let before = road.hops_before.iter().map(|hop| own(hop.link, hop.limit));
    let after = road.hops_after.iter().map(|hop| own(hop.link, hop.limit));
    // Hops have the numbers of their stages, which name their random streams.
    let links: Vec<_> = before
        .chain([link(router, road.limit, road.queue, LinkInstances::All)])
        .chain(after)
        .chain([own(class.ingress, None), own(class.egress, None)])
        .collect();
    let hops = links.len() - 2;
    let ack_ends = [class.ingress, class.egress].map(|access| access.unloaded_time(40));
    let stream = |cross: &CrossConfig| CrossStreamConfig {
        link: cross.stage,
        packet_bytes: road.packet_bytes,
        process: cross.process.clone(),
        fluid: Some(cross.fluid),
    };
    NetworkConfig {
        seed: road.seed,
        sites: Vec::new(),
        classes: vec![FlowClassConfig {
            site: None,
            flows: class.sources,
            routes: vec![[hops].into_iter().chain(0..hops).chain([hops + 1]).collect()],
            back: vec![Vec::new()],
            delay: 0,
            back_delay: ack_ends.iter().sum::<Nanos>()
                + transmission_time(road.ack_bytes, road.router_bps)
                + class.back
                + road.unloaded_ack_time(),
            packet_bytes: road.packet_bytes,
            ack_bytes: road.ack_bytes,
            tso: false,
            gro: true,
            sends: SendingEnds::Server,
            traffic: FlowTraffic::Files(class.traffic.clone()),
            reading: None,
            writing: None,
            tcp: Some(FlowTcp::Packets(class.tcp.clone())),
            host_noise: 0,
            host: None,
            dscp: 0,
            scale: None,
        }],
        cross: road.cross.iter().map(stream).collect(),
        round_loss: None,
        rtt_spread: 0.0,
        headline: road.hops_before.len(),
        links,
        warmup: 0,
        probes: road.probes.clone(),
    }
}

/// A per-source hop, with the mean load of its cross traffic as a fraction of the rate.
#[derive(Clone, Copy, Debug)]
struct PerSource {
    rate_bps: u64,
    buffer: Option<u64>,
    cross_load: Option<f64>,
}

impl PerSource {
    fn config(self) -> HopConfig {
        let link = AccessConfig { rate_bps: Some(self.rate_bps), delay: SECOND / 200 };
        HopConfig { link, limit: self.buffer }
    }

    fn cross(self, stage: usize) -> Option<CrossConfig> {
        let packets_per_bin = self.rate_bps as f64 / 12_000.0 / 10.0;
        let process = ArrivalProcess::Fractional(FractionalNoise {
            mean: self.cross_load? * packets_per_bin,
            sd: self.cross_load? * packets_per_bin / 2.0,
            hurst: 0.7,
            bin: SECOND / 10,
            bins: 1024,
        });
        let fluid = FluidBins { bin: SECOND / 10, bins: 1024, series: 1 };
        Some(CrossConfig { stage, fluid, process })
    }
}

fn add_per_source_hops(
    config: &mut RoadConfig,
    before: Option<PerSource>,
    after: Option<PerSource>,
) {
    config.hops_before = before.iter().map(|hop| hop.config()).collect();
    config.hops_after = after.iter().map(|hop| hop.config()).collect();
    let behind = config.hops_before.len() + 1;
    let streams = [before.and_then(|hop| hop.cross(0)), after.and_then(|hop| hop.cross(behind))];
    config.cross = streams.into_iter().flatten().collect();
}

/// A rate at which a packet takes a whole number of nanoseconds: the links of the packet engine do
/// not round the times of packets in a row.
fn whole_nanosecond_rate() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![
        500_000, 600_000, 750_000, 800_000, 960_000, 1_000_000, 1_200_000, 1_500_000, 1_600_000,
        2_000_000, 2_400_000, 3_000_000, 4_000_000, 4_800_000, 5_000_000, 7_500_000, 12_000_000,
    ])
}

fn per_source_hop() -> impl Strategy<Value = Option<PerSource>> {
    let buffer = prop_oneof![Just(None), (1_u64..40).prop_map(Some)];
    let cross_load = prop::option::of(0.1_f64..1.1);
    let hop = (whole_nanosecond_rate(), buffer, cross_load)
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

fn fair(buffers: BufferAssignment, drop: DropPolicy) -> DrrConfig {
    DrrConfig {
        quantum_bytes: NonZeroU32::new(1500).expect("not zero"),
        buffers,
        drop,
        ties: TieBreakRule::Latest,
        head_of_line: HeadOfLine::InBuffer,
        heavy: None,
    }
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

/// Checks that the packet engine and the recursion agree, for flows with equal losses and service
/// times.
///
/// The recursion runs its senders later by the delay to the first hop.
fn check_exact(config: &RoadConfig) {
    let end = 200 * SECOND;
    let mut exact = create_network_replications(&network(config), 1);
    exact.advance(RunLimit { until: end, ..until(200) }, 1, &RunControl::new(1));
    let mut runs = create_replications(config, &fixed_point_config(CrossFlowScheme::Rates, 1), 1);
    let to_first_hop = config.classes[0].ingress.unloaded_time(config.packet_bytes);
    let limit = RunLimit { until: end + to_first_hop, ..until(200) };
    runs.advance(limit, 1, &RunControl::new(1));
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
        rate in whole_nanosecond_rate(),
        buffer in 2_u64..60,
        off_time in prop::option::of(0.1_f64..30.0),
        window in 2_u32..60,
        coupling in prop_oneof![Just(0.0), -0.9_f64..0.9],
        (before, after) in (per_source_hop(), per_source_hop()),
    ) {
        let traffic = off_time.map_or_else(bulk, |off_time| coupled(off_time, coupling));
        let mut config = configuration(class(1, traffic), rate, buffer);
        config.classes[0].tcp.receiver_window = window;
        add_per_source_hops(&mut config, before, after);
        check_exact(&config);
        config.queue = QueueConfig::Drr(fair(BufferAssignment::PerFlow, DropPolicy::Arriving));
        check_exact(&config);
    }

    /// x(i, n) = max(x(i-1, n) + d, x(i, n-1)) + s
    #[test]
    fn router_series_agrees_with_departure_recursion(
        routers in prop::collection::vec((0_u64..100, 0_u64..100), 0..5),
        gaps in prop::collection::vec(0_u64..150, 1..40),
    ) {
        let of = |(service, delay): &(Nanos, Nanos)| SingleFlowRouter { service: *service, delay: *delay };
        let route = RouterSeries::new(routers.iter().map(of).collect());
        let mut left = route.initial_departures();
        let mut x = vec![0; routers.len()];
        let mut arrives = 0;
        for gap in gaps {
            arrives += gap;
            let mut at = arrives;
            for (i, (service, delay)) in routers.iter().enumerate() {
                x[i] = at.max(x[i]) + service;
                at = x[i] + delay;
            }
            prop_assert_eq!(route.pass_packet_through_routers(&mut left, arrives), at);
        }
    }
}

#[test]
fn constant_window_v_sends_packet_n_after_ack_of_packet_n_minus_v() {
    // x(0, n) = max(x(K+1, n - v) + d(K+1, 0), x(0, n-1)) + s(0, n) with K = 3, the maximum window
    // from the beginning, and a service time of 6 ms at the shared router.
    let start = BulkStartTimes::Times(vec![0.0]);
    let mut config = configuration(class(1, Traffic::Bulk { start, stop: None }), 2_000_000, 1000);
    config.classes[0].tcp.initial_window = 40;
    config.limit = None;
    let point = fixed_point_config(CrossFlowScheme::Rates, 1);
    let mut run = FixedPointReplication::new(&config, &point, 0);
    run.advance(until(10), &mut RunWatch::without_control());
    let path = flows::ClassPath::new(&config.classes[0], &config);
    let (mut before, mut after) =
        (path.before.initial_departures(), path.after.initial_departures());
    let (mut shared, mut ack_times) = (0, Vec::new());
    let (mut rtt_sum, v) = (0, 40);
    loop {
        let n = ack_times.len();
        let ready = if n < v { 0 } else { ack_times[n - v] };
        let arrives = path.before.pass_packet_through_routers(&mut before, ready);
        shared = arrives.max(shared) + 6 * SECOND / 1000;
        let back =
            path.after.pass_packet_through_routers(&mut after, shared + path.forward) + path.back;
        // The sender processes the ACK later by the upstream delay.
        if back + path.up_delay > 10 * SECOND {
            break;
        }
        ack_times.push(back);
        rtt_sum += back - ready;
    }
    let probes = run.update_and_check_probes().unwrap();
    assert!(ack_times.len() > 1000);
    assert_eq!(probes.counters.total_over_classes(ClassCell::RttSamples), ack_times.len() as u64);
    assert_eq!(probes.counters.total_over_classes(ClassCell::RttSum), rtt_sum);
}

#[test]
fn replications_support_all_queues_and_report_cross_flows() {
    let red = RedConfig {
        ecn: false,
        min_threshold: 20.0,
        max_threshold: 60.0,
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        adaptive: false,
        rules: RedRules::Ns2,
        packets_per_second: 2_000_000.0 / 12_000.0,
    };
    let random = DrrConfig {
        ties: TieBreakRule::Random,
        ..fair(BufferAssignment::Shared, DropPolicy::LongestTail)
    };
    for queue in [
        QueueConfig::DropTail,
        QueueConfig::Red(red),
        QueueConfig::Drr(fair(BufferAssignment::Shared, DropPolicy::Arriving)),
        QueueConfig::Drr(random),
    ] {
        let mut config = configuration(class(40, web(2.0)), 2_000_000, 100);
        config.queue = queue;
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
                    let mut config = configuration(class(60, traffic), 2_000_000, 300);
                    add_per_source_hops(&mut config, hop, hop);
                    let mut point = fixed_point_config(scheme, 3);
                    (point.steps, point.step, point.conditional) = (4, 5 * SECOND, true);
                    config.queue = QueueConfig::Drr(fair(buffers, drop));
                    let mut run = FixedPointReplication::new(&config, &point, 0);
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
