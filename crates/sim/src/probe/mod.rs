//! Probes: counters, histograms and captures that record the events of a run without changing it.

mod active_sources;
mod bottleneck_queue_probe;
mod capture;
mod counter_table;
mod counts_by_slot;
mod cross_counters;
mod delivered_by_time;
mod early_drops;
mod goodput_counters;
mod histogram;
mod link_load;
mod loss_indications;
mod queue_occupancy;
mod recovery_counters;
mod replication_totals;
mod sender_listener;
mod source_traces;
mod time_series;
mod times_by_slot;
mod transfer_counters;

pub use active_sources::ActiveSources;
pub use capture::{
    CaptureSink, CapturedHeader, ConnectionProperties, SimulatedCapture, TapPlace,
    UnloadedHandshakeTimes,
};
pub use counter_table::{
    CLASS_CELLS, ClassCell, CounterTable, LINK_CELLS, LINK_CLASS_CELLS, LINK_TOTAL_CELLS, LinkCell,
    LinkClassCell, LinkTotalCell, SIZE_CELLS, SizeCell,
};
pub use counts_by_slot::{BucketCount, CountsBySlot};
pub use cross_counters::{CrossCounters, CrossPacketEvent, FluidSums, StreamCounters};
pub use delivered_by_time::DeliveredByTime;
pub use early_drops::EarlyDropCounters;
pub use goodput_counters::{
    BUCKETS_PER_OCTAVE, GOODPUT_KINDS, GoodputCounters, GoodputKind, OCTAVES,
};
pub use histogram::LogHistogram;
pub use link_load::LinkLoadCounters;
pub use loss_indications::LossIndicationTimes;
pub use queue_occupancy::QueueOccupancy;
pub use recovery_counters::{FirstRecoveryProgress, RecoveryCounters, TIMEOUT_KINDS, TimeoutKind};
pub use replication_totals::ReplicationTotals;
pub use sender_listener::SenderListener;
pub use source_traces::{BbrPoint, SequenceEvent, SequencePoint, SourceTraces, WindowPoint};
pub use time_series::TimeSeries;
pub use times_by_slot::{
    TIME_HISTOGRAM_BYTES, TIME_KINDS, TimeKind, TimesBySlot, time_bucket_limits,
};
pub use transfer_counters::{HandshakeSums, SizeIntervalTransfers, TransferCounters, TransferSums};

use crate::clock::Nanos;
use crate::merge::merge_fields;
use crate::packet::{Packet, PacketKind};
use serde::Deserialize;

/// Statistics of one source. Fields that every packet uses come last: see `Source`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SourceRecord {
    recovery_since: Nanos,
    started: Nanos,
    /// Packets of finished transfers, or distinct delivered packets of an endless flow.
    pub packets: u64,
    /// Sum of the ON times of finished transfers.
    pub on_time: Nanos,
    recovery_retransmitted: u32,
    /// Losses of data packets in the current transfer, retransmissions included.
    pub losses: u32,
    /// Time at which the receiver got the latest new packet of a file.
    delivered: Nanos,
    /// Sum of acknowledgement times minus first transmission times, over all packets since the
    /// start of the transfer or, for an endless flow, since the end of the warm-up.
    in_flight: Nanos,
    last_sent: Nanos,
    recovery_sent: u32,
    /// Bits of a full packet: at most 2^19, so exact in single precision, which saves memory.
    packet_bits: f32,
    class: u16,
    row: u16,
    traced: bool,
    /// True from the start of a transfer to its last acknowledgement.
    active: bool,
    /// Timeouts in the current sequence; 0 if the sequence began during the warm-up.
    depth: u8,
    /// Progress of an endless flow towards its steady state.
    pub stage: FirstRecoveryProgress,
}

/// Class of a source, and size interval of its file.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassAndSizeInterval {
    class: u16,
    row: u16,
}

impl ClassAndSizeInterval {
    /// Class of the source.
    #[inline(always)]
    #[must_use]
    pub fn class(self) -> usize {
        self.class.into()
    }
}

impl SourceRecord {
    /// Creates the record of a source of class `class` with full packets of `packet_bytes` bytes.
    #[must_use]
    pub fn new(class: u16, packet_bytes: u32, traced: bool) -> Self {
        Self { class, packet_bits: 8.0 * packet_bytes as f32, traced, ..Self::default() }
    }

