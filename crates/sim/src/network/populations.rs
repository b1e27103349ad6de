//! Scaled populations: when their OFF times end.

use super::Network;
use crate::config::{ClassConfig, RunConfig};
use crate::event_queue::Timer;
use crate::population::ScaledPopulation;
use crate::queue::QueueDiscipline;
use crate::random::{Named, Stream};
use crate::traffic::Traffic;

/// The scaled populations of a run, one for each class that is a larger one at a scale; none at all
/// where none does.
pub(crate) fn populations(config: &RunConfig, replication: u32) -> Vec<Option<ScaledPopulation>> {
    let of_class = |(at, class): (usize, &ClassConfig)| match &class.traffic {
        Traffic::OnOff { off, coupling, .. } => class.scale.map(|scale| {
            let stream = |purpose| Stream::named(config.seed, replication, at as u32, purpose);
            ScaledPopulation::new(scale, off, *coupling, stream)
        }),
        Traffic::Bulk { .. } | Traffic::Transfers { .. } | Traffic::Arrivals { .. } => None,
    };
    if config.classes.iter().all(|class| class.scale.is_none()) {
        return Vec::new();
    }
    config.classes.iter().enumerate().map(of_class).collect()
}

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOPS: bool>
    Network<Q, HAS_TAPS, HAS_HOPS>
{
    /// All sources have told how they begin.
    pub(crate) fn begin_populations(&mut self) {
        for (class, population) in self.populations.iter_mut().enumerate() {
            if let Some(population) = population {
                population.sort_by_age();
                self.event_queue.set_timer(Timer::Population, class as u32, self.sender_lookahead);
            }
        }
    }

    /// A step of the population of a class: the next OFF times end.
    #[inline(never)]
    pub(crate) fn end_off_times(&mut self, class: u32) {
        let Some(Some(population)) = self.populations.get_mut(class as usize) else { return };
        population.pass(|source, after| {
            self.event_queue.set_timer(Timer::Start, source, self.now + after)
        });
        self.event_queue.set_timer(Timer::Population, class, self.now + population.step());
    }
}
