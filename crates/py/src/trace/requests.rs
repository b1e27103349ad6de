//! Tables of requests and responses, and of interruptions.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{ConnectionReport, Endpoint, Interruption, RequestExchange, SilentParty};

use super::{clamp_i64, numpy_column};

/// Maximum number of rows over all connections.
const MAX_REQUESTS: usize = 1 << 19;
const MAX_INTERRUPTIONS: usize = 1 << 14;

/// Address and port of an endpoint.
pub(super) type EndpointName = (String, u16);

/// Returns client and server of a connection.
pub(super) fn endpoint_names(report: &ConnectionReport) -> [EndpointName; 2] {
    let [client, other] = [report.client, 1 - report.client];
    let name = |end: Endpoint| (end.address.to_string(), end.port);
    [client, other].map(|index| name(report.directions[index].source))
}

/// A connection with requests.
struct ConnectionWithRequests {
    number: u64,
    ends: [EndpointName; 2],
    /// RTTs between the tap and the client, and between the tap and the server, in seconds.
    tap_rtts: [Option<f64>; 2],
    /// Payload of a full-sized segment of the server in bytes.
    segment_bytes: u32,
    /// Time of the last segment.
    last: u64,
    exchanges: Vec<RequestExchange>,
}

/// All connections with requests.
#[derive(Default)]
pub(super) struct RequestTables {
    talks: Vec<ConnectionWithRequests>,
    count: usize,
    pub(super) omitted: u64,
}

impl RequestTables {
    /// Adds the requests of a connection.
    pub(super) fn move_requests_from_report(&mut self, report: &mut ConnectionReport) {
        self.omitted += report.omitted_exchanges;
        let exchanges = std::mem::take(&mut report.exchanges);
        if exchanges.is_empty() {
            return;
        }
        if self.count + exchanges.len() > MAX_REQUESTS {
            self.omitted += exchanges.len() as u64;
            return;
        }
        self.count += exchanges.len();
        let [client, server] = [report.client, 1 - report.client];
        let direction = |index: usize| &report.directions[index];
        self.talks.push(ConnectionWithRequests {
            number: report.number,
            ends: endpoint_names(report),
            tap_rtts: [client, server].map(|index| direction(index).rtt.tap_to_sender_s),
            segment_bytes: direction(server).segment_bytes,
            last: report.last,
            exchanges,
        });
    }

    /// Table of connections with requests, and table of requests, where `talk` is a row of the
    /// first table.
    pub(super) fn tables_to_py<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<[Bound<'py, PyDict>; 2]> {
        self.talks.sort_unstable_by_key(|talk| talk.number);
        Ok([self.connections_to_py(py)?, self.requests_to_py(py)?])
    }

