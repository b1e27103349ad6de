//! Changes of a random network that must not change its results.

use super::tests::{MBIT, Outcome, bulk, class, drr, link, network};
use super::*;
use crate::clock::{MILLISECOND, SECOND};
use crate::jitter::JitterConfig;
use crate::loss::{LinkLossConfig, LossModel};
use crate::probe::{CLASS_CELLS, ClassCell};
use crate::queue::disciplines::{
    AckFilter, CakeConfig, CodelConfig, FqCodelConfig, PieConfig, QueueConfig,
};
use crate::queue::{LinkRate, TokenBucketConfig};
use crate::traffic::{BulkStartTimes, Distribution, OnOffInitialState, SizeRounding, Traffic};
use proptest::prelude::*;
use std::num::{NonZeroU32, NonZeroU64};
use tcpcast_link::Ecn;
use tcpcast_tcp::modern::{HandshakeKind, Preset, Stack};
use tcpcast_tcp::{
    CwndUnit, IdleRestart, InstantLossRules, LimitedTransmit, LossRecovery, TcpConfig,
};

fn queues() -> impl Strategy<Value = QueueConfig> {
    let codel = QueueConfig::Codel(CodelConfig::default());
    prop_oneof![
        3 => Just(QueueConfig::DropTail),
        1 => Just(QueueConfig::HeadDrop),
        1 => Just(drr()),
        1 => Just(codel),
    ]
}

fn links() -> impl Strategy<Value = Vec<NetworkLinkConfig>> {
    let link = (1_000_u64..20_000, 4_u64..60, 1_000_u64..20_000, queues()).prop_map(
        |(kbit, packets, delay_us, queue)| NetworkLinkConfig {
            // No two events share a nanosecond by chance.
            delay: delay_us * 1000 + kbit % 997,
            ..link(kbit * 1000 + 1, packets, queue)
        },
    );
    prop::collection::vec(link, 1..5)
}

fn exponential(scale: f64) -> Distribution {
    Distribution::Exponential { minimum: 0.0, scale }
}

fn on_off() -> FlowTraffic {
    FlowTraffic::Files(Traffic::OnOff {
        off: exponential(0.2),
        size: exponential(20.0),
        rounding: SizeRounding::Bytes(NonZeroU32::new(1448).unwrap()),
        persistent: false,
        coupling: 0.0,
        begin: OnOffInitialState::Off,
    })
}

fn traffics() -> impl Strategy<Value = FlowTraffic> {
    let start = || BulkStartTimes::Drawn(exponential(0.3));
    let requests = FlowTraffic::Requests(RequestTraffic {
        request: exponential(3000.0),
        answer: exponential(50_000.0),
        server_time: exponential(0.01),
        pause: exponential(0.1),
        fan_in: NonZeroU32::new(2).unwrap(),
        start: start(),
        stop: Some(2.0),
    });
    let messages = FlowTraffic::Messages(MessageTraffic {
        bytes: exponential(300.0),
        interval: exponential(0.05),
        ecn: Ecn::NotEct,
        start: start(),
        stop: None,
    });
    prop_oneof![3 => Just(bulk()), 3 => Just(on_off()), 2 => Just(requests), 1 => Just(messages)]
}

/// A route over some of the links, at most once each.
fn routes() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..4)
}

fn networks() -> impl Strategy<Value = NetworkConfig> {
    let plan = (traffics(), routes(), routes(), 1_u32..3, 0_u64..20_000_000, 0..3);
    (links(), prop::collection::vec(plan, 1..4), any::<u64>()).prop_map(|(links, classes, seed)| {
        let classes = classes.into_iter().map(|(traffic, route, back, pairs, delay, sends)| {
            let mut used = vec![false; links.len()];
            let mut select = |route: &[prop::sample::Index]| -> Vec<usize> {
                let all = route.iter().map(|index| index.index(links.len()));
                all.filter(|link| !std::mem::replace(&mut used[*link], true)).collect()
            };
            let (route, back) = (select(&route), select(&back));
            let sends =
                [SendingEnds::Server, SendingEnds::Client, SendingEnds::Both][sends as usize];
            let is_file = matches!(traffic, FlowTraffic::Files(Traffic::OnOff { .. }));
            let both = sends == SendingEnds::Both && is_file;
            // Endless data without a limit of the rate would never end.
            let is_limited = [(&route, SendingEnds::Client), (&back, SendingEnds::Server)]
                .iter()
                .all(|(links, unless)| !links.is_empty() || sends == *unless);
            let is_bulk = matches!(traffic, FlowTraffic::Files(Traffic::Bulk { .. }));
            let traffic = if is_bulk && !is_limited { on_off() } else { traffic };
            let sends = if is_bulk && !is_limited { SendingEnds::Client } else { sends };
            FlowClassConfig {
                delay: 5 * MILLISECOND + delay,
                back_delay: 7 * MILLISECOND + delay / 3,
                sends: if both { SendingEnds::Server } else { sends },
                host_noise: 0,
                host: None,
                dscp: 0,
                ..class(2 * pairs, &route, &back, traffic)
            }
        });
        let classes = classes.collect();
        NetworkConfig { seed, warmup: SECOND / 2, ..network(links, classes) }
    })
}

