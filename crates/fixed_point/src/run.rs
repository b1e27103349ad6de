//! The joint simulation: reference flows by the max-plus recursion, cross flows by their scheme,
//! both through one real scheduler; step by step, with what each step measured, and then the
//! measurement.

use crate::config::{FixedPointConfig, Scheme, StepRow};
use crate::distributions::{Binning, Distributions};
use crate::events::{Event, Events};
use crate::flows::{Cross, Path, Reference};
use crate::own::OwnHops;
use crate::probes::ProbesOfBoth;
use crate::shared::{Offered, Shared};
use tcpcast_sim::clock::{NEVER, Nanos, SECOND, Transmitter, nanoseconds, transmitter};
use tcpcast_sim::hops;
use tcpcast_sim::probe::{ClassCell, Probes, SourceRecord};
use tcpcast_sim::queue::QueueDiscipline;
use tcpcast_sim::random::Stream;
use tcpcast_sim::tcp::{InstantLoss, TcpConfig};
use tcpcast_sim::traffic::{Coupling, Traffic};
use tcpcast_sim::traffic::{SourceStart, draw_start};
use tcpcast_sim::{Packet, RunConfig, RunLimit, StopReason, Unbalanced, Watch};

/// A fixed point: one replication.
pub struct FixedPoint<Q> {
    pub(super) scheme: Scheme,
    pub(super) binning: Binning,
    asked: FixedPointConfig,
    pub(super) tcp: TcpConfig,
    pub(super) rules: InstantLoss,
    /// Whether the goodput of blocks of packets is to be told.
    pub(super) blocks: bool,
    pub(super) traffic: Vec<Traffic>,
    pub(super) coupling: Coupling,
    pub(super) paths: Vec<Path>,
    pub(super) own_before: OwnHops,
    pub(super) own_after: OwnHops,
    /// Instantaneous loss feedback comes so much later.
    pub(super) late: Nanos,
    /// Likewise, of what is lost at the moment at which it was sent.
    pub(super) late_at_once: Nanos,
    pub(super) distributions: Vec<Distributions>,
    pub(super) shared: Shared<Q>,
    pub(super) events: Events,
    /// Reference flows.
    pub(super) references: Vec<Reference>,
    /// Cross flows, which are made of distributions.
    pub(super) cross: Vec<Cross>,
    /// Flows in a file.
    pub(super) active: u32,
    pub(super) now: Nanos,
    limit: Nanos,
    boundary: Nanos,
    step: u32,
    rows: Vec<StepRow>,
    pub(super) probes: ProbesOfBoth,
    pub(super) lifetime: Lifetime,
}

/// Packets at the shared router over a whole run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lifetime {
    pub offered: u64,
    pub left: u64,
    pub dropped: u64,
}

impl<Q: QueueDiscipline> FixedPoint<Q> {
    /// Sets replication `replication` up.
    #[must_use]
    pub fn new(config: &RunConfig, asked: &FixedPointConfig, queue: Q, replication: u32) -> Self {
        let link = transmitter(config.bottleneck_bps, config.packet_bytes);
        let paths: Vec<Path> =
            config.classes.iter().map(|class| Path::new(class, config)).collect();
        let stages = hops::stages_of(config);
        let probes = || Probes::new(&config.probes, config.classes.len(), stages);
        let behind = config.hops_before.len() + 1;
        let mut run = Self {
            scheme: asked.scheme,
            binning: Binning { conditional: asked.conditional },
            asked: asked.clone(),
            tcp: config.tcp.clone(),
            rules: config.tcp.instant.unwrap_or(InstantLoss::PLAIN),
            blocks: config.probes.goodput_packets > 0,
            traffic: config.classes.iter().map(|class| class.traffic.clone()).collect(),
            distributions: asked
                .initial
                .iter()
                .map(|initial| Distributions::new(*initial))
                .collect(),
            shared: Shared::new(queue, link.clone()),
            events: Events::new(),
            references: Vec::new(),
            cross: Vec::new(),
            active: 0,
            now: 0,
            limit: 0,
            boundary: if asked.steps == 0 { 0 } else { asked.step },
            step: 0,
            rows: Vec::new(),
            probes: ProbesOfBoth::new(probes),
            lifetime: Lifetime::default(),
            coupling: Coupling::default(),
            own_before: OwnHops::new(&config.hops_before, 0, config, replication),
            own_after: OwnHops::new(&config.hops_after, behind, config, replication),
            late: late(config, &paths, &link),
            late_at_once: link.time_when_idle().max(1),
            paths,
        };
        run.add_flows(config, replication);
        run.schedule_starts();
        run
    }

