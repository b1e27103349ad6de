//! Fractional Gaussian noise, exact, by circulant embedding: Davies and Harte, "Tests for Hurst
//! effect", Biometrika 74 (1987); Dietrich and Newsam (1997) for two series from one transform.
//!
//! The autocovariances `c(0), ..., c(M/2), ..., c(1)` on a circle of M bins have the eigenvalues
//! `l_k`, their Fourier transform, none of which is negative for this noise. With independent standard
//! normal `U_k` and `V_k` the transform of `sqrt(l_k / M) (U_k + i V_k)` is, in its real and in its
//! imaginary part, noise of exactly these autocovariances at all distances up to M/2.

use crate::clock::Nanos;
use crate::random::{Draws, Stream};
use libm::{cos, expm1, log, log1p, pow, sin, sqrt};
use rustfft::FftPlannerScalar;
use rustfft::num_complex::Complex64;
use serde::Deserialize;

/// A rate that is fractional Gaussian noise in bins, in packets a second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FractionalNoise {
    /// Mean before the rates below 0 are cut.
    pub mean: f64,
    /// Standard deviation in bins, likewise.
    pub sd: f64,
    /// Hurst's exponent, between 0 and 1.
    pub hurst: f64,
    /// Length of a bin.
    #[serde(rename = "bin_ns")]
    pub bin: Nanos,
    /// Bins of a series, 2 or more, a power of two.
    pub bins: usize,
}

/// Autocovariance of noise of unit variance at a distance of `lag` bins,
/// `(|lag + 1|^2H - 2 |lag|^2H + |lag - 1|^2H) / 2`.
fn autocovariance(lag: usize, hurst: f64) -> f64 {
    if lag == 0 {
        return 1.0;
    }
    // Of the terms, nearly equal far away, only the differences are formed.
    let (lag, exponent) = (lag as f64, 2.0 * hurst);
    let beyond = expm1(exponent * log1p(1.0 / lag)) + expm1(exponent * log1p(-1.0 / lag));
    0.5 * pow(lag, exponent) * beyond
}

/// Eigenvalues of the noise's autocovariance on a circle of `bins`.
#[must_use]
pub fn eigenvalues(hurst: f64, bins: usize) -> Vec<f64> {
    let covariance = |at: usize| autocovariance(at.min(bins - at), hurst);
    let mut circle: Vec<Complex64> =
        (0..bins).map(|at| Complex64::new(covariance(at), 0.0)).collect();
    transform(&mut circle);
    circle.iter().map(|value| value.re).collect()
}

/// Without the instructions of one processor or another, so that like machines agree.
fn transform(values: &mut [Complex64]) {
    FftPlannerScalar::new().plan_fft_forward(values.len()).process(values);
}

/// Standard noise around a circle of so many bins.
pub(super) struct Circle {
    /// Of each frequency.
    amplitudes: Vec<f64>,
}

impl Circle {
    pub fn new(hurst: f64, bins: usize) -> Self {
        let scale = 1.0 / bins as f64;
        // Rounding may leave a nought just below it.
        let amplitude = |l: f64| sqrt(l.max(0.0) * scale);
        Self { amplitudes: eigenvalues(hurst, bins).into_iter().map(amplitude).collect() }
    }

    /// Two independent series.
    pub fn draw(&self, stream: &mut Stream) -> (Vec<f64>, Vec<f64>) {
        let amplitudes = self.amplitudes.iter();
        let mut noise: Vec<Complex64> =
            amplitudes.map(|amplitude| amplitude * standard_normal(stream)).collect();
        transform(&mut noise);
        (noise.iter().map(|z| z.re).collect(), noise.iter().map(|z| z.im).collect())
    }
}

/// Two independent standard normal variates (Box and Muller 1958).
fn standard_normal(stream: &mut Stream) -> Complex64 {
    let radius = sqrt(-2.0 * log(stream.unit()));
    let angle = 2.0 * std::f64::consts::PI * stream.unit();
    Complex64::new(radius * cos(angle), radius * sin(angle))
}

impl FractionalNoise {
    /// The rate, as packets a bin, where the standard noise is `noise`; below 0 before it is cut.
    pub(super) fn packets_in_bin(&self, noise: f64) -> f64 {
        (self.mean + self.sd * noise) * self.bin as f64 * 1e-9
    }
}
