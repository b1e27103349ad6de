//! Truth cells: shares, delays and rates of small networks.

use super::*;
use crate::clock::{MILLISECOND, SECOND};
use crate::probe::{ClassCell, LINK_TOTAL_CELLS, ProbeConfig, TimeKind};
use crate::queue::LinkRate;
use crate::queue::disciplines::{
    AckFilter, BufferAssignment, CakeConfig, CodelConfig, DropPolicy, DrrConfig, FqCodelConfig,
    HeadOfLine, Isolation, QueueConfig, TieBreakRule, Tins,
};
use crate::traffic::{BulkStartTimes, Distribution, Traffic};
use std::num::{NonZeroU32, NonZeroU64};
use tcpcast_link::Ecn;
use tcpcast_tcp::modern::{HandshakeKind, ModernTcpConfig, Preset, Stack};

pub(super) const MBIT: u64 = 1_000_000;

pub(super) fn link(rate_bps: u64, packets: u64, queue: QueueConfig) -> NetworkLinkConfig {
    NetworkLinkConfig {
        rate: LinkRate::Constant(Some(rate_bps)),
        policer: None,
        delay: MILLISECOND,
        limit: Some(packets),
        limit_bytes: None,
        queue,
        remark: None,
        loss: None,
        jitter: None,
        docsis: None,
        each: LinkInstances::All,
        changes: Vec::new(),
    }
}

pub(super) fn drr() -> QueueConfig {
    QueueConfig::Drr(DrrConfig {
        quantum_bytes: NonZeroU32::new(1500).unwrap(),
        buffers: BufferAssignment::Shared,
        drop: DropPolicy::LongestTail,
        ties: TieBreakRule::Latest,
        head_of_line: HeadOfLine::InBuffer,
        heavy: None,
    })
}

pub(super) fn tcp(preset: Preset) -> ModernTcpConfig {
    let stack = Stack { mss: 1448, ..preset.stack() };
    ModernTcpConfig { stack, handshake: HandshakeKind::None, rtt: 0, closes: false }
}

fn at_start() -> BulkStartTimes {
    BulkStartTimes::Drawn(Distribution::Uniform { low: 0.0, high: 0.1 })
}

pub(super) fn bulk() -> FlowTraffic {
    FlowTraffic::Files(Traffic::Bulk { start: at_start(), stop: None })
}

pub(super) fn class(
    flows: u32,
    route: &[usize],
    back: &[usize],
    traffic: FlowTraffic,
) -> FlowClassConfig {
    let uses_tcp = !matches!(traffic, FlowTraffic::Messages(_) | FlowTraffic::Ping(_));
    FlowClassConfig {
        site: None,
        flows,
        routes: vec![route.to_vec()],
        back: vec![back.to_vec()],
        delay: 10 * MILLISECOND,
        back_delay: 10 * MILLISECOND,
        packet_bytes: 1500,
        ack_bytes: 52,
        tso: false,
        gro: true,
        sends: SendingEnds::Server,
        traffic,
        reading: None,
        writing: None,
        tcp: uses_tcp.then(|| FlowTcp::Modern(tcp(Preset::LinuxCubic))),
        host_noise: 100,
        host: None,
        dscp: 0,
        scale: None,
    }
}

pub(super) fn network(
    links: Vec<NetworkLinkConfig>,
    classes: Vec<FlowClassConfig>,
) -> NetworkConfig {
    NetworkConfig {
        cross: Vec::new(),
        round_loss: None,
        rtt_spread: 0.0,
        seed: 1,
        links,
        sites: Vec::new(),
        classes,
        headline: 0,
        warmup: 2 * SECOND,
        probes: ProbeConfig::default(),
    }
}

/// A finished run: sums since the warm-up.
pub(super) struct Outcome {
    pub simulation: FlowSimulation,
    seconds: f64,
}

impl Outcome {
    pub fn new(config: &NetworkConfig, until: Nanos) -> Self {
        Self::of_network(config, Network::default(), until)
    }

