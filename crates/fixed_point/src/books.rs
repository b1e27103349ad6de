//! The books of a fixed point: what reference flows do, and what all others do.

use tcpcast_sim::clock::Nanos;
use tcpcast_sim::probe::Probes;

#[derive(Debug)]
pub(super) struct Books {
    /// Of reference flows, and of the shared router.
    pub reference: Probes,
    /// Of cross flows.
    pub others: Probes,
}

impl Books {
    pub(super) fn new(open: impl Fn() -> Probes) -> Self {
        let mut books = Self { reference: open(), others: open() };
        books.begin_measurement(0);
        books
    }

    pub(super) fn begin_measurement(&mut self, now: Nanos) {
        self.reference.begin_measurement(now);
        self.others.begin_measurement(now);
    }

    pub(super) fn snapshot(&mut self, now: Nanos, last: bool) {
        self.reference.snapshot(now, last);
        self.others.snapshot(now, last);
    }
}
