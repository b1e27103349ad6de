//! An application that reads or writes in steps instead of at once.
//!
//! ```text
//!  writer: write a chunk --(send buffer full: wait for space)--> whole chunk written --(gap)--> next
//!  reader: data arrives --> read up to `size` bytes --(pause)--> read again, or wait for data
//! ```

use crate::clock::{Nanos, SECOND, seconds_to_nanos};
use crate::flows::apps::AppState;
use crate::flows::config::{ReadPause, ReadingConfig, WritingConfig};
use crate::flows::parcel::{CLIENT, NOT_WANTED, SERVER};
use crate::flows::{FlowSimulation, FlowTimer};
use crate::random::RandomStream;
use crate::traffic::Distribution;
use std::collections::VecDeque;

/// Maximum number of chunks under way; with this number, the writer waits as for space in the send
/// buffer. The maximum limits the memory of a flow with short chunks.
const MAX_CHUNKS: usize = 65_536;

/// Bytes of each chunk while the writer always has data.
const GREEDY_CHUNK_BYTES: u64 = 16_384;

/// State of the applications of both ends of a flow.
#[derive(Clone, Debug)]
pub(crate) struct SteppedState {
    draws: RandomStream,
    /// Whether the reader of each end pauses.
    pauses: [bool; 2],
    /// Bytes of the current chunk that the send buffer has not accepted yet.
    rest: u64,
    /// Bytes of all chunks so far.
    written: u64,
    /// End and start time of each chunk under way, oldest first.
    chunks: VecDeque<(u64, Nanos)>,
    /// Whether the writer waits for the end of a chunk.
    waits_for_end: bool,
    stopped: bool,
}

impl SteppedState {
    /// State before the first chunk; `draws` gives the sizes, gaps and pauses.
    pub fn new(draws: RandomStream) -> Self {
        Self {
            draws,
            pauses: [false; 2],
            rest: 0,
            written: 0,
            chunks: VecDeque::new(),
            waits_for_end: false,
            stopped: false,
        }
    }

    /// Stops both applications.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Draws the time until the next read, after a read of `bytes`.
    fn draw_pause(&mut self, reading: &ReadingConfig, bytes: u64) -> Nanos {
        match &reading.pause {
            ReadPause::RateBps(rate) => {
                let time = u128::from(bytes) * 8 * u128::from(SECOND) / u128::from((*rate).max(1));
                Nanos::try_from(time).unwrap_or(Nanos::MAX / 2)
            }
            ReadPause::Time(time) => seconds_to_nanos(time.draw_value(&mut self.draws)),
        }
    }

    fn draw_gap(&mut self, now: Nanos, writing: &WritingConfig) -> Nanos {
        if now < writing.after {
            return 0;
        }
        seconds_to_nanos(writing.gap.draw_value(&mut self.draws))
    }

    /// Begins the next chunk.
    fn begin_chunk(&mut self, now: Nanos, writing: &WritingConfig) {
        self.rest = if now < writing.after {
            GREEDY_CHUNK_BYTES
        } else {
            draw_chunk_bytes(&writing.size, &mut self.draws)
        };
        self.written += self.rest;
        self.chunks.push_back((self.written, now));
    }

    /// End of the oldest chunk under way.
    fn oldest_end(&self) -> u64 {
        self.chunks.front().map_or(NOT_WANTED, |(end, _)| *end)
    }

    /// Removes the oldest chunk if it ends at or before byte `end`; returns its start time.
    fn take_chunk_before(&mut self, end: u64) -> Option<Nanos> {
        let (_, began) = *self.chunks.front().filter(|chunk| chunk.0 <= end)?;
        self.chunks.pop_front();
        Some(began)
    }
}

/// Draws the bytes of a chunk, at least one.
fn draw_chunk_bytes(size: &Distribution, draws: &mut RandomStream) -> u64 {
    libm::round(size.draw_value(draws)).clamp(1.0, 1e15) as u64
}

impl FlowSimulation {
    /// The session of the sending end is open: it writes its first chunk.
    pub(in crate::flows) fn begin_chunks(&mut self, flow: usize, end: usize) {
        self.begin_next_chunk(flow);
        self.write_chunks(flow, end);
    }

