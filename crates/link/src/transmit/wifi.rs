//! A Wi-Fi station or access point that does not share its channel. It aggregates frames, and
//! repeats those that the block acknowledgement does not contain (IEEE Std 802.11-2020, clauses
//! 10.3 and 10.12 to 10.13).
//!
//! ```text
//!  AIFS, backoff | preamble | frame frame frame ... | SIFS | block ack | AIFS, backoff | preamble | ...
//!                           ^ packets that wait by now, up to the limits
//! ```
//!
//! A frame reaches the far end with its last bit. If it must be repeated, it begins the next
//! aggregate, and the frames behind it wait in the far end for it. Its departure must be known
//! before the packets behind it are known. The model therefore assumes that its aggregate gets as
//! long as the preceding one.

use super::Transmitter;
use crate::random::{RandomSource, RandomStream};
use crate::time::{Nanos, SECOND};
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroU64};

const MICROSECOND: Nanos = 1000;
const SIFS: Nanos = 16 * MICROSECOND;
const SLOT: Nanos = 9 * MICROSECOND;
/// SIFS and three slots: the access category best effort.
const AIFS: Nanos = SIFS + 3 * SLOT;
/// Backoffs are 0 to 15 slots.
const BACKOFFS: u64 = 16;
/// Preamble of a VHT frame with one spatial stream.
const PREAMBLE: Nanos = 40 * MICROSECOND;
/// A block acknowledgement of 32 B at 24 Mbit/s, with its preamble.
const BLOCK_ACK: Nanos = 32 * MICROSECOND;
/// Bytes of a frame besides the packet: delimiter 4, header 26, CCMP 16, LLC 8, check sequence 4.
const FRAME_BYTES: u64 = 58;

/// Parameters of a Wi-Fi link.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiConfig {
    /// Rate of frames in bit/s.
    pub rate_bps: NonZeroU64,
    /// Share of frames that must be repeated, below 1.
    pub error: f64,
    /// Maximum number of frames in an aggregate.
    pub max_frames: NonZeroU32,
    /// Maximum time of the frames of an aggregate; a single frame may be longer.
    #[serde(rename = "max_airtime_ns")]
    pub max_airtime: Nanos,
}

impl WifiConfig {
    fn airtime(&self, bytes: u32) -> Nanos {
        let bits = u128::from(u64::from(bytes) + FRAME_BYTES) * 8;
        (bits * u128::from(SECOND)).div_ceil(u128::from(self.rate_bps.get())) as Nanos
    }

    /// Bytes per second that are sent if packets of `bytes` always wait.
    #[must_use]
    pub fn saturated_bytes_per_s(&self, bytes: u32) -> f64 {
        let airtime = self.airtime(bytes);
        let frames = u64::from(self.max_frames.get()).min(self.max_airtime / airtime).max(1);
        let access = AIFS + (BACKOFFS - 1) * SLOT / 2 + PREAMBLE + SIFS + BLOCK_ACK;
        let cycle = access + frames * airtime;
        frames as f64 * f64::from(bytes) * (1.0 - self.error) * 1e9 / cycle as f64
    }
}

/// A Wi-Fi transmitter.
#[derive(Clone, Debug)]
pub struct WifiTransmitter {
    config: WifiConfig,
    draws: RandomStream,
    /// Begin and end of the frames of the current aggregate, and their number.
    begins: Nanos,
    ends: Nanos,
    frames: u32,
    /// Time of the frames of the preceding aggregate.
    preceding: Nanos,
    /// Frames to be repeated at the beginning of the next aggregate, and their time.
    repeated: (u32, Nanos),
    /// Backoff before the next aggregate.
    backoff: Nanos,
    last_departure: Nanos,
}

impl WifiTransmitter {
    /// Creates an idle transmitter.
    #[must_use]
    pub fn new(config: WifiConfig, draws: RandomStream) -> Self {
        Self {
            config,
            draws,
            begins: 0,
            ends: 0,
            frames: 0,
            preceding: 0,
            repeated: (0, 0),
            backoff: 0,
            last_departure: 0,
        }
    }

