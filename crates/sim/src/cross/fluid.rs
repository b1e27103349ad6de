//! A first-in first-out hop that a source has to itself but for cross traffic, as a fluid.
//!
//! The cross traffic has a rate that is constant in each bin, `r_k` as a share of the link's. The
//! work W before the link, in nanoseconds of its time, follows
//!
//! ```text
//! dW/dt = r_k - 1,   not below 0, not above the buffer,
//! ```
//!
//! and a packet waits for the work that it finds and adds its own.
//!
//! What does not fit is lost. Where it keeps the buffer full, that is a share of the fluid and not
//! all of it, and a packet of the source fares no worse than they do: of all that comes the link
//! takes one part in the load. So a packet that finds the buffer full gets in, in the place of as
//! much fluid, with the chance `(1 - f) / r_k`, where f is the share of the buffer that the source
//! has: `1 / (r_k + own)` for a source that sends `own` all the time.
//!
//! Sources read a few series in turn, round and round, each from a place of its own, so that
//! thousands of them need no more memory than one. The work that the cross traffic alone would
//! leave is worked out once for each bin. A source's work is never less, and equals it again as
//! soon as either is empty or full; from then on until its next packet the source need not be
//! followed, however long that takes.
//!
//! Who reads one series has its mean in common, and where rates remember, a mean is not known well
//! even from many bins: a hundred sources would seem to agree on what is chance. So a noise has
//! each series twice, as it is and turned over about its mean (antithetic variates, Hammersley and
//! Morton 1956): each is noise of the same distribution, and what one has too much the other has
//! too little.

use super::fractional::Circle;
use super::{ArrivalProcess, Arrivals, CrossConfig, RateCounters};
use crate::clock::{NEVER, Nanos};
use crate::random::{Draws, Named, Purpose, Stream};

/// The hop, and the cross traffic there: the same for all sources of a replication.
#[derive(Clone, Debug)]
pub struct FluidHop {
    /// All series, one behind the other.
    bins: Vec<Bin>,
    /// Bins of each.
    each: usize,
    /// Length of a bin.
    bin: Nanos,
    /// Time of a packet on the link, in nanoseconds.
    packet: f64,
    /// Work that fits, the packet in transmission included.
    room: f64,
    /// Share of the cross traffic that is lost when it is alone.
    loss_ratio: f64,
    streams: Vec<FluidStream>,
}

/// One of the streams that make the cross traffic at a hop.
#[derive(Clone, Copy, Debug)]
pub struct FluidStream {
    /// Its place among all streams.
    pub place: usize,
    /// Its mean load, as a share of the link's rate.
    pub load: f64,
    /// Its rates in bins, where they are drawn as such.
    pub rates: RateCounters,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    /// The rate of the cross traffic, as a share of the link's rate.
    load: f64,
    /// The work at its beginning if the cross traffic were alone.
    alone: f64,
}

/// What a hop knows of one source.
#[derive(Clone, Debug)]
pub struct Fluid {
    /// The first bin of its series.
    first: usize,
    /// Where in the series the source's time begins.
    place: Nanos,
    at: Nanos,
    work: f64,
    /// Whether the work is what the cross traffic alone leaves.
    alone: bool,
    /// About how much of the work before the link is the source's own: what got in, forgotten
    /// exponentially in the time of a full buffer.
    own: f64,
    /// When its last packet got in.
    entered: Nanos,
    /// When that will have left.
    leaves: Nanos,
    /// Which packets get in where the cross traffic keeps the buffer full.
    draws: Stream,
}

impl FluidHop {
    /// A hop with cross traffic of `loads`, shares of its rate, in bins of length `bin`, in series
    /// of `each` bins; a packet takes `packet_ns`, and work of `most` packets fits, `None` for any.
    #[must_use]
    pub fn new(loads: &[f64], each: usize, bin: Nanos, packet_ns: f64, most: Option<u64>) -> Self {
        let mut hop = Self {
            bins: loads.iter().map(|load| Bin { load: *load, alone: 0.0 }).collect(),
            each: each.clamp(1, loads.len().max(1)),
            bin,
            packet: packet_ns,
            room: most.map_or(f64::INFINITY, |most| most as f64 * packet_ns),
            loss_ratio: 0.0,
            streams: Vec::new(),
        };
        hop.follow_others();
        hop
    }

