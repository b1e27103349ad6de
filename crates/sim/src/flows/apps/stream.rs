//! A player that requests segments, chooses their rate, and plays them from a buffer.
//!
//! ```text
//!  request -> segment -> buffer --(start_buffer)--> plays --(empty)--> stalls --(start_buffer)--> plays
//!     ^________________________|  as soon as the next segment fits into max_buffer
//! ```

use crate::clock::{Nanos, seconds_to_nanos};
use crate::flows::apps::AppState;
use crate::flows::config::{FlowTraffic, QualityControl, StreamTraffic};
use crate::flows::parcel::{CLIENT, NOT_WANTED, SERVER};
use crate::flows::{FlowSimulation, FlowTimer};
use crate::probe::ClassCell;

/// Bytes of a request.
const REQUEST_BYTES: u64 = 400;
/// BBA-0: shares of the buffer below which the lowest rate is used, and above which the highest: 90
/// and 216 s of 240 s (Huang et al., section 4).
const RESERVOIR: f64 = 90.0 / 240.0;
const UPPER_RESERVOIR: f64 = 216.0 / 240.0;
/// Segments whose throughput counts (Yin et al., section 7.1.2).
const THROUGHPUT_SEGMENTS: usize = 5;

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
    /// Segments requested so far, and bytes of all of them.
    segments: u64,
    bytes: u64,
    /// Index of the rate of the last requested segment, and of the one before.
    quality: usize,
    previous_quality: Option<usize>,
    /// Inverse throughput of the last segments in s/bit; 0 for none.
    inverse_throughput: [f64; THROUGHPUT_SEGMENTS],
    stopped: bool,
}

impl StreamState {
    /// Stops the player.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.playing = false;
    }

    /// Time played from the last event until `now`.
    fn played_until(&self, now: Nanos) -> Nanos {
        if self.playing { (now - self.since).min(self.buffered) } else { 0 }
    }

    /// Plays until `now`; returns the time played. Stalls when the buffer becomes empty.
    fn play_until(&mut self, now: Nanos) -> Nanos {
        let played = self.played_until(now);
        self.buffered -= played;
        if self.playing && self.buffered == 0 {
            self.playing = false;
            self.stalled_at = Some(self.since + played);
        }
        self.since = now;
        played
    }
}

impl StreamState {
    /// Index of the rate of the next segment.
    fn choose_quality(&self, traffic: &StreamTraffic) -> usize {
        let rates = &traffic.rates_bps;
        if self.segments == 0 || rates.len() == 1 {
            return 0;
        }
        match traffic.control {
            QualityControl::Buffer => {
                let buffered = self.buffered as f64 / seconds_to_nanos(traffic.max_buffer_s) as f64;
                choose_by_buffer(rates, self.quality, buffered)
            }
            QualityControl::Throughput => {
                let known = self.inverse_throughput.iter().filter(|inverse| **inverse > 0.0);
                let (count, sum) =
                    known.fold((0, 0.0), |(count, sum), inverse| (count + 1, sum + inverse));
                let predicted = if count == 0 { 0.0 } else { f64::from(count) / sum };
                rates.iter().rposition(|rate| (*rate as f64) < predicted).unwrap_or(0)
            }
        }
    }

    /// A segment of `bits` is received after `time`.
    fn record_throughput(&mut self, bits: f64, time: Nanos) {
        let place = (self.segments - 1) as usize % THROUGHPUT_SEGMENTS;
        self.inverse_throughput[place] = time.max(1) as f64 * 1e-9 / bits;
    }
}