    pub fn of_network(config: &NetworkConfig, network: Network<u32>, until: Nanos) -> Self {
        let mut simulation = FlowSimulation::new(&Arc::new(config.clone()), 0);
        simulation.network = network;
        let limit = RunLimit { transfers: u64::MAX, until };
        let stop = simulation.advance(limit, &mut RunWatch::without_control());
        assert_eq!(stop, StopReason::Done);
        simulation.update_and_check_probes().unwrap();
        Self { simulation, seconds: (until - config.warmup) as f64 / SECOND as f64 }
    }

    pub fn class(&self, class: usize, cell: ClassCell) -> u64 {
        self.simulation.wire.probes.counters.class_cell(class, cell)
    }

    /// Goodput of a class in Mbit/s.
    fn goodput(&self, class: usize) -> f64 {
        let bytes =
            self.class(class, ClassCell::Delivered) * 1448 - self.class(class, ClassCell::Lacking);
        bytes as f64 * 8e-6 / self.seconds
    }

    /// Quantile of a time of a class in milliseconds.
    fn time(&self, class: usize, kind: TimeKind, share: f64) -> f64 {
        let group = (class * crate::probe::TIME_KINDS.len() + kind as usize) as u32;
        let slots = self.simulation.wire.probes.class_times.counts_by_slot();
        let mut counts: Vec<(u16, u64)> = slots
            .iter()
            .flatten()
            .filter(|count| count.group == group)
            .map(|count| (count.bucket, count.count))
            .collect();
        counts.sort_unstable();
        let wanted = share * counts.iter().map(|(_, count)| *count as f64).sum::<f64>();
        let mut seen = 0.0;
        let found = counts.iter().find(|(_, count)| {
            seen += *count as f64;
            seen >= wanted
        });
        let limits = crate::probe::time_bucket_limits();
        limits[usize::from(found.expect("there are times").0)] as f64 * 1e-6
    }

    /// Carried bytes divided by capacity.
    fn utilisation(&self, link: usize) -> f64 {
        let row = self.simulation.wire.probes.counters.snapshot_rows();
        let counters = &self.simulation.wire.probes.counters;
        let network = self.simulation.before_cells();
        let last = &row[row.len() - network..];
        assert_eq!(row.len() % counters.cells_per_snapshot(), 0);
        let cells = &last[link * LINK_TOTAL_CELLS.len()..];
        cells[1] as f64 / cells[2] as f64
    }
}

impl FlowSimulation {
    fn before_cells(&self) -> usize {
        self.config.sum_count()
    }
}

#[test]
fn parking_lot_with_drr_is_fair_on_each_link() {
    let links = vec![link(10 * MBIT, 100, drr()); 3];
    let classes = vec![
        class(1, &[0, 1, 2], &[], bulk()),
        class(1, &[0], &[], bulk()),
        class(1, &[1], &[], bulk()),
        class(1, &[2], &[], bulk()),
    ];
    let run = Outcome::new(&network(links, classes), 40 * SECOND);
    let rates: Vec<f64> = (0..4).map(|class| run.goodput(class)).collect();
    assert!(rates.iter().all(|rate| (4.6..4.9).contains(rate)), "{rates:?}");
    assert!((0..3).all(|link| run.utilisation(link) > 0.98));
}

#[test]
fn parking_lot_with_drop_tail_disadvantages_the_long_route() {
    let links = vec![link(10 * MBIT, 60, QueueConfig::DropTail); 3];
    let classes = vec![
        class(4, &[0, 1, 2], &[], bulk()),
        class(4, &[0], &[], bulk()),
        class(4, &[1], &[], bulk()),
        class(4, &[2], &[], bulk()),
    ];
    let run = Outcome::new(&network(links, classes), 60 * SECOND);
    let rates: Vec<f64> = (0..4).map(|class| run.goodput(class)).collect();
    assert!(rates[0] < 4.2 && rates[0] > 1.0, "{rates:?}");
    for rate in &rates[1..] {
        assert!((9.0..9.7).contains(&(rate + rates[0])), "{rates:?}");
    }
}