    /// The hop of a replication with these streams, each with its place among all; the first says
    /// how long bins are and how many.
    #[must_use]
    pub fn named(
        streams: &[(u32, CrossConfig)],
        packet_ns: f64,
        most: Option<u64>,
        seed: u64,
        replication: u32,
    ) -> Self {
        let of_first = |first: &(u32, CrossConfig)| (first.1.bin, first.1.bins, first.1.series);
        let (bin, each, series) = streams.first().map_or((1, 1, 1), of_first);
        let bins = each * series;
        let mut loads = vec![0.0; bins];
        let scale = packet_ns / bin as f64;
        let of = |(place, stream): &(u32, CrossConfig)| {
            let (packets, rates) =
                packets_in_bins(&stream.process, bin, (each, series), (seed, replication, *place));
            loads.iter_mut().zip(&packets).for_each(|(load, count)| *load += count * scale);
            let load = packets.iter().sum::<f64>() * scale / bins as f64;
            FluidStream { place: *place as usize, load, rates }
        };
        let streams = streams.iter().map(of).collect();
        Self { streams, ..Self::new(&loads, each, bin, packet_ns, most) }
    }

    /// The place of a source: the series in turn, and anywhere in it; the hop is the `stage`-th of
    /// its way.
    #[must_use]
    pub fn source(&self, seed: u64, replication: u32, source: u32, stage: u32) -> Fluid {
        let unit = Stream::named(seed, replication, source, Purpose::CrossPlace).unit();
        let series = source as usize % (self.bins.len() / self.each);
        let draws = Stream::at_hop(seed, replication, source, Purpose::CrossRoom, stage);
        self.begin(series as u32, (unit * self.round() as f64) as Nanos, draws)
    }

    /// A source whose time 0 is `place` in one of the series.
    #[must_use]
    pub fn begin(&self, series: u32, place: Nanos, draws: Stream) -> Fluid {
        Fluid {
            first: series as usize * self.each,
            place: place % self.round(),
            at: 0,
            work: 0.0,
            alone: true,
            own: 0.0,
            entered: 0,
            leaves: 0,
            draws,
        }
    }

    /// A packet of a source arrives at `now`, not before the one before it: when it will have left,
    /// `None` if it is lost.
    pub fn offer(&self, source: &mut Fluid, now: Nanos) -> Option<Nanos> {
        let work = self.work(source, now) + self.packet;
        let own = source.own * libm::exp(-((now - source.entered) as f64) / self.room);
        // A buffer of so many packets holds them although sums are rounded.
        if work > self.room * (1.0 + 1e-12) && !self.displaces(source, now, own) {
            return None;
        }
        source.work = work.min(self.room);
        source.alone = false;
        source.own = own + self.packet;
        source.entered = now;
        source.leaves = now + (libm::round(source.work) as Nanos).min(NEVER);
        Some(source.leaves)
    }

    /// Whether a packet that finds the buffer full gets in, in the place of fluid.
    fn displaces(&self, source: &mut Fluid, now: Nanos, own: f64) -> bool {
        // Its own packets leave one after the other.
        if source.leaves as f64 + self.packet > now as f64 + self.room {
            return false;
        }
        let others = self.bins[self.index(source, (source.place + now) / self.bin)].load;
        source.draws.chance((1.0 - own / self.room).max(0.0) / others)
    }

    /// The work that a source finds at `now`, in nanoseconds of the link's time.
    pub fn work(&self, source: &mut Fluid, now: Nanos) -> f64 {
        debug_assert!(now >= source.at, "time went back");
        let (from, to) = (source.place + source.at, source.place + now);
        let (first, last) = (from / self.bin, to / self.bin);
        if !source.alone && first == last {
            source.work = self.step(source.work, self.index(source, first), to - from);
        } else if !source.alone {
            let rest = self.bin - from % self.bin;
            source.work = self.step(source.work, self.index(source, first), rest);
            let (mut number, mut at) = (first + 1, self.index(source, first + 1));
            while number < last && source.work > self.bins[at].alone {
                source.work = self.step(source.work, at, self.bin);
                number += 1;
                at = if at + 1 == source.first + self.each { source.first } else { at + 1 };
            }
            source.alone = source.work <= self.bins[at].alone;
            if !source.alone {
                source.work = self.step(source.work, at, to % self.bin);
            }
        }
        if source.alone {
            let at = self.index(source, last);
            source.work = self.step(self.bins[at].alone, at, to % self.bin);
        }
        source.at = now;
        source.work
    }

