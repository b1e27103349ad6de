//! Fractional Gaussian noise, exact, by circulant embedding: Davies and Harte, "Tests for Hurst
//! effect", Biometrika 74 (1987); Dietrich and Newsam (1997) for two series from one transform.
//!
//! The Fourier transform of the autocovariances `c(0), ..., c(M/2), ..., c(1)` on a circle of M
//! bins yields the eigenvalues `l_k`, which are non-negative for this noise. With independent
//! standard normal `U_k` and `V_k`, the real and imaginary parts of the transform of `sqrt(l_k / M)
//! (U_k + i V_k)` are two independent series with exactly these autocovariances at all lags up to
//! M/2.

use crate::clock::Nanos;
use crate::random::{RandomSource, RandomStream};
use libm::{cos, expm1, log, log1p, pow, sin, sqrt};
use rustfft::FftPlannerScalar;
use rustfft::num_complex::Complex64;
use serde::Deserialize;

/// A rate in packets per second that is fractional Gaussian noise per bin.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FractionalNoise {
    /// Mean before negative rates are set to 0.
    pub mean: f64,
    /// Standard deviation per bin, before negative rates are set to 0.
    pub sd: f64,
    /// Hurst exponent, between 0 and 1.
    pub hurst: f64,
    /// Length of a bin.
    #[serde(rename = "bin_ns")]
    pub bin: Nanos,
    /// Bins per series: a power of two, at least 2.
    pub bins: usize,
}

/// Autocovariance of noise of unit variance at a lag of `lag` bins,
/// `(|lag + 1|^2H - 2 |lag|^2H + |lag - 1|^2H) / 2`.
fn autocovariance(lag: usize, hurst: f64) -> f64 {
    if lag == 0 {
        return 1.0;
    }
    // Computes the differences of the terms directly: at large lags the terms are nearly equal.
    let (lag, exponent) = (lag as f64, 2.0 * hurst);
    let beyond = expm1(exponent * log1p(1.0 / lag)) + expm1(exponent * log1p(-1.0 / lag));
    0.5 * pow(lag, exponent) * beyond
}

/// Eigenvalues of the autocovariance of the noise on a circle of `bins` bins.
#[must_use]
pub fn eigenvalues(hurst: f64, bins: usize) -> Vec<f64> {
    let covariance = |bin: usize| autocovariance(bin.min(bins - bin), hurst);
    let mut circle: Vec<Complex64> =
        (0..bins).map(|bin| Complex64::new(covariance(bin), 0.0)).collect();
    fourier_transform(&mut circle);
    circle.iter().map(|value| value.re).collect()
}

/// Fourier transform. Uses scalar instructions only, so that results do not depend on the
/// processor.
fn fourier_transform(values: &mut [Complex64]) {
    FftPlannerScalar::new().plan_fft_forward(values.len()).process(values);
}

/// Standard noise on a circle of bins.
pub(super) struct NoiseCircle {
    /// Amplitude per frequency.
    amplitudes: Vec<f64>,
}

impl NoiseCircle {
    pub fn new(hurst: f64, bins: usize) -> Self {
        let scale = 1.0 / bins as f64;
        // Rounding may make an eigenvalue of 0 slightly negative.
        let amplitude = |l: f64| sqrt(l.max(0.0) * scale);
        Self { amplitudes: eigenvalues(hurst, bins).into_iter().map(amplitude).collect() }
    }

    /// Draws two independent series.
    pub fn draw_two_series(&self, stream: &mut RandomStream) -> (Vec<f64>, Vec<f64>) {
        let amplitudes = self.amplitudes.iter();
        let mut noise: Vec<Complex64> =
            amplitudes.map(|amplitude| amplitude * draw_standard_normal_pair(stream)).collect();
        fourier_transform(&mut noise);
        (noise.iter().map(|z| z.re).collect(), noise.iter().map(|z| z.im).collect())
    }
}

/// Two independent standard normal variates (Box and Muller 1958).
fn draw_standard_normal_pair(stream: &mut RandomStream) -> Complex64 {
    let radius = sqrt(-2.0 * log(stream.draw_unit()));
    let angle = 2.0 * std::f64::consts::PI * stream.draw_unit();
    Complex64::new(radius * cos(angle), radius * sin(angle))
}

impl FractionalNoise {
    /// Packets per bin for the standard noise `noise`; may be negative.
    pub(super) fn packets_in_bin(&self, noise: f64) -> f64 {
        (self.mean + self.sd * noise) * self.bin as f64 * 1e-9
    }
}
