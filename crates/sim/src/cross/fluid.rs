//! A first-in first-out hop of a single source, with cross traffic modelled as a fluid.
//!
//! The cross traffic has a constant rate in each time bin: `r_k`, as a fraction of the link's rate.
//! The unfinished work W at the link, in nanoseconds of link time, follows
//!
//! ```text
//! dW/dt = r_k - 1,   not below 0, not above the buffer,
//! ```
//!
//! and a packet waits for the work that it finds, and adds its own transmission time to the work.
//!
//! Work that exceeds the buffer is lost. While the cross traffic keeps the buffer full, only a part
//! of the fluid is lost, and packets of the source must have the same loss ratio: the link accepts
//! a fraction of 1 / load of all arriving work. So a packet that finds the buffer full replaces
//! fluid of the same size with probability `(1 - f) / r_k`, where f is the fraction of the buffer
//! that the source occupies. That is `1 / (r_k + own)` for a source that sends at the constant rate
//! `own`.
//!
//! Sources read a few series cyclically, each from a different position, so thousands of sources
//! need no more memory than one. The work that the cross traffic alone would leave is computed once
//! per bin. The work at a source's hop is never less, and the two are equal again as soon as both
//! are empty or both are full. From then until the next packet of the source, its work need not be
//! tracked, however long that takes.
//!
//! Sources that read the same series share its mean. If rates are long-range dependent, the mean of
//! even a long series differs from the true mean, and a hundred sources would share this error. So
//! for noise each series exists twice, once mirrored about its mean (antithetic variates,
//! Hammersley and Morton 1956). Both have the same distribution, and their errors cancel.

use super::fractional_noise::NoiseCircle;
use super::{ArrivalProcess, CrossArrivals, CrossRateCounters, FluidBins};
use crate::clock::{NEVER, Nanos};
use crate::random::{NamedStream, RandomSource, RandomStream, StreamPurpose};

/// The hop and its cross traffic, shared by all sources of a replication.
#[derive(Clone, Debug)]
pub struct FluidHop {
    /// Bins of all series, concatenated.
    bins: Vec<FluidLoadBin>,
    /// Bins per series.
    length: usize,
    /// Length of a bin.
    bin: Nanos,
    /// Transmission time of a packet in nanoseconds.
    packet: f64,
    /// Maximum work, including the packet in transmission.
    room: f64,
    /// Loss ratio of the cross traffic without the sources.
    loss_ratio: f64,
    streams: Vec<FluidStream>,
}

/// One stream of the cross traffic at a hop.
#[derive(Clone, Copy, Debug)]
pub struct FluidStream {
    /// Index among all streams.
    pub index: usize,
    /// Mean load, as a fraction of the link's rate.
    pub load: f64,
    /// Rates in bins, if the process draws rates.
    pub rates: CrossRateCounters,
}

#[derive(Clone, Copy, Debug)]
struct FluidLoadBin {
    /// Rate of the cross traffic, as a fraction of the link's rate.
    load: f64,
    /// Work at the start of the bin without the sources.
    cross_work: f64,
}

/// State of a hop for one source.
#[derive(Clone, Debug)]
pub struct FluidHopSourceState {
    /// Index of the first bin of the source's series.
    first: usize,
    /// Position in the series at time 0.
    offset: Nanos,
    /// Time of `work`.
    now: Nanos,
    work: f64,
    /// Whether the work equals the work without the sources.
    is_cross_only: bool,
    /// Approximate part of the work that belongs to the source: accepted work, decaying
    /// exponentially with the drain time of a full buffer as time constant.
    own_work: f64,
    /// Time at which the last packet was accepted.
    entered: Nanos,
    /// Departure time of that packet.
    leaves: Nanos,
    /// Random numbers that decide which packets are accepted into a full buffer.
    draws: RandomStream,
}

impl FluidHop {
    /// Creates a hop with cross traffic of `loads` (fractions of its rate per bin of length `bin`),
    /// in series of `length` bins. `packet_ns` is the transmission time of a packet, and
    /// `limit` the buffer limit in packets (`None` for no limit).
    #[must_use]
    pub fn new(
        loads: &[f64],
        length: usize,
        bin: Nanos,
        packet_ns: f64,
        limit: Option<u64>,
    ) -> Self {
        let mut hop = Self {
            bins: loads.iter().map(|load| FluidLoadBin { load: *load, cross_work: 0.0 }).collect(),
            length: length.clamp(1, loads.len().max(1)),
            bin,
            packet: packet_ns,
            room: limit.map_or(f64::INFINITY, |limit| limit as f64 * packet_ns),
            loss_ratio: 0.0,
            streams: Vec::new(),
        };
        hop.compute_cross_work_and_loss();
        hop
    }

