//! What a run does with its crowds.

use super::Crowd;
use crate::agenda::Timer;
use crate::config::{ClassConfig, RunConfig};
use crate::network::Network;
use crate::queue::QueueDiscipline;
use crate::random::{Named, Stream};
use crate::traffic::Traffic;

/// The crowds of a run, one for each class that stands for a larger one; none at all where none does.
pub(crate) fn crowds(config: &RunConfig, replication: u32) -> Vec<Option<Crowd>> {
    let of_class = |(at, class): (usize, &ClassConfig)| match &class.traffic {
        Traffic::OnOff { off, coupling, .. } => class.stands_for.map(|each| {
            let stream = |purpose| Stream::named(config.seed, replication, at as u32, purpose);
            Crowd::new(each, off, *coupling, stream)
        }),
        Traffic::Bulk { .. } | Traffic::Transfers { .. } | Traffic::Arrivals { .. } => None,
    };
    if config.classes.iter().all(|class| class.stands_for.is_none()) {
        return Vec::new();
    }
    config.classes.iter().enumerate().map(of_class).collect()
}

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// All sources have told how they begin.
    pub(crate) fn begin_crowds(&mut self) {
        for (class, crowd) in self.crowds.iter_mut().enumerate() {
            if let Some(crowd) = crowd {
                crowd.is_complete();
                self.agenda.timer(Timer::Crowd, class as u32, self.lead_in);
            }
        }
    }

    /// A step of the crowd of a class: the next silences end.
    #[inline(never)]
    pub(crate) fn end_silences(&mut self, class: u32) {
        let Some(Some(crowd)) = self.crowds.get_mut(class as usize) else { return };
        crowd.pass(|source, after| self.agenda.timer(Timer::Start, source, self.now + after));
        self.agenda.timer(Timer::Crowd, class, self.now + crowd.step());
    }
}
