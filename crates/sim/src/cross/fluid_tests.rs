use super::*;
use crate::clock::SECOND;
use crate::cross::{FractionalNoise, eigenvalues};
use proptest::prelude::*;

const BIN: Nanos = 40;
const PACKET: f64 = 30.0;

fn draws() -> RandomStream {
    RandomStream::for_entity(1, 0, 0, StreamPurpose::CrossRoom)
}

/// Reference: computes the work in steps of a nanosecond.
struct Stepped<'a> {
    loads: &'a [f64],
    room: f64,
    now: Nanos,
    work: f64,
}

impl Stepped<'_> {
    fn advance_to(&mut self, to: Nanos) {
        while self.now < to {
            let load = self.loads[(self.now / BIN) as usize % self.loads.len()];
            self.work = (self.work + load - 1.0).clamp(0.0, self.room);
            self.now += 1;
        }
    }
}

/// Load of series `n` relative to the tested series.
fn relative_load(n: u32, tested: u32) -> f64 {
    2.0_f64.powi(n as i32 - tested as i32)
}

proptest! {
    /// The work equals that of the stepwise reference, and accepted packets fit into the buffer.
    #[test]
    fn work_agrees_with_stepwise_reference(
        loads in prop::collection::vec(0.0..2.0_f64, 1..12),
        series in 0_u32..3,
        limit in 1_u64..12,
        offset in 0_u64..2000,
        gaps in prop::collection::vec(prop_oneof![0_u64..20, 0_u64..200, 0_u64..3000], 1..60),
    ) {
        // Other series have at most half or at least twice the load.
        let all: Vec<f64> =
            [0, 1, 2].iter().flat_map(|n| loads.iter().map(|x| x * relative_load(*n, series))).collect();
        let hop = FluidHop::new(&all, loads.len(), BIN, PACKET, Some(limit));
        let room = limit as f64 * PACKET;
        let period = BIN * loads.len() as u64;
        // The reference starts several periods earlier, so that its initial work does not matter.
        let offset = offset % period + 4 * period;
        let grows = loads.iter().sum::<f64>() > loads.len() as f64;
        let work = if grows { room } else { 0.0 };
        let mut stepped = Stepped { loads: &loads, room, now: 0, work };
        stepped.advance_to(offset);
        let mut source = hop.create_source_at_offset(series, offset, draws());
        let (mut now, mut last) = (0, 0);
        for gap in gaps {
            now += gap;
            stepped.advance_to(offset + now);
            let work = hop.advance_work_to(&mut source, now);
            prop_assert!((work - stepped.work).abs() < 1e-6, "{work} at {now}, {}", stepped.work);
            prop_assume!((stepped.work + PACKET - room).abs() > 1e-6);
            let fits = stepped.work + PACKET < room;
            if fits {
                stepped.work += PACKET;
            }
            match hop.offer_packet(&mut source, now) {
                Some(leaves) => {
                    // In a full buffer the packet replaces cross traffic, if any.
                    stepped.work = stepped.work.min(room);
                    if !fits {
                        let behind = leaves as f64 - last as f64;
                        prop_assert!(behind >= PACKET - 1.0, "{behind} after the previous packet");
                        stepped.work = room;
                    }
                    prop_assert!((leaves as f64 - now as f64 - stepped.work).abs() < 0.500_001);
                    prop_assert!(leaves >= last, "a packet overtakes");
                    last = leaves;
                }
                None => prop_assert!(!fits),
            }
        }
    }
}

#[test]
fn hop_without_cross_traffic_is_a_packet_queue() {
    let hop = FluidHop::new(&[0.0; 4], 4, BIN, PACKET, Some(3));
    let mut source = hop.create_source_at_offset(0, 17, draws());
    assert_eq!(hop.offer_packet(&mut source, 5), Some(35));
    assert_eq!(hop.offer_packet(&mut source, 5), Some(65));
    assert_eq!(hop.offer_packet(&mut source, 5), Some(95));
    assert_eq!(hop.offer_packet(&mut source, 34), None);
    assert_eq!(hop.offer_packet(&mut source, 35), Some(125));
    assert_eq!(hop.offer_packet(&mut source, 1_000_000), Some(1_000_030));
    assert_eq!((hop.mean_load(), hop.loss_ratio()), (0.0, 0.0));
}

