//! The configuration as Python gives it: dicts of plain numbers, taken over field by field.

mod laws;
mod modern;
mod queues;
mod returning;

use laws::{JitterDict, LawDict};
use modern::ModernDict;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use queues::{FairDict, ManagedDict, RedDict, queue};
use returning::ReturnDict;
use tcpcast_fixed_point::{FixedPointConfig, Scheme};
use tcpcast_sim::cross::CrossConfig;
use tcpcast_sim::probe::Tap;
use tcpcast_sim::tcp::{
    BackoffUntil, Growth, IdleRestart, InstantLoss, LimitedTransmit, Recovery, TcpConfig,
    TimerRestart, WindowUnit,
};
use tcpcast_sim::{
    AccessConfig, Begin, BottleneckLoss, ClassConfig, Distribution, FileSize, HopConfig, LossLaw,
    ProbeConfig, Rounding, RunConfig, Start, Traffic,
};

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunDict {
    seed: u64,
    packet_bytes: u32,
    ack_bytes: u32,
    bottleneck_bps: Option<u64>,
    buffer_pkts: Option<u64>,
    red: Option<RedDict>,
    #[pyo3(default)]
    fair: Option<FairDict>,
    #[pyo3(default)]
    managed: Option<ManagedDict>,
    loss: Option<BottleneckLossDict>,
    #[pyo3(default)]
    jitter: Option<JitterDict>,
    #[pyo3(default)]
    cross: Vec<CrossDict>,
    #[pyo3(default)]
    hops_before: Vec<HopDict>,
    #[pyo3(default)]
    hops_after: Vec<HopDict>,
    #[pyo3(default)]
    return_link: Option<ReturnDict>,
    tcp: TcpDict,
    classes: Vec<ClassDict>,
    warmup_ns: u64,
    size_bounds: Vec<u32>,
    traced: Vec<u32>,
    captures: Vec<(String, u64)>,
    #[pyo3(default)]
    goodput_packets: u32,
    #[pyo3(default)]
    goodput_least: u32,
    /// Rising.
    #[pyo3(default)]
    report_at_ns: Vec<u64>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct FixedPointDict {
    scheme: String,
    conditional: bool,
    moments: u8,
    references: Vec<u32>,
    steps: u32,
    step_ns: u64,
    /// Of each class, the time between packets and the service time to begin with, in seconds.
    initial: Vec<(f64, f64)>,
}

#[derive(FromPyObject)]
enum BottleneckLossDict {
    #[pyo3(from_item_all)]
    RestOfRound {
        rest_of_round: f64,
    },
    Packet(LossDict),
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct LossDict {
    to_bad: f64,
    to_good: f64,
    loss_good: f64,
    loss_bad: f64,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TcpDict {
    recovery: String,
    timer_restart: String,
    backoff_until: String,
    duplicate_threshold: u32,
    last_packets_threshold: u32,
    limited_transmit: String,
    window_unit: String,
    initial_window: u32,
    initial_ssthresh: u32,
    slow_start_at_ssthresh: bool,
    receiver_window: u32,
    delayed_acks: bool,
    ack_timeout_ns: u64,
    min_rto_ns: u64,
    initial_rto_ns: u64,
    max_rto_ns: u64,
    rto_granularity_ns: u64,
    #[pyo3(default)]
    idle_restart: Option<IdleRestartDict>,
    #[pyo3(default)]
    instant: Option<InstantDict>,
    /// Today's TCP, in place of all of the above.
    #[pyo3(default)]
    modern: Option<ModernDict>,
}

/// An idle time in nanoseconds, or a rule.
#[derive(FromPyObject)]
enum IdleRestartDict {
    After(u64),
    Rule(String),
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct InstantDict {
    growth: String,
    whole_halves: bool,
    halve_once: bool,
    timeout: bool,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct AccessDict {
    rate_bps: Option<u64>,
    delay_ns: u64,
    limit_pkts: Option<u64>,
    loss: Option<LossDict>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct HopDict {
    rate_bps: Option<u64>,
    delay_ns: u64,
    buffer_pkts: Option<u64>,
    red: Option<RedDict>,
    fair: Option<FairDict>,
    #[pyo3(default)]
    managed: Option<ManagedDict>,
    loss: Option<LossDict>,
    shared: bool,
}

/// A stream of cross traffic, and where it is.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct CrossDict {
    stage: usize,
    /// Of the series that sources with a hop of their own read.
    bin_ns: u64,
    bins: usize,
    /// How many of them there are.
    series: usize,
    law: LawDict,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ClassDict {
    sources: u32,
    ingress: AccessDict,
    egress: AccessDict,
    forward_ns: u64,
    back_ns: u64,
    // One kind of traffic; what belongs to another is `None`.
    off: Option<LawDict>,
    size: Option<LawDict>,
    #[pyo3(default)]
    on_off: OnOffDict,
    start: Option<LawDict>,
    start_times: Option<Vec<f64>>,
    #[pyo3(default)]
    stop: Option<f64>,
    #[pyo3(default)]
    gap: Option<LawDict>,
    #[pyo3(default)]
    sizes: Option<Vec<u32>>,
    /// Of each of these, the bytes that its last packet lacks of a full one.
    #[pyo3(default)]
    lacking: Option<Vec<u32>>,
    /// Bytes of data in a full packet, where sizes are whole bytes.
    #[pyo3(default)]
    payload: Option<u32>,
    #[pyo3(default)]
    stands_for: Option<f64>,
    #[pyo3(default)]
    tcp: Option<TcpDict>,
}

/// What else there is to say of on/off sources.
#[derive(Default, FromPyObject)]
#[pyo3(from_item_all)]
struct OnOffDict {
    cut: bool,
    persistent: bool,
    /// Probability of being active at the beginning, and within how many seconds; else OFF.
    equilibrium: Option<(f64, f64)>,
    /// See `Traffic::OnOff`.
    #[pyo3(default)]
    coupling: f64,
}

impl OnOffDict {
    fn into_traffic(self, off: Distribution, size: Distribution, payload: Option<u32>) -> Traffic {
        let begin = match self.equilibrium {
            Some((active, within)) => Begin::Equilibrium { active, within },
            None => Begin::Off,
        };
        let rounding = match payload {
            Some(payload) => Rounding::Bytes(payload.max(1)),
            None if self.cut => Rounding::Down,
            None => Rounding::Nearest,
        };
        Traffic::OnOff {
            off,
            size,
            rounding,
            persistent: self.persistent,
            coupling: self.coupling,
            begin,
        }
    }
}

impl RunDict {
    pub(crate) fn into_config(self) -> PyResult<RunConfig> {
        let captures = self.captures.into_iter().map(|(tap, most)| Ok((tap_named(&tap)?, most)));
        Ok(RunConfig {
            seed: self.seed,
            packet_bytes: self.packet_bytes,
            ack_bytes: self.ack_bytes,
            bottleneck_bps: self.bottleneck_bps,
            buffer: self.buffer_pkts,
            queue: queue(self.red, self.fair, self.managed)?,
            loss: self.loss.map(BottleneckLossDict::into_law),
            jitter: self.jitter.map(JitterDict::into_config).transpose()?,
            cross: self.cross.into_iter().map(CrossDict::into_config).collect::<PyResult<_>>()?,
            before: hops(self.hops_before)?,
            after: hops(self.hops_after)?,
            return_link: self.return_link.map(ReturnDict::into_config).transpose()?,
            tcp: self.tcp.into_config()?,
            classes: self
                .classes
                .into_iter()
                .map(ClassDict::into_config)
                .collect::<PyResult<_>>()?,
            warmup: self.warmup_ns,
            probes: ProbeConfig {
                size_bounds: self.size_bounds,
                traced: self.traced,
                captures: captures.collect::<PyResult<_>>()?,
                goodput_packets: self.goodput_packets,
                goodput_least: self.goodput_least,
                report_at: self.report_at_ns,
            },
        })
    }
}

impl FixedPointDict {
    pub(crate) fn into_config(self) -> PyResult<FixedPointConfig> {
        Ok(FixedPointConfig {
            scheme: match self.scheme.as_str() {
                "0" => Scheme::Rates,
                "1" => Scheme::Queues,
                "2" => Scheme::Windows,
                other => return Err(unknown("scheme", other)),
            },
            conditional: self.conditional,
            moments: self.moments,
            references: self.references,
            steps: self.steps,
            step: self.step_ns,
            initial: self.initial,
        })
    }
}

fn hops(hops: Vec<HopDict>) -> PyResult<Vec<HopConfig>> {
    hops.into_iter().map(HopDict::into_config).collect()
}

impl HopDict {
    fn into_config(self) -> PyResult<HopConfig> {
        Ok(HopConfig {
            rate_bps: self.rate_bps,
            delay: self.delay_ns,
            buffer: self.buffer_pkts,
            queue: queue(self.red, self.fair, self.managed)?,
            loss: self.loss.map(LossDict::into_law),
            shared: self.shared,
        })
    }
}

impl CrossDict {
    fn into_config(self) -> PyResult<CrossConfig> {
        let Self { stage, bin_ns, bins, series, law } = self;
        let (bins, series) = (bins.max(1), series.max(1));
        Ok(CrossConfig { stage, bin: bin_ns.max(1), bins, series, process: law.into_cross()? })
    }
}

impl BottleneckLossDict {
    fn into_law(self) -> BottleneckLoss {
        match self {
            Self::RestOfRound { rest_of_round } => BottleneckLoss::RestOfRound(rest_of_round),
            Self::Packet(loss) => BottleneckLoss::Packet(loss.into_law()),
        }
    }
}

impl LossDict {
    /// A good state that is never left is independent loss.
    fn into_law(self) -> LossLaw {
        let Self { to_bad, to_good, loss_good, loss_bad } = self;
        if to_bad == 0.0 {
            LossLaw::Bernoulli(loss_good)
        } else {
            LossLaw::GilbertElliott { to_bad, to_good, loss_good, loss_bad }
        }
    }
}

impl TcpDict {
    fn into_config(self) -> PyResult<TcpConfig> {
        Ok(TcpConfig {
            recovery: match self.recovery.as_str() {
                "reno" => Recovery::Reno,
                "newreno" => Recovery::NewReno { restart_timer: true },
                "newreno-patient" => Recovery::NewReno { restart_timer: false },
                other => return Err(unknown("recovery", other)),
            },
            timer_restart: match self.timer_restart.as_str() {
                "ack" => TimerRestart::Ack,
                "send" => TimerRestart::Send,
                other => return Err(unknown("timer_restart", other)),
            },
            backoff_until: match self.backoff_until.as_str() {
                "sample" => BackoffUntil::Sample,
                "ack" => BackoffUntil::Ack,
                other => return Err(unknown("backoff_until", other)),
            },
            duplicate_threshold: self.duplicate_threshold,
            last_packets_threshold: self.last_packets_threshold,
            limited_transmit: match self.limited_transmit.as_str() {
                "off" => LimitedTransmit::Off,
                "each-duplicate" => LimitedTransmit::EachDuplicate,
                "on-second" => LimitedTransmit::OnSecond,
                other => return Err(unknown("limited_transmit", other)),
            },
            window_unit: match self.window_unit.as_str() {
                "packets" => WindowUnit::Packets,
                "bytes" => WindowUnit::Bytes,
                other => return Err(unknown("window_unit", other)),
            },
            initial_window: self.initial_window,
            initial_ssthresh: self.initial_ssthresh,
            slow_start_at_ssthresh: self.slow_start_at_ssthresh,
            receiver_window: self.receiver_window,
            delayed_acks: self.delayed_acks,
            ack_timeout: self.ack_timeout_ns,
            min_rto: self.min_rto_ns,
            initial_rto: self.initial_rto_ns,
            max_rto: self.max_rto_ns,
            rto_granularity: self.rto_granularity_ns,
            idle_restart: match self.idle_restart {
                None => IdleRestart::Never,
                Some(IdleRestartDict::After(idle)) => IdleRestart::After(idle),
                Some(IdleRestartDict::Rule(rule)) if rule == "rto" => IdleRestart::AfterTimeout,
                Some(IdleRestartDict::Rule(other)) => return Err(unknown("idle_restart", &other)),
            },
            instant: self.instant.map(InstantDict::into_rules).transpose()?,
            modern: self.modern.map(ModernDict::into_tcp).transpose()?,
        })
    }
}

impl InstantDict {
    fn into_rules(self) -> PyResult<InstantLoss> {
        Ok(InstantLoss {
            growth: match self.growth.as_str() {
                "every-ack" => Growth::EveryAck,
                "after-halving" => Growth::AfterHalving,
                other => return Err(unknown("growth", other)),
            },
            whole_halves: self.whole_halves,
            halve_once: self.halve_once,
            timeout: self.timeout,
        })
    }
}

impl AccessDict {
    fn into_config(self) -> AccessConfig {
        AccessConfig {
            rate_bps: self.rate_bps,
            delay: self.delay_ns,
            limit: self.limit_pkts.unwrap_or(u64::MAX),
            loss: self.loss.map(LossDict::into_law),
        }
    }
}

impl ClassDict {
    fn into_config(mut self) -> PyResult<ClassConfig> {
        let traffic = self.take_traffic()?;
        Ok(ClassConfig {
            sources: self.sources,
            ingress: self.ingress.into_config(),
            egress: self.egress.into_config(),
            forward: self.forward_ns,
            back: self.back_ns,
            traffic,
            tcp: self.tcp.map(TcpDict::into_config).transpose()?,
            scale: self.stands_for,
        })
    }

    fn take_traffic(&mut self) -> PyResult<Traffic> {
        let law = |law: &mut Option<LawDict>| law.take().map(LawDict::into_law).transpose();
        match (law(&mut self.size)?, law(&mut self.off)?, law(&mut self.gap)?) {
            (Some(size), Some(off), None) => {
                let payload = self.payload;
                return Ok(std::mem::take(&mut self.on_off).into_traffic(off, size, payload));
            }
            (Some(size), None, Some(gap)) => {
                let bytes = self.payload.map(|payload| Rounding::Bytes(payload.max(1)));
                let rounding = bytes.unwrap_or(Rounding::Nearest);
                return Ok(Traffic::Arrivals { gap, size, rounding });
            }
            _ => {}
        }
        let sizes = self.sizes.take().filter(|sizes| !sizes.is_empty());
        let times = self.start_times.take().filter(|times| !times.is_empty());
        match (sizes, law(&mut self.start)?, times) {
            (Some(sizes), None, None) => {
                let lacking = self.lacking.take().unwrap_or_default();
                let lacking = lacking.into_iter().chain(std::iter::repeat(0));
                let file = |(packets, lacking)| FileSize { packets, lacking };
                Ok(Traffic::Transfers { sizes: sizes.into_iter().zip(lacking).map(file).collect() })
            }
            (None, Some(law), None) => {
                Ok(Traffic::Bulk { start: Start::Drawn(law), stop: self.stop })
            }
            (None, None, Some(times)) => {
                Ok(Traffic::Bulk { start: Start::Times(times), stop: self.stop })
            }
            _ => Err(PyValueError::new_err(
                "traffic needs off and size, gap and size, sizes, start or start_times",
            )),
        }
    }
}

fn tap_named(name: &str) -> PyResult<Tap> {
    match name {
        "sender" => Ok(Tap::Sender),
        "bottleneck-in" => Ok(Tap::BottleneckIn),
        "bottleneck-out" => Ok(Tap::BottleneckOut),
        "receiver" => Ok(Tap::Receiver),
        other => Err(unknown("tap", other)),
    }
}

fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what}: {name}"))
}
