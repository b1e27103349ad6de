//! Requests and answers on persistent connections. A client may consist of several flows: it sends
//! all requests at once and continues when all answers have arrived (incast).

use crate::clock::{Nanos, seconds_to_nanos};
use crate::flows::apps::AppState;
use crate::flows::config::{FlowTraffic, RequestTraffic};
use crate::flows::parcel::{CLIENT, NOT_WANTED, SERVER};
use crate::flows::{FlowSimulation, FlowTimer};
use crate::probe::{ClassCell, TimeKind};
use crate::random::RandomStream;
use crate::traffic::Distribution;

/// State of a flow with requests.
#[derive(Clone, Debug)]
pub(crate) struct RequestState {
    /// First flow of the client.
    first: usize,
    /// Number of missing answers, and start of the requests; used only in the first flow of a
    /// client.
    missing: u32,
    began: Nanos,
    /// Bytes of all requests and of all answers so far.
    written: [u64; 2],
    /// Size of the answer that the server prepares.
    answer: u64,
    stopped: bool,
}

impl RequestState {
    /// State of a flow whose client begins with flow `first`.
    pub fn new(first: usize) -> Self {
        Self { first, missing: 0, began: 0, written: [0; 2], answer: 0, stopped: false }
    }

    /// Stops the flow.
    pub fn stop(&mut self) {
        self.stopped = true;
    }
}

/// Draws a number of bytes.
fn draw_bytes(distribution: &Distribution, stream: &mut RandomStream) -> u64 {
    // Larger than any file; a connection counts bytes up to 2^63.
    libm::round(distribution.draw_value(stream)).clamp(1.0, 1e15) as u64
}

impl FlowSimulation {
    fn requests_of(&mut self, flow: usize) -> Option<(&RequestTraffic, &mut RequestState)> {
        let state = &mut self.flows[flow];
        match (&self.classes[state.record.class()].traffic, &mut state.app) {
            (FlowTraffic::Requests(traffic), AppState::Requests(app)) => Some((traffic, app)),
            _ => None,
        }
    }

    /// Opens the connections of a client, and sends the first requests.
    pub(in crate::flows) fn begin_requests(&mut self, first: usize) {
        let Some((traffic, _)) = self.requests_of(first) else { return };
        let flows = first..first + traffic.fan_in.get() as usize;
        for flow in flows {
            let state = &mut self.flows[flow];
            self.wire.probes.record_transfer_start(self.now, &mut state.record, u32::MAX);
            self.start_connection(flow, &[SERVER, CLIENT]);
        }
        self.send_requests(first);
    }

    /// A client sends the requests of all its flows.
    fn send_requests(&mut self, first: usize) {
        let now = self.now;
        let Some((traffic, app)) = self.requests_of(first) else { return };
        let fan_in = traffic.fan_in.get();
        (app.missing, app.began) = (fan_in, now);
        for flow in first..first + fan_in as usize {
            self.send_request(flow);
        }
    }

    fn send_request(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (FlowTraffic::Requests(traffic), AppState::Requests(app)) =
            (&class.traffic, &mut state.app)
        else {
            return;
        };
        let request = draw_bytes(&traffic.request, &mut state.sizes);
        app.answer = draw_bytes(&traffic.answer, &mut state.sizes);
        app.written[CLIENT] += request;
        app.written[SERVER] += app.answer;
        state.wanted = [app.written[CLIENT], app.written[SERVER]];
        let is_opening =
            state.ends[CLIENT].endpoint.as_ref().is_some_and(|endpoint| endpoint.is_opening());
        if is_opening {
            state.unwritten[CLIENT] = request;
        } else {
            self.write(flow, CLIENT, request);
        }
        self.transmit(flow, CLIENT);
    }

    /// The server has received a request, or the client an answer.
    pub(in crate::flows) fn on_request_or_answer(&mut self, flow: usize, end: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        state.wanted[end] = NOT_WANTED;
        let class = state.record.class();
        let (FlowTraffic::Requests(traffic), AppState::Requests(app)) =
            (&self.classes[class].traffic, &mut state.app)
        else {
            return;
        };
        if end == SERVER {
            let time = seconds_to_nanos(traffic.server_time.draw_value(&mut state.off_times));
            return match time {
                0 => self.send_answer(flow),
                time => self.timers.set(FlowTimer::Application, flow, SERVER, now + time),
            };
        }
        let first = app.first;
        let client = &mut self.flows[first];
        let AppState::Requests(app) = &mut client.app else { return };
        app.missing -= 1;
        if app.missing > 0 {
            return;
        }
        let (latency, stopped) = (now - app.began, app.stopped);
        let pause = seconds_to_nanos(traffic.pause.draw_value(&mut client.off_times));
        self.count_latency(class, latency);
        if !stopped {
            // Even without a pause, the client first processes the answer.
            self.timers.set(FlowTimer::Application, first, CLIENT, now + pause);
        }
    }

    fn send_answer(&mut self, flow: usize) {
        let Some((_, app)) = self.requests_of(flow) else { return };
        let answer = app.answer;
        self.write(flow, SERVER, answer);
    }

    /// Counts the time of a request or segment.
    pub(in crate::flows) fn count_latency(&mut self, class: usize, latency: Nanos) {
        let probes = &mut self.wire.probes;
        probes.counters.add_to_class(class, ClassCell::Requests, 1);
        probes.counters.add_to_class(class, ClassCell::Latency, latency);
        probes.add_time(class, TimeKind::Latency, latency);
    }

    /// The server has prepared an answer, or the pause of the client has ended.
    pub(in crate::flows) fn on_request_timer(&mut self, flow: usize, end: usize) {
        let Some((_, app)) = self.requests_of(flow) else { return };
        if app.stopped {
            return;
        }
        if end == CLIENT {
            return self.send_requests(flow);
        }
        self.send_answer(flow);
        self.transmit(flow, SERVER);
    }
}
