//! Updates the counters to the current time, and checks conservation.

use super::FlowSimulation;
use super::config::NetworkConfig;
use super::cross::cross_class;
use crate::clock::NEVER;
use crate::conservation::ConservationError;
use crate::probe::{ClassCell, Probes};
use crate::queue::LinkLoad;

/// Sums at the end of the warm-up, which are subtracted from the sums since the start.
#[derive(Debug, Default)]
pub(super) struct SumsBefore {
    /// Sums of the network, as in the counters.
    network: Vec<u64>,
    /// Packets acknowledged, per class of endless flows.
    acked: Vec<u64>,
}

impl SumsBefore {
    pub fn new(config: &NetworkConfig) -> Self {
        Self { network: vec![0; config.sum_count()], acked: vec![0; config.classes.len()] }
    }
}

impl FlowSimulation {
    /// See [`crate::Replication::update_and_check_probes`].
    pub(super) fn update_counters(&mut self) -> Result<&Probes, ConservationError> {
        self.update_link_counters();
        self.update_endless_flow_counters();
        self.update_delivered_by_time();
        let probes = &mut self.wire.probes;
        probes.states = probes.population.copy_until(self.now);
        probes.close_counter_slot(self.now, true);
        self.close_time_series(true);
        self.check_conservation()?;
        Ok(&self.wire.probes)
    }

    /// See [`Probes::close_time_series`].
    pub(super) fn close_time_series(&mut self, last: bool) {
        if self.wire.probes.time_series.slot_end() != NEVER {
            let uncounted_play = self.uncounted_play();
            self.wire.probes.close_time_series(self.now, &uncounted_play, last);
        }
    }

    /// Updates the counters of all links.
    pub(super) fn update_link_counters(&mut self) {
        self.network.update_occupancies(self.now, &mut self.wire);
        let headline = self.config.headline;
        let loads = self.links.instances_of(headline).map(|link| {
            let capacity = self.network.link(link).varying_capacity_bytes_until(self.now)?;
            Some(LinkLoad { bytes: self.network.transmitted_bytes(link), capacity })
        });
        let load = loads.flatten().next();
        self.wire.probes.load.set_total_since_start(load);
        for fluid in self.links.fluids() {
            self.wire.probes.cross.set_fluid(fluid);
        }
        self.update_network_sums();
    }

    /// Copies the sums of the network since the warm-up to the counters.
    pub(super) fn update_network_sums(&mut self) {
        let sums = self.links.sums(&self.network, self.now);
        let since = sums.iter().zip(&self.before.network).map(|(sum, b)| sum.wrapping_sub(*b));
        self.wire.probes.counters.set_network_sums(since);
    }

    /// Starts the measurement at the end of the warm-up.
    pub(super) fn begin_measurement(&mut self) {
        self.before.network = self.links.sums(&self.network, self.now);
        self.before.acked.fill(0);
        for flow in &mut self.flows {
            flow.record.begin_measurement();
            let class = &self.classes[flow.record.class()];
            if class.is_endless() {
                let (acked, in_flight) = flow.acked_and_in_flight(class.sends);
                flow.record.restart_flight_time(self.now, in_flight);
                self.before.acked[flow.record.class()] += acked;
            }
        }
    }

    /// Updates the counters of endless flows.
    pub(super) fn update_endless_flow_counters(&mut self) {
        if !self.classes.iter().any(super::FlowClass::is_endless) {
            return;
        }
        let mut sums = vec![(0_u64, 0_u64); self.classes.len()];
        for flow in &self.flows {
            let class = flow.record.class();
            let (acked, in_flight) = flow.acked_and_in_flight(self.classes[class].sends);
            let (acked_sum, times) = &mut sums[class];
            *acked_sum += acked;
            let time = flow.record.total_flight_time_until(self.now, in_flight);
            *times = times.wrapping_add(time);
        }
        for (class, (acked, times)) in sums.into_iter().enumerate() {
            if self.classes[class].is_endless() {
                let counters = &mut self.wire.probes.counters;
                let since = acked - self.before.acked[class];
                counters.set_class_cell(class, ClassCell::Acked, since);
                counters.set_class_cell(class, ClassCell::InFlight, times);
            }
        }
    }

    /// Stores the delivered packets of endless flows for all configured times that have passed since
    /// the last arrival.
    fn update_delivered_by_time(&mut self) {
        if self.wire.probes.delivered.has_no_times() {
            return;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let is_endless = self.classes[flow.record.class()].is_endless();
            let is_opening = flow.ends.iter().flat_map(|end| &end.endpoint).any(|e| e.is_opening());
            if is_endless && flow.size != 0 && !is_opening {
                self.wire.probes.store_delivered_counts(self.now, &flow.record, index);
            }
        }
    }

    /// Checks that every packet is accounted for, on each link and in total, and Little's law for
    /// each link.
    fn check_conservation(&mut self) -> Result<(), ConservationError> {
        let on_links = self.network.packets_on_links();
        for declared in 0..self.config.links.len() {
            let Some(first) = self.links.instances_of(declared).next() else { continue };
            let mut packets = [0; 3];
            for class in 0..=cross_class(&self.config) {
                let counters = self.network.counters(first, class);
                packets[0] += counters.entered.packets;
                packets[1] += counters.left.packets;
                packets[2] += counters.dropped_packets();
            }
            let [entered, left, dropped] = packets;
            let instances = self.links.instances_of(declared);
            let inside = instances.map(|link| on_links[link.index()]).sum();
            if entered != left + dropped + inside {
                let declared = declared as u32;
                return Err(ConservationError::Link { declared, entered, left, dropped, inside });
            }
        }
        let (stored, in_flight) = (self.wire.parcels.len(), self.network.packets_in_transit());
        if stored != in_flight {
            return Err(ConservationError::Segments { stored, in_flight });
        }
        for link in self.links.all_instances() {
            let both = self.network.littles_law(link, self.now, &mut self.wire);
            if let Some((held, waited)) = both.filter(|(held, waited)| held != waited) {
                return Err(ConservationError::Waiting { held, waited });
            }
        }
        Ok(())
    }
}

impl super::flow::Flow {
    /// Acknowledged packets, and packets in flight, of the ends that send data.
    fn acked_and_in_flight(&self, sends: [bool; 2]) -> (u64, u32) {
        let ends = self.ends.iter().zip(sends).filter(|(_, sends)| *sends);
        let (mut acked, mut in_flight) = (0, 0);
        for endpoint in ends.filter_map(|(end, _)| end.endpoint.as_ref()) {
            acked += endpoint.acked_packets();
            in_flight += if self.stopped { 0 } else { endpoint.packets_in_flight() };
        }
        (acked, in_flight)
    }
}