/// An upload beside a download and a ping on 100/10 Mbit/s: goodputs and p95 of the ping.
fn upload_beside_download(queue: QueueConfig) -> (f64, f64, f64) {
    let down = link(100 * MBIT, 300, queue);
    // Acknowledgements are short, so a limit in packets would be a limit of time for data only.
    let up = NetworkLinkConfig { limit_bytes: Some(150_000), ..link(10 * MBIT, 10_000, queue) };
    let ping = PingTraffic {
        bytes: 84,
        interval: Distribution::Constant { value: 0.05 },
        start: at_start(),
        stop: None,
    };
    let classes = vec![
        class(2, &[0], &[1], bulk()),
        FlowClassConfig { sends: SendingEnds::Client, ..class(2, &[0], &[1], bulk()) },
        class(1, &[0], &[1], FlowTraffic::Ping(ping)),
    ];
    let run = Outcome::new(&network(vec![down, up], classes), 40 * SECOND);
    (run.goodput(0), run.goodput(1), run.time(2, TimeKind::Delay, 0.95))
}

#[test]
fn fq_codel_keeps_the_ping_short_beside_upload_and_download() {
    let (down, up, slow) = upload_beside_download(QueueConfig::DropTail);
    // Both queues hold up to 36 ms and 120 ms.
    assert!((80.0..190.0).contains(&slow), "{slow} ms");
    assert!(down > 40.0 && (8.0..9.7).contains(&up), "{down} {up}");
    let codel = CodelConfig::default();
    let fq_codel = FqCodelConfig { codel, ..FqCodelConfig::default() };
    let (down, up, quick) = upload_beside_download(QueueConfig::FqCodel(fq_codel));
    assert!((22.0..27.0).contains(&quick), "{quick} ms");
    assert!(down > 85.0 && (7.5..9.7).contains(&up), "{down} {up}");
}

#[test]
fn rate_step_is_followed_by_goodput_and_capacity() {
    let change = |at: Nanos, rate: u64| TimedChange {
        at: at * SECOND,
        change: LinkChangeConfig::Rate(Some(rate * MBIT)),
    };
    let changing = NetworkLinkConfig {
        changes: vec![change(10, 5), change(20, 50)],
        ..link(50 * MBIT, 100, QueueConfig::DropTail)
    };
    let classes = vec![class(2, &[0], &[], bulk())];
    let run = Outcome::new(&network(vec![changing.clone()], classes.clone()), 30 * SECOND);
    // 8 s and 10 s with 50 Mbit/s, 10 s with 5 Mbit/s.
    let mean = (50.0 * 18.0 + 5.0 * 10.0) / 28.0;
    assert!(run.goodput(0) / mean > 0.9 && run.goodput(0) < mean, "{} {mean}", run.goodput(0));
    assert!(run.utilisation(0) > 0.93 && run.utilisation(0) <= 1.0, "{}", run.utilisation(0));
    let slow = Outcome::new(&network(vec![changing], classes), 20 * SECOND);
    // 100 packets take 240 ms at 5 Mbit/s.
    let peak = slow.time(0, TimeKind::Rtt, 0.999);
    assert!((240.0..290.0).contains(&peak), "{peak} ms");
}

#[test]
fn members_of_a_site_share_its_links() {
    let home = |rate| NetworkLinkConfig {
        each: LinkInstances::Site(0),
        ..link(rate, 100, QueueConfig::DropTail)
    };
    let core = link(1000 * MBIT, 1000, QueueConfig::DropTail);
    let of_site = |flows, sends| FlowClassConfig {
        site: Some(0),
        sends,
        ..class(flows, &[0, 1], &[2], bulk())
    };
    let classes = vec![of_site(3, SendingEnds::Server), of_site(1, SendingEnds::Client)];
    let config = NetworkConfig {
        sites: vec![SiteConfig { count: 5 }],
        ..network(vec![core, home(20 * MBIT), home(4 * MBIT)], classes)
    };
    let run = Outcome::new(&config, 30 * SECOND);
    // Five homes with 20 and 4 Mbit/s.
    assert!((78.0..97.0).contains(&run.goodput(0)), "{}", run.goodput(0));
    assert!((16.0..19.5).contains(&run.goodput(1)), "{}", run.goodput(1));
    assert!((0.8..1.0).contains(&run.utilisation(1)));
    let packets: Vec<u64> = run.simulation.records().map(|record| record.packets).collect();
    assert_eq!(packets.len(), 20);
    let of_home = |home: usize| packets[home * 3..home * 3 + 3].iter().sum::<u64>();
    let homes: Vec<u64> = (0..5).map(of_home).collect();
    let mean = homes.iter().sum::<u64>() / 5;
    assert!(homes.iter().all(|packets| packets.abs_diff(mean) * 20 < mean), "{homes:?}");
}