    fn begin_next_chunk(&mut self, flow: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (Some(writing), AppState::Stepped(app)) = (&class.writing, &mut state.app) else {
            return;
        };
        app.begin_chunk(now, writing);
        let receiver = SERVER + CLIENT - class.file_sender();
        if !class.reads_in_steps(receiver) {
            state.wanted[receiver] = app.oldest_end();
        }
    }

    /// Writes until the send buffer is full or a gap follows; call [`FlowSimulation::transmit`] next.
    fn write_chunks(&mut self, flow: usize, end: usize) {
        loop {
            let state = &mut self.flows[flow];
            let class = &self.classes[state.record.class()];
            let AppState::Stepped(app) = &mut state.app else { return };
            let (Some(writing), Some(endpoint), Some(tcp)) =
                (&class.writing, &mut state.ends[end].endpoint, class.tcp(end))
            else {
                return;
            };
            if app.stopped || app.rest == 0 {
                return;
            }
            let probes = &mut self.wire.probes;
            let listener =
                &mut crate::probe::SenderListener::new(probes, &mut state.record, flow as u32);
            app.rest -= endpoint.write_to_buffer(self.now, app.rest, tcp, listener);
            if app.rest > 0 {
                return;
            }
            let gap = app.draw_gap(self.now, writing);
            if gap > 0 {
                return self.timers.set(FlowTimer::Application, flow, end, self.now + gap);
            }
            app.waits_for_end = app.chunks.len() >= MAX_CHUNKS;
            if app.waits_for_end {
                return;
            }
            self.begin_next_chunk(flow);
        }
    }

    /// The send buffer of an end has space again.
    pub(in crate::flows) fn on_writable_for_stepped(&mut self, flow: usize, end: usize) {
        self.write_chunks(flow, end);
        self.transmit(flow, end);
    }

    /// Data has arrived at an end.
    pub(in crate::flows) fn on_data_for_stepped(&mut self, flow: usize, end: usize) {
        let state = &self.flows[flow];
        let AppState::Stepped(app) = &state.app else { return };
        if !self.classes[state.record.class()].reads_in_steps(end) {
            self.finish_chunks(flow, end);
        } else if !app.pauses[end] {
            self.read_step(flow, end);
        }
    }

    /// The reader reads once, and then pauses.
    fn read_step(&mut self, flow: usize, end: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let AppState::Stepped(app) = &mut state.app else { return };
        let (Some(reading), Some(endpoint)) = (&class.reading, &mut state.ends[end].endpoint)
        else {
            return;
        };
        let bytes = if app.stopped { 0 } else { endpoint.read(now, reading.size) };
        app.pauses[end] = bytes > 0;
        if bytes == 0 {
            return;
        }
        let pause = app.draw_pause(reading, bytes);
        // Even without a pause, other events of this instant come first.
        self.timers.set(FlowTimer::Application, flow, end, now + pause);
        self.finish_chunks(flow, end);
    }

    /// Counts the chunks that the application of the receiving end has completely.
    fn finish_chunks(&mut self, flow: usize, end: usize) {
        loop {
            let state = &mut self.flows[flow];
            let class = state.record.class();
            let of_class = &self.classes[class];
            let (Some(endpoint), Some(tcp), AppState::Stepped(app)) =
                (&state.ends[end].endpoint, of_class.tcp(end), &mut state.app)
            else {
                return;
            };
            let Some(began) = app.take_chunk_before(endpoint.read_bytes(tcp)) else {
                if !of_class.reads_in_steps(end) {
                    state.wanted[end] = app.oldest_end();
                }
                return;
            };
            let waited = std::mem::take(&mut app.waits_for_end);
            self.count_latency(class, self.now - began);
            if waited {
                let sender = SERVER + CLIENT - end;
                self.timers.set(FlowTimer::Application, flow, sender, self.now);
            }
        }
    }

    /// A pause of a reader, or the gap of the writer, has ended.
    pub(in crate::flows) fn on_stepped_timer(&mut self, flow: usize, end: usize) {
        let state = &mut self.flows[flow];
        let AppState::Stepped(app) = &mut state.app else { return };
        if app.stopped {
            return;
        }
        if self.classes[state.record.class()].reads_in_steps(end) {
            self.read_step(flow, end);
        } else if app.chunks.len() >= MAX_CHUNKS {
            app.waits_for_end = true;
        } else if app.rest == 0 {
            self.begin_next_chunk(flow);
            self.write_chunks(flow, end);
        }
        self.transmit(flow, end);
    }
}