    /// Reference flows come first, then cross flows; of both those of a class together.
    fn add_flows(&mut self, config: &RunConfig, replication: u32) {
        let references = self.asked.references.clone();
        for (class, followed) in references.iter().enumerate() {
            self.add_references(class, *followed, config.seed, replication);
        }
        for (class, followed) in references.iter().enumerate() {
            let others = config.classes[class].sources.saturating_sub(*followed);
            self.add_cross(class, others, config.seed, replication);
        }
    }

    fn add_references(&mut self, class: usize, count: u32, seed: u64, replication: u32) {
        let (path, first) = (&self.paths[class], self.references.len() as u32);
        let flow = |id| Reference::new(class as u16, path, seed, replication, id);
        self.references.extend((first..first + count).map(flow));
    }

    fn add_cross(&mut self, class: usize, count: u32, seed: u64, replication: u32) {
        let (path, first) = (&self.paths[class], (self.references.len() + self.cross.len()) as u32);
        let flow = |id| Cross::new(class as u16, path, seed, replication, id);
        self.cross.extend((first..first + count).map(flow));
    }

    fn schedule_starts(&mut self) {
        let Self { references, cross, traffic, paths, events, .. } = self;
        let mut places = vec![0_usize; traffic.len()];
        let mut schedule = |class: usize, up, off_times: &mut Stream, sizes: &mut Stream, id| {
            let (seconds, size) =
                match draw_start(&traffic[class], places[class], false, off_times, sizes)? {
                    SourceStart::Sends { after, size } => (after, size),
                    SourceStart::Off { left, .. } => (left, 0),
                };
            places[class] += 1;
            events.push(nanoseconds(seconds) + up, Event::FileStart, id);
            Some(size)
        };
        for (id, flow) in (0..).zip(&mut *references) {
            let class = flow.record.class();
            let size = schedule(class, paths[class].up, &mut flow.off_times, &mut flow.sizes, id);
            flow.size = size.unwrap_or(0);
        }
        for (id, flow) in (references.len() as u32..).zip(cross) {
            let class = flow.record.class();
            let size = schedule(class, 0, &mut flow.off_times, &mut flow.sizes, id);
            flow.size = size.unwrap_or(0);
        }
    }

    /// Goes on until the goal is reached or the watcher stops it.
    pub fn advance(&mut self, goal: RunLimit, watch: &mut Watch<'_>) -> StopReason {
        self.limit = self.boundary.min(goal.until);
        loop {
            let (due, served) = (self.events.due(), self.shared.next());
            if served <= due && served <= self.limit {
                self.serve(served);
            } else if due <= self.limit {
                self.event();
            } else if self.pass_limit(goal) {
                return StopReason::Done;
            }
            if !watch.should_continue(|| self.now as f64 / goal.until as f64) {
                return StopReason::Interrupted;
            }
        }
    }

    fn event(&mut self) {
        let Some((now, event, flow)) = self.events.take() else { return };
        self.now = now;
        match event {
            Event::Ack => self.reference_hears(flow),
            Event::LossFeedback if self.is_reference(flow) => self.reference_loss_feedback(flow),
            Event::LossFeedback => self.cross_loss_feedback(flow),
            Event::Door => self.cross_goes_on(flow),
            Event::Arrival if self.is_reference(flow) => self.reference_arrives(flow),
            Event::Arrival if self.has_doors() => self.cross_meets(flow),
            Event::Arrival => self.cross_goes_on(flow),
            Event::Timer => self.reference_timer(flow),
            Event::FileStart if self.is_reference(flow) => self.reference_clicks(flow),
            Event::FileStart => self.cross_clicks(flow),
        }
    }

    fn is_reference(&self, flow: u32) -> bool {
        (flow as usize) < self.references.len()
    }

