//! Joint simulation of reference flows (max-plus recursion) and cross flows (by scheme) through one
//! scheduler. Each step updates the distributions of the cross flows; the measurement follows.

use crate::config::{
    CrossConfig, CrossFlowScheme, CrossPacketTimeRule, FixedPointConfig, RoadConfig,
};
use crate::distributions::{ActiveFlowBinning, CrossFlowDistributions};
use crate::flow_events::{FlowEvent, FlowEventQueue};
use crate::flow_probes::FlowProbes;
use crate::flows::{ClassPath, CrossFlow, ReferenceFlow};
use crate::per_source_hops::PerSourceHops;
use crate::shared_router::{RouterOutcome, RouterStream, SharedRouter};
use tcpcast_sim::clock::{NEVER, Nanos, SECOND, seconds_to_nanos, transmission_time};
use tcpcast_sim::cross::CrossArrivals;
use tcpcast_sim::probe::{ClassCell, Probes, SourceRecord};
use tcpcast_sim::random::{NamedStream, RandomStream, StreamPurpose};
use tcpcast_sim::traffic::{SizeOffTimeCoupling, Traffic};
use tcpcast_sim::traffic::{SourceStart, draw_source_start};
use tcpcast_sim::{ConservationError, Packet, Replication, RunLimit, RunWatch, StopReason};

/// Names of the results of a step for a class. A step is an iteration; the measurement after all
/// iterations has the last number. Rates, gaps and losses are measured at the reference flows, or
/// at the cross flows (`cross_`). A name with `_used` is the mean of the distribution used by cross
/// flows.
pub const STEP_CELLS: [&str; 14] = [
    "step",
    "class",
    // Packets per second while on.
    "rate_pps",
    "cross_rate_pps",
    // Mean time between packets while on.
    "gap_s",
    "gap_used_s",
    // Mean aggregated service time.
    "service_s",
    "service_used_s",
    // Mean number of packets of the same flow that a packet finds in the shared router.
    "own_found",
    "cross_own_found",
    // Mean ON time.
    "on_time_s",
    "cross_on_time_s",
    // Fraction of packets dropped by the shared router.
    "loss",
    "cross_loss",
];

/// One replication of a fixed point.
pub struct FixedPointReplication {
    pub(super) scheme: CrossFlowScheme,
    pub(super) queue_rule: CrossPacketTimeRule,
    pub(super) binning: ActiveFlowBinning,
    spec: FixedPointConfig,
    /// Whether the goodput of blocks of packets is recorded.
    pub(super) blocks: bool,
    pub(super) traffic: Vec<Traffic>,
    pub(super) coupling: SizeOffTimeCoupling,
    pub(super) paths: Vec<ClassPath>,
    pub(super) pre_hops: PerSourceHops,
    pub(super) post_hops: PerSourceHops,
    /// Extra delay of instantaneous loss feedback; see [`loss_feedback_delay`].
    pub(super) loss_delay: Nanos,
    /// Extra delay of loss feedback for packets that are lost at the time of sending.
    pub(super) resend_delay: Nanos,
    pub(super) distributions: Vec<CrossFlowDistributions>,
    pub(super) shared: SharedRouter,
    pub(super) events: FlowEventQueue,
    pub(super) references: Vec<ReferenceFlow>,
    pub(super) cross: Vec<CrossFlow>,
    /// Number of flows that are transferring a file.
    pub(super) active: u32,
    pub(super) now: Nanos,
    limit: Nanos,
    boundary: Nanos,
    step: u32,
    rows: Vec<[f64; STEP_CELLS.len()]>,
    pub(super) probes: FlowProbes,
    pub(super) router_counters: RouterCounters,
}

/// Packet counters of the shared router over the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RouterCounters {
    pub offered: u64,
    pub left: u64,
    pub dropped: u64,
}

