//! Sums of counters over connections and directions that have no rows.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{ConnectionEnd, ConnectionReport, DirectionReport};

/// Maximum number of bytes acknowledged per packet; larger numbers belong to another connection.
const MAX_ACKED_PER_PACKET: u64 = 1 << 20;

/// Defines the counters and their conversion to a dictionary by name.
macro_rules! define_counters {
    ($($(#[$doc:meta])* $counter:ident,)+) => {
        /// Counters of connections and directions that have no rows, and of keepalive probes.
        #[derive(Default)]
        pub(super) struct UnlistedCounters {
            $($(#[$doc])* $counter: u64,)+
        }

        impl UnlistedCounters {
            /// Converts the counters to a dictionary.
            pub(super) fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let dict = PyDict::new(py);
                $(dict.set_item(stringify!($counter), self.$counter)?;)+
                Ok(dict)
            }
        }
    };
}

define_counters! {
    /// Connections without data in either direction.
    empty_connections,
    /// Directions without data.
    empty_directions,
    /// Packets of these directions.
    empty_packets,
    /// Keepalive probes of all directions, with and without rows.
    keep_alives,
    /// Keepalive probes without an answer.
    keep_alives_unanswered,
    /// Connections evicted because too many were open.
    evicted,
    /// Evicted connections with a single packet.
    evicted_single,
    /// Directions with data but without rows. The next counters are their sums.
    directions,
    packets,
    data_packets,
    bytes,
    unique_bytes,
    retransmissions,
    td,
    to,
    timeouts,
    /// Directions whose data were acknowledged but not captured.
    uncaptured,
    /// Bytes of these data.
    uncaptured_bytes,
}

impl UnlistedCounters {
    /// Counts a connection.
    pub(super) fn add_connection_totals(&mut self, report: &ConnectionReport) {
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
        if report.end == ConnectionEnd::Evicted {
            let all: u64 = report.directions.iter().map(|one| one.counts.packets).sum();
            self.evicted += 1;
            self.evicted_single += u64::from(all == 1);
        }
        let [first, second] = &*report.directions;
        for (data, acks) in [(first, second), (second, first)] {
            let bytes = data.counts.missing_bytes;
            let plausible = (2..acks.counts.packets * MAX_ACKED_PER_PACKET).contains(&bytes);
            if data.counts.data_packets == 0 && plausible {
                self.uncaptured += 1;
                self.uncaptured_bytes += bytes;
            }
        }
    }

    pub(super) fn add_unlisted_direction(&mut self, direction: &DirectionReport) {
        let counts = &direction.counts;
        self.directions += 1;
        self.packets += counts.packets;
        self.data_packets += counts.data_packets;
        self.bytes += counts.bytes;
        self.unique_bytes += counts.unique_bytes;
        self.retransmissions += counts.retransmissions;
        self.td += direction.indications.td;
        self.to += direction.indications.timeout_count();
        self.timeouts += direction.indications.timeouts;
    }
}