/// Marks packets that have waited as long as `packets` full packets take, as the switches of DCTCP.
fn marking(packets: u64, mbit: u64) -> QueueConfig {
    let ce_threshold = Some(packets * 12_000 * 1000 / mbit);
    let (target, ecn) = (SECOND, true);
    QueueConfig::Codel(CodelConfig { target, ce_threshold, ecn, ..CodelConfig::default() })
}

#[test]
fn dctcp_figure_17_two_bottlenecks() {
    let gigabit = |queue| NetworkLinkConfig { delay: 10_000, ..link(1000 * MBIT, 2666, queue) };
    let access =
        NetworkLinkConfig { each: LinkInstances::Sender, ..gigabit(QueueConfig::DropTail) };
    let (slow, fast) = (marking(20, 1000), marking(65, 10_000));
    let trunk = NetworkLinkConfig { delay: 10_000, ..link(10_000 * MBIT, 2666, fast) };
    let to_r2 = NetworkLinkConfig { each: LinkInstances::Sender, ..gigabit(slow) };
    // 0: access, 1: T1 - T2, 2: T2 - R1, 3: T2 - R2.
    let links = vec![access, trunk, gigabit(slow), to_r2];
    let of_group = |flows, route: &[usize]| {
        let mut dctcp = tcp(Preset::Dctcp);
        dctcp.stack.ecn = true;
        FlowClassConfig {
            delay: 40_000,
            back_delay: 60_000,
            tcp: Some(FlowTcp::Modern(dctcp)),
            ..class(flows, route, &[], bulk())
        }
    };
    let classes = vec![of_group(10, &[0, 1, 2]), of_group(20, &[0, 1, 3]), of_group(10, &[0, 2])];
    // The warm-up is 1,300 RTTs; `tcpcast reproduce dctcp` simulates 3 s.
    let config = NetworkConfig { warmup: 2 * SECOND / 5, headline: 2, ..network(links, classes) };
    let run = Outcome::new(&config, SECOND);
    let each = [run.goodput(0) / 10.0, run.goodput(1) / 20.0, run.goodput(2) / 10.0];
    for (rate, measured) in each.iter().zip([46.0, 475.0, 54.0]) {
        assert!((rate / measured - 1.0).abs() < 0.1, "{each:?}");
    }
}

fn constant(value: f64) -> Distribution {
    Distribution::Constant { value }
}

#[test]
fn requests_take_a_round_trip_and_the_times_of_server_and_transmission() {
    let requests = |fan_in: u32, bytes: f64| {
        FlowTraffic::Requests(RequestTraffic {
            request: constant(500.0),
            answer: constant(bytes),
            server_time: constant(0.03),
            pause: constant(0.2),
            fan_in: NonZeroU32::new(fan_in).unwrap(),
            start: at_start(),
            stop: Some(21.0),
        })
    };
    let run = |flows, fan_in, bytes, handshake| {
        let mut of_class = class(flows, &[0], &[1], requests(fan_in, bytes));
        let tcp = ModernTcpConfig { handshake, ..tcp(Preset::LinuxCubic) };
        of_class.tcp = Some(FlowTcp::Modern(tcp));
        let links = vec![link(10 * MBIT, 1000, QueueConfig::DropTail); 2];
        let config = NetworkConfig { warmup: SECOND, ..network(links, vec![of_class]) };
        let run = Outcome::new(&config, 30 * SECOND);
        let count = run.class(0, ClassCell::Requests);
        (count, run.class(0, ClassCell::Latency) as f64 * 1e-6 / count as f64)
    };
    for handshake in [HandshakeKind::None, HandshakeKind::Tls13] {
        // 22 ms of delays, 30 ms at the server, and 1448 and 500 bytes with headers at 10 Mbit/s.
        let (count, latency) = run(1, 1, 1448.0, handshake);
        assert!((latency - 53.64).abs() < 0.05, "{latency} ms");
        assert!((78..=80).contains(&count), "20 s at 0.2537 s: {count}");
    }
    // The barrier waits for the last of 20 answers of two packets, all over one link.
    let (count, latency) = run(20, 20, 2896.0, HandshakeKind::None);
    let transmission = 20.0 * (2.0 * 1.2 + 0.44);
    assert!((latency - 52.0 - transmission).abs() < 10.0, "{latency} ms");
    assert!(latency > 52.0 + 20.0 * 2.4 && count < 79, "{latency} ms, {count}");
}

