//! A player that requests segments of a fixed rate and plays them from a buffer.
//!
//! ```text
//!  request -> segment -> buffer --(start_buffer)--> plays --(empty)--> stalls --(start_buffer)--> plays
//!     ^________________________|  as soon as the next segment fits into max_buffer
//! ```

use crate::clock::{Nanos, seconds_to_nanos};
use crate::flows::apps::AppState;
use crate::flows::config::{FlowTraffic, StreamTraffic};
use crate::flows::parcel::{CLIENT, NOT_WANTED, SERVER};
use crate::flows::{FlowSimulation, FlowTimer};
use crate::probe::ClassCell;

/// Bytes of a request.
const REQUEST_BYTES: u64 = 400;

/// State of a player.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamState {
    began: Nanos,
    /// Time of the request for the segment that is being received; `None` between segments.
    requested_at: Option<Nanos>,
    /// Buffered playing time as of `since`.
    buffered: Nanos,
    since: Nanos,
    playing: bool,
    /// Start of the current stall.
    stalled_at: Option<Nanos>,
    has_played: bool,
    /// Segments requested so far.
    segments: u64,
    stopped: bool,
}

impl StreamState {
    /// Stops the player.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.playing = false;
    }

    /// Plays until `now`; returns the time played. Stalls when the buffer becomes empty.
    fn play_until(&mut self, now: Nanos) -> Nanos {
        let elapsed = now - self.since;
        self.since = now;
        if !self.playing {
            return 0;
        }
        let played = elapsed.min(self.buffered);
        self.buffered -= played;
        if self.buffered == 0 {
            self.playing = false;
            self.stalled_at = Some(now - (elapsed - played));
        }
        played
    }
}

impl FlowSimulation {
    /// Opens the connection of a player, and requests the first segment.
    pub(in crate::flows) fn begin_stream(&mut self, flow: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        self.wire.probes.record_transfer_start(now, &mut state.record, u32::MAX);
        if let AppState::Stream(player) = &mut state.app {
            (player.began, player.since) = (now, now);
        }
        self.start_connection(flow, &[SERVER, CLIENT]);
        self.transmit(flow, CLIENT);
        self.request_segment(flow);
        self.transmit(flow, CLIENT);
    }

    fn request_segment(&mut self, flow: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (FlowTraffic::Stream(traffic), AppState::Stream(player)) =
            (&class.traffic, &mut state.app)
        else {
            return;
        };
        player.segments += 1;
        player.requested_at = Some(now);
        let mut wanted = [0; 2];
        wanted[SERVER] = player.segments * REQUEST_BYTES;
        wanted[CLIENT] = player.segments * segment_bytes(traffic);
        state.wanted = wanted;
        let is_opening =
            state.ends[CLIENT].endpoint.as_ref().is_some_and(|endpoint| endpoint.is_opening());
        if is_opening {
            state.unwritten[CLIENT] = REQUEST_BYTES;
        } else {
            self.write(flow, CLIENT, REQUEST_BYTES);
        }
    }

    /// The server has received a request, or the player a segment.
    pub(in crate::flows) fn on_segment_or_request(&mut self, flow: usize, end: usize) {
        let state = &mut self.flows[flow];
        state.wanted[end] = NOT_WANTED;
        let class = state.record.class();
        let FlowTraffic::Stream(traffic) = &self.classes[class].traffic else { return };
        if end == SERVER {
            let bytes = segment_bytes(traffic);
            return self.write(flow, SERVER, bytes);
        }
        self.update_player(flow);
        let (now, state) = (self.now, &mut self.flows[flow]);
        let AppState::Stream(player) = &mut state.app else { return };
        let FlowTraffic::Stream(traffic) = &self.classes[class].traffic else { return };
        player.buffered += seconds_to_nanos(traffic.segment_s);
        let latency = player.requested_at.take().map(|requested| now - requested);
        let begins = !player.playing && player.buffered >= seconds_to_nanos(traffic.start_buffer_s);
        let counters = &mut self.wire.probes.counters;
        if begins && !player.stopped {
            player.playing = true;
            if !std::mem::replace(&mut player.has_played, true) {
                counters.add_to_class(class, ClassCell::Startups, 1);
                counters.add_to_class(class, ClassCell::Startup, now - player.began);
            } else if let Some(stalled_at) = player.stalled_at.take() {
                counters.add_to_class(class, ClassCell::StalledPlay, now - stalled_at);
            }
        }
        if let Some(latency) = latency {
            self.count_latency(class, latency);
        }
        self.continue_stream(flow);
    }

    /// Plays until now, and counts the time and a stall.
    fn update_player(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let class = state.record.class();
        let AppState::Stream(player) = &mut state.app else { return };
        let was_playing = player.playing;
        let played = player.play_until(self.now);
        let counters = &mut self.wire.probes.counters;
        counters.add_to_class(class, ClassCell::Played, played);
        if was_playing && !player.playing {
            counters.add_to_class(class, ClassCell::Stalls, 1);
        }
    }

    /// Requests the next segment if it fits into the buffer, or schedules this for later. Schedules
    /// the end of the buffered time.
    fn continue_stream(&mut self, flow: usize) {
        let now = self.now;
        let state = &mut self.flows[flow];
        let class = &self.classes[state.record.class()];
        let (FlowTraffic::Stream(traffic), AppState::Stream(player)) = (&class.traffic, &state.app)
        else {
            return;
        };
        if player.stopped {
            return;
        }
        if player.playing {
            let empty_at = now + player.buffered;
            self.timers.set(FlowTimer::Application, flow, SERVER, empty_at);
        }
        let max = seconds_to_nanos(traffic.max_buffer_s);
        let full = player.buffered + seconds_to_nanos(traffic.segment_s);
        if full <= max || !player.playing {
            self.request_segment(flow);
        } else {
            self.timers.set(FlowTimer::Application, flow, CLIENT, now + full - max);
        }
    }

    /// The buffer may be empty (timer of the server), or the next segment fits (of the client).
    pub(in crate::flows) fn on_stream_timer(&mut self, flow: usize, end: usize) {
        self.update_player(flow);
        let AppState::Stream(player) = &self.flows[flow].app else { return };
        if end == CLIENT && !player.stopped && player.requested_at.is_none() {
            self.request_segment(flow);
            self.transmit(flow, CLIENT);
        }
    }
}

/// Bytes of a segment.
fn segment_bytes(traffic: &StreamTraffic) -> u64 {
    (libm::round(traffic.rate_bps as f64 * traffic.segment_s / 8.0) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn player_stalls_when_its_buffer_is_empty() {
        let mut player = StreamState { buffered: 100, playing: true, ..StreamState::default() };
        assert_eq!((player.play_until(40), player.buffered, player.playing), (40, 60, true));
        assert_eq!((player.play_until(130), player.buffered, player.playing), (60, 0, false));
        assert_eq!(player.stalled_at, Some(100));
        assert_eq!(player.play_until(150), 0);
    }
}
