//! Flush of the counters, and conservation checks.

use super::Simulation;
use crate::balance::Unbalanced;
use crate::network::{Network, PacketTotals};
use crate::probe::{ClassCell, Probes};
use crate::queue::QueueDiscipline;
use crate::tcp::SendingEnd;

impl<S: SendingEnd, Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool>
    Simulation<S, Q, HAS_TAPS, HAS_HOP>
{
    /// Updates the counters to the current time. Checks that packets are conserved and that
    /// Little's law holds for the queue.
    ///
    /// # Errors
    /// [`Unbalanced`] if a check fails.
    pub fn flush(&mut self) -> Result<&Probes, Unbalanced> {
        self.flush_queue();
        self.flush_flows();
        self.flush_delivered();
        let network = &mut self.network;
        // A copy, because earlier deaths may still be reported.
        network.probes.states = network.probes.population.as_of(network.now);
        network.probes.snapshot(network.now, true);
        network.probes.close_time_series(network.now, true);
        let in_flight = network.events.count(|packet| packet.kind().is_data())
            + network.ingress_waiting.held()
            + network.egress_waiting.held()
            + network.queue.waiting()
            + network.hops.in_flight();
        let PacketTotals { sent, received, dropped, .. } = network.totals;
        if sent != received + dropped + in_flight {
            return Err(Unbalanced::Packets { sent, received, dropped, in_flight });
        }
        let (waiting, ahead) = (network.queue.waiting(), network.queue.ahead(network.now));
        let cross = network.queue.cross_waited(network.now);
        let waited = network.totals.waited(network.now, waiting, ahead).wrapping_add(cross);
        let held = network.probes.occupancy.lifetime_integral();
        if held != waited {
            return Err(Unbalanced::Waiting { held, waited });
        }
        if HAS_HOP {
            network.hops.check_return(network.now, &network.probes)?;
        }
        Ok(&network.probes)
    }

    pub(super) fn flush_queue(&mut self) {
        let Network { queue, probes, hops, now, .. } = &mut self.network;
        queue.advance_to(*now, probes);
        probes.occupancy.held(queue.held(), *now);
        probes.load.set_total(queue.carried(*now));
        if HAS_HOP {
            hops.advance_to(*now, probes);
        }
    }

    /// Updates the counters of endless flows to the current time of the senders.
    pub(super) fn flush_flows(&mut self) {
        if !self.paths.iter().any(|path| path.progress.is_endless()) {
            return;
        }
        let now = self.network.now.saturating_sub(self.network.sender_lookahead);
        let is_endless = |class: usize| self.paths[class].progress.is_endless();
        let mut sums = vec![(0_u64, 0_u64); self.paths.len()];
        for source in &self.sources {
            let class = source.record.class();
            if is_endless(class) {
                let held = source.record.in_flight_until(now, source.sender.in_flight());
                let (acked, times) = &mut sums[class];
                *acked += source.sender.acked();
                *times = times.wrapping_add(held);
            }
        }
        for (class, (acked, times)) in sums.into_iter().enumerate() {
            if is_endless(class) {
                let counters = &mut self.network.probes.counters;
                counters.set(class, ClassCell::Acked, acked - self.acked_before[class]);
                counters.set(class, ClassCell::InFlight, times);
            }
        }
    }

    /// Records the deliveries of endless flows by times after their last arrival.
    fn flush_delivered(&mut self) {
        let Network { probes, now, .. } = &mut self.network;
        if probes.delivered.is_idle() {
            return;
        }
        for (index, source) in self.sources.iter().enumerate() {
            let path = &self.paths[source.record.class()];
            let has_started = source.size != 0 && !source.sender.is_opening();
            if path.progress.is_endless() && has_started {
                let receiver_now = now.saturating_sub(path.answer_to_event);
                probes.close_delivered(receiver_now, &source.record, index);
            }
        }
    }

    /// Starts the counters of endless flows at the end of the warm-up.
    pub(super) fn reset_flows(&mut self) {
        let now = self.network.now.saturating_sub(self.network.sender_lookahead);
        self.acked_before.fill(0);
        for source in &mut self.sources {
            let class = source.record.class();
            if self.paths[class].progress.is_endless() {
                source.record.count_flight_from(now, source.sender.in_flight());
                self.acked_before[class] += source.sender.acked();
            }
        }
    }
}
