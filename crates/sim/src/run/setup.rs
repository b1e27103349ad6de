//! Setup of a run: sources, network, and first events.

use super::Simulation;
use crate::clock::{Nanos, create_fixed_rate_transmitter, seconds_to_nanos};
use crate::config::{ClassConfig, RunConfig};
use crate::event_queue::{EventQueue, TimerKind};
use crate::jitter::LinkJitter;
use crate::loss::BottleneckLosses;
use crate::network::ClassPath;
use crate::network::SimulatedSource;
use crate::network::access_links::WaitingPacketPool;
use crate::network::create_populations;
use crate::network::hops::{self, HopChain};
use crate::network::path::{AccessLoss, classes_of_sources};
use crate::network::transfers::{ClassTransfers, MAX_CONCURRENT};
use crate::network::{Network, RunPacketTotals};
use crate::probe::{Probes, SourceRecord};
use crate::queue::QueueDiscipline;
use crate::random::{NamedStream, RandomStream, StreamPurpose};
use crate::replication::RunWatch;
use crate::segments::SegmentsInFlight;
use crate::traffic::{SizeOffTimeCoupling, TRANSFER_GAP, Traffic};
use tcpcast_tcp::SendingEnd;

impl<S: SendingEnd, Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool>
    Simulation<S, Q, HAS_TAPS, HAS_HOP>
{
    /// Creates replication `replication` of a run. Its sources are created at the first call of
    /// `advance`, so that their creation can be interrupted.
    #[must_use]
    pub fn new(config: &RunConfig, queue: Q, replication: u32) -> Self {
        debug_assert!(
            HAS_TAPS || !config.needs_packet_reports(),
            "the simulation type has no taps"
        );
        debug_assert!(
            HAS_HOP || !config.has_stages_besides_bottleneck(),
            "the simulation type has no hops"
        );
        debug_assert!(
            Q::ANY_LENGTH || !config.has_several_lengths(),
            "the queue type supports one packet length only"
        );
        let class_of = classes_of_sources(&config.classes);
        let mut paths: Vec<ClassPath> =
            config.classes.iter().map(|class| ClassPath::new(class, config)).collect();
        let mut network = create_network(config, queue, &paths, &class_of, replication);
        for (class, path) in paths.iter_mut().enumerate() {
            path.set_times_to_events(network.return_lookahead);
            path.set_host_delay(config, class, replication);
        }
        let answers = paths.iter().map(|path| path.answer_to_event);
        network.max_report_delay = answers.fold(network.sender_lookahead, Nanos::max);
        Self {
            boundary: config.warmup.min(network.probes.time_series.slot_end()),
            network,
            sources: Vec::new(),
            first_of_class: first_source_of_each_class(&config.classes),
            max_sources: class_of.len() + MAX_CONCURRENT,
            class_of,
            has_all_sources: false,
            acked_before: vec![0; config.classes.len()],
            missing_record: SourceRecord::default(),
            paths,
            warmup: config.warmup,
            measuring: false,
            too_many_transfers: false,
            until_prefetch: 0,
            until_prefetch_for_link: 0,
            seed: config.seed,
            replication,
            traced: config.probes.traced.clone(),
        }
    }

    /// Creates the missing sources and their first events. Returns false if the watcher stopped it.
    pub(super) fn create_sources(&mut self, watch: &mut RunWatch<'_>) -> bool {
        if self.has_all_sources {
            return true;
        }
        self.sources.reserve_exact(self.class_of.len() - self.sources.len());
        while let Some(class) = self.class_of.get(self.sources.len()).copied() {
            if !watch.should_continue(|| 0.0) {
                return false;
            }
            self.add_source(class);
            self.schedule_last_source_start();
        }
        self.network.begin_scaled_populations();
        self.schedule_transfers();
        self.has_all_sources = true;
        true
    }

    pub(super) fn add_source(&mut self, class: u16) {
        let index = self.sources.len() as u32;
        let packet_bytes = self.paths[usize::from(class)].packet_bytes;
        let record = SourceRecord::new(class, packet_bytes, self.traced.contains(&index));
        self.sources.push(SimulatedSource::new(record, self.seed, self.replication, index));
    }

    /// Schedules the start of the source that was created last.
    fn schedule_last_source_start(&mut self) {
        let index = self.sources.len() - 1;
        let source = &mut self.sources[index];
        let class = source.record.class();
        let place = index - self.first_of_class[class];
        if let Some(due) = self.network.draw_first_start_time(source, place, index as u32) {
            self.network.events.set_timer(TimerKind::Start, index as u32, due);
        }
        if let Traffic::Bulk { stop: Some(stop), .. } = self.network.traffic[class] {
            let due = seconds_to_nanos(stop) + self.network.sender_lookahead;
            self.network.events.set_timer(TimerKind::Start, index as u32, due);
        }
    }

    fn schedule_transfers(&mut self) {
        let Network { events, traffic, transfers, sender_lookahead, .. } = &mut self.network;
        for (class, (traffic, transfers)) in traffic.iter().zip(transfers).enumerate() {
            let gap = match traffic {
                Traffic::Transfers { .. } => TRANSFER_GAP,
                Traffic::Arrivals { gap, .. } => {
                    seconds_to_nanos(gap.draw_value(&mut transfers.gaps))
                }
                Traffic::OnOff { .. } | Traffic::Bulk { .. } => continue,
            };
            events.set_timer(TimerKind::Transfer, class as u32, gap + *sender_lookahead);
        }
    }
}