    fn serve(&mut self, now: Nanos) {
        self.now = now;
        if let Some((leaves, packet)) = self.shared.take(&mut self.probes.reference) {
            self.leaves(packet, leaves);
        }
    }

    fn leaves(&mut self, packet: Packet, leaves: Nanos) {
        self.lifetime.left += 1;
        if self.is_reference(packet.source()) {
            self.reference_leaves(packet, leaves);
        } else {
            self.cross_leaves(packet, leaves);
        }
    }

    /// Offers a packet to the shared router; says whether it was taken. What had to go for it is
    /// told.
    pub(super) fn offer(&mut self, packet: Packet) -> Option<Option<Nanos>> {
        self.lifetime.offered += 1;
        match self.shared.offer(self.now, packet, &mut self.probes.reference) {
            Offered::Leaves(leaves) => {
                self.lifetime.left += 1;
                Some(Some(leaves))
            }
            Offered::Waits(pushed_out) => {
                if let Some(packet) = pushed_out {
                    self.lifetime.dropped += 1;
                    self.pushed_out(packet);
                }
                Some(None)
            }
            Offered::Dropped => {
                self.lifetime.dropped += 1;
                None
            }
        }
    }

    fn pushed_out(&mut self, packet: Packet) {
        if self.is_reference(packet.source()) {
            self.reference_loses(packet);
        } else {
            self.cross_pushed_out(packet);
        }
    }

    pub(super) fn bin(&self) -> usize {
        self.binning.of(self.active)
    }

    /// Nothing is due before the limit: a step, a slot or the run is over.
    fn pass_limit(&mut self, goal: RunLimit) -> bool {
        if self.boundary > goal.until {
            self.now = goal.until;
            return true;
        }
        self.now = self.boundary;
        self.flush_queue();
        let now = self.now;
        if self.step < self.asked.steps {
            self.end_step();
            self.begin_measurement(now);
            self.boundary = now + self.asked.step;
        } else if self.step == self.asked.steps && !self.is_measuring_since(now) {
            self.probes.snapshot(now, false);
        }
        if self.step == self.asked.steps {
            self.boundary = self.probes.reference.counters.slot_end();
        }
        self.limit = self.boundary.min(goal.until);
        false
    }

    fn is_measuring_since(&self, now: Nanos) -> bool {
        now == u64::from(self.asked.steps) * self.asked.step
    }

    fn begin_measurement(&mut self, now: Nanos) {
        self.probes.begin_measurement(now);
        self.references.iter_mut().for_each(|flow| flow.record.begin_measurement());
        self.cross.iter_mut().for_each(|flow| flow.record.begin_measurement());
    }

    /// The first half of the steps go by the step before, so that they forget where they began; the
    /// second half by all of them, so that noise is averaged.
    fn end_step(&mut self) {
        let rows: Vec<StepRow> = self.open_rows().collect();
        self.rows.extend(rows);
        self.step += 1;
        let kept = if 2 * self.step > self.asked.steps { 1.0 } else { 0.0 };
        let moments = self.asked.moments;
        let probes = &self.probes.reference.counters;
        for (class, distributions) in self.distributions.iter_mut().enumerate() {
            let sent = probes.of_class(class, ClassCell::Sent);
            let expired = probes.of_class(class, ClassCell::Timeouts);
            distributions.update(kept, moments, sent, expired);
        }
    }

    /// What the current step has found so far, a row a class.
    fn row(&self, class: usize) -> StepRow {
        let distributions = &self.distributions[class];
        let reference = Found::by(&self.probes.reference, class);
        let cross = Found::by(&self.probes.cross, class);
        StepRow {
            step: self.step + 1,
            class: class as u32,
            rate: reference.rate,
            cross_rate: cross.rate,
            gap: distributions.measured_gap.of_step().mean().unwrap_or(f64::NAN),
            gap_used: distributions.gap_used,
            service: distributions.measured_service.of_step().mean().unwrap_or(f64::NAN),
            service_used: distributions.service_used,
            found: reference.found,
            cross_found: cross.found,
            on_time: reference.on_time,
            cross_on_time: cross.on_time,
            loss: reference.loss,
            cross_loss: cross.loss,
        }
    }

    fn open_rows(&self) -> impl Iterator<Item = StepRow> {
        (0..self.distributions.len()).map(|class| self.row(class))
    }

