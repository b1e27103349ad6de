//! Probes of reference flows and cross flows.

use tcpcast_sim::clock::Nanos;
use tcpcast_sim::probe::Probes;

#[derive(Debug)]
pub(super) struct FlowProbes {
    /// Probes of reference flows and of the shared router.
    pub reference: Probes,
    pub cross: Probes,
}

impl FlowProbes {
    pub(super) fn new(open: impl Fn() -> Probes) -> Self {
        let mut probes = Self { reference: open(), cross: open() };
        probes.begin_measurement(0);
        probes
    }

    pub(super) fn begin_measurement(&mut self, now: Nanos) {
        self.reference.begin_measurement(now);
        self.cross.begin_measurement(now);
    }

    pub(super) fn close_counter_slots(&mut self, now: Nanos, last: bool) {
        self.reference.close_counter_slot(now, last);
        self.cross.close_counter_slot(now, last);
    }
}
