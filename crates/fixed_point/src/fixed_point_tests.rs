use super::*;
use proptest::prelude::*;
use tcpcast_sim::clock::{Nanos, SECOND};
use tcpcast_sim::cross::{ArrivalProcess, CrossConfig, FractionalNoise};
use tcpcast_sim::hops;
use tcpcast_sim::probe::{ClassCell, ProbeConfig, Probes};
use tcpcast_sim::queue::{
    Buffers, DropPolicy, DropTail, Fair, FairConfig, QueueConfig, RedConfig, Ties, disciplines,
};
use tcpcast_sim::tcp::{Growth, IdleRestart, InstantLoss, TcpConfig};
use tcpcast_sim::traffic::{Begin, Distribution, Rounding, Start, Traffic};
use tcpcast_sim::{
    AccessConfig, ClassConfig, Control, HopConfig, Replications, RunConfig, RunLimit, StopReason,
    Watch,
};

const RULE_B: InstantLoss = InstantLoss {
    growth: Growth::AfterHalving,
    whole_halves: true,
    halve_once: false,
    timeout: true,
};

fn class(sources: u32, traffic: Traffic) -> ClassConfig {
    let access = |rate_bps| AccessConfig { rate_bps, delay: SECOND / 100, limit: None, loss: None };
    ClassConfig {
        packet_bytes: None,
        sources,
        ingress: access(Some(10_000_000)),
        egress: access(Some(7_000_000)),
        forward: SECOND / 100,
        back: SECOND / 50,
        traffic,
        tcp: None,
        host_noise: 0,
        scale: None,
    }
}

fn configuration(class: ClassConfig, bottleneck_bps: u64, buffer: u64) -> RunConfig {
    RunConfig {
        seed: 1,
        packet_bytes: 1500,
        ack_bytes: 40,
        bottleneck_bps: Some(bottleneck_bps),
        buffer: Some(buffer),
        queue: QueueConfig::DropTail,
        loss: None,
        jitter: None,
        cross: Vec::new(),
        hops_before: Vec::new(),
        hops_after: Vec::new(),
        return_link: None,
        tcp: TcpConfig {
            initial_window: 1,
            receiver_window: 40,
            idle_restart: IdleRestart::After(10 * SECOND),
            instant: Some(RULE_B),
            ..TcpConfig::default()
        },
        classes: vec![class],
        warmup: 0,
        probes: ProbeConfig { size_bounds: vec![40], ..ProbeConfig::default() },
    }
}

/// A hop of each flow's own; how much of its rate cross traffic takes on average, if there is any.
#[derive(Clone, Copy, Debug)]
struct Own {
    rate_bps: u64,
    buffer: Option<u64>,
    others: Option<f64>,
}

impl Own {
    fn hop(self) -> HopConfig {
        HopConfig {
            rate_bps: Some(self.rate_bps),
            delay: SECOND / 200,
            buffer: self.buffer,
            queue: QueueConfig::DropTail,
            loss: None,
            shared: false,
        }
    }

    fn cross(self, stage: usize) -> Option<CrossConfig> {
        let packets_per_bin = self.rate_bps as f64 / 12_000.0 / 10.0;
        let process = ArrivalProcess::Fractional(FractionalNoise {
            mean: self.others? * packets_per_bin,
            sd: self.others? * packets_per_bin / 2.0,
            hurst: 0.7,
            bin: SECOND / 10,
            bins: 1024,
        });
        Some(CrossConfig { stage, bin: SECOND / 10, bins: 1024, series: 1, process })
    }
}

fn add_own(config: &mut RunConfig, before: Option<Own>, after: Option<Own>) {
    config.hops_before = before.iter().map(|own| own.hop()).collect();
    config.hops_after = after.iter().map(|own| own.hop()).collect();
    let behind = config.hops_before.len() + 1;
    let streams = [before.and_then(|own| own.cross(0)), after.and_then(|own| own.cross(behind))];
    config.cross = streams.into_iter().flatten().collect();
}

fn own() -> impl Strategy<Value = Option<Own>> {
    let buffer = prop_oneof![Just(None), (1_u64..40).prop_map(Some)];
    let others = prop::option::of(0.1_f64..1.1);
    let own = (1_000_000_u64..30_000_000, buffer, others)
        .prop_map(|(rate_bps, buffer, others)| Own { rate_bps, buffer, others });
    prop::option::of(own)
}

fn bulk() -> Traffic {
    Traffic::Bulk { start: Start::Drawn(Distribution::Uniform { low: 0.0, high: 0.1 }), stop: None }
}