impl FixedPointReplication {
    /// Creates a replication.
    #[must_use]
    pub fn new(config: &RoadConfig, spec: &FixedPointConfig, replication: u32) -> Self {
        let packet_time = transmission_time(config.packet_bytes, config.router_bps);
        let paths: Vec<ClassPath> =
            config.classes.iter().map(|class| ClassPath::new(class, config)).collect();
        let probes = || Probes::new(&config.probes, config.classes.len());
        let behind = config.hops_before.len() + 1;
        let mut run = Self {
            scheme: spec.scheme,
            queue_rule: spec.queue_rule,
            binning: ActiveFlowBinning { conditional: spec.conditional },
            spec: spec.clone(),
            blocks: config.probes.goodput_packets > 0,
            traffic: config.classes.iter().map(|class| class.traffic.clone()).collect(),
            distributions: spec
                .initial
                .iter()
                .map(|initial| CrossFlowDistributions::new(*initial))
                .collect(),
            shared: create_shared_router(config, replication),
            events: FlowEventQueue::new(),
            references: Vec::new(),
            cross: Vec::new(),
            active: 0,
            now: 0,
            limit: 0,
            boundary: if spec.steps == 0 { 0 } else { spec.step },
            step: 0,
            rows: Vec::new(),
            probes: FlowProbes::new(probes),
            router_counters: RouterCounters::default(),
            coupling: SizeOffTimeCoupling::default(),
            pre_hops: PerSourceHops::new(&config.hops_before, 0, config, replication),
            post_hops: PerSourceHops::new(&config.hops_after, behind, config, replication),
            loss_delay: loss_feedback_delay(config, &paths, packet_time),
            resend_delay: packet_time.max(1),
            paths,
        };
        run.add_flows(config, replication);
        run.schedule_flow_starts();
        run
    }

    /// Adds all flows: first reference flows and then cross flows, both ordered by class.
    fn add_flows(&mut self, config: &RoadConfig, replication: u32) {
        let references = self.spec.references.clone();
        for (class, followed) in references.iter().enumerate() {
            self.add_reference_flows(class, *followed, config.seed, replication);
        }
        for (class, followed) in references.iter().enumerate() {
            let others = config.classes[class].sources.saturating_sub(*followed);
            self.add_cross_flows(class, others, config.seed, replication);
        }
    }

    fn add_reference_flows(&mut self, class: usize, count: u32, seed: u64, replication: u32) {
        let (path, first) = (&self.paths[class], self.references.len() as u32);
        let flow = |id| ReferenceFlow::new(class as u16, path, seed, replication, id);
        self.references.extend((first..first + count).map(flow));
    }

    fn add_cross_flows(&mut self, class: usize, count: u32, seed: u64, replication: u32) {
        let (path, first) = (&self.paths[class], (self.references.len() + self.cross.len()) as u32);
        let flow = |id| CrossFlow::new(class as u16, path, seed, replication, id);
        self.cross.extend((first..first + count).map(flow));
    }

    fn schedule_flow_starts(&mut self) {
        let Self { references, cross, traffic, paths, events, .. } = self;
        let mut indices = vec![0_usize; traffic.len()];
        let mut schedule =
            |class: usize, up, off_times: &mut RandomStream, sizes: &mut RandomStream, id| {
                let (seconds, size) = match draw_source_start(
                    &traffic[class],
                    indices[class],
                    false,
                    off_times,
                    sizes,
                )? {
                    SourceStart::Sends { after, size } => (after, size),
                    SourceStart::Off { left, .. } => (left, 0),
                };
                indices[class] += 1;
                events.push(seconds_to_nanos(seconds) + up, FlowEvent::FileStart, id);
                Some(size)
            };
        for (id, flow) in (0..).zip(&mut *references) {
            let class = flow.record.class();
            let size =
                schedule(class, paths[class].up_delay, &mut flow.off_times, &mut flow.sizes, id);
            flow.size = size.unwrap_or(0);
        }
        for (id, flow) in (references.len() as u32..).zip(cross) {
            let class = flow.record.class();
            let size = schedule(class, 0, &mut flow.off_times, &mut flow.sizes, id);
            flow.size = size.unwrap_or(0);
        }
    }

