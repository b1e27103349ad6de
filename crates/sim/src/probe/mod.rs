//! Probes: what happens is published as events, and these listen. Nothing here changes a run.

mod capture;
mod counters;
mod cross;
mod delivered;
mod early;
mod event;
mod goodput;
mod histogram;
mod hops;
mod indications;
mod listener;
mod load;
mod occupancy;
mod population;
mod queue;
mod recovery;
mod time_series;
mod totals;
mod trace;
mod transfers;

pub use capture::{AddedHandshake, Capture, CapturedHeader, ConnectionProperties, Sink, Tap};
pub use counters::{CLASS_CELLS, ClassCell, Counters, LINK_CELLS, LinkCell, SIZE_CELLS, SizeCell};
pub use cross::{CrossCounters, CrossEvent, FluidSums, StreamCounters};
pub use delivered::DeliveredCounters;
pub use early::EarlyCounters;
pub use event::{TcpEvent, TcpProbe};
pub use goodput::{BUCKETS_PER_OCTAVE, GoodputCount, GoodputCounters, OCTAVES, PIECES, Piece};
pub use histogram::LogHistogram;
pub use hops::{HopCounters, HopSums};
pub use indications::Indications;
pub use listener::Listener;
pub use load::LoadCounters;
pub use occupancy::Occupancy;
pub use population::Population;
pub use recovery::{LossStage, RecoveryCounters, TIMEOUT_KINDS, TimeoutKind};
pub use time_series::TimeSeries;
pub use totals::Totals;
pub use trace::{Mark, MarkPoint, Trace, TracePoint};
pub use transfers::{OpenedSums, TransferCounters, TransferRow, TransferSums};

use crate::clock::Nanos;
use crate::packet::{Kind, Packet};
use serde::Deserialize;

/// What a run keeps of one source. What every packet needs comes last: see `Source`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SourceRecord {
    recovery_since: Nanos,
    started: Nanos,
    /// Packets of finished transfers; of an endless flow, distinct packets delivered.
    pub packets: u64,
    /// Sum of the ON times of finished transfers.
    pub on_time: Nanos,
    recovery_retransmitted: u32,
    /// Data packets of the current transfer that were lost, each time that they were.
    pub losses: u32,
    /// When the receiver got the last packet of a file that it had not had.
    delivered: Nanos,
    /// Times of acknowledgements less times of first sendings, of the packets since the transfer
    /// began; of an endless flow, since the warm-up.
    in_flight: Nanos,
    last_sent: Nanos,
    recovery_sent: u32,
    /// Bits of a full packet, at most 2^19, which are exact; a double would make the record longer.
    packet_bits: f32,
    class: u16,
    row: u16,
    traced: bool,
    /// True from the beginning of a transfer to its last acknowledgement.
    active: bool,
    /// Timeouts so far of the current sequence; 0 if it began before the warm-up was over.
    depth: u8,
    /// How far an endless flow has come.
    pub stage: LossStage,
}

impl SourceRecord {
    /// The record of a source of class `class`, whose full packets have so many bytes.
    #[must_use]
    pub fn new(class: u16, packet_bytes: u32, traced: bool) -> Self {
        Self { class, packet_bits: 8.0 * packet_bytes as f32, traced, ..Self::default() }
    }

    /// The source's class.
    #[inline(always)]
    #[must_use]
    pub fn class(&self) -> usize {
        self.class as usize
    }

    /// Time since the current transfer began; `None` between two transfers.
    #[must_use]
    pub fn age(&self, now: Nanos) -> Option<Nanos> {
        self.active.then(|| now.saturating_sub(self.started))
    }

    /// The warm-up is over.
    pub fn begin_measurement(&mut self) {
        self.packets = 0;
        self.on_time = 0;
        self.depth = 0;
    }

    /// A packet is sent for the first time.
    ///
    /// The sum over packets of the times between their first sending and the acknowledgement that
    /// covers them is the sum of the later times less that of the earlier: one subtraction for a
    /// packet and one addition for an acknowledgement, exactly, and nothing is kept of a packet. By
    /// Little's law it is the number of packets in flight, integrated over time.
    #[inline(always)]
    pub fn enter_flight(&mut self, now: Nanos) {
        self.in_flight = self.in_flight.wrapping_sub(now);
    }

