//! Joint simulation of reference flows and cross flows (by scheme) over one network of links. Each
//! step updates the distributions of the cross flows; the measurement follows.

use crate::config::{CrossFlowScheme, CrossPacketTimeRule, FixedPointConfig};
use crate::distributions::{ActiveFlowBinning, CrossFlowDistributions};
use crate::flow_events::{FlowEvent, FlowEventQueue};
use crate::flow_probes::FlowProbes;
use crate::flows::stream_of_flow;
use crate::flows::{ClassPath, CrossFlow, ReferenceFlow};
use crate::network::{FlowNetwork, Report};
use std::sync::Arc;
use tcpcast_sim::clock::{NEVER, Nanos, SECOND, seconds_to_nanos};
use tcpcast_sim::flows::{FlowTraffic, NetworkConfig};
use tcpcast_sim::probe::{ClassCell, Probes, SourceRecord};
use tcpcast_sim::random::RandomStream;
use tcpcast_sim::traffic::{SizeOffTimeCoupling, Traffic};
use tcpcast_sim::traffic::{SourceStart, draw_source_start};
use tcpcast_sim::{ConservationError, Replication, RunLimit, RunWatch, StopReason};

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
    /// Extra delay of loss feedback for packets that are lost at the time of sending.
    resend_delay: Nanos,
    pub(super) distributions: Vec<CrossFlowDistributions>,
    pub(super) network: FlowNetwork,
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
}

impl FixedPointReplication {
    /// Creates a replication.
    #[must_use]
    pub fn new(config: &Arc<NetworkConfig>, spec: &FixedPointConfig, replication: u32) -> Self {
        let paths: Vec<ClassPath> =
            config.classes.iter().map(|class| ClassPath::new(class, config)).collect();
        let probes = || Probes::new(&config.probes, config.classes.len(), 0);
        let packet_bytes = paths.iter().map(|path| path.packet_bytes).max().unwrap_or(0);
        let traffic = config.classes.iter().map(|class| match &class.traffic {
            FlowTraffic::Files(traffic) => traffic.clone(),
            _ => Traffic::Transfers { sizes: Vec::new() },
        });
        let mut run = Self {
            scheme: spec.scheme,
            queue_rule: spec.queue_rule,
            binning: ActiveFlowBinning { conditional: spec.conditional },
            spec: spec.clone(),
            blocks: config.probes.goodput_packets > 0,
            traffic: traffic.collect(),
            distributions: spec
                .initial
                .iter()
                .map(|initial| CrossFlowDistributions::new(*initial))
                .collect(),
            network: FlowNetwork::new(config, replication),
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
            coupling: SizeOffTimeCoupling::default(),
            resend_delay: config.links[config.headline].transmission_time(packet_bytes).max(1),
            paths,
        };
        run.add_flows(config, replication);
        run.schedule_flow_starts();
        for (stream, first) in (0..).zip(run.network.add_streams()) {
            run.events.push(first, FlowEvent::Stream, stream);
        }
        run
    }

    /// Adds all flows: first reference flows and then cross flows, both ordered by class.
    fn add_flows(&mut self, config: &NetworkConfig, replication: u32) {
        let followed = self.spec.references.clone();
        let (seed, mut id) = (config.seed, 0);
        for (class, followed) in followed.iter().enumerate() {
            for _ in 0..*followed {
                let path = &self.paths[class];
                let route = self.network.add_reference_route(&path.route, class, id);
                let stream = stream_of_flow(seed, replication, id);
                self.references.push(ReferenceFlow::new((class as u16, path), route, stream));
                id += 1;
            }
        }
        for (class, followed) in followed.iter().enumerate() {
            for _ in 0..config.classes[class].flows.saturating_sub(*followed) {
                let path = &self.paths[class];
                let routes = self.network.add_cross_routes(&path.route, self.scheme, class, id);
                let stream = stream_of_flow(seed, replication, id);
                self.cross.push(CrossFlow::new((class as u16, path), routes, stream));
                id += 1;
            }
        }
    }