    /// Creates the hop of a replication with `streams` (index among all streams, arrival process).
    #[must_use]
    pub fn for_replication(
        streams: &[(u32, ArrivalProcess)],
        bins: FluidBins,
        packet_ns: f64,
        limit: Option<u64>,
        seed: u64,
        replication: u32,
    ) -> Self {
        let FluidBins { bin, bins: each, series } = bins;
        let bins = each * series;
        let mut loads = vec![0.0; bins];
        let scale = packet_ns / bin as f64;
        let of = |(index, process): &(u32, ArrivalProcess)| {
            let name = (seed, replication, *index);
            let (packets, rates) = draw_packets_per_bin(process, bin, (each, series), name);
            loads.iter_mut().zip(&packets).for_each(|(load, count)| *load += count * scale);
            let load = packets.iter().sum::<f64>() * scale / bins as f64;
            FluidStream { index: *index as usize, load, rates }
        };
        let streams = streams.iter().map(of).collect();
        Self { streams, ..Self::new(&loads, each, bin, packet_ns, limit) }
    }

    /// Creates the state of a source: sources take the series in turn and start at random
    /// positions. `stage` is the index of the hop on the path.
    #[must_use]
    pub fn create_source_state(
        &self,
        seed: u64,
        replication: u32,
        source: u32,
        stage: u32,
    ) -> FluidHopSourceState {
        let unit = RandomStream::for_entity(seed, replication, source, StreamPurpose::CrossPlace)
            .draw_unit();
        let series = source as usize % (self.bins.len() / self.length);
        let draws = RandomStream::for_entity_at_hop(
            seed,
            replication,
            source,
            StreamPurpose::CrossRoom,
            stage,
        );
        self.create_source_at_offset(series as u32, (unit * self.period() as f64) as Nanos, draws)
    }

    /// Creates the state of a source that reads a series from `offset`.
    #[must_use]
    pub fn create_source_at_offset(
        &self,
        series: u32,
        offset: Nanos,
        draws: RandomStream,
    ) -> FluidHopSourceState {
        FluidHopSourceState {
            first: series as usize * self.length,
            offset: offset % self.period(),
            now: 0,
            work: 0.0,
            is_cross_only: true,
            own_work: 0.0,
            entered: 0,
            leaves: 0,
            draws,
        }
    }

    /// Enqueues a packet of a source at `now`, in the order of time. Returns the departure time, or
    /// `None` if the packet is lost.
    pub fn offer_packet(&self, source: &mut FluidHopSourceState, now: Nanos) -> Option<Nanos> {
        self.offer_work(source, now, self.packet)
    }

    /// Like [`FluidHop::offer_packet`], for a packet whose transmission takes `own` nanoseconds.
    pub fn offer_work(
        &self,
        source: &mut FluidHopSourceState,
        now: Nanos,
        own: f64,
    ) -> Option<Nanos> {
        let work = self.advance_work_to(source, now) + own;
        let own_work = source.own_work * libm::exp(-((now - source.entered) as f64) / self.room);
        // The tolerance allows for rounding errors when the buffer is exactly full.
        if work > self.room * (1.0 + 1e-12)
            && !self.draw_fluid_replacement(source, now, own, own_work)
        {
            return None;
        }
        source.work = work.min(self.room);
        source.is_cross_only = false;
        source.own_work = own_work + own;
        source.entered = now;
        source.leaves = now + (libm::round(source.work) as Nanos).min(NEVER);
        Some(source.leaves)
    }

    /// Whether a packet that finds the buffer full replaces fluid.
    fn draw_fluid_replacement(
        &self,
        source: &mut FluidHopSourceState,
        now: Nanos,
        own: f64,
        own_work: f64,
    ) -> bool {
        // Packets of the source leave sequentially.
        if source.leaves as f64 + own > now as f64 + self.room {
            return false;
        }
        let cross = self.bins[self.bin_index(source, (source.offset + now) / self.bin)].load;
        source.draws.draw_chance((1.0 - own_work / self.room).max(0.0) / cross)
    }

    /// Work that a source finds at `now`, in nanoseconds of link time.
    pub fn advance_work_to(&self, source: &mut FluidHopSourceState, now: Nanos) -> f64 {
        debug_assert!(now >= source.now, "time went back");
        let (from, to) = (source.offset + source.now, source.offset + now);
        let (first, last) = (from / self.bin, to / self.bin);
        if !source.is_cross_only && first == last {
            source.work =
                self.work_after_span(source.work, self.bin_index(source, first), to - from);
        } else if !source.is_cross_only {
            let rest = self.bin - from % self.bin;
            source.work = self.work_after_span(source.work, self.bin_index(source, first), rest);
            let (mut number, mut index) = (first + 1, self.bin_index(source, first + 1));
            while number < last && source.work > self.bins[index].cross_work {
                source.work = self.work_after_span(source.work, index, self.bin);
                number += 1;
                index =
                    if index + 1 == source.first + self.length { source.first } else { index + 1 };
            }
            source.is_cross_only = source.work <= self.bins[index].cross_work;
            if !source.is_cross_only {
                source.work = self.work_after_span(source.work, index, to % self.bin);
            }
        }
        if source.is_cross_only {
            let index = self.bin_index(source, last);
            source.work = self.work_after_span(self.bins[index].cross_work, index, to % self.bin);
        }
        source.now = now;
        source.work
    }