    /// Whether a packet that arrived at `arrived` joins the current aggregate.
    fn joins(&self, arrived: Nanos, airtime: Nanos) -> bool {
        (1..self.config.max_frames.get()).contains(&self.frames)
            && arrived <= self.begins
            && self.ends - self.begins + airtime <= self.config.max_airtime
    }

    /// Earliest begin of the preamble of the next aggregate.
    fn next_access(&self) -> Nanos {
        self.ends + SIFS + BLOCK_ACK + AIFS + self.backoff
    }

    /// Begins an aggregate for a packet that arrived at `arrived`.
    fn begin_aggregate(&mut self, arrived: Nanos) {
        if self.repeated.0 > 0 && self.next_access() < arrived {
            // The repeated frames did not wait for the packet.
            self.begin_next(0);
        }
        self.begin_next(arrived);
    }

    fn begin_next(&mut self, earliest: Nanos) {
        let access = if self.frames == 0 { 0 } else { self.next_access() };
        self.preceding = self.ends - self.begins;
        self.begins = earliest.max(access) + PREAMBLE;
        let (frames, airtime) = std::mem::take(&mut self.repeated);
        (self.frames, self.ends) = (frames, self.begins + airtime);
        self.backoff = self.draws.next_bits() % BACKOFFS * SLOT;
    }

    /// Number of repetitions of a frame.
    fn draw_repetitions(&mut self) -> u32 {
        let mut repetitions = 0;
        while self.config.error > 0.0 && self.draws.draw_chance(self.config.error) {
            repetitions += 1;
        }
        repetitions
    }
}

impl Transmitter for WifiTransmitter {
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos {
        let airtime = self.config.airtime(bytes);
        if !self.joins(arrived, airtime) {
            self.begin_aggregate(arrived);
        }
        self.frames += 1;
        self.ends += airtime;
        let mut leaves = self.ends;
        let repetitions = self.draw_repetitions();
        if repetitions > 0 {
            let rest = self.preceding.saturating_sub(self.ends - self.begins);
            let access = self.next_access() - self.ends + PREAMBLE;
            let (frames, time) = self.repeated;
            leaves += rest + access + time + airtime;
            leaves += Nanos::from(repetitions - 1) * (access + self.preceding.max(airtime));
            self.repeated = (frames + repetitions, time + Nanos::from(repetitions) * airtime);
        }
        self.last_departure = self.last_departure.max(leaves);
        self.last_departure
    }

    fn capacity_bytes_until(&self, until: Nanos) -> Option<u64> {
        let per_second = self.config.saturated_bytes_per_s(FULL_PACKET_BYTES);
        Some((per_second * (until as f64 / 1e9)) as u64)
    }

    fn reset_when_idle(&mut self) {
        self.repeated = (0, 0);
    }
}

