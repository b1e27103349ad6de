//! Queue disciplines: a dict for each that has parameters.

use super::unknown;
use pyo3::prelude::*;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use tcpcast_sim::queue::disciplines;
use tcpcast_sim::queue::disciplines::{
    CodelConfig, CodelRules, FqCodelConfig, PieConfig, PieRules, RedUnit,
};
use tcpcast_sim::queue::{
    FairConfig, LinkRate, ManagedConfig, OpportunityTrace, PolicedConfig, QueueConfig, TokenRate,
};

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct RedDict {
    min_threshold: f64,
    max_threshold: f64,
    max_probability: f64,
    weight: f64,
    gentle: bool,
    packets_per_second: f64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct FairDict {
    quantum_bytes: u32,
    packet_bytes: u32,
    room: String,
    overflow: String,
    ties: String,
}

/// A discipline that may drop or mark what it holds; what belongs to another kind is left out.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ManagedDict {
    kind: String,
    rate_bps: Option<u64>,
    /// A token bucket of so many bytes, at that rate.
    #[pyo3(default)]
    burst_bytes: Option<u64>,
    /// Times of packet opportunities in milliseconds and how many at each, in place of a rate.
    #[pyo3(default)]
    opportunities: Option<Vec<(u32, u32)>>,
    packet_bytes: u32,
    #[pyo3(default)]
    linux: bool,
    #[pyo3(default)]
    target_ns: u64,
    #[pyo3(default)]
    interval_ns: u64,
    #[pyo3(default)]
    ecn: bool,
    #[pyo3(default)]
    ce_threshold_ns: Option<u64>,
    #[pyo3(default)]
    quantum_bytes: u32,
    #[pyo3(default)]
    queues: u32,
    #[pyo3(default)]
    update_ns: u64,
    #[pyo3(default)]
    burst_ns: u64,
    #[pyo3(default)]
    alpha: f64,
    #[pyo3(default)]
    beta: f64,
    #[pyo3(default)]
    ecn_below: Option<f64>,
}

/// The discipline that has a dict; drop-tail if none has. RED that marks has two.
pub(super) fn queue(
    red: Option<RedDict>,
    fair: Option<FairDict>,
    managed: Option<ManagedDict>,
) -> PyResult<QueueConfig> {
    Ok(match (red, fair, managed) {
        (red, fair, Some(managed)) => managed.into_queue(red, fair)?,
        (Some(red), _, None) => QueueConfig::Red(red.into_config(false)),
        (None, Some(fair), None) => fair.into_queue()?,
        (None, None, None) => QueueConfig::DropTail,
    })
}

impl ManagedDict {
    fn into_queue(self, red: Option<RedDict>, fair: Option<FairDict>) -> PyResult<QueueConfig> {
        let discipline = match self.kind.as_str() {
            "codel" => disciplines::QueueConfig::Codel(self.codel()),
            "fq_codel" => disciplines::QueueConfig::FqCodel(self.fq_codel()),
            "pie" => disciplines::QueueConfig::Pie(self.pie()),
            "head-drop" => disciplines::QueueConfig::HeadDrop,
            "red" => {
                let red = red.ok_or_else(|| unknown("queue", "red without its parameters"))?;
                disciplines::QueueConfig::Red(red.into_config(self.ecn))
            }
            "droptail" => disciplines::QueueConfig::DropTail,
            "fq" => {
                let fair = fair.ok_or_else(|| unknown("queue", "fq without its parameters"))?;
                disciplines::QueueConfig::Drr(fair.into_managed()?)
            }
            "policer" => {
                let (tokens, packet_bytes) = (self.tokens()?, self.packet_bytes);
                return Ok(QueueConfig::Policed(PolicedConfig { tokens, packet_bytes }));
            }
            other => return Err(unknown("queue", other)),
        };
        let (rate, packet_bytes) = (self.rate()?, self.packet_bytes);
        Ok(QueueConfig::Managed(ManagedConfig { discipline, rate, packet_bytes }))
    }