    /// Mean load of the cross traffic, as a share of the link's rate.
    #[must_use]
    pub fn mean_load(&self) -> f64 {
        self.bins.iter().map(|bin| bin.load).sum::<f64>() / self.bins.len() as f64
    }

    /// Share of the cross traffic that is lost when it is alone.
    #[must_use]
    pub fn loss_ratio(&self) -> f64 {
        self.loss_ratio
    }

    /// The streams that make the series.
    #[must_use]
    pub fn streams(&self) -> &[FluidStream] {
        &self.streams
    }

    /// The work after a time in one bin.
    fn step(&self, work: f64, bin: usize, span: Nanos) -> f64 {
        (work + (self.bins[bin].load - 1.0) * span as f64).clamp(0.0, self.room)
    }

    /// Where the bin of that number in a source's series is.
    fn index(&self, source: &Fluid, number: u64) -> usize {
        source.first + (number % self.each as u64) as usize
    }

    fn round(&self) -> Nanos {
        self.bin * self.each as u64
    }

    /// Finds the work that the cross traffic alone leaves at the beginning of each bin, and what it
    /// loses.
    fn follow_others(&mut self) {
        let (bin, room) = (self.bin as f64, self.room);
        let (mut sent, mut lost) = (0.0, 0.0);
        for series in self.bins.chunks_mut(self.each) {
            // What grows from round to round fills the buffer in one, the rest is empty once in
            // one: after that the work repeats itself.
            let load = series.iter().map(|bin| bin.load).sum::<f64>();
            let grows = load > series.len() as f64 && room.is_finite();
            let (work, _) = once_round(series, bin, room, if grows { room } else { 0.0 });
            lost += once_round(series, bin, room, work).1;
            sent += load * bin;
        }
        self.loss_ratio = if sent > 0.0 { lost / sent } else { 0.0 };
    }
}

/// Once round a series without sources, from `work` on: the work at the end, and what was lost.
fn once_round(series: &mut [Bin], span: f64, room: f64, mut work: f64) -> (f64, f64) {
    let mut lost = 0.0;
    for bin in series {
        bin.alone = work;
        let unbounded = work + (bin.load - 1.0) * span;
        work = unbounded.clamp(0.0, room);
        lost += (unbounded - room).max(0.0);
    }
    (work, lost)
}

/// What a stream sends in each bin of `series` series of `each` bins; a noise goes round, so that
/// the end of a series fits its beginning.
fn packets_in_bins(
    process: &ArrivalProcess,
    bin: Nanos,
    (each, series): (usize, usize),
    (seed, replication, place): (u64, u32, u32),
) -> (Vec<f64>, RateCounters) {
    let mut rates = RateCounters::default();
    if let ArrivalProcess::Fractional(noise) = process {
        let mut stream = Stream::named(seed, replication, place, Purpose::Cross);
        let mut standard = noises(noise.hurst, each, series, &mut stream);
        standard.iter_mut().for_each(|value| *value = rates.add(noise.packets_in_bin(*value)));
        return (standard, rates);
    }
    let mut arrivals = Arrivals::named(process, seed, replication, place);
    let mut counts = vec![0.0; each * series];
    while let Some(count) = counts.get_mut((arrivals.next_time() / bin) as usize) {
        *count += 1.0;
    }
    (counts, rates)
}

/// Series of standard noise, one behind the other: both of a transform, each followed by itself
/// with the sign changed.
fn noises(hurst: f64, each: usize, series: usize, stream: &mut Stream) -> Vec<f64> {
    let mut all = Vec::with_capacity(each * (series + 3));
    let circle = Circle::new(hurst, each);
    while all.len() < each * series {
        let (first, second) = circle.draw(stream);
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