/// Gap between packets of a source whose access link is no faster than the hop, in transmission
/// times.
fn gap(stream: &mut RandomStream, source_load: f64) -> f64 {
    1.0 - libm::log(stream.draw_unit()) * (1.0 / source_load - 1.0)
}

/// Loss ratio of a source at a packet-level drop-tail queue of `limit` packets with Poisson cross
/// packets.
fn loss_ratio(cross_load: f64, source_load: f64, limit: usize, packets: u32) -> f64 {
    let mut stream = RandomStream::for_entity(2, 0, 0, StreamPurpose::Cross);
    let mut leaving = std::collections::VecDeque::new();
    let (mut next_cross, mut next_own, mut free) = (0.0, 0.0, 0.0_f64);
    let (mut lost, mut sent) = (0, 0);
    while sent < packets {
        let is_own = next_own < next_cross;
        let now = if is_own { next_own } else { next_cross };
        if is_own {
            sent += 1;
            next_own += gap(&mut stream, source_load);
        } else {
            next_cross -= libm::log(stream.draw_unit()) / cross_load;
        }
        while leaving.front().is_some_and(|leaves| *leaves <= now) {
            leaving.pop_front();
        }
        if leaving.len() < limit {
            free = free.max(now) + 1.0;
            leaving.push_back(free);
        } else {
            lost += u32::from(is_own);
        }
    }
    f64::from(lost) / f64::from(packets)
}

#[test]
fn full_buffer_has_same_loss_ratio_for_source_and_cross_traffic() {
    let packets = 20_000;
    for (cross_load, source_load) in [(1.2, 0.01), (1.5, 0.1), (2.0, 0.1), (0.9, 0.4)] {
        let hop = FluidHop::new(&[cross_load; 3], 3, SECOND, 1000.0, Some(50));
        let mut source = hop.create_source_at_offset(0, 0, draws());
        let mut stream = RandomStream::for_entity(3, 0, 0, StreamPurpose::OffTime);
        let (mut now, mut lost) = (0, 0);
        for _ in 0..packets {
            now += (gap(&mut stream, source_load) * 1000.0) as Nanos;
            lost += u32::from(hop.offer_packet(&mut source, now).is_none());
        }
        let ratio = f64::from(lost) / f64::from(packets);
        let expected = loss_ratio(cross_load, source_load, 50, packets);
        // The tolerance allows for the regularity of the source, which the fluid does not model.
        assert!(
            (ratio - expected).abs() < 0.05,
            "{ratio}, {expected} for {cross_load} and {source_load}"
        );
    }
}

#[test]
fn loss_ratio_without_sources_is_the_overflow() {
    // Four times the link rate for one bin, then three empty bins: 120 of 160 queue, 90 fit, 30 are
    // lost.
    let hop = FluidHop::new(&[4.0, 0.0, 0.0, 0.0], 4, BIN, PACKET, Some(3));
    assert!((hop.loss_ratio() - 30.0 / 160.0).abs() < 1e-12, "{}", hop.loss_ratio());
    let mut source = hop.create_source_at_offset(0, 0, draws());
    assert!((hop.advance_work_to(&mut source, 20) - 60.0).abs() < 1e-9);
    assert!((hop.advance_work_to(&mut source, 40) - 90.0).abs() < 1e-9);
    assert!((hop.advance_work_to(&mut source, 100) - 30.0).abs() < 1e-9);
    assert!(hop.advance_work_to(&mut source, 150).abs() < 1e-9);
}