    /// Class of the source.
    #[inline(always)]
    #[must_use]
    pub fn class(&self) -> usize {
        self.class as usize
    }

    /// Class of the source, and size interval of its current file.
    #[inline(always)]
    #[must_use]
    pub fn interval(&self) -> ClassAndSizeInterval {
        ClassAndSizeInterval { class: self.class, row: self.row }
    }

    /// Whether windows and sequence numbers of the source are recorded.
    #[inline(always)]
    #[must_use]
    pub fn is_traced(&self) -> bool {
        self.traced
    }

    /// Time since the start of the current transfer; `None` between transfers.
    #[must_use]
    pub fn transfer_age(&self, now: Nanos) -> Option<Nanos> {
        self.active.then(|| now.saturating_sub(self.started))
    }

    /// Resets the sums at the end of the warm-up.
    pub fn begin_measurement(&mut self) {
        self.packets = 0;
        self.on_time = 0;
        self.depth = 0;
    }

    /// Counts the first transmission of a packet.
    ///
    /// The total time in flight is the sum of the acknowledgement times minus the sum of the first
    /// transmission times, so it needs no state per packet and is exact: one subtraction per packet
    /// and one addition per acknowledgement. By Little's law it equals the number of packets in
    /// flight, integrated over time.
    #[inline(always)]
    pub fn count_entering_flight(&mut self, now: Nanos) {
        self.in_flight = self.in_flight.wrapping_sub(now);
    }

    /// Counts `packets` newly acknowledged packets.
    #[inline(always)]
    fn count_leaving_flight(&mut self, now: Nanos, packets: u32) {
        self.in_flight = self.in_flight.wrapping_add(now.wrapping_mul(u64::from(packets)));
    }

    /// Total time in flight of all packets up to `now`; `flight` packets are still in flight.
    #[must_use]
    pub fn total_flight_time_until(&self, now: Nanos, flight: u32) -> Nanos {
        self.in_flight.wrapping_add(now.wrapping_mul(u64::from(flight)))
    }

    /// Ends the times in flight when a flow stops: `flight` packets will not be acknowledged.
    pub fn end_flight_times(&mut self, now: Nanos, flight: u32) {
        self.count_leaving_flight(now, flight);
    }

    /// Restarts the time in flight at `now`, when `flight` packets are in flight.
    pub fn restart_flight_time(&mut self, now: Nanos, flight: u32) {
        self.in_flight = now.wrapping_mul(u64::from(flight)).wrapping_neg();
    }

    /// Resets the loss counter at the start of a transfer that is reported individually.
    pub fn reset_transfer_losses(&mut self) {
        self.losses = 0;
    }

    /// Records the arrival of a packet of a file; `distinct` is true for its first arrival.
    #[inline(always)]
    pub fn record_data_arrival(&mut self, now: Nanos, distinct: bool) {
        if distinct {
            self.delivered = now;
        }
    }
}

/// Arrivals and drops at the bottleneck for one sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceNumberCounters {
    /// Arrivals at the bottleneck.
    pub packets: u64,
    /// Drops at the bottleneck.
    pub drops: u64,
}

merge_fields!(SequenceNumberCounters { packets, drops });

/// Larger sequence numbers share one counter.
const MAX_COUNTED_SEQUENCE: usize = 4096;

/// Unit of the rate sums: 10^-6 packets per second.
pub const RATE_UNITS: f64 = 1e6;

/// Selects the recorded data.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeConfig {
    /// Upper ends of the size intervals, in packets; larger sizes form an additional interval.
    pub size_bounds: Vec<u32>,
    /// Sources whose windows and sequence numbers are recorded.
    pub traced: Vec<u32>,
    /// Maximum number of recorded points per kind; 1,000,000 if `None`.
    pub trace_points: Option<usize>,
    /// Whether sums are recorded over time, warm-up included.
    #[serde(rename = "course")]
    pub time_series: bool,
    /// Captures: tap and maximum number of packets.
    pub captures: Vec<(TapPlace, u64)>,
    /// Block size in packets for goodputs of blocks; 0 for no blocks.
    pub goodput_packets: u32,
    /// Files with more packets than this count as large; their goodputs are counted separately.
    pub goodput_least: u32,
    /// Times since the start of an endless flow at which its delivered packets are recorded,
    /// ascending.
    #[serde(rename = "report_at_ns")]
    pub report_at: Vec<Nanos>,
}

