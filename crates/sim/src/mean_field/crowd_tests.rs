use super::*;
use crate::clock::SECOND;
use crate::random::Named;

const SOURCES: u32 = 1000;

fn lognormal() -> Law {
    // Mean and standard deviation 30 s.
    Law::Lognormal { mu: 3.054_623_791_382_182_8, sigma: 0.832_554_611_157_697_7, minimum: 0.0 }
}

/// When silences end and how long they were, in seconds; a source whose silence ends is silent
/// again after half a second.
fn ends(law: &Law, each: f64, steps: u32) -> Vec<(f64, f64)> {
    const ON: Nanos = SECOND / 2;
    let mut crowd = Crowd::new(each, law, 0.0, |purpose| Stream::named(1, 0, 0, purpose));
    let mut stream = Stream::named(1, 0, 0, Purpose::Silence);
    let mut since: Vec<f64> = (0..SOURCES).map(|_| -law.draw_excess(&mut stream)).collect();
    for (source, age) in (0..).zip(&since) {
        crowd.falls_silent(source, nanoseconds(-age));
    }
    crowd.is_complete();
    let mut found = Vec::new();
    let mut active = std::collections::VecDeque::new();
    for step in 0..u64::from(steps) {
        let began = step * crowd.step();
        while active.front().is_some_and(|(at, _)| *at <= began) {
            let (at, source) = active.pop_front().unwrap();
            crowd.falls_silent(source, 0);
            since[source as usize] = at as f64 * 1e-9;
        }
        let mut ended = Vec::new();
        crowd.pass(|source, after| ended.push((began + after, source)));
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
    let exponential = Law::Exponential { minimum: 2.0, scale: 8.0 };
    for (law, mean) in [(lognormal(), 30.0), (exponential, 10.0)] {
        for each in [1.0, 25.0] {
            let lengths: Vec<f64> =
                ends(&law, each, 40_000).iter().skip(5000).map(|(_, length)| *length).collect();
            let n = lengths.len() as f64;
            let found = lengths.iter().sum::<f64>() / n;
            assert!((found / mean - 1.0).abs() < 0.02, "{found} s, {law:?}, {each}");
            for at in [0.3, 1.0, 2.0, 4.0] {
                let share = lengths.iter().filter(|length| **length > at * mean).count() as f64 / n;
                let wanted = law.survival(at * mean);
                assert!((share - wanted).abs() < 0.01, "above {at}: {share} for {wanted}, {each}");
            }
        }
    }
}

/// Variance over mean of the number of silences that end in three seconds.
fn dispersion(each: f64) -> f64 {
    let found = ends(&lognormal(), each, 60_000);
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
    let found = ends(&Law::Constant(5.0), 10.0, 20_000);
    let wrong = found.iter().skip(3000).filter(|(_, length)| (length - 5.0).abs() > 0.1).count();
    assert!(found.len() > 50_000 && wrong * 100 < found.len(), "{wrong} of {}", found.len());
}

/// Sizes as normal numbers and the silences after them, in seconds.
fn pairs(law: &Law, by: f64, each: f64) -> (Vec<f64>, Vec<f64>) {
    let mut crowd = Crowd::new(each, law, by, |purpose| Stream::named(1, 0, 0, purpose));
    let mut stream = Stream::named(1, 0, 0, Purpose::Silence);
    for source in 0..SOURCES {
        crowd.falls_silent(source, nanoseconds(law.draw_excess(&mut stream)));
    }
    crowd.is_complete();
    let mut last = vec![None; SOURCES as usize];
    let (mut sizes, mut silences) = (Vec::new(), Vec::new());
    for step in 0..15_000 {
        let mut ended = Vec::new();
        crowd.pass(|source, _| ended.push(source));
        for source in ended {
            let size = crowd.next_size(source);
            crowd.falls_silent(source, 0);
            if let Some((size, since)) = last[source as usize].replace((size, step)) {
                sizes.push(size);
                silences.push((step - since) as f64 * crowd.step() as f64 * 1e-9);
            }
        }
    }
    (sizes, silences)
}

#[test]
fn silences_that_go_with_sizes_keep_their_law() {
    for by in [-0.6, 1.0] {
        for each in [1.0, 25.0] {
            let (sizes, silences) = pairs(&lognormal(), by, each);
            let n = silences.len() as f64;
            for at in [10.0, 30.0, 60.0] {
                let share = silences.iter().filter(|length| **length > at).count() as f64 / n;
                let wanted = lognormal().survival(at);
                assert!((share - wanted).abs() < 0.015, "{at} s: {share} for {wanted}, {by}");
            }
            // Of a lognormal law the logarithm is the normal number behind it.
            let (mu, sigma) = (3.054_623_791, 0.832_554_611);
            let of = |(size, silence): (&f64, &f64)| size * (silence.ln() - mu) / sigma;
            let found = sizes.iter().zip(&silences).map(of).sum::<f64>() / n;
            assert!((found - by).abs() < 0.03, "{found} for {by}, {each}");
        }
    }
}