const UNTIL: Nanos = 3 * SECOND;

/// Cells of a class that do not depend on the headline link.
fn cells(run: &Outcome, class: usize) -> Vec<u64> {
    let of_headline = [
        ClassCell::Arrived,
        ClassCell::Passed,
        ClassCell::Waited,
        ClassCell::Marked,
        ClassCell::QueueDrops,
        ClassCell::RandomDrops,
    ];
    let all = &run.simulation.wire.probes.counters;
    let mut cells = all.clone().class_cells_mut(class).to_vec();
    assert_eq!(cells.len(), CLASS_CELLS.len());
    of_headline.iter().for_each(|cell| cells[*cell as usize] = 0);
    cells
}

fn assert_same_classes(run: &Outcome, other: &Outcome, classes: usize) {
    for class in 0..classes {
        assert_eq!(cells(run, class), cells(other, class), "class {class}");
    }
}

fn packets_of_sources(run: &Outcome) -> Vec<u64> {
    run.simulation.records().map(|record| record.packets).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn another_infinitely_fast_link_changes_nothing(
        config in networks(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 4),
    ) {
        let mut more = config.clone();
        let fast = NetworkLinkConfig {
            rate: LinkRate::Constant(None),
            delay: 0,
            ..link(MBIT, 5, QueueConfig::DropTail)
        };
        more.links.push(fast);
        for (class, place) in more.classes.iter_mut().zip(places) {
            let route = &mut class.routes[0];
            route.insert(place.index(route.len() + 1), config.links.len());
        }
        let (run, with) = (Outcome::new(&config, UNTIL), Outcome::new(&more, UNTIL));
        assert_same_classes(&run, &with, config.classes.len());
    }

    #[test]
    fn numbers_of_links_have_no_effect(config in networks(), shift in 0_usize..5) {
        let count = config.links.len();
        let renumber = |link: &mut usize| *link = (*link + shift) % count;
        let mut renumbered = config.clone();
        renumbered.links.rotate_right(shift % count);
        for class in &mut renumbered.classes {
            class.routes.iter_mut().chain(&mut class.back).flatten().for_each(renumber);
        }
        let (run, other) = (Outcome::new(&config, UNTIL), Outcome::new(&renumbered, UNTIL));
        assert_same_classes(&run, &other, config.classes.len());
    }

    #[test]
    fn splitting_a_class_changes_no_source(config in networks()) {
        let mut split = config.clone();
        let last = split.classes.last_mut().unwrap();
        let first = FlowClassConfig { flows: 2, ..last.clone() };
        last.flows -= 2;
        // Start times are listed or drawn per source, so they are those of the whole class.
        let at = split.classes.len() - 1;
        split.classes.insert(at, first);
        let (run, other) = (Outcome::new(&config, UNTIL), Outcome::new(&split, UNTIL));
        prop_assert_eq!(packets_of_sources(&run), packets_of_sources(&other));
        let both = (cells(&other, at), cells(&other, at + 1));
        let sums = both.0.iter().zip(both.1).map(|(one, two)| one.wrapping_add(two));
        prop_assert_eq!(cells(&run, at), sums.collect::<Vec<u64>>());
    }

    #[test]
    fn disjoint_networks_do_not_influence_each_other(config in networks(), more in networks()) {
        let mut both = config.clone();
        both.links.extend(more.links.iter().cloned());
        both.classes.extend(more.classes.iter().cloned().map(|mut class| {
            let shift = |link: &mut usize| *link += config.links.len();
            class.routes.iter_mut().chain(&mut class.back).flatten().for_each(shift);
            class
        }));
        let (run, with) = (Outcome::new(&config, UNTIL), Outcome::new(&both, UNTIL));
        assert_same_classes(&run, &with, config.classes.len());
    }

    #[test]
    fn events_on_private_links_change_nothing(config in networks()) {
        let run = Outcome::new(&config, UNTIL);
        let all = Network::default().with_events_on_all_links();
        assert_same_classes(&run, &Outcome::of_network(&config, all, UNTIL), config.classes.len());
    }
}

