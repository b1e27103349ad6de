use super::fractional_noise::NoiseCircle;
use super::*;
use crate::clock::{NEVER, SECOND};
use crate::merge::Merge;

/// A mean and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// Number of packets of a stream in each time window.
fn counts(process: &ArrivalProcess, replication: u32, window: Nanos, windows: usize) -> Vec<f64> {
    let mut arrivals = CrossArrivals::for_stream(process, 1, replication, 0);
    let mut counts = vec![0.0; windows];
    while let Some(count) = counts.get_mut((arrivals.next_arrival_time() / window) as usize) {
        *count += 1.0;
    }
    counts
}

#[test]
fn eigenvalues_are_not_negative() {
    for hurst in [0.05, 0.3, 0.5, 0.7, 0.9, 0.99] {
        let values = eigenvalues(hurst, 1 << 12);
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(min > -1e-9, "{min} for H = {hurst}");
        let total: f64 = values.iter().sum();
        assert!((total / 4096.0 - 1.0).abs() < 1e-9, "not of unit variance: {total}");
    }
}

#[test]
fn noise_has_exact_autocovariances() {
    let exact = |lag: f64, hurst: f64| {
        let power = |x: f64| x.abs().powf(2.0 * hurst);
        0.5 * (power(lag + 1.0) - 2.0 * power(lag) + power(lag - 1.0))
    };
    for hurst in [0.3, 0.5, 0.7, 0.9] {
        let series: Vec<Vec<f64>> = (0..100)
            .flat_map(|n| {
                let mut stream = RandomStream::for_entity(1, n, 0, StreamPurpose::Cross);
                let (re, im) = NoiseCircle::new(hurst, 1 << 11).draw_two_series(&mut stream);
                [re, im]
            })
            .collect();
        for lag in [0, 1, 2, 5, 20, 100, 1000] {
            // Unbiased, because the exact mean, 0, is used.
            let estimates: Vec<f64> = series
                .iter()
                .map(|x| {
                    let pairs = x.iter().zip(&x[lag..]).map(|(a, b)| a * b);
                    pairs.sum::<f64>() / (x.len() - lag) as f64
                })
                .collect();
            let (mean, error) = mean_and_error(&estimates);
            let wanted = exact(lag as f64, hurst);
            assert!(
                (mean - wanted).abs() < 4.0 * error,
                "H = {hurst}, lag {lag}: {mean} +- {error} against {wanted}"
            );
        }
        // The two series of a transform are uncorrelated.
        let products: Vec<f64> = series
            .chunks(2)
            .map(|pair| pair[0].iter().zip(&pair[1]).map(|(a, b)| a * b).sum())
            .collect();
        let (mean, error) = mean_and_error(&products);
        assert!(mean.abs() < 4.0 * error, "H = {hurst}: {mean} +- {error}");
    }
}

#[test]
fn autocovariance_at_large_lags_matches_expansion() {
    // c(j) = H (2H - 1) j^(2H - 2); the difference of the three terms would have no correct digit.
    let bins = 1 << 20;
    let values = eigenvalues(0.7, bins);
    // Inverse transform at the opposite end of the circle.
    let far: f64 = values
        .iter()
        .enumerate()
        .map(|(k, value)| if k % 2 == 0 { *value } else { -value })
        .sum::<f64>()
        / bins as f64;
    let wanted = 0.7 * 0.4 * ((bins / 2) as f64).powf(-0.6);
    assert!((far / wanted - 1.0).abs() < 1e-6, "{far} against {wanted}");
}

#[test]
fn poisson_counts_have_variance_equal_to_mean() {
    let windows = 20_000;
    let counts = counts(&ArrivalProcess::Poisson { rate: 1000.0 }, 0, SECOND / 100, windows);
    let (mean, error) = mean_and_error(&counts);
    assert!((mean - 10.0).abs() < 4.0 * error, "{mean} +- {error}");
    let variance = error * error * windows as f64;
    let spread = (2.0 / windows as f64).sqrt();
    assert!((variance / mean - 1.0).abs() < 4.0 * spread, "{}", variance / mean);
}