    fn process_next_event(&mut self) {
        let Some((now, event, flow)) = self.events.take_next_event() else { return };
        self.now = now;
        match event {
            FlowEvent::Ack => self.on_reference_ack(flow),
            FlowEvent::LossFeedback if self.is_reference_flow(flow) => {
                self.on_reference_loss_feedback(flow)
            }
            FlowEvent::LossFeedback => self.on_cross_loss_feedback(flow),
            FlowEvent::Entry => self.on_cross_event(flow),
            FlowEvent::Arrival if self.is_reference_flow(flow) => self.on_reference_arrival(flow),
            FlowEvent::Arrival if self.cross_flows_use_entry_hops() => {
                self.enter_router_after_entry_hops(flow)
            }
            FlowEvent::Arrival => self.on_cross_event(flow),
            FlowEvent::RetransmissionTimer => self.on_reference_retransmission_timer(flow),
            FlowEvent::FileStart if self.is_reference_flow(flow) => self.start_reference_file(flow),
            FlowEvent::FileStart => self.start_cross_file(flow),
        }
    }

    fn is_reference_flow(&self, flow: u32) -> bool {
        (flow as usize) < self.references.len()
    }

    fn transmit_at_router(&mut self, now: Nanos) {
        self.now = now;
        if let Some((leaves, packet)) = self.shared.take_next_departure(&mut self.probes.reference)
        {
            self.on_router_departure(packet, leaves);
        }
    }

    fn on_router_departure(&mut self, packet: Packet, leaves: Nanos) {
        self.router_counters.left += 1;
        if self.is_reference_flow(packet.source) {
            self.on_reference_departure(packet, leaves);
        } else {
            self.on_cross_departure(packet, leaves);
        }
    }

    /// Offers a packet to the shared router, and handles an evicted packet. Returns `None` if the
    /// packet is dropped, otherwise `Some` with the departure time, which is `None` if it is not
    /// known yet.
    pub(super) fn offer_to_router(&mut self, packet: Packet) -> Option<Option<Nanos>> {
        self.router_counters.offered += 1;
        match self.shared.offer_packet(self.now, packet, &mut self.probes.reference) {
            RouterOutcome::Leaves(leaves) => {
                self.router_counters.left += 1;
                Some(Some(leaves))
            }
            RouterOutcome::Waits(evicted) => {
                if let Some(packet) = evicted {
                    self.router_counters.dropped += 1;
                    self.on_router_eviction(packet);
                }
                Some(None)
            }
            RouterOutcome::Dropped => {
                self.router_counters.dropped += 1;
                None
            }
        }
    }

    /// Offers the next packet of `[[cross]]` traffic, which may evict a packet of a flow.
    fn offer_stream_packet_to_router(&mut self, now: Nanos) {
        self.now = now;
        if let Some(packet) = self.shared.enqueue_next_cross_packet(&mut self.probes.reference) {
            self.router_counters.dropped += 1;
            self.on_router_eviction(packet);
        }
    }

    fn on_router_eviction(&mut self, packet: Packet) {
        if self.is_reference_flow(packet.source) {
            self.on_reference_drop(packet);
        } else {
            self.on_cross_eviction(packet);
        }
    }

    pub(super) fn active_flow_bin(&self) -> usize {
        self.binning.bin_of(self.active)
    }

    /// Ends a step, a slot or the run at the limit. Returns true at the end of the run.
    fn pass_boundary_or_end_run(&mut self, limit: RunLimit) -> bool {
        if self.boundary > limit.until {
            self.now = limit.until;
            return true;
        }
        self.now = self.boundary;
        self.update_queue_counters();
        let now = self.now;
        if self.step < self.spec.steps {
            self.end_step();
            self.begin_measurement(now);
            self.boundary = now + self.spec.step;
        } else if self.step == self.spec.steps && !self.is_measurement_start(now) {
            self.probes.close_counter_slots(now, false);
        }
        if self.step == self.spec.steps {
            self.boundary = self.probes.reference.counters.slot_end();
        }
        self.limit = self.boundary.min(limit.until);
        false
    }

