use super::replications::create_cross_traffic_queue;
use super::*;
use crate::clock::{SECOND, Transmitter, transmission_time};
use crate::config::{AccessConfig, ClassConfig, RunConfig};
use crate::conservation::ConservationError;
use crate::packet::Packet;
use crate::probe::{ClassCell, ProbeConfig, TapPlace, TransferSums};
use crate::queue::{DropTail, EnqueueOutcome, QueueConfig, QueueProbe};
use crate::traffic::{BulkStartTimes, Distribution, FileSize, SizeRounding, Traffic};
use std::sync::atomic::{AtomicBool, Ordering};
use tcpcast_tcp::cc::Reno;
use tcpcast_tcp::{Sender, TcpConfig};

const RTT: Nanos = SECOND / 10;

fn configuration(traffic: Traffic, rate_bps: u64, buffer: u64, tcp: TcpConfig) -> RunConfig {
    let access = AccessConfig { rate_bps: None, delay: 0, limit: None, loss: None };
    let taken: Nanos =
        [1500, 40].iter().map(|bytes| transmission_time(*bytes, Some(rate_bps))).sum();
    let class = ClassConfig {
        packet_bytes: None,
        sources: 0,
        ingress: access.clone(),
        egress: access,
        forward: (RTT - taken) / 2,
        back: (RTT - taken) / 2,
        traffic,
        tcp: None,
        host_noise: 0,
        scale: None,
    };
    RunConfig {
        seed: 1,
        packet_bytes: 1500,
        ack_bytes: 40,
        bottleneck_bps: Some(rate_bps),
        buffer: Some(buffer),
        queue: QueueConfig::DropTail,
        loss: None,
        jitter: None,
        cross: Vec::new(),
        hops_before: Vec::new(),
        hops_after: Vec::new(),
        return_link: None,
        tcp,
        classes: vec![class],
        warmup: 0,
        probes: ProbeConfig { size_bounds: vec![1, 40], ..ProbeConfig::default() },
    }
}

fn simulation(config: &RunConfig) -> Simulation<Sender<Reno>, DropTail, false, false> {
    Simulation::new(config, DropTail::new(config.buffer), 0)
}

fn until(transfers: u64) -> RunLimit {
    RunLimit { transfers, until: 1_000_000 * SECOND }
}

#[test]
fn isolated_transfers_wait_for_spurious_packets_to_leave() {
    // A timeout slightly below the round-trip time retransmits all packets. The copies are still in
    // the queue, which takes 24 ms per packet, when the transfer ends.
    let rto = RTT - RTT / 50;
    let tcp = TcpConfig { initial_rto: rto, min_rto: rto, ..TcpConfig::default() };
    let sizes = vec![1, 1, 40];
    let sizes = sizes.into_iter().map(FileSize::of_full_packets).collect();
    let config = configuration(Traffic::Transfers { sizes }, 500_000, 9, tcp);
    let mut run = simulation(&config);
    assert_eq!(run.advance(until(30), &mut RunWatch::without_control()), StopReason::Done);
    let probes = run.update_counters().unwrap();
    let sent = probes.counters.total_over_classes(ClassCell::Sent);
    assert!(sent > 10 * 42 + 20, "no spurious retransmissions: {sent}");
    for (row, transfers) in probes.transfers.rows.iter().zip([20_u64, 10]) {
        let counted: Vec<&TransferSums> = row.by_losses.values().collect();
        assert_eq!(counted.len(), 1, "transfers of one size differ");
        let sums = counted[0];
        assert_eq!(sums.transfers, transfers);
        let count = u128::from(transfers);
        assert_eq!(sums.completion * sums.completion, count * sums.completion_squares);
        assert_eq!(sums.delivery * sums.delivery, count * sums.delivery_squares);
    }
    assert_eq!(probes.transfers.rows[0].by_losses[&0].completion, 20 * u128::from(RTT));
    assert_eq!(run.sources.len(), 1);
}

#[test]
fn captures_do_not_change_a_run() {
    let traffic = Traffic::Transfers { sizes: [1, 40, 90].map(FileSize::of_full_packets).to_vec() };
    let config = configuration(traffic, 2_000_000, 9, TcpConfig::default());
    let mut bare = simulation(&config);
    bare.advance(until(200), &mut RunWatch::without_control());
    let captures = vec![(TapPlace::Sender, 100_000), (TapPlace::Receiver, 100_000)];
    let probes = ProbeConfig { captures, ..config.probes.clone() };
    let config = RunConfig { probes, ..config };
    let queue = create_cross_traffic_queue(&config, 0);
    let mut watched = Simulation::<Sender<Reno>, _, true, true>::new(&config, queue, 0);
    watched.advance(until(200), &mut RunWatch::without_control());
    let (bare, watched) = (bare.update_counters().unwrap(), watched.update_counters().unwrap());
    assert!(bare.counters.total_over_classes(ClassCell::Retransmitted) > 0, "nothing was lost");
    assert_eq!(format!("{:?}", bare.counters), format!("{:?}", watched.counters));
    assert_eq!(format!("{:?}", bare.transfers), format!("{:?}", watched.transfers));
}

/// A drop-tail queue that reports one packet too few at each tenth arrival.
struct Miscounting(DropTail, u32);

impl QueueDiscipline for Miscounting {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> EnqueueOutcome {
        self.1 += 1;
        if self.1 % 10 == 0 && self.0.held_packets() > 0 {
            probe.on_queue_length_interval(self.0.held_packets() - 1, now);
        }
        self.0.enqueue(now, packet, link, probe)
    }
    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        self.0.advance_to(now, probe);
    }
    fn held_packets(&self) -> usize {
        self.0.held_packets()
    }
    fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        self.0.sum_of_remaining_times(now)
    }
}