#[test]
fn messages_have_one_way_delays_and_pings_round_trips() {
    let messages = FlowTraffic::Messages(MessageTraffic {
        bytes: constant(250.0),
        interval: constant(0.02),
        ecn: Ecn::NotEct,
        start: at_start(),
        stop: None,
    });
    let ping = FlowTraffic::Ping(PingTraffic {
        bytes: 125,
        interval: constant(0.1),
        start: at_start(),
        stop: Some(11.0),
    });
    let both = FlowClassConfig { sends: SendingEnds::Both, ..class(3, &[0], &[1], messages) };
    let mut lossy = link(MBIT, 100, QueueConfig::DropTail);
    let model = crate::loss::LossModel::Bernoulli(0.1);
    lossy.loss = Some(crate::loss::LinkLossConfig::behind_transmitter(model));
    let links = vec![lossy, link(2 * MBIT, 100, QueueConfig::DropTail)];
    let config = network(links, vec![both, class(1, &[0], &[1], ping)]);
    let run = Outcome::new(&config, 42 * SECOND);
    let (sent, received) = (run.class(0, ClassCell::Messages), run.class(0, ClassCell::Received));
    assert!(sent.abs_diff(3 * 2 * 40 * 50) < 10, "{sent}");
    // Half of the messages pass the lossy link.
    assert!((received as f64 / sent as f64 - 0.95).abs() < 0.01, "{received} of {sent}");
    // 250 bytes take 2 ms on one link and 1 ms on the other; delays are 11 ms.
    let mean = run.class(0, ClassCell::Delay) as f64 * 1e-6 / received as f64;
    // The phases of the flows are constant, so some messages always wait for others.
    assert!((12.4..14.5).contains(&mean), "{mean} ms");
    assert_eq!(run.class(0, ClassCell::Lacking), received * 1250);
    let pings = run.class(1, ClassCell::Messages);
    assert!((89..=91).contains(&pings), "until 11 s: {pings}");
    let round =
        run.class(1, ClassCell::Delay) as f64 * 1e-6 / run.class(1, ClassCell::Received) as f64;
    assert!((23.4..25.5).contains(&round), "{round} ms");
}

#[test]
fn stream_starts_stalls_and_plays() {
    let stream = |max_buffer_s| {
        FlowTraffic::Stream(StreamTraffic {
            rates_bps: vec![4 * MBIT],
            control: QualityControl::Buffer,
            segment_s: 2.0,
            start_buffer_s: 4.0,
            max_buffer_s,
            start: BulkStartTimes::Times(vec![0.0]),
            stop: None,
        })
    };
    let run = |mbit, seconds| {
        let links = vec![link(mbit * MBIT, 100, QueueConfig::DropTail)];
        let config = network(links, vec![class(1, &[0], &[], stream(10.0))]);
        Outcome::new(&NetworkConfig { warmup: 0, ..config }, seconds * SECOND)
    };
    // A segment of 1 MB takes a little more than 0.8 s at 10 Mbit/s, so playing begins after 1.6 s.
    let fast = run(10, 60);
    let startup = fast.class(0, ClassCell::Startup) as f64 * 1e-9;
    assert!((1.6..1.9).contains(&startup) && fast.class(0, ClassCell::Startups) == 1, "{startup}");
    assert_eq!(fast.class(0, ClassCell::Stalls), 0);
    // At most 10 s are buffered, so segments are requested every 2 s.
    let segments = fast.class(0, ClassCell::Requests);
    assert!((32..=34).contains(&segments), "{segments}");
    // With half of the rate the player plays half of the time.
    let slow = run(2, 120);
    let played = slow.class(0, ClassCell::Played) as f64 * 1e-9;
    assert!((50.0..61.0).contains(&played), "{played} s");
    let stalled = slow.class(0, ClassCell::StalledPlay) as f64 * 1e-9;
    assert!(slow.class(0, ClassCell::Stalls) > 10 && (40.0..62.0).contains(&stalled), "{stalled}");
}