#[test]
fn gamma_counts_scaled_by_shape_have_poisson_variance() {
    let windows = 10_000;
    let all = counts(&ArrivalProcess::Poisson { rate: 400.0 }, 0, SECOND, windows);
    let some = counts(&ArrivalProcess::Gamma { rate: 100.0, shape: 4.0 }, 0, SECOND, windows);
    let some: Vec<f64> = some.iter().map(|count| 4.0 * count).collect();
    let spread = (2.0 / windows as f64).sqrt();
    for counts in [all, some] {
        let (mean, error) = mean_and_error(&counts);
        assert!((mean - 400.0).abs() < 4.0 * error, "{mean} +- {error}");
        let variance = error * error * windows as f64;
        // Rounding to multiples of four adds a variance of 16/6.
        let dispersion = variance / mean;
        assert!(
            (-4.0 * spread..4.0 * spread + 0.007).contains(&(dispersion - 1.0)),
            "{dispersion}"
        );
    }
}

#[test]
fn pareto_sources_have_exact_variance_at_several_time_scales() {
    // Relative variance of the mean rate over 2 s and 32 s, from the Laplace transform of the
    // autocovariance of an alternating renewal process, inverted with 20 digits. Asymptotically it
    // falls with the window length to the power 2H - 2, H = (3 - alpha) / 2. Between these windows
    // the exponents are -0.35, -0.43 and -0.57, and from 32 s to 128 s -0.39, -0.47 and -0.64.
    for (alpha, two, thirty_two) in
        [(1.4, 0.0231, 0.00864), (1.5, 0.01772, 0.00535), (1.7, 0.01102, 0.002256)]
    {
        // Spacing per source and in the aggregate.
        let kinds = [(20.0, false), (10.0, true)];
        for (peak, together) in kinds.into_iter().filter(|kind| kind.1 || alpha != 1.5) {
            let process =
                ArrivalProcess::OnOff { sources: 10, peak, on: 0.1, off: 0.1, alpha, together };
            let runs: Vec<_> = (0..60).map(|n| counts(&process, n, 2 * SECOND, 256)).collect();
            check_variances(&runs, peak, [(1, two), (16, thirty_two)]);
        }
    }
}

fn check_variances(runs: &[Vec<f64>], peak: f64, wanted: [(usize, f64); 2]) {
    for (together, wanted) in wanted {
        // Relative to the exact mean: the mean of each run would remove slow variations.
        let mean = 10.0 * peak * together as f64; // packets
        let of_run = |run: &Vec<f64>| {
            let windows = run.chunks(together).map(|window| window.iter().sum::<f64>());
            let squares = windows.map(|count| (count / mean - 1.0).powi(2));
            squares.sum::<f64>() / (256 / together) as f64
        };
        let variances: Vec<f64> = runs.iter().map(of_run).collect();
        let (mean, error) = mean_and_error(&variances);
        assert!(error < 0.15 * wanted, "standard error {error} is too large for {wanted}");
        assert!(
            (mean - wanted).abs() < 4.0 * error,
            "peak {peak}, {together} windows: {mean} +- {error} against {wanted}"
        );
    }
}

#[test]
fn pareto_sources_start_in_equilibrium() {
    for together in [false, true] {
        let (sources, peak, alpha) = (20, 50.0, 1.9);
        let process = ArrivalProcess::OnOff { sources, peak, on: 0.3, off: 0.7, alpha, together };
        for window in 0..4 {
            let packets: Vec<f64> =
                (0..200).map(|n| counts(&process, n, SECOND, 4)[window]).collect();
            let (mean, error) = mean_and_error(&packets);
            assert!((mean - 300.0).abs() < 4.0 * error, "second {window}: {mean} +- {error}");
        }
    }
}

const NOISE: FractionalNoise =
    FractionalNoise { mean: 2000.0, sd: 1000.0, hurst: 0.7, bin: SECOND / 100, bins: 1 << 10 };