/// Everything that a link can have.
fn rich_link() -> impl Strategy<Value = NetworkLinkConfig> {
    let tokens = |rate_bps: u64| TokenBucketConfig {
        rate_bps: NonZeroU64::new(rate_bps).unwrap(),
        burst_bytes: 6000,
        overhead_bytes: 0,
    };
    let rate = (0_u8..4, 500_000_u64..20_000_000).prop_map(move |(kind, rate)| match kind {
        0 => LinkRate::Bucket(tokens(rate)),
        _ => LinkRate::Constant(Some(rate)),
    });
    let queue = prop_oneof![
        2 => queues(),
        1 => Just(QueueConfig::FqCodel(FqCodelConfig::default())),
        1 => Just(QueueConfig::Pie(PieConfig::default())),
        1 => Just(QueueConfig::Cake(CakeConfig {
            rate_bps: NonZeroU64::new(3_000_000),
            ack_filter: AckFilter::On,
            ..CakeConfig::default()
        })),
    ];
    let loss = (0.0..0.1, any::<bool>()).prop_map(|(probability, before)| {
        let model = LossModel::Bernoulli(probability);
        if before {
            LinkLossConfig::before_queue(model)
        } else {
            LinkLossConfig::behind_transmitter(model)
        }
    });
    let jitter =
        any::<bool>().prop_map(|reorder| JitterConfig { delay: exponential(0.003), reorder });
    let each = prop_oneof![
        2 => Just(LinkInstances::All),
        1 => Just(LinkInstances::Sender),
        1 => Just(LinkInstances::Site(0)),
    ];
    let change = (1_u64..2500, 0_u8..3, 500_000_u64..20_000_000);
    (
        (rate, queue, each, 2_u64..80, 0_u64..20_000_000),
        prop::option::weighted(0.2, loss),
        prop::option::weighted(0.2, jitter),
        prop::option::weighted(0.1, 500_000_u64..5_000_000),
        prop::collection::vec(change, 0..3),
    )
        .prop_map(
            move |((rate, queue, each, packets, delay), loss, jitter, policed, changes)| {
                let is_constant = matches!(rate, LinkRate::Constant(_));
                let mut changes: Vec<TimedChange> = changes
                    .into_iter()
                    .filter(|_| is_constant)
                    .map(|(at, kind, value)| TimedChange {
                        at: at * MILLISECOND,
                        change: match kind {
                            0 => LinkChangeConfig::Rate(Some(value)),
                            1 => LinkChangeConfig::Delay(value),
                            _ => LinkChangeConfig::Loss(loss),
                        },
                    })
                    .collect();
                changes.sort_by_key(|change| change.at);
                let policer = policed.map(tokens);
                let rest = link(MBIT, packets, queue);
                NetworkLinkConfig { rate, policer, delay, loss, jitter, each, changes, ..rest }
            },
        )
}

fn rich_traffics() -> impl Strategy<Value = FlowTraffic> {
    let start = || BulkStartTimes::Drawn(exponential(0.3));
    let arrivals = FlowTraffic::Files(Traffic::Arrivals {
        gap: exponential(0.1),
        size: exponential(20.0),
        rounding: SizeRounding::Nearest,
    });
    let stream = FlowTraffic::Stream(StreamTraffic {
        rates_bps: vec![MBIT / 2, MBIT],
        control: QualityControl::Throughput,
        segment_s: 0.3,
        start_buffer_s: 0.5,
        max_buffer_s: 2.0,
        start: start(),
        stop: Some(2.3),
    });
    let ping = FlowTraffic::Ping(PingTraffic {
        bytes: 84,
        interval: exponential(0.05),
        start: start(),
        stop: Some(2.7),
    });
    let stopping = FlowTraffic::Files(Traffic::Bulk { start: start(), stop: Some(1.5) });
    let persistent = match on_off() {
        FlowTraffic::Files(Traffic::OnOff { off, size, rounding, coupling, begin, .. }) => {
            let persistent = true;
            let traffic = Traffic::OnOff { off, size, rounding, persistent, coupling, begin };
            FlowTraffic::Files(traffic)
        }
        other => other,
    };
    prop_oneof![
        traffics(),
        Just(arrivals),
        Just(stream),
        Just(ping),
        Just(stopping),
        Just(persistent)
    ]
}

