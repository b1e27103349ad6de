//! Scaled populations: ends of OFF times.

use super::Network;
use crate::config::{ClassConfig, RunConfig};
use crate::event_queue::TimerKind;
use crate::population::ScaledPopulation;
use crate::queue::QueueDiscipline;
use crate::random::{NamedStream, RandomStream};
use crate::traffic::Traffic;

/// Scaled population of each class, `None` for classes without one; empty if no class has one.
pub(crate) fn create_populations(
    config: &RunConfig,
    replication: u32,
) -> Vec<Option<ScaledPopulation>> {
    let of_class = |(index, class): (usize, &ClassConfig)| match &class.traffic {
        Traffic::OnOff { off, coupling, .. } => class.scale.map(|scale| {
            let stream =
                |purpose| RandomStream::for_entity(config.seed, replication, index as u32, purpose);
            ScaledPopulation::new(scale, off, *coupling, stream)
        }),
        Traffic::Bulk { .. } | Traffic::Transfers { .. } | Traffic::Arrivals { .. } => None,
    };
    if config.classes.iter().all(|class| class.scale.is_none()) {
        return Vec::new();
    }
    config.classes.iter().enumerate().map(of_class).collect()
}

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Starts the populations after all sources have been created.
    pub(crate) fn begin_scaled_populations(&mut self) {
        for (class, population) in self.populations.iter_mut().enumerate() {
            if let Some(population) = population {
                population.sort_idle_sources_by_age();
                self.events.set_timer(TimerKind::Population, class as u32, self.sender_lookahead);
            }
        }
    }

    /// Performs a step of the population of a class: ends OFF times.
    #[inline(never)]
    pub(crate) fn end_off_times_of_class(&mut self, class: u32) {
        let Some(Some(population)) = self.populations.get_mut(class as usize) else { return };
        population.end_off_times_of_step(|source, after| {
            self.events.set_timer(TimerKind::Start, source, self.now + after)
        });
        self.events.set_timer(TimerKind::Population, class, self.now + population.step_length());
    }
}