    fn connections_to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let talks = &self.talks;
        let dict = PyDict::new(py);
        dict.set_item("connection", numpy_column(py, talks, |talk| clamp_i64(talk.number)))?;
        for (index, end) in ["client", "server"].into_iter().enumerate() {
            let ends: Vec<_> = talks.iter().map(|talk| talk.ends[index].clone()).collect();
            dict.set_item(end, ends)?;
            let tap_rtts = |talk: &ConnectionWithRequests| talk.tap_rtts[index].unwrap_or(f64::NAN);
            dict.set_item(format!("to_{end}_s"), numpy_column(py, talks, tap_rtts))?;
        }
        dict.set_item("last_ns", numpy_column(py, talks, |talk| clamp_i64(talk.last)))?;
        dict.set_item(
            "segment_bytes",
            numpy_column(py, talks, |talk| i64::from(talk.segment_bytes)),
        )?;
        Ok(dict)
    }

    fn requests_to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let indexed = self.talks.iter().enumerate();
        let all: Vec<_> = indexed
            .flat_map(|(row, talk)| talk.exchanges.iter().map(move |one| (row, one)))
            .collect();
        let dict = PyDict::new(py);
        dict.set_item("talk", numpy_column(py, &all, |(row, _)| clamp_i64(*row as u64)))?;
        let count = |name: &str, of: fn(&RequestExchange) -> u64| {
            dict.set_item(name, numpy_column(py, &all, |(_, one)| clamp_i64(of(one))))
        };
        count("time_ns", |one| one.time)?;
        count("request_bytes", |one| one.request_bytes)?;
        count("response_bytes", |one| one.response_bytes)?;
        count("retransmissions", |one| u64::from(one.retransmissions))?;
        count("copies", |one| u64::from(one.copies))?;
        count("client_pauses", |one| u64::from(one.pauses[0]))?;
        count("server_pauses", |one| u64::from(one.pauses[1]))?;
        count("first_byte_ns", |one| one.first_byte)?;
        count("client_ns", |one| one.parts.client)?;
        count("request_ns", |one| one.parts.request)?;
        count("server_ns", |one| one.parts.server)?;
        count("response_ns", |one| one.parts.response)?;
        count("retransmission_ns", |one| one.parts.retransmission)?;
        count("held_ns", |one| one.parts.held)?;
        count("window_ns", |one| one.parts.window)?;
        count("interrupted_ns", |one| one.parts.interrupted)?;
        count("delayed_ns", |one| one.delayed)?;
        let outcomes = all.iter().map(|(_, one)| one.outcome.name());
        dict.set_item("outcome", outcomes.collect::<Vec<_>>())?;
        dict.set_item("after_losses", numpy_column(py, &all, |(_, one)| one.after_losses))?;
        dict.set_item("overlaps", numpy_column(py, &all, |(_, one)| one.overlaps))?;
        Ok(dict)
    }
}

/// An interruption of one direction of a connection.
struct InterruptionRow {
    connection: u64,
    ends: [EndpointName; 2],
    /// True if the client sent the data.
    from_client: bool,
    interruption: Interruption,
}

/// All interruptions.
#[derive(Default)]
pub(super) struct Interruptions {
    rows: Vec<InterruptionRow>,
    pub(super) omitted: u64,
}

impl Interruptions {
    /// Adds the interruptions of a connection.
    pub(super) fn add_report(&mut self, report: &ConnectionReport) {
        for (index, direction) in report.directions.iter().enumerate() {
            for &interruption in &direction.interruptions {
                if self.rows.len() < MAX_INTERRUPTIONS {
                    self.rows.push(InterruptionRow {
                        connection: report.number,
                        ends: endpoint_names(report),
                        from_client: index == report.client,
                        interruption,
                    });
                } else {
                    self.omitted += 1;
                }
            }
        }
    }

    /// Table of interruptions in the order of their start.
    pub(super) fn interruptions_table<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.rows.sort_by_key(|row| (row.interruption.start, row.connection, !row.from_client));
        let rows = &self.rows;
        let dict = PyDict::new(py);
        dict.set_item("connection", numpy_column(py, rows, |row| clamp_i64(row.connection)))?;
        for (index, end) in ["client", "server"].into_iter().enumerate() {
            let ends: Vec<_> = rows.iter().map(|row| row.ends[index].clone()).collect();
            dict.set_item(end, ends)?;
        }
        let count = |name: &str, of: fn(&Interruption) -> u64| {
            dict.set_item(name, numpy_column(py, rows, |row| clamp_i64(of(&row.interruption))))
        };
        count("start_ns", |one| one.start)?;
        count("duration_ns", |one| one.end.saturating_sub(one.start))?;
        count("copies", |one| u64::from(one.copies))?;
        let by = |row: &InterruptionRow| match (row.interruption.by, row.from_client) {
            (SilentParty::Path, _) => "path",
            (SilentParty::Receiver, true) => "server",
            (SilentParty::Receiver, false) => "client",
        };
        dict.set_item("by", rows.iter().map(by).collect::<Vec<_>>())?;
        let data_from = |row: &InterruptionRow| if row.from_client { "client" } else { "server" };
        dict.set_item("data_from", rows.iter().map(data_from).collect::<Vec<_>>())?;
        dict.set_item("ended", numpy_column(py, rows, |row| row.interruption.ended))?;
        Ok(dict)
    }
}