/// Length of the packets for which the capacity is stated.
const FULL_PACKET_BYTES: u32 = 1500;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn config(error: f64) -> WifiConfig {
        WifiConfig {
            rate_bps: NonZeroU64::new(390_000_000).unwrap(),
            error,
            max_frames: NonZeroU32::new(64).unwrap(),
            max_airtime: 4_000_000,
        }
    }

    fn departures(config: WifiConfig, arrivals: &[(Nanos, u32)]) -> Vec<Nanos> {
        let mut wifi = WifiTransmitter::new(config, RandomStream::from_seed(1));
        arrivals.iter().map(|(at, bytes)| wifi.transmit(*at, *bytes)).collect()
    }

    /// The same rules without the assumption on the length of aggregates: each aggregate is known when
    /// it begins, and a repeated frame is in the next one.
    fn reference(config: WifiConfig, arrivals: &[(Nanos, u32)]) -> Vec<Nanos> {
        let mut draws = RandomStream::from_seed(2);
        let mut leaves = vec![0; arrivals.len()];
        let (mut next, mut access) = (0, 0);
        let mut repeated = VecDeque::new();
        while next < arrivals.len() || !repeated.is_empty() {
            let begins =
                if repeated.is_empty() { access.max(arrivals[next].0) } else { access } + PREAMBLE;
            let mut frames: Vec<usize> = repeated.drain(..).collect();
            let airtime = |frame: usize| config.airtime(arrivals[frame].1);
            let mut time: Nanos = frames.iter().map(|frame| airtime(*frame)).sum();
            while next < arrivals.len()
                && arrivals[next].0 <= begins
                && frames.len() < config.max_frames.get() as usize
                && (frames.is_empty() || time + airtime(next) <= config.max_airtime)
            {
                time += airtime(next);
                frames.push(next);
                next += 1;
            }
            let mut ends = begins;
            for frame in frames {
                ends += airtime(frame);
                leaves[frame] = ends;
                if draws.draw_unit() <= config.error {
                    repeated.push_back(frame);
                }
            }
            access = ends + SIFS + BLOCK_ACK + AIFS + draws.next_bits() % BACKOFFS * SLOT;
        }
        for frame in 1..leaves.len() {
            leaves[frame] = leaves[frame].max(leaves[frame - 1]);
        }
        leaves
    }

    #[test]
    fn waiting_packets_share_an_access_and_a_preamble() {
        // 1442 B and 58 B take 30769 ns; four arrive at once, and one during their transmission.
        let arrivals = [(0, 1442), (0, 1442), (0, 1442), (0, 1442), (50_000, 1442)];
        let leaves = departures(config(0.0), &arrivals);
        let airtime = 30_770;
        assert_eq!(leaves[..4], [1, 2, 3, 4].map(|n| PREAMBLE + n * airtime));
        let access = leaves[4] - leaves[3] - airtime - SIFS - BLOCK_ACK - AIFS - PREAMBLE;
        assert!(access % SLOT == 0 && access < BACKOFFS * SLOT);
    }

    #[test]
    fn limits_of_an_aggregate_separate_bursts() {
        let starts = |config: WifiConfig| {
            let leaves = departures(config, &[(0, 1442); 200]);
            let is_start = |pair: &&[Nanos]| pair[1] - pair[0] > 2 * config.airtime(1442);
            leaves.windows(2).filter(is_start).count()
        };
        // 64, 64, 64 and 8 frames; 12 frames of 31 us in 380 us; one frame each.
        assert_eq!(starts(config(0.0)), 3);
        assert_eq!(starts(WifiConfig { max_airtime: 380_000, ..config(0.0) }), 16);
        let single = WifiConfig { max_frames: NonZeroU32::MIN, ..config(0.0) };
        assert_eq!(starts(single), 199);
    }

    #[test]
    fn an_idle_station_waits_only_for_the_preamble() {
        let leaves = departures(config(0.0), &[(0, 1442), (1_000_000, 1442)]);
        assert_eq!(leaves[1], 1_000_000 + PREAMBLE + 30_770);
    }

    #[test]
    fn capacity_is_that_of_waiting_packets() {
        for error in [0.0, 0.05, 0.2] {
            let config = config(error);
            let leaves = departures(config, &vec![(0, 1500); 200_000]);
            let rate = 200_000.0 * 1500.0 / (leaves[199_999] as f64 * 1e-9);
            let expected = config.saturated_bytes_per_s(1500);
            assert!((rate / expected - 1.0).abs() < 0.01, "{error}: {rate} for {expected}");
        }
    }

    #[test]
    fn delays_agree_with_aggregates_that_are_known_when_they_begin() {
        for (load, error) in
            [(0.3, 0.0), (0.3, 0.1), (0.8, 0.0), (0.8, 0.05), (0.8, 0.2), (0.95, 0.1)]
        {
            let config = config(error);
            let mut draws = RandomStream::from_seed(3);
            let gap = 1500e9 / (load * config.saturated_bytes_per_s(1500));
            let mut now = 0.0;
            let arrivals: Vec<(Nanos, u32)> = (0..300_000)
                .map(|_| {
                    now -= gap * draws.draw_unit().ln();
                    (now as Nanos, 1500)
                })
                .collect();
            let mean = |leaves: Vec<Nanos>| {
                let delays = leaves.iter().zip(&arrivals).map(|(leaves, (at, _))| leaves - at);
                delays.sum::<Nanos>() as f64 / arrivals.len() as f64
            };
            let (got, expected) =
                (mean(departures(config, &arrivals)), mean(reference(config, &arrivals)));
            assert!((got / expected - 1.0).abs() < 0.03, "{load}, {error}: {got} for {expected}");
        }
    }
}