    /// Mean load of the cross traffic, as a fraction of the link's rate.
    #[must_use]
    pub fn mean_load(&self) -> f64 {
        self.bins.iter().map(|bin| bin.load).sum::<f64>() / self.bins.len() as f64
    }

    /// Loss ratio of the cross traffic without the sources.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        self.loss_ratio
    }

    /// Streams of the cross traffic.
    #[must_use]
    pub fn streams(&self) -> &[FluidStream] {
        &self.streams
    }

    /// Work after the time `span` in one bin.
    fn work_after_span(&self, work: f64, bin: usize, span: Nanos) -> f64 {
        (work + (self.bins[bin].load - 1.0) * span as f64).clamp(0.0, self.room)
    }

    /// Index of bin `number` of a source's series, which repeats.
    fn bin_index(&self, source: &FluidHopSourceState, number: u64) -> usize {
        source.first + (number % self.length as u64) as usize
    }

    fn period(&self) -> Nanos {
        self.bin * self.length as u64
    }

    /// Computes the work of the cross traffic alone at the start of each bin, and its loss ratio.
    fn compute_cross_work_and_loss(&mut self) {
        let (bin, room) = (self.bin as f64, self.room);
        let (mut sent, mut lost) = (0.0, 0.0);
        for series in self.bins.chunks_mut(self.length) {
            // If the work grows from period to period, it eventually fills the buffer; otherwise
            // the buffer is empty at some time in each period. From then on the work is periodic.
            let load = series.iter().map(|bin| bin.load).sum::<f64>();
            let grows = load > series.len() as f64 && room.is_finite();
            let (work, _) =
                simulate_period_without_flow(series, bin, room, if grows { room } else { 0.0 });
            lost += simulate_period_without_flow(series, bin, room, work).1;
            sent += load * bin;
        }
        self.loss_ratio = if sent > 0.0 { lost / sent } else { 0.0 };
    }
}

/// Follows the cross traffic alone through a series, starting at `work`. Returns the work at the
/// end and the lost work.
fn simulate_period_without_flow(
    series: &mut [FluidLoadBin],
    span: f64,
    room: f64,
    mut work: f64,
) -> (f64, f64) {
    let mut lost = 0.0;
    for bin in series {
        bin.cross_work = work;
        let unbounded = work + (bin.load - 1.0) * span;
        work = unbounded.clamp(0.0, room);
        lost += (unbounded - room).max(0.0);
    }
    (work, lost)
}

/// Packets that a stream sends in each bin of `series` series of `each` bins. Noise is periodic, so
/// the end of a series continues at its start.
fn draw_packets_per_bin(
    process: &ArrivalProcess,
    bin: Nanos,
    (each, series): (usize, usize),
    (seed, replication, index): (u64, u32, u32),
) -> (Vec<f64>, CrossRateCounters) {
    let mut rates = CrossRateCounters::default();
    if let ArrivalProcess::Fractional(noise) = process {
        let mut stream = RandomStream::for_entity(seed, replication, index, StreamPurpose::Cross);
        let mut standard = draw_noise_series(noise.hurst, each, series, &mut stream);
        standard.iter_mut().for_each(|value| *value = rates.add_bin(noise.packets_in_bin(*value)));
        return (standard, rates);
    }
    let mut arrivals = CrossArrivals::for_stream(process, seed, replication, index);
    let mut counts = vec![0.0; each * series];
    while let Some(count) = counts.get_mut((arrivals.next_arrival_time() / bin) as usize) {
        *count += 1.0;
    }
    (counts, rates)
}

/// Series of standard noise, concatenated: the two series of each transform, each followed by its
/// negative.
fn draw_noise_series(
    hurst: f64,
    each: usize,
    series: usize,
    stream: &mut RandomStream,
) -> Vec<f64> {
    let mut all = Vec::with_capacity(each * (series + 3));
    let circle = NoiseCircle::new(hurst, each);
    while all.len() < each * series {
        let (first, second) = circle.draw_two_series(stream);
        for one in [first, second] {
            all.extend(&one);
            all.extend(one.iter().map(|value| -value));
        }
    }
    all.truncate(each * series);
    all
}

#[cfg(test)]
#[path = "fluid_tests.rs"]
mod tests;