    fn schedule_flow_starts(&mut self) {
        let Self { references, cross, traffic, events, .. } = self;
        let mut indices = vec![0_usize; traffic.len()];
        let mut schedule =
            |class: usize, off_times: &mut RandomStream, sizes: &mut RandomStream, id| {
                let start =
                    draw_source_start(&traffic[class], indices[class], false, off_times, sizes);
                let (seconds, size) = match start? {
                    SourceStart::Sends { after, size } => (after, size),
                    SourceStart::Off { left, .. } => (left, 0),
                };
                indices[class] += 1;
                events.push(seconds_to_nanos(seconds), FlowEvent::FileStart, id);
                Some(size)
            };
        for (id, flow) in (0..).zip(&mut *references) {
            let class = flow.record.class();
            let size = schedule(class, &mut flow.off_times, &mut flow.sizes, id);
            flow.size = size.unwrap_or(0);
        }
        for (id, flow) in (references.len() as u32..).zip(cross) {
            let class = flow.record.class();
            let size = schedule(class, &mut flow.off_times, &mut flow.sizes, id);
            flow.size = size.unwrap_or(0);
        }
    }

    fn process_next_event(&mut self) {
        let Some((now, event, flow)) = self.events.take_next_event() else { return };
        self.now = now;
        let is_reference = self.is_reference_flow(flow);
        match event {
            FlowEvent::Departure if is_reference => self.on_reference_departure(flow),
            FlowEvent::Departure => self.on_cross_departure(flow),
            FlowEvent::LossFeedback if is_reference => self.on_reference_loss_feedback(flow),
            FlowEvent::LossFeedback => self.on_cross_loss_feedback(flow),
            FlowEvent::Cross => self.on_cross_event(flow),
            FlowEvent::Virtual => self.on_virtual_departure(flow),
            FlowEvent::Stream => {
                let next = self.network.send_stream_packet(now, flow, &mut self.probes.reference);
                self.events.push(next, FlowEvent::Stream, flow);
            }
            FlowEvent::Ack => self.on_reference_ack(flow),
            FlowEvent::RetransmissionTimer => self.on_reference_retransmission_timer(flow),
            FlowEvent::FileStart if is_reference => self.start_reference_file(flow),
            FlowEvent::FileStart => self.start_cross_file(flow),
        }
        self.process_reports();
    }

    /// Handles what the network reported.
    pub(super) fn process_reports(&mut self) {
        while let Some(report) = self.network.take_report() {
            match report {
                Report::Arrived { packet, found, is_dropped } => {
                    if self.is_reference_flow(packet.flow) {
                        self.on_reference_arrival(packet, found, is_dropped);
                    } else {
                        self.on_cross_arrival(packet, found, is_dropped);
                    }
                }
                Report::Transmitted { packet, leaves } => {
                    if self.is_reference_flow(packet.flow) {
                        self.on_reference_transmission(packet, leaves);
                    } else {
                        self.events.push(leaves, FlowEvent::Departure, packet.flow);
                    }
                }
                Report::Lost { packet, at, at_router } => {
                    if self.is_reference_flow(packet.flow) {
                        self.on_reference_loss(packet, at, at_router);
                    } else {
                        self.on_cross_packet_loss(packet, at, at_router);
                    }
                }
                Report::Delivered { packet } => {
                    if self.is_reference_flow(packet.flow) {
                        self.on_reference_delivery(packet);
                    } else {
                        self.on_cross_delivery(packet);
                    }
                }
            }
        }
    }

    /// Time of the instantaneous loss feedback of a packet that is lost at `at`. If it is lost at the
    /// time of sending, a flow would endlessly resend into a full buffer at that time. So its
    /// feedback is delayed by the time of a packet at the router, as in the packet engine.
    pub(super) fn feedback_time(&self, at: Nanos, sent_at: Nanos) -> Nanos {
        at + if at <= sent_at { self.resend_delay } else { 0 }
    }

    fn is_reference_flow(&self, flow: u32) -> bool {
        (flow as usize) < self.references.len()
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
        self.network.update_queue(self.now, &mut self.probes.reference);
    }
}

impl Replication for FixedPointReplication {
    fn advance(&mut self, limit: RunLimit, watch: &mut RunWatch<'_>) -> StopReason {
        self.limit = self.boundary.min(limit.until);
        loop {
            let (network, event) = (self.network.next_time(), self.events.next_time());
            if network.min(event) > self.limit {
                if self.pass_boundary_or_end_run(limit) {
                    return StopReason::Done;
                }
            } else if network <= event {
                self.now = network;
                self.network.step(&mut self.probes.reference);
                self.process_reports();
            } else {
                self.process_next_event();
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
        let [sent, received, dropped, in_flight] = self.network.totals();
        if sent != received + dropped + in_flight {
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