/// All probes of a run.
#[derive(Debug)]
pub struct Probes {
    /// Sums per time slot, for statistics.
    pub counters: CounterTable,
    /// Number of active sources, as a birth-death process.
    pub population: ActiveSources,
    /// Copy of `population` at the last flush.
    pub states: ActiveSources,
    /// Length of the bottleneck's queue.
    pub occupancy: QueueOccupancy,
    /// Load of the bottleneck's link, if its rate is not constant.
    pub load: LinkLoadCounters,
    /// Early drops of the bottleneck.
    pub early: EarlyDropCounters,
    /// Cross traffic at the bottleneck, per stream.
    pub cross: CrossCounters,
    /// Timeouts and recoveries.
    pub recovery: RecoveryCounters,
    /// Times at which senders detected losses.
    pub indications: LossIndicationTimes,
    /// Arrivals and drops at the bottleneck by sequence number.
    pub by_number: Box<[SequenceNumberCounters; MAX_COUNTED_SEQUENCE + 1]>,
    /// ON times of the finished transfers of each class, in seconds.
    pub on_times: Vec<LogHistogram>,
    /// Rates of the finished transfers of each class, in packets per second.
    pub rates: Vec<LogHistogram>,
    /// Waiting times at the bottleneck in seconds, if they are recorded.
    pub waits: LogHistogram,
    /// Goodputs of files.
    pub goodput: GoodputCounters,
    /// Single transfers by size and losses.
    pub transfers: TransferCounters,
    /// Packets that endless flows have delivered by given times, warm-up included.
    pub delivered: DeliveredByTime,
    /// Sums over time, warm-up included, if they are recorded.
    pub time_series: TimeSeries,
    /// Windows and sequence numbers of selected sources.
    pub trace: SourceTraces,
    /// Captures at selected places.
    pub captures: Vec<SimulatedCapture>,
    /// Times of classes in a network of links: see [`Probes::add_time`].
    pub class_times: TimesBySlot,
    /// Queueing delays on links of a network: one group per pair of link and class, in the order of
    /// [`NetworkConfig::link_classes`](crate::flows::NetworkConfig::link_classes), then one per link for
    /// its cross traffic.
    pub link_waits: TimesBySlot,
    size_bounds: Vec<u32>,
    finished: u64,
}

impl Probes {
    /// Creates the probes for the given number of classes.
    #[must_use]
    pub fn new(config: &ProbeConfig, classes: usize) -> Self {
        let (block, threshold) = (config.goodput_packets, config.goodput_least);
        Self {
            counters: CounterTable::new(classes, config.size_bounds.len() + 1),
            population: ActiveSources::default(),
            states: ActiveSources::default(),
            occupancy: QueueOccupancy::default(),
            load: LinkLoadCounters::default(),
            early: EarlyDropCounters::default(),
            cross: CrossCounters::default(),
            recovery: RecoveryCounters::default(),
            indications: LossIndicationTimes::default(),
            by_number: Box::new([SequenceNumberCounters::default(); MAX_COUNTED_SEQUENCE + 1]),
            on_times: vec![LogHistogram::default(); classes],
            rates: vec![LogHistogram::default(); classes],
            waits: LogHistogram::default(),
            goodput: GoodputCounters::new(block, threshold, classes),
            transfers: TransferCounters::default(),
            delivered: DeliveredByTime::new(&config.report_at),
            time_series: TimeSeries::new(classes, config.time_series),
            trace: config.trace_points.map_or_else(SourceTraces::default, SourceTraces::with_limit),
            captures: config
                .captures
                .iter()
                .map(|(tap, limit)| SimulatedCapture::new(*tap, *limit))
                .collect(),
            class_times: TimesBySlot::default(),
            link_waits: TimesBySlot::default(),
            size_bounds: config.size_bounds.clone(),
            finished: 0,
        }
    }

