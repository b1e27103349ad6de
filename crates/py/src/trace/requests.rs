//! Requests and their responses, a row each.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcpcast_trace::{ConnectionReport, Endpoint, Exchange};

use super::{column, signed};

/// Requests with a row, over all connections.
const MOST_REQUESTS: usize = 1 << 19;

/// An end by its address and port.
pub(super) type Named = (String, u16);

/// Client and server of a connection.
pub(super) fn named(report: &ConnectionReport) -> [Named; 2] {
    let [client, other] = [report.client, 1 - report.client];
    let name = |end: Endpoint| (end.address.to_string(), end.port);
    [client, other].map(|place| name(report.directions[place].source))
}

/// A connection with requests.
struct Talk {
    number: u64,
    ends: [Named; 2],
    /// Round trips between the tap and the client, and the server, s.
    away: [Option<f64>; 2],
    /// Payload of a full segment of the server.
    segment_bytes: u32,
    exchanges: Vec<Exchange>,
}

/// All connections with requests.
#[derive(Default)]
pub(super) struct Requests {
    talks: Vec<Talk>,
    count: usize,
    pub(super) omitted: u64,
}

impl Requests {
    /// Keeps the requests of a connection.
    pub(super) fn take(&mut self, report: &mut ConnectionReport) {
        self.omitted += report.omitted_exchanges;
        let exchanges = std::mem::take(&mut report.exchanges);
        if exchanges.is_empty() {
            return;
        }
        if self.count + exchanges.len() > MOST_REQUESTS {
            self.omitted += exchanges.len() as u64;
            return;
        }
        self.count += exchanges.len();
        let [client, server] = [report.client, 1 - report.client];
        let direction = |place: usize| &report.directions[place];
        self.talks.push(Talk {
            number: report.number,
            ends: named(report),
            away: [client, server].map(|place| direction(place).rtt.tap_to_sender_s),
            segment_bytes: direction(server).segment_bytes,
            exchanges,
        });
    }

    /// The table of connections with requests, and that of requests; `talk` is a row of the former.
    pub(super) fn tables<'py>(&mut self, py: Python<'py>) -> PyResult<[Bound<'py, PyDict>; 2]> {
        self.talks.sort_unstable_by_key(|talk| talk.number);
        Ok([self.talks_to_py(py)?, self.requests_to_py(py)?])
    }

    fn talks_to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let talks = &self.talks;
        let dict = PyDict::new(py);
        dict.set_item("connection", column(py, talks, |talk| signed(talk.number)))?;
        for (place, end) in ["client", "server"].into_iter().enumerate() {
            let ends: Vec<_> = talks.iter().map(|talk| talk.ends[place].clone()).collect();
            dict.set_item(end, ends)?;
            let away = |talk: &Talk| talk.away[place].unwrap_or(f64::NAN);
            dict.set_item(format!("to_{end}_s"), column(py, talks, away))?;
        }
        dict.set_item("segment_bytes", column(py, talks, |talk| i64::from(talk.segment_bytes)))?;
        Ok(dict)
    }

    fn requests_to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let numbered = self.talks.iter().enumerate();
        let all: Vec<_> = numbered
            .flat_map(|(at, talk)| talk.exchanges.iter().map(move |one| (at, one)))
            .collect();
        let dict = PyDict::new(py);
        dict.set_item("talk", column(py, &all, |(at, _)| signed(*at as u64)))?;
        let count = |name: &str, of: fn(&Exchange) -> u64| {
            dict.set_item(name, column(py, &all, |(_, one)| signed(of(one))))
        };
        count("time_ns", |one| one.time)?;
        count("request_bytes", |one| one.request_bytes)?;
        count("response_bytes", |one| one.response_bytes)?;
        count("retransmissions", |one| u64::from(one.retransmissions))?;
        let seconds = |name: &str, of: fn(&Exchange) -> u64| {
            dict.set_item(name, column(py, &all, |(_, one)| of(one) as f64 / 1e9))
        };
        seconds("first_byte_s", |one| one.first_byte)?;
        seconds("last_byte_s", |one| one.last_byte)?;
        seconds("answer_s", |one| one.answer)?;
        seconds("pauses_s", |one| one.pauses)?;
        seconds("repair_s", |one| one.repair)?;
        seconds("held_s", |one| one.held)?;
        seconds("delayed_s", |one| one.delayed)?;
        dict.set_item("after_losses", column(py, &all, |(_, one)| one.after_losses))?;
        dict.set_item("overlaps", column(py, &all, |(_, one)| one.overlaps))?;
        Ok(dict)
    }
}