#[test]
fn update_and_check_probes_checks_little_s_law() {
    let traffic = Traffic::Bulk {
        start: BulkStartTimes::Drawn(Distribution::Constant { value: 0.0 }),
        stop: None,
    };
    let mut config = configuration(traffic, 2_000_000, 9, TcpConfig::default());
    (config.classes[0].sources, config.warmup) = (3, 2 * SECOND);
    let limit = RunLimit { transfers: u64::MAX, until: 20 * SECOND };
    let mut run = simulation(&config);
    for until in [SECOND, 7 * SECOND, 20 * SECOND] {
        run.advance(RunLimit { until, ..limit }, &mut RunWatch::without_control());
        assert!(run.update_counters().is_ok(), "with packets in the queue");
    }
    let queue = Miscounting(DropTail::new(config.buffer), 0);
    let mut run = Simulation::<Sender<Reno>, _, false, false>::new(&config, queue, 0);
    run.advance(limit, &mut RunWatch::without_control());
    assert!(matches!(run.update_counters(), Err(ConservationError::Waiting { .. })));
}

#[test]
fn interrupted_setup_continues_with_the_same_result() {
    let traffic = Traffic::Bulk {
        start: BulkStartTimes::Drawn(Distribution::Uniform { low: 0.0, high: 0.1 }),
        stop: None,
    };
    let mut config = configuration(traffic, 100_000_000, 900, TcpConfig::default());
    config.classes[0].sources = 40_000;
    let limit = RunLimit { transfers: u64::MAX, until: SECOND / 5 };
    let mut complete = simulation(&config);
    assert_eq!(complete.advance(limit, &mut RunWatch::without_control()), StopReason::Done);
    let (mut stopped, mut looks) = (simulation(&config), 0);
    let stop = AtomicBool::new(false);
    let mut second = |_| {
        looks += 1;
        stop.store(looks == 2, Ordering::Relaxed);
    };
    assert_eq!(
        stopped.advance(limit, &mut RunWatch::new(&stop, &mut second)),
        StopReason::Interrupted
    );
    assert_eq!((stopped.sources.len(), stopped.records().count()), ((1 << 11) - 1, 40_000));
    assert!(stopped.update_counters().is_ok());
    assert_eq!(stopped.advance(limit, &mut RunWatch::without_control()), StopReason::Done);
    let (complete, stopped) =
        (complete.update_counters().unwrap(), stopped.update_counters().unwrap());
    assert!(complete.counters.total_over_classes(ClassCell::Sent) > 1000);
    assert_eq!(format!("{:?}", complete.counters), format!("{:?}", stopped.counters));
}

#[test]
fn arriving_transfers_reuse_idle_sources_and_stop_at_the_maximum() {
    let distribution = |scale| Distribution::Exponential { minimum: 0.0, scale };
    let rounding = SizeRounding::Nearest;
    let traffic = |gap| Traffic::Arrivals {
        gap: distribution(gap),
        size: Distribution::Constant { value: 40.0 },
        rounding,
    };
    // 2.1 of 20.8 possible transfers per second.
    let config = configuration(traffic(0.48), 10_000_000, 100, TcpConfig::default());
    let mut run = simulation(&config);
    assert_eq!(run.advance(until(2000), &mut RunWatch::without_control()), StopReason::Done);
    assert!(run.sources.len() < 20, "{} sources for one transfer at a time", run.sources.len());
    // 30 per second exceed the capacity.
    let config = configuration(traffic(0.033), 10_000_000, 100, TcpConfig::default());
    let mut run = simulation(&config);
    run.max_sources = 200;
    assert_eq!(
        run.advance(until(100_000), &mut RunWatch::without_control()),
        StopReason::TooManyTransfers
    );
    assert_eq!(run.sources.len(), 200);
    assert!(run.update_counters().is_ok());
    assert_eq!(
        run.advance(until(100_000), &mut RunWatch::without_control()),
        StopReason::TooManyTransfers
    );
}

#[test]
fn time_series_includes_the_warm_up_and_does_not_change_the_run() {
    let bulk = Traffic::Bulk { start: BulkStartTimes::Times(vec![0.0]), stop: None };
    let mut config = configuration(bulk, 2_000_000, 20, TcpConfig::default());
    config.classes[0].sources = 3;
    config.warmup = 7 * SECOND + 1;
    let limit = RunLimit { transfers: u64::MAX, until: 40 * SECOND };
    let rows = |time_series: bool| {
        let mut config = config.clone();
        config.probes.time_series = time_series;
        let mut run = simulation(&config);
        assert_eq!(run.advance(limit, &mut RunWatch::without_control()), StopReason::Done);
        let probes = run.update_counters().unwrap();
        (
            probes.counters.snapshot_rows(),
            probes.time_series.rows(),
            probes.occupancy.queue_length_integral_since_start(),
        )
    };
    let (with, time_series, held) = rows(true);
    assert_eq!(with, rows(false).0);
    let width = 8;
    let ends: Vec<&[u64]> = time_series.chunks(width).collect();
    assert!(ends.len() > 256, "{}", ends.len());
    assert_eq!((ends[0], ends[ends.len() - 1][0]), (&[0; 8][..], 40 * SECOND));
    assert_eq!(ends[ends.len() - 1][1], held);
    let delivered = |row: &[u64]| row[2];
    assert!(ends.windows(2).all(|pair| delivered(pair[0]) <= delivered(pair[1])));
    let warm = ends.iter().rfind(|row| row[0] <= config.warmup);
    assert!(warm.is_some_and(|row| delivered(row) > 500), "{warm:?}");
}