    /// Creates the probes of a network with `wait_groups` groups of queueing delays.
    #[must_use]
    pub fn of_network(config: &ProbeConfig, classes: usize, wait_groups: usize) -> Self {
        Self {
            class_times: TimesBySlot::new(classes * TIME_KINDS.len()),
            link_waits: TimesBySlot::new(wait_groups),
            ..Self::new(config, classes)
        }
    }

    /// Adds a time of a class to its histogram.
    #[inline(always)]
    pub fn add_time(&mut self, class: usize, kind: TimeKind, time: Nanos) {
        self.class_times.add_time(class * TIME_KINDS.len() + kind as usize, time);
    }

    /// Resets all sums at the end of the warm-up; transfers in progress continue.
    pub fn begin_measurement(&mut self, now: Nanos) {
        self.time_series.save_counters_before_reset(&self.counters);
        self.counters.reset_sums(now);
        self.population.reset_sums(now);
        self.occupancy.reset_sums(now);
        self.load.begin_measurement();
        self.early = EarlyDropCounters::default();
        self.cross.clear();
        self.recovery = RecoveryCounters::default();
        self.indications.begin_measurement(now);
        self.by_number.fill(SequenceNumberCounters::default());
        self.finished = 0;
        self.on_times.fill(LogHistogram::default());
        self.rates.fill(LogHistogram::default());
        self.waits = LogHistogram::default();
        self.goodput.reset_counts();
        self.transfers = TransferCounters::default();
        self.class_times.clear();
        self.link_waits.clear();
    }

    /// Records the start of a transfer.
    pub fn record_transfer_start(&mut self, now: Nanos, record: &mut SourceRecord, size: u32) {
        record.started = now;
        record.active = true;
        record.row = self.size_bounds.partition_point(|bound| *bound < size) as u16;
    }

    /// Records the end of a transfer: its last packet was acknowledged.
    #[inline(always)]
    pub fn record_transfer_end(&mut self, now: Nanos, record: &mut SourceRecord, size: u32) {
        let on_time = now - record.started;
        record.active = false;
        record.packets += u64::from(size);
        record.on_time += on_time;
        self.finished += 1;
        let (class, row) = (record.class as usize, record.row as usize);
        self.counters.add_to_class(class, ClassCell::Transfers, 1);
        self.counters.add_to_class(class, ClassCell::TransferPackets, u64::from(size));
        self.counters.add_to_class(class, ClassCell::OnTime, on_time);
        self.counters.add_to_class(class, ClassCell::Acked, u64::from(size));
        self.counters.add_to_class(
            class,
            ClassCell::InFlight,
            std::mem::take(&mut record.in_flight),
        );
        self.counters.add_to_size(row, SizeCell::Transfers, 1);
        self.counters.add_to_size(row, SizeCell::Packets, u64::from(size));
        self.counters.add_to_size(row, SizeCell::OnTime, on_time);
        let seconds = on_time as f64 * 1e-9;
        let rate = f64::from(size) / seconds;
        // The rate of a file with an ON time of 0 is infinite.
        let sum = &mut self.counters.size_cells_mut(row)[SizeCell::RateSum as usize];
        *sum = sum.saturating_add((rate * RATE_UNITS) as u64);
        self.on_times[class].add_value(seconds);
        self.rates[class].add_value(rate);
        let taken = record.delivered - record.started;
        self.goodput.count_file(class, row, size, record.packet_bits, taken);
    }

    /// Counts a data packet that a sender passes to its link.
    #[inline(always)]
    pub fn count_sent(&mut self, now: Nanos, record: &mut SourceRecord, packet: &Packet) {
        record.last_sent = now;
        record.recovery_sent += 1;
        let cells = self.counters.class_cells_mut(record.class());
        cells[ClassCell::Sent as usize] += 1;
        if packet.kind != PacketKind::Data {
            cells[ClassCell::Retransmitted as usize] += 1;
        }
        if record.traced {
            let is_retransmission = packet.kind == PacketKind::Retransmission;
            let mark =
                if is_retransmission { SequenceEvent::Retransmitted } else { SequenceEvent::Sent };
            self.trace.record_event(now, packet.source, packet.number, mark);
        }
    }

    /// Counts a packet without data of the file, which queues and losses treat like data.
    #[inline(never)]
    pub fn count_control_packet_sent(&mut self, record: &SourceRecord) {
        self.counters.add_to_class(record.class(), ClassCell::ControlSent, 1);
    }