/// Classic TCP, whose ends send files in one direction.
fn paper_tcp() -> impl Strategy<Value = TcpConfig> {
    let newreno = TcpConfig { receiver_window: 40, ..TcpConfig::default() };
    let fractional = TcpConfig {
        window_unit: CwndUnit::Bytes,
        limited_transmit: LimitedTransmit::EachDuplicate,
        delayed_acks: true,
        idle_restart: IdleRestart::AfterTimeout,
        ..newreno.clone()
    };
    let tahoe = TcpConfig { recovery: LossRecovery::Tahoe, ..newreno.clone() };
    let rules = InstantLossRules { timeout: true, retransmit: true, ..InstantLossRules::SIMPLEST };
    let instant = TcpConfig { instant: Some(rules), ..newreno.clone() };
    prop::sample::select(vec![newreno, fractional, tahoe, instant])
}

/// A network with all features; each route has a link.
fn rich_networks() -> impl Strategy<Value = NetworkConfig> {
    let presets = prop::sample::select(vec![
        Preset::LinuxCubic,
        Preset::LinuxReno,
        Preset::LinuxBbr,
        Preset::Bbr3,
        Preset::RfcSack,
        Preset::Dctcp,
    ]);
    let handshakes = prop::sample::select(vec![
        HandshakeKind::None,
        HandshakeKind::Tcp,
        HandshakeKind::Tls13,
        HandshakeKind::Tls12,
        HandshakeKind::Tls13ZeroRtt,
    ]);
    let route = || prop::collection::vec(any::<prop::sample::Index>(), 1..3);
    let plan = (
        rich_traffics(),
        (route(), route(), prop::option::of(route())),
        (presets, handshakes, any::<[bool; 2]>(), prop::option::weighted(0.4, paper_tcp())),
        0_u8..3,
    );
    let classes = prop::collection::vec(plan, 1..4);
    (prop::collection::vec(rich_link(), 2..5), classes, any::<u64>()).prop_map(
        |(links, classes, seed)| {
            let select = |route: &[prop::sample::Index]| -> Vec<usize> {
                let mut all: Vec<usize> =
                    route.iter().map(|index| index.index(links.len())).collect();
                all.dedup();
                all
            };
            let classes = classes.into_iter().map(|(traffic, routes, tcp, sends)| {
                let (route, back, other) = routes;
                let (preset, handshake, [ecn, fast_open], paper) = tcp;
                let sends =
                    [SendingEnds::Server, SendingEnds::Client, SendingEnds::Both][sends as usize];
                let is_file = match &traffic {
                    FlowTraffic::Files(Traffic::Bulk { .. }) => false,
                    FlowTraffic::Files(_) => true,
                    _ => false,
                };
                let is_arrival = matches!(traffic, FlowTraffic::Files(Traffic::Arrivals { .. }));
                let both = sends == SendingEnds::Both && is_file;
                let mut of_class = class(2, &select(&route), &select(&back), traffic);
                of_class.routes.extend(other.map(|route| select(&route)));
                of_class.sends = if both { SendingEnds::Client } else { sends };
                of_class.flows = if is_arrival { 0 } else { 2 };
                of_class.site = Some(0);
                let sends_files = matches!(&of_class.traffic, FlowTraffic::Files(_));
                let one_way = sends_files && of_class.sends != SendingEnds::Both;
                if let Some(rules) = paper.filter(|_| one_way) {
                    of_class.tcp = Some(FlowTcp::Packets(rules));
                }
                if let Some(FlowTcp::Modern(tcp)) = &mut of_class.tcp {
                    let fast_open = fast_open && handshake != HandshakeKind::None;
                    let stack = Stack { mss: tcp.stack.mss, ecn, fast_open, ..preset.stack() };
                    (tcp.stack, tcp.handshake) = (stack, handshake);
                }
                of_class
            });
            let classes = classes.collect();
            NetworkConfig {
                seed,
                sites: vec![SiteConfig { count: 3 }],
                warmup: SECOND / 2,
                ..network(links.clone(), classes)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Conservation and Little's law are checked at each pause; pauses change nothing.
    #[test]
    fn all_features_conserve_packets_and_pauses_change_nothing(config in rich_networks()) {
        let run = Outcome::new(&config, UNTIL);
        let mut paused = FlowSimulation::new(&Arc::new(config.clone()), 0);
        for tenths in 1..=30 {
            let limit = RunLimit { transfers: u64::MAX, until: UNTIL * tenths / 30 };
            let stop = paused.advance(limit, &mut RunWatch::without_control());
            prop_assert_eq!(stop, StopReason::Done);
            prop_assert!(paused.update_and_check_probes().is_ok());
        }
        let rows = run.simulation.wire.probes.counters.snapshot_rows();
        prop_assert!(rows == paused.wire.probes.counters.snapshot_rows());
    }
}
