//! Updates the counters to the current time, and checks the conservation of packets.

use super::Simulation;
use crate::conservation::ConservationError;
use crate::network::{Network, RunPacketTotals};
use crate::packet::{Packet, PacketKind};
use crate::probe::{ClassCell, Probes};
use crate::queue::QueueDiscipline;
use tcpcast_tcp::SendingEnd;

impl<S: SendingEnd, Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool>
    Simulation<S, Q, HAS_TAPS, HAS_HOP>
{
    /// See [`super::Replication::update_and_check_probes`].
    pub(super) fn update_counters(&mut self) -> Result<&Probes, ConservationError> {
        self.update_queue_counters();
        self.update_endless_flow_counters();
        self.update_delivered_by_time();
        let network = &mut self.network;
        // A copy, because earlier deaths may still be reported.
        network.probes.states = network.probes.population.copy_until(network.now);
        network.probes.close_counter_slot(network.now, true);
        network.probes.close_time_series(network.now, true);
        let in_flight = network.events.count_pending_packets(|packet| packet.kind().is_data())
            + network.ingress_waiting.waiting_packets()
            + network.egress_waiting.waiting_packets()
            + network.queue.waiting_packets()
            + network.hops.packets_in_flight();
        let RunPacketTotals { sent, received, dropped, .. } = network.totals;
        if sent != received + dropped + in_flight {
            return Err(ConservationError::Packets { sent, received, dropped, in_flight });
        }
        if S::IS_POLLED {
            let is_ack = |packet: &Packet| packet.kind() == PacketKind::Ack;
            let acks = network.events.count_pending_packets(is_ack) + network.hops.waiting_acks();
            let (stored, in_flight) = (network.segments.len(), in_flight + acks);
            if stored != in_flight {
                return Err(ConservationError::Segments { stored, in_flight });
            }
        }
        let (waiting, ahead) =
            (network.queue.waiting_packets(), network.queue.sum_of_remaining_times(network.now));
        let cross = network.queue.cross_waiting_time_sum(network.now);
        let waited =
            network.totals.total_waiting_time(network.now, waiting, ahead).wrapping_add(cross);
        let held = network.probes.occupancy.queue_length_integral_since_start();
        if held != waited {
            return Err(ConservationError::Waiting { held, waited });
        }
        if HAS_HOP {
            network.hops.check_return_link_conservation(network.now, &network.probes)?;
        }
        Ok(&network.probes)
    }

    pub(super) fn update_queue_counters(&mut self) {
        let Network { queue, probes, hops, now, .. } = &mut self.network;
        queue.advance_to(*now, probes);
        probes.occupancy.record_length_until(queue.held_packets(), *now);
        probes.load.set_total_since_start(queue.link_load_until(*now));
        if HAS_HOP {
            hops.advance_to(*now, probes);
        }
    }

    /// Updates the counters of endless flows to the current time of the senders.
    pub(super) fn update_endless_flow_counters(&mut self) {
        if !self.paths.iter().any(|path| path.progress.is_endless()) {
            return;
        }
        let now = self.network.now.saturating_sub(self.network.sender_lookahead);
        let is_endless = |class: usize| self.paths[class].progress.is_endless();
        let mut sums = vec![(0_u64, 0_u64); self.paths.len()];
        for source in &self.sources {
            let class = source.record.class();
            if is_endless(class) {
                let held =
                    source.record.total_flight_time_until(now, source.sender.packets_in_flight());
                let (acked, times) = &mut sums[class];
                *acked += source.sender.acked_packets();
                *times = times.wrapping_add(held);
            }
        }
        for (class, (acked, times)) in sums.into_iter().enumerate() {
            if is_endless(class) {
                let counters = &mut self.network.probes.counters;
                counters.set_class_cell(class, ClassCell::Acked, acked - self.acked_before[class]);
                counters.set_class_cell(class, ClassCell::InFlight, times);
            }
        }
    }

    /// Stores the delivered packets of endless flows for all configured times that have passed since
    /// the last arrival.
    fn update_delivered_by_time(&mut self) {
        let Network { probes, now, .. } = &mut self.network;
        if probes.delivered.has_no_times() {
            return;
        }
        for (index, source) in self.sources.iter().enumerate() {
            let path = &self.paths[source.record.class()];
            let has_started = source.size != 0 && !source.sender.is_handshake_pending();
            if path.progress.is_endless() && has_started {
                let receiver_now = now.saturating_sub(path.answer_to_event);
                probes.store_delivered_counts(receiver_now, &source.record, index);
            }
        }
    }

    /// Starts the counters of endless flows at the end of the warm-up.
    pub(super) fn start_endless_flow_counters(&mut self) {
        let now = self.network.now.saturating_sub(self.network.sender_lookahead);
        self.acked_before.fill(0);
        for source in &mut self.sources {
            let class = source.record.class();
            if self.paths[class].progress.is_endless() {
                source.record.restart_flight_time(now, source.sender.packets_in_flight());
                self.acked_before[class] += source.sender.acked_packets();
            }
        }
    }
}
