//! Laws as Python gives them: a name, and numbers by name.

use super::unknown;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tcpcast_sim::cross::{ArrivalProcess, FractionalNoise};
use tcpcast_sim::{Distribution, JitterConfig};

/// A law's name and its numbers; the names of the numbers are those of `Distribution.parameters()`.
#[derive(FromPyObject)]
pub(super) struct LawDict(std::collections::HashMap<String, LawValue>);

#[derive(FromPyObject)]
enum LawValue {
    Name(String),
    Number(f64),
    Numbers(Vec<f64>),
}

impl LawDict {
    fn number(&self, name: &str) -> PyResult<f64> {
        match self.0.get(name) {
            Some(LawValue::Number(value)) => Ok(*value),
            _ => Err(unknown("law without the number", name)),
        }
    }

    fn numbers(&self, name: &str) -> PyResult<Vec<f64>> {
        match self.0.get(name) {
            Some(LawValue::Numbers(values)) if !values.is_empty() => Ok(values.clone()),
            _ => Err(unknown("law without the list", name)),
        }
    }

    fn name(&self) -> PyResult<&str> {
        match self.0.get("law") {
            Some(LawValue::Name(name)) => Ok(name),
            _ => Err(PyValueError::new_err("a law without a name")),
        }
    }

    /// The arrival process of cross traffic, in packets and seconds.
    pub(super) fn into_cross(self) -> PyResult<ArrivalProcess> {
        let whole = |name: &str| self.number(name).map(|value| value as u64);
        Ok(match self.name()? {
            "poisson" => ArrivalProcess::Poisson { rate: self.number("rate")? },
            "gamma" => {
                ArrivalProcess::Gamma { rate: self.number("rate")?, shape: self.number("shape")? }
            }
            "fgn" => ArrivalProcess::Fractional(FractionalNoise {
                mean: self.number("mean")?,
                sd: self.number("sd")?,
                hurst: self.number("hurst")?,
                bin: whole("bin_ns")?,
                bins: whole("bins")? as usize,
            }),
            "pareto" => ArrivalProcess::OnOff {
                sources: whole("sources")? as u32,
                peak: self.number("peak")?,
                on: self.number("on")?,
                off: self.number("off")?,
                alpha: self.number("alpha")?,
                together: self.number("together").is_ok_and(|together| together != 0.0),
            },
            "trace" => ArrivalProcess::Replay {
                times: self.numbers("times_ns")?.into_iter().map(|time| time as u64).collect(),
                packets: self.numbers("packets")?,
                period: whole("period_ns")?,
                offset: whole("offset_ns").ok(),
            },
            other => return Err(unknown("law of cross traffic", other)),
        })
    }

    pub(super) fn into_law(self) -> PyResult<Distribution> {
        Ok(match self.name()? {
            "exponential" => {
                let minimum = self.number("minimum")?;
                Distribution::Exponential { minimum, scale: self.number("mean")? - minimum }
            }
            "ep" => Distribution::ExponentialPareto {
                minimum: self.number("minimum")?,
                k: self.number("k")?,
                theta: self.number("theta")?,
                alpha: self.number("alpha")?,
                tail: self.number("tail")?,
            },
            "ee" => Distribution::ExponentialExponential {
                minimum: self.number("minimum")?,
                k: self.number("k")?,
                theta1: self.number("theta1")?,
                theta2: self.number("theta2")?,
                tail: self.number("tail")?,
            },
            "lognormal" => Distribution::Lognormal {
                mu: self.number("mu")?,
                sigma: self.number("sigma")?,
                minimum: self.number("minimum")?,
            },
            "pareto" => Distribution::Pareto {
                minimum: self.number("minimum")?,
                alpha: self.number("alpha")?,
            },
            "constant" => Distribution::Constant(self.number("value")?),
            "uniform" => {
                Distribution::Uniform { low: self.number("low")?, high: self.number("high")? }
            }
            "empirical" => Distribution::Empirical {
                values: self.numbers("values")?,
                cumulative: self.numbers("cumulative")?,
            },
            other => return Err(unknown("law", other)),
        })
    }
}

/// Random delay behind the bottleneck.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct JitterDict {
    law: LawDict,
    reorder: bool,
}

impl JitterDict {
    pub(super) fn into_config(self) -> PyResult<JitterConfig> {
        Ok(JitterConfig { delay: self.law.into_law()?, reorder: self.reorder })
    }
}