    fn is_measurement_start(&self, now: Nanos) -> bool {
        now == u64::from(self.spec.steps) * self.spec.step
    }

    fn begin_measurement(&mut self, now: Nanos) {
        self.probes.begin_measurement(now);
        self.references.iter_mut().for_each(|flow| flow.record.begin_measurement());
        self.cross.iter_mut().for_each(|flow| flow.record.begin_measurement());
    }

    /// In the first half of the steps, distributions use only the preceding step, so that the
    /// initial values have no influence. In the second half, the distributions average over all
    /// steps to reduce the variance.
    fn end_step(&mut self) {
        let rows: Vec<_> = self.step_results_of_classes().collect();
        self.rows.extend(rows);
        self.step += 1;
        let kept = if 2 * self.step > self.spec.steps { 1.0 } else { 0.0 };
        let moments = self.spec.moments;
        let probes = &self.probes.reference.counters;
        for (class, distributions) in self.distributions.iter_mut().enumerate() {
            let sent = probes.class_cell(class, ClassCell::Sent);
            let expired = probes.class_cell(class, ClassCell::Timeouts);
            distributions.end_step(kept, moments, sent, expired);
        }
    }

    /// Results of the current step for a class: the cells of [`STEP_CELLS`].
    fn step_result_of_class(&self, class: usize) -> [f64; STEP_CELLS.len()] {
        let distributions = &self.distributions[class];
        let reference = ClassStepStats::from_class_counters(&self.probes.reference, class);
        let cross = ClassStepStats::from_class_counters(&self.probes.cross, class);
        [
            f64::from(self.step + 1),
            class as f64,
            reference.rate,
            cross.rate,
            distributions.measured_gap.current_step().mean().unwrap_or(f64::NAN),
            distributions.gap_used,
            distributions.measured_service.current_step().mean().unwrap_or(f64::NAN),
            distributions.service_used,
            reference.own_backlog,
            cross.own_backlog,
            reference.on_time,
            cross.on_time,
            reference.loss,
            cross.loss,
        ]
    }

    fn step_results_of_classes(&self) -> impl Iterator<Item = [f64; STEP_CELLS.len()]> {
        (0..self.distributions.len()).map(|class| self.step_result_of_class(class))
    }

    fn update_queue_counters(&mut self) {
        let now = self.now;
        self.probes.reference.occupancy.record_length_until(self.shared.held_packets(), now);
        self.pre_hops.add_cross_counters_to_probes(&mut self.probes.reference);
        self.post_hops.add_cross_counters_to_probes(&mut self.probes.reference);
    }
}

impl Replication for FixedPointReplication {
    fn advance(&mut self, limit: RunLimit, watch: &mut RunWatch<'_>) -> StopReason {
        self.limit = self.boundary.min(limit.until);
        loop {
            let (due, served) = (self.events.next_time(), self.shared.next_departure());
            let offered = self.shared.next_cross_arrival();
            if served <= due.min(offered) && served <= self.limit {
                self.transmit_at_router(served);
            } else if offered <= due && offered <= self.limit {
                self.offer_stream_packet_to_router(offered);
            } else if due <= self.limit {
                self.process_next_event();
            } else if self.pass_boundary_or_end_run(limit) {
                return StopReason::Done;
            }
            if !watch.should_continue(|| self.now as f64 / limit.until as f64) {
                return StopReason::Interrupted;
            }
        }
    }

    fn update_and_check_probes(&mut self) -> Result<&Probes, ConservationError> {
        self.update_queue_counters();
        self.probes.reference.states = self.probes.reference.population.copy_until(self.now);
        self.probes.close_counter_slots(self.now, true);
        let RouterCounters { offered, left, dropped } = self.router_counters;
        let in_flight = self.shared.waiting_packets();
        if offered != left + dropped + in_flight {
            let (sent, received) = (offered, left);
            return Err(ConservationError::Packets { sent, received, dropped, in_flight });
        }
        Ok(&self.probes.reference)
    }

