//! Laws as Python gives them: a name, and numbers by name.

use super::unknown;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tcpcast_sim::cross::{CrossLaw, FractionalNoise};
use tcpcast_sim::{JitterConfig, Law};

/// A law's name and its numbers; the names of the numbers are those of `Law.parameters()`.
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

    /// The law of traffic of others, in packets and seconds.
    pub(super) fn into_cross(self) -> PyResult<CrossLaw> {
        let whole = |name: &str| self.number(name).map(|value| value as u64);
        Ok(match self.name()? {
            "poisson" => CrossLaw::Poisson { rate: self.number("rate")? },
            "gamma" => CrossLaw::Gamma { rate: self.number("rate")?, shape: self.number("shape")? },
            "fgn" => CrossLaw::Fractional(FractionalNoise {
                mean: self.number("mean")?,
                sd: self.number("sd")?,
                hurst: self.number("hurst")?,
                bin: whole("bin_ns")?,
                bins: whole("bins")? as usize,
            }),
            "pareto" => CrossLaw::OnOff {
                sources: whole("sources")? as u32,
                peak: self.number("peak")?,
                on: self.number("on")?,
                off: self.number("off")?,
                alpha: self.number("alpha")?,
                together: self.number("together").is_ok_and(|together| together != 0.0),
            },
            "trace" => CrossLaw::Replay {
                times: self.numbers("times_ns")?.into_iter().map(|time| time as u64).collect(),
                packets: self.numbers("packets")?,
                period: whole("period_ns")?,
                offset: whole("offset_ns").ok(),
            },
            other => return Err(unknown("law of cross traffic", other)),
        })
    }

    pub(super) fn into_law(self) -> PyResult<Law> {
        Ok(match self.name()? {
            "exponential" => {
                let minimum = self.number("minimum")?;
                Law::Exponential { minimum, scale: self.number("mean")? - minimum }
            }
            "ep" => Law::ExponentialPareto {
                minimum: self.number("minimum")?,
                k: self.number("k")?,
                theta: self.number("theta")?,
                alpha: self.number("alpha")?,
                tail: self.number("tail")?,
            },
            "ee" => Law::ExponentialExponential {
                minimum: self.number("minimum")?,
                k: self.number("k")?,
                theta1: self.number("theta1")?,
                theta2: self.number("theta2")?,
                tail: self.number("tail")?,
            },
            "lognormal" => Law::Lognormal {
                mu: self.number("mu")?,
                sigma: self.number("sigma")?,
                minimum: self.number("minimum")?,
            },
            "pareto" => {
                Law::Pareto { minimum: self.number("minimum")?, alpha: self.number("alpha")? }
            }
            "constant" => Law::Constant(self.number("value")?),
            "uniform" => Law::Uniform { low: self.number("low")?, high: self.number("high")? },
            "empirical" => Law::Empirical {
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
        Ok(JitterConfig { law: self.law.into_law()?, reorder: self.reorder })
    }
}