    /// Counts a data packet that arrives at the bottleneck and finds `queue` packets there.
    #[inline(always)]
    pub fn count_bottleneck_arrival(
        &mut self,
        record: &SourceRecord,
        packet: &Packet,
        queue: usize,
    ) {
        self.count_arrival(record.interval(), packet.number, queue);
    }

    /// Counts the arrival of packet `number` at the bottleneck.
    #[inline(always)]
    pub fn count_arrival(&mut self, of: ClassAndSizeInterval, number: u32, queue: usize) {
        self.counters.class_cells_mut(of.class.into())[ClassCell::Arrived as usize] += 1;
        let of_size = self.counters.size_cells_mut(of.row.into());
        of_size[SizeCell::Arrived as usize] += 1;
        of_size[SizeCell::QueueSeen as usize] += queue as u64;
        self.by_number[(number as usize).min(MAX_COUNTED_SEQUENCE)].packets += 1;
    }

    /// Counts a data packet that the bottleneck dropped, by the queue or at random.
    pub fn count_bottleneck_drop(
        &mut self,
        now: Nanos,
        record: &SourceRecord,
        packet: &Packet,
        random: bool,
    ) {
        let cell = if random { ClassCell::RandomDrops } else { ClassCell::QueueDrops };
        self.counters.add_to_class(record.class(), cell, 1);
        self.counters.add_to_size(record.row as usize, SizeCell::Drops, 1);
        self.by_number[(packet.number as usize).min(MAX_COUNTED_SEQUENCE)].drops += 1;
        self.count_loss(now, record, packet);
    }

    /// Adds to the queue lengths that arrivals at the bottleneck find.
    #[inline(always)]
    pub fn count_queue_seen(&mut self, of: ClassAndSizeInterval, packets: u64) {
        self.counters.add_to_size(of.row.into(), SizeCell::QueueSeen, packets);
    }

    /// Counts a data packet that was dropped on a link other than the bottleneck, which may be a
    /// link of its own source.
    pub fn count_drop_elsewhere(
        &mut self,
        now: Nanos,
        record: &SourceRecord,
        packet: &Packet,
        is_own: bool,
    ) {
        self.counters.add_hop_drop();
        if is_own {
            self.counters.add_to_class(record.class(), ClassCell::AccessDrops, 1);
        }
        self.count_loss(now, record, packet);
    }

    pub(super) fn count_loss(&mut self, now: Nanos, record: &SourceRecord, packet: &Packet) {
        if record.traced {
            self.trace.record_event(now, packet.source, packet.number, SequenceEvent::Dropped);
        }
    }

    /// Counts a data packet that reached its receiver; `distinct` is true for its first arrival.
    #[inline(always)]
    pub fn count_delivery(&mut self, record: &SourceRecord, distinct: bool) {
        self.counters.class_cells_mut(record.class())[ClassCell::Delivered as usize] +=
            u64::from(distinct);
    }

    /// Counts a spurious retransmission: the receiver already had the data.
    pub fn count_spurious_retransmission(&mut self, record: &SourceRecord) {
        self.counters.add_to_class(record.class(), ClassCell::SpuriousRetransmissions, 1);
    }

    /// Counts a delivered data packet that is `lacking` bytes shorter than a full one.
    #[inline(never)]
    pub fn count_short_delivery(&mut self, record: &SourceRecord, lacking: u32) {
        self.counters.add_to_class(record.class(), ClassCell::Lacking, u64::from(lacking));
    }

    /// Passes a packet of a class to the captures; all packets that pass a tap before
    /// `reported_until` have been reported.
    #[inline(never)]
    pub fn pass_to_captures(
        &mut self,
        tap: TapPlace,
        class: usize,
        at: Nanos,
        packet: &Packet,
        shown: CapturedHeader,
        reported_until: Nanos,
    ) {
        for capture in &mut self.captures {
            capture.report_packet(tap, class, at, packet, shown, reported_until);
        }
    }

    /// Number of transfers finished since the warm-up.
    #[inline]
    #[must_use]
    pub fn transfers_finished_after_warm_up(&self) -> u64 {
        self.finished
    }
}