/// Share of the highest rate in the mean rate of a player on a link of `mbit`, stalls, and switches.
fn play_ladder(control: QualityControl, mbit: f64) -> (f64, u64, u64) {
    let stream = FlowTraffic::Stream(StreamTraffic {
        rates_bps: vec![MBIT, 2 * MBIT, 4 * MBIT],
        control,
        segment_s: 2.0,
        start_buffer_s: 4.0,
        max_buffer_s: 30.0,
        start: BulkStartTimes::Times(vec![0.0]),
        stop: None,
    });
    let links = vec![link((mbit * MBIT as f64) as u64, 100, QueueConfig::DropTail)];
    let config = network(links, vec![class(1, &[0], &[], stream)]);
    let run = Outcome::new(&NetworkConfig { warmup: 0, ..config }, 300 * SECOND);
    let mean = run.class(0, ClassCell::VideoBits) as f64 / run.class(0, ClassCell::Video) as f64;
    (
        mean * 1e9 / (4 * MBIT) as f64,
        run.class(0, ClassCell::Stalls),
        run.class(0, ClassCell::SwitchedVideo) / (2 * SECOND),
    )
}

#[test]
fn player_chooses_the_quality_that_the_link_carries() {
    for control in [QualityControl::Buffer, QualityControl::Throughput] {
        let (fast, stalls, switches) = play_ladder(control, 20.0);
        assert!(fast > 0.9 && stalls == 0 && switches <= 2, "{control:?}: {fast} {switches}");
        let (slow, stalls, _) = play_ladder(control, 1.4);
        assert!((0.25..0.36).contains(&slow) && stalls == 0, "{control:?}: {slow} {stalls}");
    }
    // By throughput the player keeps 2 Mbit/s on 3 Mbit/s; by the buffer it alternates with 4 and
    // uses nearly the whole link.
    let (by_throughput, _, rare) = play_ladder(QualityControl::Throughput, 3.0);
    let (by_buffer, stalls, often) = play_ladder(QualityControl::Buffer, 3.0);
    assert!((0.45..0.51).contains(&by_throughput) && rare <= 2, "{by_throughput} {rare}");
    assert!((0.6..0.75).contains(&by_buffer) && stalls == 0, "{by_buffer} {stalls}");
    assert!(often > rare, "{often} {rare}");
}

#[test]
fn stopped_flows_send_nothing_and_equal_routes_are_both_used() {
    let stopping = FlowTraffic::Files(Traffic::Bulk { start: at_start(), stop: Some(5.0) });
    let mut of_class = class(40, &[0], &[], stopping);
    of_class.routes = vec![vec![0], vec![1]];
    let links = vec![link(20 * MBIT, 200, QueueConfig::DropTail); 2];
    let config = network(links, vec![of_class]);
    let early = Outcome::new(&config, 6 * SECOND);
    let late = Outcome::new(&config, 20 * SECOND);
    for cell in [ClassCell::Sent, ClassCell::Delivered, ClassCell::Acked, ClassCell::InFlight] {
        assert_eq!(early.class(0, cell), late.class(0, cell), "{cell:?}");
    }
    let ping = FlowTraffic::Ping(PingTraffic {
        bytes: 84,
        interval: constant(0.1),
        start: BulkStartTimes::Times(vec![8.0]),
        stop: Some(5.0),
    });
    let never = network(config.links.clone(), vec![class(1, &[0], &[1], ping)]);
    let never = Outcome::new(&never, 10 * SECOND);
    assert_eq!(never.class(0, ClassCell::Messages), 0, "a start after the stop");
    let carried = early.class(0, ClassCell::Delivered) as f64 * 12e-3 / (2.0 * 20.0 * 3.0);
    assert!((0.97..1.05).contains(&carried), "both links were busy: {carried}");
}