fn noisy(mean: f64, limit: Option<u64>) -> FluidHop {
    let bin = SECOND / 100;
    let (packet_ns, bins) = (150_000.0, 1 << 14); // 80 Mbit/s
    let rate = mean * 1e9 / packet_ns;
    let noise = FractionalNoise { mean: rate, sd: rate / 2.0, hurst: 0.7, bin, bins: bins / 2 };
    let process = ArrivalProcess::Fractional(noise);
    let bins = FluidBins { bin, bins, series: 1 };
    FluidHop::for_replication(&[(0, process)], bins, packet_ns, limit, 1, 0)
}

#[test]
fn noise_has_configured_load_and_is_periodic() {
    let hop = noisy(0.8, Some(10_000));
    let counters = hop.streams()[0].rates;
    assert_eq!(counters.bins, 1 << 14);
    let mean = counters.sum / counters.bins as f64 * 150_000.0 / 1e7;
    assert!((mean - hop.mean_load()).abs() < 1e-9);
    // Long-range dependence: the mean of a series of 2^14 varies by 0.4 * 2^(-14 * 0.3).
    assert!((mean - 0.8 * 1.004).abs() < 4.0 * 0.4 / 2.0_f64.powf(4.2), "{mean}");
    // The next period of a source has the same work.
    let mut source = hop.create_source_at_offset(0, 0, draws());
    let first: Vec<f64> = (0..50).map(|n| hop.advance_work_to(&mut source, n * SECOND)).collect();
    let period = hop.period();
    let second: Vec<f64> =
        (0..50).map(|n| hop.advance_work_to(&mut source, period + n * SECOND)).collect();
    assert_eq!(first, second);
    assert!(first.iter().any(|work| *work > 0.0));
}

#[test]
fn other_processes_are_counted_in_bins() {
    let (bin, packet_ns) = (SECOND / 100, 150_000.0);
    let process = ArrivalProcess::Poisson { rate: 4000.0 };
    let bins = FluidBins { bin, bins: 1 << 12, series: 1 };
    let streams = [(0, process.clone()), (3, process)];
    let hop = FluidHop::for_replication(&streams, bins, packet_ns, None, 1, 0);
    assert_eq!((hop.streams()[0].index, hop.streams()[1].index), (0, 3));
    // Twice 40 packets per bin of 66.7.
    let error = 0.15 * 80.0_f64.sqrt() / (10.0 * 64.0);
    assert!((hop.mean_load() - 1.2).abs() < 4.0 * error, "{}", hop.mean_load());
}

#[test]
fn sources_start_at_reproducible_random_offsets() {
    let hop = noisy(0.8, Some(10_000));
    let offsets: Vec<Nanos> =
        (0..1000).map(|n| hop.create_source_state(1, 0, n, 0).offset).collect();
    let mean = offsets.iter().sum::<Nanos>() as f64 / 1000.0 / hop.period() as f64;
    assert!((mean - 0.5).abs() < 4.0 * (1.0 / 12.0_f64 / 1000.0).sqrt(), "{mean}");
    assert_eq!(offsets[7], hop.create_source_state(1, 0, 7, 0).offset);
    assert_ne!(offsets[7], hop.create_source_state(1, 1, 7, 0).offset);
    assert!(
        size_of::<FluidHopSourceState>() <= 80,
        "{} bytes per source",
        size_of::<FluidHopSourceState>()
    );
}

/// Standard deviation of the rates, small enough that no rate is below 0.
const SD: f64 = 100.0;
const EACH: usize = 1 << 10;

fn small_noise(replication: u32) -> FluidHop {
    let noise = FractionalNoise { mean: 4000.0, sd: SD, hurst: 0.7, bin: SECOND / 10, bins: EACH };
    let process = ArrivalProcess::Fractional(noise);
    let bins = FluidBins { bin: SECOND / 10, bins: EACH, series: 8 };
    FluidHop::for_replication(&[(0, process)], bins, 150_000.0, Some(10_000), 1, replication)
}