/// Index of the first source of each class; sources are grouped by class.
fn first_source_of_each_class(classes: &[ClassConfig]) -> Vec<usize> {
    let ends = classes.iter().scan(0, |end, class| {
        let first = *end;
        *end += class.sources as usize;
        Some(first)
    });
    ends.collect()
}

/// Creates the probes of a run; events of the return link are reported `return_lookahead` later.
fn create_probes(config: &RunConfig, return_lookahead: Nanos) -> Probes {
    let classes = config.classes.len();
    let mut probes = Probes::new(&config.probes, classes, hops::stage_count(config));
    if let (Some(_), Some(counters)) = (&config.return_link, probes.hops.last_mut()) {
        counters.assign_to_return_link(return_lookahead);
    }
    probes
}

fn create_network<Q, const HAS_TAPS: bool, const HAS_HOP: bool>(
    config: &RunConfig,
    queue: Q,
    paths: &[ClassPath],
    class_of: &[u16],
    replication: u32,
) -> Network<Q, HAS_TAPS, HAS_HOP> {
    let to_first_shared = |path: &ClassPath| {
        path.time_to_first_hop() + hops::time_to_first_shared_hop(config, path.packet_bytes)
    };
    let sender_lookahead = paths.iter().map(to_first_shared).min().unwrap_or(0);
    let from_return =
        paths.iter().map(ClassPath::time_from_return_link_to_sender).min().unwrap_or(0);
    let return_link = create_fixed_rate_transmitter(config.bottleneck_bps, config.ack_bytes);
    let rate_bps = config.queue.mean_rate_bps().or(config.bottleneck_bps);
    // The time on a return link is known only when an acknowledgement is served.
    let on_return = match config.return_link {
        Some(_) => 0,
        None => return_link.cached_transmission_time(),
    };
    let return_lookahead = on_return + from_return + sender_lookahead;
    let loss = config.loss.map(|loss| {
        let stream =
            RandomStream::for_entity(config.seed, replication, 0, StreamPurpose::BottleneckLoss);
        BottleneckLosses::new(loss, class_of.len(), stream)
    });
    Network {
        events: EventQueue::new(paths.len()),
        now: 0,
        sender_lookahead,
        return_lookahead,
        max_report_delay: 0,
        limit: 0,
        wanted: u64::MAX,
        ingress_waiting: WaitingPacketPool::default(),
        egress_waiting: WaitingPacketPool::default(),
        queue,
        dropped_from_queue: Vec::new(),
        segments: SegmentsInFlight::default(),
        burst: Vec::new(),
        link: create_fixed_rate_transmitter(rate_bps, config.packet_bytes),
        return_link,
        hops: Box::new(HopChain::new(config, replication, return_lookahead)),
        loss,
        jitter: config.jitter.as_ref().map(|loss| LinkJitter::new(loss, config.seed, replication)),
        access_loss: AccessLoss::new(config, class_of, replication),
        probes: create_probes(config, return_lookahead),
        watched: config.needs_packet_reports(),
        records_waits: config.records_bottleneck_waits(),
        varying_rates: config.has_varying_rates(),
        capturing: !config.probes.captures.is_empty(),
        totals: RunPacketTotals::default(),
        traffic: config.classes.iter().map(|class| class.traffic.clone()).collect(),
        populations: create_populations(config, replication),
        coupling: SizeOffTimeCoupling::default(),
        transfers: (0..config.classes.len())
            .map(|class| ClassTransfers::new(config.seed, replication, class))
            .collect(),
    }
}