    fn flush_queue(&mut self) {
        let now = self.now;
        self.shared.queue.advance_to(now, &mut self.probes.reference);
        self.probes.reference.occupancy.held(self.shared.queue.held(), now);
        self.own_before.settle(&mut self.probes.reference);
        self.own_after.settle(&mut self.probes.reference);
    }

    /// Brings the counters up to now and checks that every packet is accounted for.
    ///
    /// # Errors
    /// [`Unbalanced`] if one is not.
    pub fn flush(&mut self) -> Result<&Probes, Unbalanced> {
        self.flush_queue();
        self.probes.reference.states = self.probes.reference.population.as_of(self.now);
        self.probes.snapshot(self.now, true);
        let Lifetime { offered, left, dropped } = self.lifetime;
        let in_flight = self.shared.waiting();
        if offered != left + dropped + in_flight {
            let (sent, received) = (offered, left);
            return Err(Unbalanced::Packets { sent, received, dropped, in_flight });
        }
        Ok(&self.probes.reference)
    }

    /// Virtual time now.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Whether the steps are over.
    #[must_use]
    pub fn is_measuring(&self) -> bool {
        self.step == self.asked.steps
    }

    /// What each step found; the last is the measurement, or the current step.
    #[must_use]
    pub fn rows(&self) -> Vec<StepRow> {
        self.rows.iter().copied().chain(self.open_rows()).collect()
    }

    /// The probes of reference flows as they stand.
    #[must_use]
    pub fn probes(&self) -> &Probes {
        &self.probes.reference
    }

    /// The probes of cross flows as they stand.
    #[must_use]
    pub fn cross_probes(&self) -> &Probes {
        &self.probes.cross
    }

    /// Each reference flow's packets and time on since the steps.
    pub fn records(&self) -> impl Iterator<Item = &SourceRecord> {
        self.references.iter().map(|flow| &flow.record)
    }
}

/// Whether a flow keeps its connection between files.
pub(super) fn is_persistent(traffic: &Traffic) -> bool {
    matches!(traffic, Traffic::OnOff { persistent: true, .. })
}

/// The size of the next file of a flow.
pub(super) fn draw_size(
    traffic: &Traffic,
    coupling: &mut Coupling,
    id: u32,
    sizes: &mut Stream,
) -> u32 {
    match traffic {
        Traffic::OnOff { size, rounding, coupling: by, .. } => {
            rounding.file(coupling.size(id, size, *by, sizes)).packets
        }
        Traffic::Bulk { .. } => u32::MAX - 1,
        Traffic::Transfers { .. } | Traffic::Arrivals { .. } => 1,
    }
}

/// The OFF time after it.
pub(super) fn draw_off_time(
    traffic: &Traffic,
    coupling: &mut Coupling,
    id: u32,
    off_times: &mut Stream,
) -> Nanos {
    match traffic {
        Traffic::OnOff { off, coupling: by, .. } => {
            nanoseconds(coupling.off_time(id, off, *by, off_times))
        }
        _ => NEVER,
    }
}

/// Where no time passes before the shared router, a flow would send for ever at one moment into a
/// full buffer; so loss feedback comes when that router has sent a packet more, as in the packet
/// engine.
fn late(config: &RunConfig, paths: &[Path], link: &Transmitter) -> Nanos {
    let alone = paths.iter().map(|path| path.up).min().unwrap_or(0);
    let takes_time = alone + hops::time_to_first_shared(config, config.packet_bytes) > 0;
    if takes_time { 0 } else { link.time_when_idle().max(1) }
}

/// What the flows of a class have shown since the counters began.
struct Found {
    rate: f64,
    on_time: f64,
    found: f64,
    loss: f64,
}

impl Found {
    fn by(probes: &Probes, class: usize) -> Self {
        let of = |cell| probes.counters.of_class(class, cell) as f64;
        let on_time = of(ClassCell::OnTime) / SECOND as f64;
        Self {
            rate: of(ClassCell::TransferPackets) / on_time,
            on_time: on_time / of(ClassCell::Transfers),
            found: of(ClassCell::OwnFound) / of(ClassCell::Arrived),
            loss: of(ClassCell::QueueDrops) / of(ClassCell::Arrived),
        }
    }
}
