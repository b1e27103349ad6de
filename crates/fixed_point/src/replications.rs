//! Replications of a fixed point, whatever its queue.

use crate::config::{FixedPointConfig, StepRow};
use crate::run::FixedPoint;
use tcpcast_sim::clock::Nanos;
use tcpcast_sim::probe::{Probes, SourceRecord};
use tcpcast_sim::queue::{DropTail, Fair, Managed, Policed, QueueConfig, QueueDiscipline, Red};
use tcpcast_sim::random::{Named, Purpose, Stream};
use tcpcast_sim::{Replication, Replications, RunConfig, RunLimit, StopReason, Unbalanced, Watch};

/// A replication whose probes are those of its reference flows, with what it tells beside them.
pub trait Iterated: Replication {
    /// Itself, as any other replication.
    fn replication(&self) -> &dyn Replication;

    /// The probes of cross flows, settled with the others.
    fn cross_probes(&self) -> &Probes;

    /// See [`FixedPoint::rows`].
    fn rows(&self) -> Vec<StepRow>;
}

/// `count` replications of a fixed point.
#[must_use]
pub fn replications(
    config: &RunConfig,
    asked: &FixedPointConfig,
    count: u32,
) -> Replications<dyn Iterated> {
    let (config, asked) = (config.clone(), asked.clone());
    Replications::from_fn(count, move |number| set_up(&config, &asked, number))
}

fn set_up(config: &RunConfig, asked: &FixedPointConfig, number: u32) -> Box<dyn Iterated> {
    let stream = |purpose| Stream::named(config.seed, number, 0, purpose);
    match &config.queue {
        QueueConfig::DropTail => {
            Box::new(FixedPoint::new(config, asked, DropTail::new(config.buffer), number))
        }
        QueueConfig::Red(red) => {
            let queue = Red::new(*red, config.buffer, stream(Purpose::EarlyDrop));
            Box::new(FixedPoint::new(config, asked, queue, number))
        }
        QueueConfig::Fair(fair) if fair.is_random() => {
            let queue = Fair::at_random(*fair, config.buffer, stream(Purpose::Tie));
            Box::new(FixedPoint::new(config, asked, queue, number))
        }
        QueueConfig::Fair(fair) => {
            Box::new(FixedPoint::new(config, asked, Fair::new(*fair, config.buffer), number))
        }
        QueueConfig::Policed(policed) => {
            Box::new(FixedPoint::new(config, asked, Policed::new(*policed), number))
        }
        // Scenarios refuse it: the recursion knows drops on arrival alone.
        QueueConfig::Managed(managed) => {
            let queue = Managed::new(managed.clone(), config.buffer, stream(Purpose::EarlyDrop));
            Box::new(FixedPoint::new(config, asked, queue, number))
        }
    }
}

impl<Q: QueueDiscipline + Send + Sync> Replication for FixedPoint<Q> {
    fn advance(&mut self, goal: RunLimit, watch: &mut Watch<'_>) -> StopReason {
        self.advance(goal, watch)
    }

    fn flush(&mut self) -> Result<&Probes, Unbalanced> {
        self.flush()
    }

    fn probes(&self) -> &Probes {
        self.probes()
    }

    fn now(&self) -> Nanos {
        self.now()
    }

    fn is_measuring(&self) -> bool {
        self.is_measuring()
    }

    fn records(&self) -> Box<dyn Iterator<Item = &SourceRecord> + '_> {
        Box::new(self.records())
    }
}

impl<Q: QueueDiscipline + Send + Sync> Iterated for FixedPoint<Q> {
    fn replication(&self) -> &dyn Replication {
        self
    }

    fn cross_probes(&self) -> &Probes {
        self.cross_probes()
    }

    fn rows(&self) -> Vec<StepRow> {
        self.rows()
    }
}