fn web(off_time: f64) -> Traffic {
    coupled(off_time, 0.0)
}

fn coupled(off_time: f64, coupling: f64) -> Traffic {
    Traffic::OnOff {
        off: Distribution::Exponential { minimum: 0.0, scale: off_time },
        size: Distribution::Lognormal { mu: 3.5, sigma: 0.8, minimum: 0.0 },
        rounding: Rounding::Nearest,
        persistent: true,
        coupling,
        begin: Begin::Off,
    }
}

/// Packets are lost there.
const LOSSY: Own = Own { rate_bps: 2_000_000, buffer: Some(8), others: Some(0.9) };

fn asked(scheme: Scheme, references: u32) -> FixedPointConfig {
    FixedPointConfig {
        scheme,
        conditional: false,
        moments: 2,
        references: vec![references],
        steps: 0,
        step: SECOND,
        initial: vec![(0.3, 0.3)],
    }
}

fn fair(buffers: Buffers, drop: DropPolicy) -> FairConfig {
    let ties = Ties::Latest;
    FairConfig { quantum_bytes: 1500, packet_bytes: 1500, buffers, drop, ties }
}

fn until(seconds: u64) -> RunLimit {
    RunLimit { transfers: u64::MAX, until: seconds * SECOND }
}

/// What depends on the dates of packets, to the nanosecond.
fn dates(probes: &Probes) -> [u64; 6] {
    [
        ClassCell::Sent,
        ClassCell::FastRetransmits,
        ClassCell::Timeouts,
        ClassCell::RttSamples,
        ClassCell::RttSum,
        ClassCell::OnTime,
    ]
    .map(|cell| probes.counters.total(cell))
}

/// The packet engine's events and the recursion, for flows with the same losses and service times.
///
/// The packet engine asks its senders as late as a packet takes to the bottleneck, and not only to
/// the first hop.
fn check_exact(config: &RunConfig) {
    let mut exact = Replications::new(config, 1);
    exact.advance(until(200), 1, &Control::new(1));
    let mut runs = replications(config, &asked(Scheme::Rates, 1), 1);
    let goal = RunLimit {
        until: 200 * SECOND - hops::time_to_first_shared(config, config.packet_bytes),
        ..until(200)
    };
    runs.advance(goal, 1, &Control::new(1));
    let (exact, found) = (exact.flush().unwrap()[0], runs.flush().unwrap()[0]);
    let wanted = dates(exact);
    assert!(wanted[0] > 100, "nothing was sent: {wanted:?}");
    assert_eq!(dates(found), wanted);
    // Behind the bottleneck the packet engine is ahead by what its senders are late.
    let at_first_hop = |probes: &Probes| {
        probes
            .hops
            .first()
            .map(|counters| [counters.arrived, counters.queue_drops, counters.held()])
    };
    assert_eq!(at_first_hop(found), at_first_hop(exact));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_flow_alone_has_the_dates_of_the_packet_engine(
        rate in 500_000_u64..9_000_000,
        buffer in 2_u64..60,
        off_time in prop::option::of(0.1_f64..30.0),
        window in 2_u32..60,
        coupling in prop_oneof![Just(0.0), -0.9_f64..0.9],
        (before, after) in (own(), own()),
    ) {
        let traffic = off_time.map_or_else(bulk, |off_time| coupled(off_time, coupling));
        let mut config = configuration(class(1, traffic), rate, buffer);
        config.tcp.receiver_window = window;
        add_own(&mut config, before, after);
        check_exact(&config);
        config.queue = QueueConfig::Fair(fair(Buffers::PerFlow, DropPolicy::Arriving));
        check_exact(&config);
    }

    /// x(i, n) = max(x(i-1, n) + d, x(i, n-1)) + s, written out.
    #[test]
    fn a_route_is_the_recursion(
        routers in prop::collection::vec((0_u64..100, 0_u64..100), 0..5),
        gaps in prop::collection::vec(0_u64..150, 1..40),
    ) {
        let of = |(service, delay): &(Nanos, Nanos)| Router { service: *service, delay: *delay };
        let route = Route::new(routers.iter().map(of).collect());
        let mut left = route.unused();
        let mut x = vec![0; routers.len()];
        let mut arrives = 0;
        for gap in gaps {
            arrives += gap;
            let mut at = arrives;
            for (i, (service, delay)) in routers.iter().enumerate() {
                x[i] = at.max(x[i]) + service;
                at = x[i] + delay;
            }
            prop_assert_eq!(route.pass(&mut left, arrives), at);
        }
    }
}

