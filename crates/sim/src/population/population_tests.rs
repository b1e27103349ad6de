use super::*;
use crate::clock::SECOND;
use crate::random::Named;

const SOURCES: u32 = 1000;

fn lognormal() -> Distribution {
    // Mean and standard deviation 30 s.
    Distribution::Lognormal {
        mu: 3.054_623_791_382_182_8,
        sigma: 0.832_554_611_157_697_7,
        minimum: 0.0,
    }
}

/// When OFF times end and how long they were, in seconds; a source whose OFF time ends is OFF
/// again after half a second.
fn ends(distribution: &Distribution, scale: f64, steps: u32) -> Vec<(f64, f64)> {
    const ON: Nanos = SECOND / 2;
    let mut population =
        ScaledPopulation::new(scale, distribution, 0.0, |purpose| Stream::named(1, 0, 0, purpose));
    let mut stream = Stream::named(1, 0, 0, Purpose::OffTime);
    let mut since: Vec<f64> =
        (0..SOURCES).map(|_| -distribution.draw_residual(&mut stream)).collect();
    for (source, age) in (0..).zip(&since) {
        population.turns_off(source, nanoseconds(-age));
    }
    population.sort_by_age();
    let mut found = Vec::new();
    let mut active = std::collections::VecDeque::new();
    for step in 0..u64::from(steps) {
        let began = step * population.step();
        while active.front().is_some_and(|(at, _)| *at <= began) {
            let (at, source) = active.pop_front().unwrap();
            population.turns_off(source, 0);
            since[source as usize] = at as f64 * 1e-9;
        }
        let mut ended = Vec::new();
        population.pass(|source, after| ended.push((began + after, source)));
        ended.sort_unstable();
        for (at, source) in ended {
            let seconds = at as f64 * 1e-9;
            found.push((seconds, seconds - since[source as usize]));
            active.push_back((at + ON, source));
        }
    }
    found
}

#[test]
fn silences_follow_their_law() {
    let exponential = Distribution::Exponential { minimum: 2.0, scale: 8.0 };
    for (distribution, mean) in [(lognormal(), 30.0), (exponential, 10.0)] {
        for scale in [1.0, 25.0] {
            let lengths: Vec<f64> = ends(&distribution, scale, 20_000)
                .iter()
                .skip(3000)
                .map(|(_, length)| *length)
                .collect();
            let n = lengths.len() as f64;
            let found = lengths.iter().sum::<f64>() / n;
            assert!((found / mean - 1.0).abs() < 0.02, "{found} s, {distribution:?}, {scale}");
            for at in [0.3, 1.0, 2.0, 4.0] {
                let share = lengths.iter().filter(|length| **length > at * mean).count() as f64 / n;
                let wanted = distribution.survival(at * mean);
                assert!((share - wanted).abs() < 0.01, "above {at}: {share} for {wanted}, {scale}");
            }
        }
    }
}

/// Variance over mean of the number of OFF times that end in three seconds.
fn dispersion(scale: f64) -> f64 {
    let found = ends(&lognormal(), scale, 60_000);
    let windows = (found.last().unwrap().0 / 3.0) as usize;
    let mut counts = vec![0.0; windows + 1];
    found.iter().for_each(|(at, _)| counts[(at / 3.0) as usize] += 1.0);
    let counts = &counts[50..windows];
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64 / mean
}

#[test]
fn ends_vary_as_those_of_the_population() {
    // Nearly Poisson; of every 25th, 1/25 of it and what whole numbers add.
    let (all, few) = (dispersion(1.0), dispersion(25.0));
    assert!((0.75..1.1).contains(&all), "{all}");
    assert!((0.03..0.07).contains(&few), "{few}");
}

#[test]
fn constant_silences_end_when_they_should() {
    let found = ends(&Distribution::Constant { value: 5.0 }, 10.0, 20_000);
    let wrong = found.iter().skip(3000).filter(|(_, length)| (length - 5.0).abs() > 0.1).count();
    assert!(found.len() > 50_000 && wrong * 100 < found.len(), "{wrong} of {}", found.len());
}

/// Sizes as normal numbers and the OFF times after them, in seconds.
fn pairs(distribution: &Distribution, by: f64, scale: f64) -> (Vec<f64>, Vec<f64>) {
    let mut population =
        ScaledPopulation::new(scale, distribution, by, |purpose| Stream::named(1, 0, 0, purpose));
    let mut stream = Stream::named(1, 0, 0, Purpose::OffTime);
    for source in 0..SOURCES {
        population.turns_off(source, nanoseconds(distribution.draw_residual(&mut stream)));
    }
    population.sort_by_age();
    let mut last = vec![None; SOURCES as usize];
    let (mut sizes, mut off_times) = (Vec::new(), Vec::new());
    for step in 0..15_000 {
        let mut ended = Vec::new();
        population.pass(|source, _| ended.push(source));
        for source in ended {
            let size = population.next_size(source);
            population.turns_off(source, 0);
            if let Some((size, since)) = last[source as usize].replace((size, step)) {
                sizes.push(size);
                off_times.push((step - since) as f64 * population.step() as f64 * 1e-9);
            }
        }
    }
    (sizes, off_times)
}

#[test]
fn silences_that_go_with_sizes_keep_their_law() {
    for by in [-0.6, 1.0] {
        for scale in [1.0, 25.0] {
            let (sizes, off_times) = pairs(&lognormal(), by, scale);
            let n = off_times.len() as f64;
            for at in [10.0, 30.0, 60.0] {
                let share = off_times.iter().filter(|length| **length > at).count() as f64 / n;
                let wanted = lognormal().survival(at);
                assert!((share - wanted).abs() < 0.015, "{at} s: {share} for {wanted}, {by}");
            }
            // Of a lognormal distribution the logarithm is the normal number behind it.
            let (mu, sigma) = (3.054_623_791, 0.832_554_611);
            let of = |(size, off_time): (&f64, &f64)| size * (off_time.ln() - mu) / sigma;
            let found = sizes.iter().zip(&off_times).map(of).sum::<f64>() / n;
            assert!((found - by).abs() < 0.03, "{found} for {by}, {scale}");
        }
    }
}