/// Algorithm 1 of BBA-0: the rate changes when the rate of the map from the buffer crosses the next
/// one up or down. `buffered` is a share of the largest buffer.
fn choose_by_buffer(rates: &[u64], last: usize, buffered: f64) -> usize {
    let highest = rates.len() - 1;
    if buffered <= RESERVOIR {
        return 0;
    }
    if buffered >= UPPER_RESERVOIR {
        return highest;
    }
    let (low, high) = (rates[0] as f64, rates[highest] as f64);
    let mapped = low + (high - low) * (buffered - RESERVOIR) / (UPPER_RESERVOIR - RESERVOIR);
    if last < highest && mapped >= rates[last + 1] as f64 {
        return rates.iter().rposition(|rate| (*rate as f64) < mapped).unwrap_or(0);
    }
    if last > 0 && mapped <= rates[last - 1] as f64 {
        return rates.iter().position(|rate| *rate as f64 > mapped).unwrap_or(highest);
    }
    last
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
        let quality = player.choose_quality(traffic);
        player.previous_quality = (player.segments > 0).then_some(player.quality);
        player.quality = quality;
        player.segments += 1;
        player.bytes += segment_bytes(traffic, quality);
        player.requested_at = Some(now);
        let mut wanted = [0; 2];
        wanted[SERVER] = player.segments * REQUEST_BYTES;
        wanted[CLIENT] = player.bytes;
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
        let (FlowTraffic::Stream(traffic), AppState::Stream(player)) =
            (&self.classes[class].traffic, &state.app)
        else {
            return;
        };
        if end == SERVER {
            let bytes = segment_bytes(traffic, player.quality);
            return self.write(flow, SERVER, bytes);
        }
        self.update_player(flow);
        let (now, state) = (self.now, &mut self.flows[flow]);
        let AppState::Stream(player) = &mut state.app else { return };
        let FlowTraffic::Stream(traffic) = &self.classes[class].traffic else { return };
        player.buffered += seconds_to_nanos(traffic.segment_s);
        let latency = player.requested_at.take().map(|requested| now - requested);
        let bits = (8 * segment_bytes(traffic, player.quality)) as f64;
        player.record_throughput(bits, latency.unwrap_or(0));
        let begins = !player.playing && player.buffered >= seconds_to_nanos(traffic.start_buffer_s);
        let counters = &mut self.wire.probes.counters;
        counters.add_to_class(class, ClassCell::VideoBits, bits as u64);
        let playing_time = seconds_to_nanos(traffic.segment_s);
        counters.add_to_class(class, ClassCell::Video, playing_time);
        if player.previous_quality.is_some_and(|other| other != player.quality) {
            counters.add_to_class(class, ClassCell::SwitchedVideo, playing_time);
        }
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

    /// Time for which the players of each class played since their last events.
    pub(in crate::flows) fn uncounted_play(&self) -> Vec<Nanos> {
        let mut played = vec![0; self.classes.len()];
        for flow in &self.flows {
            if let AppState::Stream(player) = &flow.app {
                played[flow.record.class()] += player.played_until(self.now);
            }
        }
        played
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

/// Bytes of a segment of a quality.
fn segment_bytes(traffic: &StreamTraffic, quality: usize) -> u64 {
    let rate = traffic.rates_bps[quality] as f64;
    (libm::round(rate * traffic.segment_s / 8.0) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_maps_to_rates_with_hysteresis() {
        let rates = [1_000, 2_000, 4_000];
        let mapped = |rate: f64| RESERVOIR + (UPPER_RESERVOIR - RESERVOIR) * (rate - 1.0) / 3.0;
        for (last, buffered, chosen) in [
            (2, 0.3, 0),
            (0, mapped(1.9), 0),
            (0, mapped(2.1), 1),
            (1, mapped(3.9), 1),
            (1, mapped(1.1), 1),
            (2, mapped(2.1), 2),
            (2, mapped(1.9), 1),
            (0, 0.95, 2),
        ] {
            assert_eq!(choose_by_buffer(&rates, last, buffered), chosen, "{last} {buffered}");
        }
    }

    #[test]
    fn player_stalls_when_its_buffer_is_empty() {
        let mut player = StreamState { buffered: 100, playing: true, ..StreamState::default() };
        assert_eq!((player.play_until(40), player.buffered, player.playing), (40, 60, true));
        assert_eq!((player.play_until(130), player.buffered, player.playing), (60, 0, false));
        assert_eq!(player.stalled_at, Some(100));
        assert_eq!(player.play_until(150), 0);
    }
}