#[test]
fn noise_packets_are_evenly_spaced_per_bin_and_none_is_lost() {
    let mut arrivals = CrossArrivals::for_stream(&ArrivalProcess::Fractional(NOISE), 1, 0, 0);
    let mut counters = CrossRateCounters::default();
    let (mut last, mut within, mut gaps) = (0, Vec::new(), Vec::new());
    let mut packets = 0.0;
    // More than two series.
    while last < 25 * SECOND {
        let now = arrivals.next_arrival_time();
        packets += 1.0;
        let rates = arrivals.take_rate_counters();
        counters.merge(&rates);
        if rates.bins > 0 {
            if let [first, .., end] = within[..] {
                // Gaps differ by rounding to nanoseconds only.
                assert!(end - first <= 1, "gaps from {first} to {end} ns in one bin");
            }
            within.clear();
        } else {
            gaps.push(now - last);
            within.push(now - last);
            within.sort_unstable();
        }
        assert!(now >= last);
        last = now;
    }
    assert!(gaps.len() > 10_000);
    assert!((counters.sum - packets).abs() < 60.0, "{} in bins, {packets} sent", counters.sum);
}

#[test]
fn negative_rates_are_set_to_zero_and_counted() {
    // Normal variable with a mean of 2 standard deviations: 2.275 % are negative, and the mean
    // after the cut is 1.004246.
    let noise = FractionalNoise { hurst: 0.5, bins: 1 << 16, ..NOISE };
    let mut arrivals = CrossArrivals::for_stream(&ArrivalProcess::Fractional(noise), 1, 0, 0);
    while arrivals.next_arrival_time() < 1000 * SECOND {}
    let counters = arrivals.take_rate_counters();
    assert!((100_000..100_010).contains(&counters.bins), "{}", counters.bins);
    let share = counters.cut as f64 / counters.bins as f64;
    assert!((share - 0.02275).abs() < 4.0 * (0.02275_f64 / 1e5).sqrt(), "{share}");
    let mean = counters.sum / counters.bins as f64 / 20.0;
    assert!((mean - 1.004246).abs() < 4.0 * 0.5 / 1e5_f64.sqrt(), "{mean}");
}

#[test]
fn replay_repeats_series_in_order() {
    let process = |offset| ArrivalProcess::Replay {
        times: vec![10, 20, 50],
        packets: vec![1.5, 0.75, 2.0],
        period: 100,
        offset,
    };
    let times = |offset, replication| {
        let mut arrivals = CrossArrivals::for_stream(&process(offset), 1, replication, 0);
        (0..8).map(|_| arrivals.next_arrival_time()).collect::<Vec<_>>()
    };
    // A quarter of a packet is carried over to the next period.
    assert_eq!(times(Some(0), 0), [10, 20, 50, 50, 110, 120, 150, 150]);
    assert_eq!(times(Some(30), 0)[..3], [20, 20, 80]);
    assert_eq!(times(Some(30), 0), times(Some(130), 3));
    let anywhere: Vec<_> = (0..20).map(|replication| times(None, replication)).collect();
    assert!(anywhere.iter().any(|other| *other != anywhere[0]));
    assert!(anywhere.iter().all(|times| times[0] < 100));
}

#[test]
fn replay_ends_at_the_maximum_time() {
    let (times, packets) = (vec![0, NEVER - 1], vec![1.0, 1.0]);
    let process = ArrivalProcess::Replay { times, packets, period: u64::MAX, offset: Some(1) };
    let mut arrivals = CrossArrivals::for_stream(&process, 1, 0, 0);
    let times: Vec<_> = (0..4).map(|_| arrivals.next_arrival_time()).collect();
    assert_eq!(times, [NEVER - 2, NEVER, NEVER, NEVER]);
}

#[test]
fn streams_differ_by_seed_replication_and_index() {
    let on_off = |together| {
        let (sources, peak, alpha) = (5, 100.0, 1.5);
        ArrivalProcess::OnOff { sources, peak, on: 0.1, off: 0.1, alpha, together }
    };
    let processes = [
        ArrivalProcess::Poisson { rate: 100.0 },
        ArrivalProcess::Fractional(NOISE),
        ArrivalProcess::Gamma { rate: 100.0, shape: 3.0 },
        on_off(false),
        on_off(true),
    ];
    for process in &processes {
        let of = |seed, replication, entity| {
            let mut arrivals = CrossArrivals::for_stream(process, seed, replication, entity);
            (0..50).map(|_| arrivals.next_arrival_time()).collect::<Vec<_>>()
        };
        let base = of(1, 0, 0);
        assert_eq!(base, of(1, 0, 0));
        assert!([of(2, 0, 0), of(1, 1, 0), of(1, 0, 1)].iter().all(|other| *other != base));
        assert!(base.is_sorted());
    }
}