    /// So many packets are acknowledged.
    #[inline(always)]
    fn leave_flight(&mut self, now: Nanos, packets: u32) {
        self.in_flight = self.in_flight.wrapping_add(now.wrapping_mul(u64::from(packets)));
    }

    /// How long packets were in flight, all together, `flight` of which still are.
    #[must_use]
    pub fn in_flight_until(&self, now: Nanos, flight: u32) -> Nanos {
        self.in_flight.wrapping_add(now.wrapping_mul(u64::from(flight)))
    }

    /// The flow stops with so many packets in flight, which will not be acknowledged.
    pub fn end_flight(&mut self, now: Nanos, flight: u32) {
        self.leave_flight(now, flight);
    }

    /// Counts the time in flight from now on, `flight` packets being there.
    pub fn count_flight_from(&mut self, now: Nanos, flight: u32) {
        self.in_flight = now.wrapping_mul(u64::from(flight)).wrapping_neg();
    }

    /// A transfer begins of which delivery and losses are to be told.
    pub fn reset_losses(&mut self) {
        self.losses = 0;
    }

    /// The receiver of a file got a packet; `distinct` if for the first time.
    #[inline(always)]
    pub fn on_data(&mut self, now: Nanos, distinct: bool) {
        if distinct {
            self.delivered = now;
        }
    }
}

/// How often packets of one sequence number were sent to the bottleneck and dropped there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberRecord {
    /// Arrivals at the bottleneck.
    pub packets: u64,
    /// Drops there.
    pub drops: u64,
}

/// Sequence numbers above this are counted together.
const LARGEST_NUMBER: usize = 4096;

/// Rates of transfers are summed in millionths of a packet a second.
pub const RATE_UNITS: f64 = 1e6;

/// What to record.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeConfig {
    /// Upper ends of the size intervals, in packets; sizes above the last are a row of their own.
    pub size_bounds: Vec<u32>,
    /// Sources whose window and sequence numbers are recorded.
    pub traced: Vec<u32>,
    /// The most points that are kept of them, of each sort; a million unless told.
    pub trace_points: Option<usize>,
    /// Whether the run is recorded over time, from its beginning on.
    #[serde(rename = "course")]
    pub time_series: bool,
    /// Captures: where, and how many packets at the most.
    pub captures: Vec<(Tap, u64)>,
    /// The goodput of each so many packets of a file is recorded; 0 for none.
    pub goodput_packets: u32,
    /// The goodputs of files of more packets than this are counted apart.
    pub goodput_least: u32,
    /// Times after the start of an endless flow by which it is told what it has delivered, rising.
    #[serde(rename = "report_at_ns")]
    pub report_at: Vec<Nanos>,
}

/// All the probes of a run.
#[derive(Debug)]
pub struct Probes {
    /// Sums, cut in slots of time for the statistics.
    pub counters: Counters,
    /// How many sources are active, as a birth-death process.
    pub population: Population,
    /// The same, as of the last time the counters were brought up to date.
    pub states: Population,
    /// How full the bottleneck's queue is.
    pub occupancy: Occupancy,
    /// What its link carried, where its rate is not constant.
    pub load: LoadCounters,
    /// What it dropped early, if it does.
    pub early: EarlyCounters,
    /// The outcome of cross traffic at the bottleneck, per stream.
    pub cross: CrossCounters,
    /// Each hop of the path, the bottleneck's place left empty; none where that is the only one.
    pub hops: Vec<HopCounters>,
    /// Timeouts and recoveries.
    pub recovery: RecoveryCounters,
    /// When losses were found.
    pub indications: Indications,
    /// Drops by sequence number.
    pub by_number: Box<[NumberRecord; LARGEST_NUMBER + 1]>,
    /// ON times of the finished transfers of each class, in seconds.
    pub on_times: Vec<LogHistogram>,
    /// Rates of the finished transfers of each class, in packets a second.
    pub rates: Vec<LogHistogram>,
    /// Times in seconds that packets waited at the bottleneck, where they are kept.
    pub waits: LogHistogram,
    /// Goodputs of files.
    pub goodput: GoodputCounters,
    /// Single transfers by size and losses.
    pub transfers: TransferCounters,
    /// What endless flows have delivered by given times; the warm-up is in it.
    pub delivered: DeliveredCounters,
    /// The run over time, its warm-up included, if it was asked for.
    pub time_series: TimeSeries,
    /// Windows and sequence numbers of chosen sources.
    pub trace: Trace,
    /// Captures of chosen links.
    pub captures: Vec<Capture>,
    size_bounds: Vec<u32>,
    finished: u64,
}

