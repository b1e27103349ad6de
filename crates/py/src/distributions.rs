//! Probability distributions of the crate `statrs`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use statrs::distribution::{ContinuousCDF, Gamma, StudentsT};

/// Return a quantile of Student's t; precise for up to 1,000 degrees of freedom.
#[pyfunction]
pub fn student_quantile(freedom: f64, level: f64) -> PyResult<f64> {
    check_level(level)?;
    Ok(student(freedom)?.inverse_cdf(level))
}

/// Return the probability that Student's t exceeds `t` in absolute value.
#[pyfunction]
pub fn student_tail_probability(t: f64, freedom: f64) -> PyResult<f64> {
    Ok(2.0 * student(freedom)?.sf(t.abs()))
}

/// Return a quantile of the gamma distribution with scale 1; precise for shapes up to 10,000.
#[pyfunction]
pub fn gamma_quantile(shape: f64, level: f64) -> PyResult<f64> {
    check_level(level)?;
    let gamma = Gamma::new(shape, 1.0).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(gamma.inverse_cdf(level))
}

fn student(freedom: f64) -> PyResult<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn check_level(level: f64) -> PyResult<()> {
    if (0.0..=1.0).contains(&level) {
        return Ok(());
    }
    Err(PyValueError::new_err("level must be between 0 and 1"))
}
