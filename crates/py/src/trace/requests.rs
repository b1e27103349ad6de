//! Table of requests and responses.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{ConnectionReport, Endpoint, RequestExchange};

use super::{clamp_i64, numpy_column};

/// Maximum number of rows over all connections.
const MAX_REQUESTS: usize = 1 << 19;

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
        let seconds = |name: &str, of: fn(&RequestExchange) -> u64| {
            dict.set_item(name, numpy_column(py, &all, |(_, one)| of(one) as f64 / 1e9))
        };
        seconds("first_byte_s", |one| one.first_byte)?;
        seconds("last_byte_s", |one| one.last_byte)?;
        seconds("answer_s", |one| one.answer)?;
        seconds("pauses_s", |one| one.pauses)?;
        seconds("repair_s", |one| one.repair)?;
        seconds("held_s", |one| one.held)?;
        seconds("delayed_s", |one| one.delayed)?;
        dict.set_item("after_losses", numpy_column(py, &all, |(_, one)| one.after_losses))?;
        dict.set_item("overlaps", numpy_column(py, &all, |(_, one)| one.overlaps))?;
        Ok(dict)
    }
}
