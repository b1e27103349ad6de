use super::*;
use crate::clock::SECOND;
use crate::random::NamedStream;

const SOURCES: u32 = 1000;

fn lognormal() -> Distribution {
    // Mean and standard deviation 30 s.
    Distribution::Lognormal {
        mu: 3.054_623_791_382_182_8,
        sigma: 0.832_554_611_157_697_7,
        minimum: 0.0,
    }
}

/// End times and lengths of OFF times in seconds; a source is ON for half a second.
fn ends(distribution: &Distribution, scale: f64, steps: u32) -> Vec<(f64, f64)> {
    const ON: Nanos = SECOND / 2;
    let mut population = ScaledPopulation::new(scale, distribution, 0.0, |purpose| {
        RandomStream::for_entity(1, 0, 0, purpose)
    });
    let mut stream = RandomStream::for_entity(1, 0, 0, StreamPurpose::OffTime);
    let mut since: Vec<f64> =
        (0..SOURCES).map(|_| -distribution.draw_residual_time(&mut stream)).collect();
    for (source, age) in (0..).zip(&since) {
        population.add_idle_source(source, seconds_to_nanos(-age));
    }
    population.sort_idle_sources_by_age();
    let mut ends = Vec::new();
    let mut active = std::collections::VecDeque::new();
    for step in 0..u64::from(steps) {
        let began = step * population.step_length();
        while active.front().is_some_and(|(at, _)| *at <= began) {
            let (at, source) = active.pop_front().unwrap();
            population.add_idle_source(source, 0);
            since[source as usize] = at as f64 * 1e-9;
        }
        let mut ended = Vec::new();
        population.end_off_times_of_step(|source, after| ended.push((began + after, source)));
        ended.sort_unstable();
        for (at, source) in ended {
            let seconds = at as f64 * 1e-9;
            ends.push((seconds, seconds - since[source as usize]));
            active.push_back((at + ON, source));
        }
    }
    ends
}

#[test]
fn off_times_have_their_distribution() {
    let exponential = Distribution::Exponential { minimum: 2.0, scale: 8.0 };
    for (distribution, mean) in [(lognormal(), 30.0), (exponential, 10.0)] {
        for scale in [1.0, 25.0] {
            let lengths: Vec<f64> = ends(&distribution, scale, 20_000)
                .iter()
                .skip(3000)
                .map(|(_, length)| *length)
                .collect();
            let n = lengths.len() as f64;
            let measured = lengths.iter().sum::<f64>() / n;
            assert!(
                (measured / mean - 1.0).abs() < 0.02,
                "{measured} s, {distribution:?}, {scale}"
            );
            for factor in [0.3, 1.0, 2.0, 4.0] {
                let x = factor * mean;
                let share = lengths.iter().filter(|length| **length > x).count() as f64 / n;
                let wanted = distribution.probability_above(x);
                assert!((share - wanted).abs() < 0.01, "above {x}: {share} for {wanted}, {scale}");
            }
        }
    }
}

/// Variance over mean of the number of OFF times that end in three seconds.
fn dispersion(scale: f64) -> f64 {
    let ends = ends(&lognormal(), scale, 60_000);
    let windows = (ends.last().unwrap().0 / 3.0) as usize;
    let mut counts = vec![0.0; windows + 1];
    ends.iter().for_each(|(at, _)| counts[(at / 3.0) as usize] += 1.0);
    let counts = &counts[50..windows];
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64 / mean
}

#[test]
fn ends_have_the_dispersion_of_the_population() {
    // Nearly Poisson; for every 25th end 1/25 of it, plus the effect of integer counts.
    let (all, few) = (dispersion(1.0), dispersion(25.0));
    assert!((0.75..1.1).contains(&all), "{all}");
    assert!((0.03..0.07).contains(&few), "{few}");
}

#[test]
fn constant_off_times_end_on_time() {
    let ends = ends(&Distribution::Constant { value: 5.0 }, 10.0, 20_000);
    let wrong = ends.iter().skip(3000).filter(|(_, length)| (length - 5.0).abs() > 0.1).count();
    assert!(ends.len() > 50_000 && wrong * 100 < ends.len(), "{wrong} of {}", ends.len());
}

/// Sizes as normal variables, and the following OFF times in seconds.
fn pairs(distribution: &Distribution, by: f64, scale: f64) -> (Vec<f64>, Vec<f64>) {
    let mut population = ScaledPopulation::new(scale, distribution, by, |purpose| {
        RandomStream::for_entity(1, 0, 0, purpose)
    });
    let mut stream = RandomStream::for_entity(1, 0, 0, StreamPurpose::OffTime);
    for source in 0..SOURCES {
        population.add_idle_source(
            source,
            seconds_to_nanos(distribution.draw_residual_time(&mut stream)),
        );
    }
    population.sort_idle_sources_by_age();
    let mut last = vec![None; SOURCES as usize];
    let (mut sizes, mut off_times) = (Vec::new(), Vec::new());
    for step in 0..15_000 {
        let mut ended = Vec::new();
        population.end_off_times_of_step(|source, _| ended.push(source));
        for source in ended {
            let size = population.draw_next_size_deviate(source);
            population.add_idle_source(source, 0);
            if let Some((size, since)) = last[source as usize].replace((size, step)) {
                sizes.push(size);
                off_times.push((step - since) as f64 * population.step_length() as f64 * 1e-9);
            }
        }
    }
    (sizes, off_times)
}

#[test]
fn size_correlated_off_times_keep_distribution_and_correlation() {
    for by in [-0.6, 1.0] {
        for scale in [1.0, 25.0] {
            let (sizes, off_times) = pairs(&lognormal(), by, scale);
            let n = off_times.len() as f64;
            for x in [10.0, 30.0, 60.0] {
                let share = off_times.iter().filter(|length| **length > x).count() as f64 / n;
                let wanted = lognormal().probability_above(x);
                assert!((share - wanted).abs() < 0.015, "{x} s: {share} for {wanted}, {by}");
            }
            // The logarithm of a lognormal variable is a linear function of the normal variable.
            let (mu, sigma) = (3.054_623_791, 0.832_554_611);
            let of = |(size, off_time): (&f64, &f64)| size * (off_time.ln() - mu) / sigma;
            let correlation = sizes.iter().zip(&off_times).map(of).sum::<f64>() / n;
            assert!((correlation - by).abs() < 0.03, "{correlation} for {by}, {scale}");
        }
    }
}