#[test]
fn cake_shares_the_line_among_named_hosts_or_flows() {
    let share_of_one_flow = |isolation| {
        let rate_bps = NonZeroU64::new(20 * MBIT);
        let cake = QueueConfig::Cake(CakeConfig { rate_bps, isolation, ..CakeConfig::default() });
        let of_host =
            |host, flows| FlowClassConfig { host: Some(host), ..class(flows, &[0], &[], bulk()) };
        let classes = vec![of_host(0, 1), of_host(1, 2), of_host(1, 2)];
        let run =
            Outcome::new(&network(vec![link(100 * MBIT, 10_000, cake)], classes), 40 * SECOND);
        let (one, four) = (run.goodput(0), run.goodput(1) + run.goodput(2));
        // 1448 of 1514 bytes at 20 Mbit/s.
        assert!((18.2..19.2).contains(&(one + four)), "{one} {four}");
        one / (one + four)
    };
    let by_host = share_of_one_flow(Isolation::TripleIsolate);
    assert!((0.47..0.53).contains(&by_host), "{by_host}");
    let by_flow = share_of_one_flow(Isolation::Flows);
    assert!((0.18..0.22).contains(&by_flow), "{by_flow}");
}

#[test]
fn voice_tin_of_cake_keeps_marked_messages_short() {
    let delay_of_calls = |dscp, tins| {
        let config = CakeConfig { tins, isolation: Isolation::Flowblind, ..CakeConfig::default() };
        let line = link(5 * MBIT, 10_000, QueueConfig::Cake(config));
        let calls = FlowTraffic::Messages(MessageTraffic {
            bytes: Distribution::Constant { value: 200.0 },
            interval: Distribution::Constant { value: 0.02 },
            ecn: Ecn::NotEct,
            start: at_start(),
            stop: None,
        });
        let calls = FlowClassConfig { dscp, ..class(1, &[0], &[], calls) };
        let classes = vec![class(4, &[0], &[], bulk()), calls];
        Outcome::new(&network(vec![line], classes), 30 * SECOND).time(1, TimeKind::Delay, 0.95)
    };
    let voice = delay_of_calls(46, Tins::Diffserv3);
    // One packet of 2.4 ms may be in transmission.
    assert!(voice < 15.0, "{voice}");
    assert!(delay_of_calls(0, Tins::Diffserv3) > voice + 4.0);
    assert!(delay_of_calls(46, Tins::Besteffort) > voice + 4.0);
}

#[test]
fn cake_is_fair_among_hosts_and_filters_acknowledgements() {
    let cake = |kbit: u64, isolation, ack_filter| {
        let rate_bps = NonZeroU64::new(kbit * 1000);
        let config = CakeConfig { rate_bps, isolation, ack_filter, ..CakeConfig::default() };
        let unlimited = LinkRate::Constant(None);
        let queue = QueueConfig::Cake(config);
        NetworkLinkConfig { rate: unlimited, limit: None, ..link(MBIT, 1, queue) }
    };
    let down = cake(10_000, Isolation::DualDsthost, AckFilter::Off);
    let up = cake(100, Isolation::DualSrchost, AckFilter::Aggressive);
    let host =
        |site, flows| FlowClassConfig { site: Some(site), ..class(flows, &[0], &[1], bulk()) };
    let config = NetworkConfig {
        sites: vec![SiteConfig { count: 1 }, SiteConfig { count: 1 }],
        ..network(vec![down, up], vec![host(0, 6), host(1, 1)])
    };
    let run = Outcome::new(&config, 30 * SECOND);
    let rates = [run.goodput(0), run.goodput(1)];
    // Six flows against one; by flow the shares would be 8.2 and 1.4.
    assert!(rates.iter().all(|rate| (3.9..5.4).contains(rate)), "{rates:?}");
    let up = run.simulation.links.instances_of(1).next().expect("one instance");
    assert!(run.simulation.network.counters(up, 0).superseded > 0);
    assert!((0.8..1.0).contains(&run.utilisation(0)), "{}", run.utilisation(0));
}