/// Standard noise that a source reads in the first 200 tenths of a second.
fn noise_of(hop: &FluidHop, replication: u32, source: u32) -> Vec<f64> {
    let source = hop.create_source_state(1, replication, source, 0);
    let bin = |n: u64| {
        let index = hop.bin_index(&source, (source.offset + n * hop.bin) / hop.bin);
        (hop.bins[index].load / 150_000e-9 - 4000.0) / SD
    };
    (0..200).map(bin).collect()
}

/// Mean over replications and its standard error.
fn over_replications(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / a.len().min(b.len()) as f64
}

#[test]
fn noise_of_different_sources_is_uncorrelated() {
    // There are 8 series: sources 0 and 8 read the first, sources 1 and 9 its negative.
    let runs: Vec<Vec<Vec<f64>>> = (0..600)
        .map(|run| {
            let hop = small_noise(run);
            (0..10).map(|source| noise_of(&hop, run, source)).collect()
        })
        .collect();
    // Their different offsets leave only the mean of the series in common. Its variance is the sum
    // of the autocovariances around the circle, divided by its length.
    let of_mean = eigenvalues(0.7, EACH)[0] / EACH as f64;
    assert!(of_mean < 0.02, "{of_mean}");
    let pairs = (0..10).flat_map(|a| (a + 1..10).map(move |b| (a, b)));
    for (a, b) in pairs {
        let products: Vec<f64> = runs.iter().map(|run| product(&run[a], &run[b])).collect();
        let (mean, error) = over_replications(&products);
        let wanted = match (a % 8 / 2 == b % 8 / 2, a % 2 == b % 2) {
            (true, true) => of_mean,
            (true, false) => -of_mean,
            (false, _) => 0.0,
        };
        assert!((mean - wanted).abs() < 4.0 * error, "{a}, {b}: {mean} +- {error}, {wanted}");
        assert!(error < 0.01, "standard error {error} is too large");
    }
    // Each source has the autocovariance of the noise.
    for source in [0, 1, 2, 3, 9] {
        for lag in [0, 1, 5, 50] {
            let of = |run: &Vec<Vec<f64>>| product(&run[source], &run[source][lag..]);
            let products: Vec<f64> = runs.iter().map(of).collect();
            let (mean, error) = over_replications(&products);
            let power = |x: f64| x.abs().powf(1.4);
            let x = lag as f64;
            let wanted = 0.5 * (power(x + 1.0) - 2.0 * power(x) + power(x - 1.0));
            assert!((mean - wanted).abs() < 4.0 * error, "{source}, {lag}: {mean} +- {error}");
        }
    }
    // Replications are uncorrelated.
    let next = runs.iter().zip(&runs[1..]);
    let products: Vec<f64> = next.map(|(run, next)| product(&run[0], &next[0])).collect();
    let (mean, error) = over_replications(&products);
    assert!(mean.abs() < 4.0 * error, "{mean} +- {error}");
}

#[test]
fn bins_of_sources_start_at_uniform_times() {
    let hop = small_noise(0);
    let within = |source| {
        (hop.create_source_state(1, 0, source, 0).offset % hop.bin) as f64 / hop.bin as f64
    };
    let mut offsets: Vec<f64> = (0..1000).map(within).collect();
    offsets.sort_by(f64::total_cmp);
    // Kolmogorov-Smirnov test: above 1.95 / sqrt(1000) with probability 0.001.
    let distance = |(n, offset): (usize, &f64)| (offset - n as f64 / 1000.0).abs();
    let max = offsets.iter().enumerate().map(distance).fold(0.0, f64::max);
    assert!(max < 0.062, "{max}");
}

#[test]
fn mirrored_series_cancel_the_error_of_the_mean() {
    // The mean of a series of 2^10 varies by 13 % of a standard deviation; that of mirrored pairs
    // is exact.
    for replication in 0..5 {
        let load = small_noise(replication).mean_load() / (4000.0 * 150_000e-9);
        assert!((load - 1.0).abs() < 1e-9, "{load}");
    }
}
