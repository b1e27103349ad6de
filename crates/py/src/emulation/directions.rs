//! Both directions of a link, out of what the simulator is given: the same queues, rates and distributions.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZeroU32;
use tcpcast_emu::path::{DirectionConfig, Jitter};
use tcpcast_link::loss::{LinkLoss, LinkLosses};
use tcpcast_link::queue::{DrrConfig, FqCodelConfig, Limits, QueueConfig as Discipline};
use tcpcast_link::random::{Draws, Stream};
use tcpcast_link::time::Nanos;
use tcpcast_sim::clock::nanoseconds;
use tcpcast_sim::queue::{LinkRate, QueueConfig};
use tcpcast_sim::random::{Named, Purpose};
use tcpcast_sim::{BottleneckLoss, JitterConfig, RunConfig};

/// The forward direction, the return direction, and the propagation of each.
type Both = (DirectionConfig, DirectionConfig, (Nanos, Nanos));

/// The directions of a configuration's bottleneck, and the delays of its first class. With
/// `both_ways` the return path is like the forward path, but for loss and jitter, where it has no
/// link of its own; else it has the bottleneck's rate and room for anything.
pub(super) fn both(config: RunConfig, both_ways: bool) -> PyResult<Both> {
    let alone =
        config.hops_before.is_empty() && config.hops_after.is_empty() && config.cross.is_empty();
    let Some(class) = config.classes.first().filter(|_| alone) else {
        return Err(PyValueError::new_err("a link has one class, no other hops, no cross traffic"));
    };
    let delays = (class.forward, class.back);
    let seed = config.seed;
    let stream = |purpose| Stream::named(seed, 0, 0, purpose);
    let loss = match config.loss {
        None => None,
        Some(LinkLoss { model: BottleneckLoss::Packet(model), at }) => Some(LinkLoss { model, at }),
        Some(LinkLoss { model: BottleneckLoss::RestOfRound(_), .. }) => {
            return Err(PyValueError::new_err("a link knows no rounds"));
        }
    };
    let constant = LinkRate::Constant(config.bottleneck_bps);
    let lossy =
        |loss: Option<LinkLoss>, purpose| loss.map(|loss| LinkLosses::new(loss, stream(purpose)));
    let mut forward =
        direction(&config.queue, &constant, config.buffer, stream(Purpose::EarlyDrop));
    forward.loss = lossy(loss, Purpose::BottleneckLoss);
    forward.jitter =
        config.jitter.as_ref().map(|jitter| distribution(jitter, stream(Purpose::Jitter)));
    let early = stream(Purpose::ReturnEarlyDrop);
    // Where acks are only lost, they have the bottleneck's rate and room for any number.
    let own = config.return_link.as_ref().filter(|link| {
        let is_plain = link.buffer.is_none() && link.queue == QueueConfig::DropTail;
        !(is_plain && link.rate_bps == config.bottleneck_bps)
    });
    let mut back = match own {
        Some(link) => {
            let rate = LinkRate::Constant(link.rate_bps);
            direction(&link.queue, &rate, link.buffer, early)
        }
        _ if both_ways => direction(&config.queue, &constant, config.buffer, early),
        _ => direction(&QueueConfig::DropTail, &constant, None, early),
    };
    let ack_loss = config.return_link.and_then(|link| link.loss).map(LinkLoss::before);
    back.loss = lossy(ack_loss, Purpose::AckLoss);
    Ok((forward, back, delays))
}

fn direction(
    queue: &QueueConfig,
    constant: &LinkRate,
    buffer: Option<u64>,
    mut draws: Stream,
) -> DirectionConfig {
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
            Discipline::FqCodel(FqCodelConfig { perturbation: draws.bits(), ..fq_codel })
        }
        other => other,
    };
    DirectionConfig {
        policer,
        loss: None,
        queue: discipline,
        limits: Limits {
            packets: buffer.filter(|_| policer.is_none()),
            bytes,
            ..Limits::default()
        },
        draws,
        transmitter: rate.transmitter(),
        varies: !matches!(rate, LinkRate::Constant(_)),
        jitter: None,
    }
}

fn distribution(jitter: &JitterConfig, mut draws: Stream) -> Jitter {
    let delay = jitter.delay.clone();
    let reorder = jitter.reorder;
    Jitter { delay: Box::new(move || nanoseconds(delay.draw(&mut draws))), reorder }
}