#[test]
fn links_of_later_senders_have_the_changes_before_their_creation() {
    let arrivals = FlowTraffic::Files(Traffic::Arrivals {
        gap: Distribution::Exponential { minimum: 0.0, scale: 0.3 },
        size: constant(100.0),
        rounding: crate::traffic::SizeRounding::Nearest,
    });
    let faster = TimedChange { at: MILLISECOND, change: LinkChangeConfig::Rate(Some(10 * MBIT)) };
    let own = NetworkLinkConfig {
        each: LinkInstances::Sender,
        changes: vec![faster],
        ..link(100_000, 1000, QueueConfig::DropTail)
    };
    let config = network(vec![own], vec![class(0, &[0], &[], arrivals)]);
    let run = Outcome::new(&config, 60 * SECOND);
    let transfers = run.class(0, ClassCell::Transfers);
    let time = run.class(0, ClassCell::OnTime) as f64 * 1e-9 / transfers as f64;
    // 120 ms of transmission and some round trips; 12 s at the first rate.
    assert!(transfers > 100 && (0.14..0.3).contains(&time), "{transfers}: {time} s");
}

#[test]
fn delays_of_replications_fill_their_range_evenly() {
    let delayed = TimedChange { at: SECOND, change: LinkChangeConfig::Delay(SECOND) };
    let own = NetworkLinkConfig {
        delay: SECOND,
        changes: vec![delayed],
        ..link(MBIT, 10, QueueConfig::DropTail)
    };
    let base =
        NetworkConfig { rtt_spread: 0.1, ..network(vec![own], vec![class(1, &[0], &[], bulk())]) };
    let delay = |seed, replication| {
        let mut config = NetworkConfig { seed, ..base.clone() };
        config.spread_delays(replication);
        let [link, class] = [config.links[0].delay, 100 * config.classes[0].delay];
        assert!(link.abs_diff(class) < 100, "one factor for all delays: {link}, {class}");
        assert_eq!(config.links[0].changes[0].change, LinkChangeConfig::Delay(link));
        link
    };
    let mut counts = [0; 10];
    for replication in 0..100 {
        let above = delay(1, replication) - 900 * MILLISECOND;
        counts[(above / (20 * MILLISECOND)) as usize] += 1;
    }
    assert!(counts.iter().all(|count| (9..=11).contains(count)), "{counts:?}");
    assert_ne!(delay(1, 0), delay(2, 0));
}

#[test]
fn replications_have_the_delays_of_their_number() {
    let links = vec![link(10 * MBIT, 10, QueueConfig::DropTail)];
    let fixed = network(links, vec![class(1, &[0], &[], bulk())]);
    let mean_rtts = |rtt_spread, count| -> Vec<u64> {
        let config = NetworkConfig { rtt_spread, ..fixed.clone() };
        let mut runs = create_network_replications(&config, count);
        let limit = RunLimit { transfers: u64::MAX, until: 10 * SECOND };
        let control = crate::replication::RunControl::new(count as usize);
        runs.advance(limit, 2, &control);
        let probes = runs.update_and_check_probes().expect("conservation");
        let mean = |probes: &&Probes| {
            let cell = |cell| probes.counters.class_cell(0, cell);
            cell(ClassCell::RttSum) / cell(ClassCell::RttSamples)
        };
        probes.iter().map(mean).collect()
    };
    let four = mean_rtts(0.5, 4);
    assert_eq!(mean_rtts(0.5, 2), four[..2]);
    // Propagation takes 10.5 to 31.5 ms, transmission and the queue at most 12 ms.
    let differ = |rtts: &[u64]| rtts.iter().max().unwrap() - rtts.iter().min().unwrap();
    assert!(differ(&four) > 5 * MILLISECOND && four.iter().all(|rtt| *rtt < 45 * MILLISECOND));
    assert!(differ(&mean_rtts(0.0, 4)) < 2 * MILLISECOND);
}