impl Probes {
    /// Probes for so many classes, and so many hops.
    #[must_use]
    pub fn new(config: &ProbeConfig, classes: usize, hops: usize) -> Self {
        let (block, least) = (config.goodput_packets, config.goodput_least);
        Self {
            counters: Counters::new(classes, config.size_bounds.len() + 1),
            population: Population::default(),
            states: Population::default(),
            occupancy: Occupancy::default(),
            load: LoadCounters::default(),
            early: EarlyCounters::default(),
            cross: CrossCounters::default(),
            hops: vec![HopCounters::default(); hops],
            recovery: RecoveryCounters::default(),
            indications: Indications::default(),
            by_number: Box::new([NumberRecord::default(); LARGEST_NUMBER + 1]),
            on_times: vec![LogHistogram::default(); classes],
            rates: vec![LogHistogram::default(); classes],
            waits: LogHistogram::default(),
            goodput: GoodputCounters::new(block, least),
            transfers: TransferCounters::default(),
            delivered: DeliveredCounters::new(&config.report_at),
            time_series: TimeSeries::new(classes, config.time_series),
            trace: config.trace_points.map_or_else(Trace::default, Trace::of),
            captures: config.captures.iter().map(|(tap, most)| Capture::new(*tap, *most)).collect(),
            size_bounds: config.size_bounds.clone(),
            finished: 0,
        }
    }

    /// The warm-up is over: forget the figures, keep what has begun.
    pub fn begin_measurement(&mut self, now: Nanos) {
        self.time_series.keep(&self.counters);
        self.counters.begin(now);
        self.population.begin(now);
        self.occupancy.begin(now);
        self.load.begin();
        self.early = EarlyCounters::default();
        self.cross.clear();
        self.hops.iter_mut().for_each(|hop| hop.begin(now));
        self.recovery = RecoveryCounters::default();
        self.indications.begin(now);
        self.by_number.fill(NumberRecord::default());
        self.finished = 0;
        self.on_times.fill(LogHistogram::default());
        self.rates.fill(LogHistogram::default());
        self.waits = LogHistogram::default();
        self.goodput.begin();
        self.transfers = TransferCounters::default();
    }

    /// A source begins a transfer.
    pub fn transfer_started(&mut self, now: Nanos, record: &mut SourceRecord, size: u32) {
        record.started = now;
        record.active = true;
        record.row = self.size_bounds.partition_point(|bound| *bound < size) as u16;
    }

    /// The last packet of a transfer was acknowledged.
    #[inline(always)]
    pub fn transfer_finished(&mut self, now: Nanos, record: &mut SourceRecord, size: u32) {
        let on_time = now - record.started;
        record.active = false;
        record.packets += u64::from(size);
        record.on_time += on_time;
        self.finished += 1;
        let (class, row) = (record.class as usize, record.row as usize);
        self.counters.add(class, ClassCell::Transfers, 1);
        self.counters.add(class, ClassCell::TransferPackets, u64::from(size));
        self.counters.add(class, ClassCell::OnTime, on_time);
        self.counters.add(class, ClassCell::Acked, u64::from(size));
        self.counters.add(class, ClassCell::InFlight, std::mem::take(&mut record.in_flight));
        self.counters.add_size(row, SizeCell::Transfers, 1);
        self.counters.add_size(row, SizeCell::Packets, u64::from(size));
        self.counters.add_size(row, SizeCell::OnTime, on_time);
        let seconds = on_time as f64 * 1e-9;
        let rate = f64::from(size) / seconds;
        // A file that took no time has a rate without bounds.
        let sum = &mut self.counters.size_mut(row)[SizeCell::RateSum as usize];
        *sum = sum.saturating_add((rate * RATE_UNITS) as u64);
        self.on_times[class].add(seconds);
        self.rates[class].add(rate);
        let taken = record.delivered - record.started;
        self.goodput.file(class, row, size, record.packet_bits, taken);
    }