#[test]
fn a_window_that_is_not_cut_sends_packet_n_when_packet_n_minus_v_is_acknowledged() {
    // x(0, n) = max(x(K+1, n - v) + d(K+1, 0), x(0, n-1)) + s(0, n), with K = 3 and the window at
    // its largest from the beginning; the shared router serves in 6 ms.
    let start = Start::Times(vec![0.0]);
    let mut config = configuration(class(1, Traffic::Bulk { start, stop: None }), 2_000_000, 1000);
    config.tcp.initial_window = 40;
    let mut run = FixedPoint::new(&config, &asked(Scheme::Rates, 1), DropTail::new(None), 0);
    run.advance(until(10), &mut Watch::none());
    let path = flows::Path::new(&config.classes[0], &config);
    let (mut before, mut after) = (path.before.unused(), path.after.unused());
    let (mut shared, mut heard) = (0, Vec::new());
    let (mut rtt_sum, v) = (0, 40);
    loop {
        let n = heard.len();
        let ready = if n < v { 0 } else { heard[n - v] };
        let arrives = path.before.pass(&mut before, ready);
        shared = arrives.max(shared) + 6 * SECOND / 1000;
        let back = path.after.pass(&mut after, shared + path.forward) + path.back;
        // It is told as late as a packet gets to the shared router.
        if back + path.up > 10 * SECOND {
            break;
        }
        heard.push(back);
        rtt_sum += back - ready;
    }
    let found = run.flush().unwrap();
    assert!(heard.len() > 1000);
    assert_eq!(found.counters.total(ClassCell::RttSamples), heard.len() as u64);
    assert_eq!(found.counters.total(ClassCell::RttSum), rtt_sum);
}

#[test]
fn with_any_queue_it_is_a_replication_that_tells_of_cross_flows_too() {
    let red = RedConfig {
        unit: disciplines::RedUnit::Packets,
        ecn: false,
        min_threshold: 20.0,
        max_threshold: 60.0,
        max_probability: 0.1,
        weight: 0.002,
        gentle: true,
        packets_per_second: 2_000_000.0 / 12_000.0,
    };
    let random =
        FairConfig { ties: Ties::Random, ..fair(Buffers::Shared, DropPolicy::LongestTail) };
    for queue in [
        QueueConfig::DropTail,
        QueueConfig::Red(red),
        QueueConfig::Fair(fair(Buffers::Shared, DropPolicy::Arriving)),
        QueueConfig::Fair(random),
    ] {
        let mut config = configuration(class(40, web(2.0)), 2_000_000, 100);
        config.queue = queue.clone();
        let mut point = asked(Scheme::Windows, 4);
        (point.steps, point.step) = (2, 5 * SECOND);
        let mut runs = replications(&config, &point, 2);
        assert_eq!(runs.advance(until(20), 2, &Control::new(2)), StopReason::Done);
        assert!(runs.flush().is_ok());
        for run in runs.runs() {
            assert_eq!((run.rows().len(), run.replication().records().count()), (3, 4));
            assert!(run.cross_probes().counters.total(ClassCell::Delivered) > 100, "{queue:?}");
        }
    }
}

#[test]
fn packets_are_conserved_whatever_the_scheme_and_the_queue() {
    let schemes = [Scheme::Rates, Scheme::Queues, Scheme::Windows];
    let overflows = [DropPolicy::Arriving, DropPolicy::LongestTail, DropPolicy::LongestHead];
    for scheme in schemes {
        for drop in overflows {
            for buffers in [Buffers::Shared, Buffers::PerFlow] {
                for (traffic, own) in [
                    (web(2.0), None),
                    (coupled(2.0, 0.5), Some(LOSSY)),
                    (bulk(), None),
                    (bulk(), Some(LOSSY)),
                ] {
                    let mut config = configuration(class(60, traffic), 2_000_000, 300);
                    add_own(&mut config, own, own);
                    let mut point = asked(scheme, 3);
                    (point.steps, point.step, point.conditional) = (4, 5 * SECOND, true);
                    let queue = Fair::new(fair(buffers, drop), Some(300));
                    let mut run = FixedPoint::new(&config, &point, queue, 0);
                    run.advance(until(30), &mut Watch::none());
                    assert!(run.flush().is_ok());
                    let (own, cross) = (run.probes(), run.cross_probes());
                    for probes in [own, cross] {
                        assert!(probes.counters.total(ClassCell::Delivered) > 20, "{scheme:?}");
                    }
                    assert_eq!(run.rows().len(), 5);
                }
            }
        }
    }
}
