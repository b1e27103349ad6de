//! Captures of very many connections: the directions with most data have a row each, the others are summed up.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cmp::Reverse;
use tcpcast_trace::{ConnectionReport, DirectionReport, End};

use super::{Found, Row};

/// Rows that are kept.
const MOST_ROWS: usize = 1 << 16;
/// So many more may come before those with the least data go.
const SPARE: usize = MOST_ROWS / 4;

/// No packet acknowledges more bytes; a larger step is of another connection.
const MOST_ACKED: u64 = 1 << 20;

/// What is known of connections and directions that have no row.
#[derive(Default)]
pub(super) struct Rest {
    /// Connections of which neither direction carries data, and their packets.
    empty_connections: u64,
    /// Directions without data, of all connections.
    empty_directions: u64,
    empty_packets: u64,
    /// Connections let go of because too many were alive; of these, those of one packet.
    evicted: u64,
    evicted_single: u64,
    /// Keepalive probes of all directions, and those without an answer.
    keep_alives: u64,
    keep_alives_unanswered: u64,
    /// Directions with data that have no row.
    directions: u64,
    packets: u64,
    data_packets: u64,
    bytes: u64,
    unique_bytes: u64,
    retransmissions: u64,
    td: u64,
    to: u64,
    timeouts: u64,
    /// Directions whose data were acknowledged but not captured, and these bytes.
    uncaptured: u64,
    uncaptured_bytes: u64,
}

impl Rest {
    /// Counts a connection.
    pub(super) fn count(&mut self, report: &ConnectionReport) {
        let empty = |direction: &&DirectionReport| direction.counts.data_packets == 0;
        let without = report.directions.iter().filter(empty);
        let (count, packets) =
            without.fold((0, 0), |(n, sum), one| (n + 1, sum + one.counts.packets));
        self.empty_directions += count;
        self.empty_packets += packets;
        self.empty_connections += u64::from(count == 2);
        for one in report.directions.iter() {
            self.keep_alives += one.counts.keep_alives;
            self.keep_alives_unanswered += one.counts.keep_alives_unanswered;
        }
        if report.end == End::Evicted {
            let all: u64 = report.directions.iter().map(|one| one.counts.packets).sum();
            self.evicted += 1;
            self.evicted_single += u64::from(all == 1);
        }
        let [first, second] = &*report.directions;
        for (data, acks) in [(first, second), (second, first)] {
            let bytes = data.counts.missing_bytes;
            let plausible = (2..acks.counts.packets * MOST_ACKED).contains(&bytes);
            if data.counts.data_packets == 0 && plausible {
                self.uncaptured += 1;
                self.uncaptured_bytes += bytes;
            }
        }
    }

    fn add(&mut self, direction: &DirectionReport) {
        let counts = &direction.counts;
        self.directions += 1;
        self.packets += counts.packets;
        self.data_packets += counts.data_packets;
        self.bytes += counts.bytes;
        self.unique_bytes += counts.unique_bytes;
        self.retransmissions += counts.retransmissions;
        self.td += direction.indications.td;
        self.to += direction.indications.to();
        self.timeouts += direction.indications.timeouts;
    }

    pub(super) fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let counts = [
            ("empty_connections", self.empty_connections),
            ("empty_directions", self.empty_directions),
            ("empty_packets", self.empty_packets),
            ("keep_alives", self.keep_alives),
            ("keep_alives_unanswered", self.keep_alives_unanswered),
            ("evicted", self.evicted),
            ("evicted_single", self.evicted_single),
            ("directions", self.directions),
            ("packets", self.packets),
            ("data_packets", self.data_packets),
            ("bytes", self.bytes),
            ("unique_bytes", self.unique_bytes),
            ("retransmissions", self.retransmissions),
            ("td", self.td),
            ("to", self.to),
            ("timeouts", self.timeouts),
            ("uncaptured", self.uncaptured),
            ("uncaptured_bytes", self.uncaptured_bytes),
        ];
        for (name, count) in counts {
            dict.set_item(name, count)?;
        }
        Ok(dict)
    }
}

impl Found {
    /// Keeps a row; where they become too many, those with the least data go.
    pub(super) fn keep(&mut self, row: Row) {
        self.rows.push(row);
        if self.rows.len() > MOST_ROWS + SPARE {
            self.let_go();
        }
    }

    /// The last of them, and all in order.
    pub(super) fn settle(&mut self) {
        self.let_go();
        self.rows.sort_unstable_by_key(|row| (row.number, row.way));
    }

    fn let_go(&mut self) {
        if self.rows.len() <= MOST_ROWS {
            return;
        }
        // Of equal ones those that came first stay.
        let order = |row: &Row| (Reverse(row.direction.counts.bytes), row.number, row.way);
        self.rows.sort_unstable_by_key(order);
        for row in self.rows.drain(MOST_ROWS..) {
            let direction = &row.direction;
            let events = direction.loss_times.len() + direction.retransmitted.len();
            self.events -= events;
            self.omitted += events as u64;
            self.rounds -= direction.rounds.len();
            self.omitted_rounds += direction.rounds.len() as u64;
            self.points -= direction.sequence_plot.len();
            self.rest.add(direction);
        }
    }
}