    /// Probes of the reference flows.
    fn probes(&self) -> &Probes {
        &self.probes.reference
    }

    fn now(&self) -> Nanos {
        self.now
    }

    /// Whether all steps are complete.
    fn is_measuring(&self) -> bool {
        self.step == self.spec.steps
    }

    /// Records of the reference flows since the last step.
    fn records(&self) -> Box<dyn Iterator<Item = &SourceRecord> + '_> {
        Box::new(self.references.iter().map(|flow| &flow.record))
    }

    fn cross_flow_probes(&self) -> Option<&Probes> {
        Some(&self.probes.cross)
    }

    /// Cells of [`STEP_CELLS`]; the last step is the current step or the measurement.
    fn step_results(&self) -> Option<Vec<f64>> {
        Some(self.rows.iter().copied().chain(self.step_results_of_classes()).flatten().collect())
    }
}

/// The shared router of a replication, with its cross traffic.
fn create_shared_router(config: &RoadConfig, replication: u32) -> SharedRouter {
    let stream = |(index, stream): (u32, &CrossConfig)| RouterStream {
        index: index as usize,
        arrivals: CrossArrivals::for_stream(&stream.process, config.seed, replication, index),
    };
    SharedRouter::new(
        config.queue,
        config.limit,
        config.router_bps,
        config.packet_bytes,
        RandomStream::for_entity(config.seed, replication, 0, StreamPurpose::LinkEarlyDrop),
        config.streams_at(config.hops_before.len()).map(stream).collect(),
    )
}

/// Whether flows keep their connections between files.
pub(super) fn is_persistent(traffic: &Traffic) -> bool {
    matches!(traffic, Traffic::OnOff { persistent: true, .. })
}

/// Draws the size of the next file in packets.
pub(super) fn draw_file_size(
    traffic: &Traffic,
    coupling: &mut SizeOffTimeCoupling,
    id: u32,
    sizes: &mut RandomStream,
) -> u32 {
    match traffic {
        Traffic::OnOff { size, rounding, coupling: by, .. } => {
            rounding.round_to_file_size(coupling.draw_file_size(id, size, *by, sizes)).packets
        }
        Traffic::Bulk { .. } => u32::MAX - 1,
        Traffic::Transfers { .. } | Traffic::Arrivals { .. } => 1,
    }
}

/// Draws the OFF time after a file.
pub(super) fn draw_off_time(
    traffic: &Traffic,
    coupling: &mut SizeOffTimeCoupling,
    id: u32,
    off_times: &mut RandomStream,
) -> Nanos {
    match traffic {
        Traffic::OnOff { off, coupling: by, .. } => {
            seconds_to_nanos(coupling.draw_off_time(id, off, *by, off_times))
        }
        _ => NEVER,
    }
}

/// Extra delay of loss feedback. Without any delay before the shared router, a flow would endlessly
/// resend into a full buffer at the same time. Its feedback is therefore delayed by one packet time
/// of the router, as in the packet engine.
fn loss_feedback_delay(config: &RoadConfig, paths: &[ClassPath], packet_time: Nanos) -> Nanos {
    let min_delay = paths.iter().map(|path| path.up_delay).min().unwrap_or(0);
    let takes_time = min_delay + config.time_to_router() > 0;
    if takes_time { 0 } else { packet_time.max(1) }
}

/// Statistics of the flows of a class since the last reset of the counters.
struct ClassStepStats {
    rate: f64,
    on_time: f64,
    own_backlog: f64,
    loss: f64,
}

impl ClassStepStats {
    fn from_class_counters(probes: &Probes, class: usize) -> Self {
        let count = |cell| probes.counters.class_cell(class, cell) as f64;
        let on_time = count(ClassCell::OnTime) / SECOND as f64;
        Self {
            rate: count(ClassCell::TransferPackets) / on_time,
            on_time: on_time / count(ClassCell::Transfers),
            own_backlog: count(ClassCell::OwnFound) / count(ClassCell::Arrived),
            loss: count(ClassCell::QueueDrops) / count(ClassCell::Arrived),
        }
    }
}