    /// A sender hands a data packet to its link.
    #[inline(always)]
    pub fn sent(&mut self, now: Nanos, record: &mut SourceRecord, packet: &Packet) {
        record.last_sent = now;
        record.recovery_sent += 1;
        let cells = self.counters.class_mut(record.class());
        cells[ClassCell::Sent as usize] += 1;
        if packet.kind() != Kind::Data {
            cells[ClassCell::Retransmitted as usize] += 1;
        }
        if record.traced {
            let again = packet.kind() == Kind::Retransmission;
            let mark = if again { Mark::Retransmitted } else { Mark::Sent };
            self.trace.mark(now, packet.source(), packet.number(), mark);
        }
    }

    /// A data packet arrives at the bottleneck and finds `queue` packets there.
    #[inline(always)]
    pub fn arrived(&mut self, record: &SourceRecord, packet: &Packet, queue: usize) {
        self.counters.class_mut(record.class())[ClassCell::Arrived as usize] += 1;
        let of_size = self.counters.size_mut(record.row as usize);
        of_size[SizeCell::Arrived as usize] += 1;
        of_size[SizeCell::QueueSeen as usize] += queue as u64;
        self.by_number[(packet.number() as usize).min(LARGEST_NUMBER)].packets += 1;
    }

    /// A data packet was dropped at the bottleneck, by the queue or at random.
    pub fn dropped(&mut self, now: Nanos, record: &SourceRecord, packet: &Packet, random: bool) {
        let cell = if random { ClassCell::RandomDrops } else { ClassCell::QueueDrops };
        self.counters.add(record.class(), cell, 1);
        self.counters.add_size(record.row as usize, SizeCell::Drops, 1);
        self.by_number[(packet.number() as usize).min(LARGEST_NUMBER)].drops += 1;
        self.lost(now, record, packet);
    }

    /// A data packet was dropped on a source's or a receiver's own link.
    pub fn dropped_on_access(&mut self, now: Nanos, record: &SourceRecord, packet: &Packet) {
        self.counters.add(record.class(), ClassCell::AccessDrops, 1);
        self.lost(now, record, packet);
    }

    pub(super) fn lost(&mut self, now: Nanos, record: &SourceRecord, packet: &Packet) {
        if record.traced {
            self.trace.mark(now, packet.source(), packet.number(), Mark::Dropped);
        }
    }

    /// A data packet reached its receiver; `distinct` if for the first time.
    #[inline(always)]
    pub fn delivered(&mut self, record: &SourceRecord, distinct: bool) {
        self.counters.class_mut(record.class())[ClassCell::Delivered as usize] +=
            u64::from(distinct);
    }

    /// A retransmission reached its receiver, which had the data.
    pub fn delivered_again(&mut self, record: &SourceRecord) {
        self.counters.add(record.class(), ClassCell::SpuriousRetransmissions, 1);
    }

    /// A data packet that was delivered lacks so many bytes of a full one.
    #[inline(never)]
    pub fn delivered_short(&mut self, record: &SourceRecord, lacking: u32) {
        self.counters.add(record.class(), ClassCell::Lacking, u64::from(lacking));
    }

    /// Shows a packet of a class to the captures at a tap; none that passes before `settled` is still to come.
    #[inline(never)]
    pub fn capture(
        &mut self,
        tap: Tap,
        class: usize,
        at: Nanos,
        packet: &Packet,
        shown: CapturedHeader,
        settled: Nanos,
    ) {
        for capture in &mut self.captures {
            capture.pass(tap, class, at, packet, shown, settled);
        }
    }

    /// Transfers finished since the warm-up.
    #[inline]
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.finished
    }
}
