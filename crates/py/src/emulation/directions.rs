//! Conversion of a simulator configuration to both directions of an emulated link.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZeroU32;
use tcpcast_link::loss::{LinkLossConfig, LinkLossState};
use tcpcast_link::queue::{BufferLimits, DrrConfig, FqCodelConfig, QueueConfig as Discipline};
use tcpcast_link::random::{RandomSource, RandomStream};
use tcpcast_link::time::Nanos;
use tcpcast_net::{Jitter, LinkConfig};
use tcpcast_sim::clock::seconds_to_nanos;
use tcpcast_sim::queue::{LinkRate, QueueConfig};
use tcpcast_sim::random::{NamedStream, StreamPurpose};
use tcpcast_sim::{BottleneckLoss, JitterConfig, RunConfig};

/// Forward direction, return direction, and the propagation delays of both.
type LinkDirections = (LinkConfig, LinkConfig, (Nanos, Nanos));

/// Returns the directions of the bottleneck and the delays of the first class. If the configuration
/// has no return link and `both_ways` is true, the return path copies the forward path except for
/// loss and jitter. Without `both_ways`, the return direction has the rate of the bottleneck and an
/// unlimited buffer.
pub(super) fn link_directions(config: RunConfig, both_ways: bool) -> PyResult<LinkDirections> {
    let is_single_hop =
        config.hops_before.is_empty() && config.hops_after.is_empty() && config.cross.is_empty();
    let Some(class) = config.classes.first().filter(|_| is_single_hop) else {
        return Err(PyValueError::new_err(
            "a link supports one class and one hop, without cross traffic",
        ));
    };
    let delays = (class.forward, class.back);
    let seed = config.seed;
    let stream = |purpose| RandomStream::for_entity(seed, 0, 0, purpose);
    let loss = match config.loss {
        None => None,
        Some(LinkLossConfig { model: BottleneckLoss::Packet(model), at }) => {
            Some(LinkLossConfig { model, at })
        }
        Some(LinkLossConfig { model: BottleneckLoss::RestOfRound(_), .. }) => {
            return Err(PyValueError::new_err("a link does not support loss per round"));
        }
    };
    let constant = LinkRate::Constant(config.bottleneck_bps);
    let losses = |loss: Option<LinkLossConfig>, purpose| {
        loss.map(|loss| LinkLossState::new(loss, stream(purpose)))
    };
    let mut forward =
        direction_config(&config.queue, &constant, config.buffer, stream(StreamPurpose::EarlyDrop));
    forward.loss = losses(loss, StreamPurpose::BottleneckLoss);
    forward.jitter = config
        .jitter
        .as_ref()
        .map(|jitter| random_delay_from_config(jitter, stream(StreamPurpose::Jitter)));
    let early = stream(StreamPurpose::ReturnEarlyDrop);
    // A return link that only loses ACKs has the rate of the bottleneck and an unlimited buffer.
    let return_link = config.return_link.as_ref().filter(|link| {
        let is_plain = link.buffer.is_none() && link.queue == QueueConfig::DropTail;
        !(is_plain && link.rate_bps == config.bottleneck_bps)
    });
    let mut back = match return_link {
        Some(link) => {
            let rate = LinkRate::Constant(link.rate_bps);
            direction_config(&link.queue, &rate, link.buffer, early)
        }
        _ if both_ways => direction_config(&config.queue, &constant, config.buffer, early),
        _ => direction_config(&QueueConfig::DropTail, &constant, None, early),
    };
    let ack_loss = config.return_link.and_then(|link| link.loss).map(LinkLossConfig::before_queue);
    back.loss = losses(ack_loss, StreamPurpose::AckLoss);
    Ok((forward, back, delays))
}

fn direction_config(
    queue: &QueueConfig,
    constant: &LinkRate,
    buffer: Option<u64>,
    mut draws: RandomStream,
) -> LinkConfig {
    let unlimited = LinkRate::Constant(None);
    let bytes = if let QueueConfig::Managed(managed) = queue { managed.limit_bytes } else { None };
    let (discipline, rate, policer) = match queue {
        QueueConfig::DropTail => (Discipline::DropTail, constant, None),
        QueueConfig::Red(red) => (Discipline::Red(*red), constant, None),
        QueueConfig::Fair(fair) => {
            let quantum_bytes = NonZeroU32::new(fair.quantum_bytes).unwrap_or(NonZeroU32::MIN);
            let (buffers, drop, ties) = (fair.buffers, fair.drop, fair.ties);
            (Discipline::Drr(DrrConfig { quantum_bytes, buffers, drop, ties }), constant, None)
        }
        QueueConfig::Managed(managed) => (managed.discipline, &managed.rate, None),
        QueueConfig::Policed(policed) => (Discipline::DropTail, &unlimited, Some(policed.tokens)),
    };
    let discipline = match discipline {
        Discipline::FqCodel(fq_codel) => {
            Discipline::FqCodel(FqCodelConfig { perturbation: draws.next_bits(), ..fq_codel })
        }
        other => other,
    };
    LinkConfig {
        policer,
        loss: None,
        queue: discipline,
        limits: BufferLimits {
            packets: buffer.filter(|_| policer.is_none()),
            bytes,
            ..BufferLimits::default()
        },
        draws,
        transmitter: rate.create_transmitter(),
        jitter: None,
        delay: 0,
        changes: Vec::new(),
    }
}

fn random_delay_from_config(jitter: &JitterConfig, mut draws: RandomStream) -> Jitter {
    let delay = jitter.delay.clone();
    let reorder = jitter.reorder;
    Jitter { delay: Box::new(move || seconds_to_nanos(delay.draw_value(&mut draws))), reorder }
}