    fn rate(&self) -> PyResult<LinkRate> {
        Ok(match &self.opportunities {
            Some(pairs) => {
                let trace = OpportunityTrace::counted(pairs);
                LinkRate::Opportunities(Arc::new(
                    trace.map_err(|e| unknown("trace", &e.to_string()))?,
                ))
            }
            None if self.burst_bytes.is_some() => LinkRate::Bucket(self.tokens()?),
            None => LinkRate::Constant(self.rate_bps),
        })
    }

    fn tokens(&self) -> PyResult<TokenRate> {
        let rate_bps = self.rate_bps.and_then(NonZeroU64::new);
        match (rate_bps, self.burst_bytes) {
            (Some(rate_bps), Some(burst_bytes)) => Ok(TokenRate { rate_bps, burst_bytes }),
            _ => Err(unknown("token bucket", "without rate or burst")),
        }
    }

    fn codel(&self) -> CodelConfig {
        CodelConfig {
            target: self.target_ns,
            interval: self.interval_ns,
            mtu_bytes: self.packet_bytes,
            ecn: self.ecn,
            ce_threshold: self.ce_threshold_ns,
            rules: if self.linux { CodelRules::Linux } else { CodelRules::Rfc8289 },
        }
    }

    fn fq_codel(&self) -> FqCodelConfig {
        let whole = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        FqCodelConfig {
            codel: self.codel(),
            queues: whole(self.queues),
            quantum_bytes: whole(self.quantum_bytes),
            ..FqCodelConfig::default()
        }
    }

    fn pie(&self) -> PieConfig {
        PieConfig {
            target: self.target_ns,
            update: self.update_ns,
            burst: self.burst_ns,
            alpha: self.alpha,
            beta: self.beta,
            mtu_bytes: self.packet_bytes,
            byte_mode: false,
            ecn_below: self.ecn_below,
            rules: if self.linux { PieRules::Linux } else { PieRules::Rfc8033 },
        }
    }
}

impl RedDict {
    fn into_config(self, ecn: bool) -> disciplines::RedConfig {
        disciplines::RedConfig {
            min_threshold: self.min_threshold,
            max_threshold: self.max_threshold,
            max_probability: self.max_probability,
            weight: self.weight,
            gentle: self.gentle,
            packets_per_second: self.packets_per_second,
            unit: RedUnit::Packets,
            ecn,
        }
    }
}

impl FairDict {
    fn into_managed(self) -> PyResult<disciplines::DrrConfig> {
        use disciplines::{Buffers, DropPolicy};
        Ok(disciplines::DrrConfig {
            quantum_bytes: NonZeroU32::new(self.quantum_bytes).unwrap_or(NonZeroU32::MIN),
            buffers: match self.room.as_str() {
                "shared" => Buffers::Shared,
                "individual" => Buffers::PerFlow,
                other => return Err(unknown("room", other)),
            },
            drop: match self.overflow.as_str() {
                "arriving" => DropPolicy::Arriving,
                "longest" => DropPolicy::LongestTail,
                "longest-head" => DropPolicy::LongestHead,
                other => return Err(unknown("overflow", other)),
            },
            ties: match self.ties.as_str() {
                "latest" => disciplines::Ties::Latest,
                "random" => disciplines::Ties::Random,
                "random-others" => disciplines::Ties::RandomOthers,
                other => return Err(unknown("rule for ties", other)),
            },
        })
    }

    fn into_queue(self) -> PyResult<QueueConfig> {
        let (quantum_bytes, packet_bytes) = (self.quantum_bytes, self.packet_bytes);
        let disciplines::DrrConfig { buffers, drop, ties, .. } = self.into_managed()?;
        Ok(QueueConfig::Fair(FairConfig { quantum_bytes, packet_bytes, buffers, drop, ties }))
    }
}
