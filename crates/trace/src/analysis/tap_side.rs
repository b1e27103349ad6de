//! Locates the tap on the path by the response times of both ends.

use super::sequence_numbers::is_earlier_timestamp;
use crate::named_enum::named_enum;
use crate::segment::{Flags, Nanos, Segment};

named_enum! {
    /// Position of the tap relative to a direction's data.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum TapSide {
        /// At the sender: acknowledgements arrive a full round trip after the data.
        Sender = "sender",
        /// At the receiver: data and acknowledgements show nothing about the path.
        Receiver = "receiver",
        /// Between sender and receiver.
        Middle = "middle",
        /// Unknown.
        #[default]
        Unknown = "unknown",
    }
}

impl TapSide {
    /// Whether the tap is known not to be at the sender.
    pub(super) fn is_away(self) -> bool {
        matches!(self, Self::Receiver | Self::Middle)
    }
}

/// Round-trip time to an end from which the tap counts as remote.
pub(super) const MIN_REMOTE_RTT: Nanos = 1_000_000;
/// The tap is at an end whose share of the round trip is at most this.
const MAX_NEAR_RTT_SHARE: f64 = 0.1;
/// Shorter round trips are within a machine or rack, so that both ends are near.
const MIN_DISTINCT_RTT: Nanos = 50_000;
/// Within a machine or rack, the minimum response time of the far end if the tap is at the near one.
const MIN_CREDIBLE_FAR_RTT: Nanos = 10_000;
/// Minimum ratio of this time to the response time of the near end, which is the processing time of
/// its host.
const MIN_FAR_RTT_RATIO: Nanos = 3;
/// After a silence of this length, an end is not expected to echo a timestamp.
const MAX_SILENCE: Nanos = 1_000_000_000;
/// Mean delay of data before the tap from which a shaper precedes it, seconds. Without a shaper, it
/// is at most 0.0001; qdiscs that pace delay single packets by about 0.001.
const MIN_SHAPER_DELAY_S: f64 = 0.005;

/// Round-trip times from the tap to both ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct TapRtts {
    ends: [TapToEndRtt; 2],
    /// Opener of the connection and the time of its SYN; cleared if the SYN is retransmitted,
    /// because the SYN-ACK is then ambiguous.
    opened: Option<(usize, Nanos)>,
    answered: Option<Nanos>,
    handshake: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TapToEndRtt {
    /// Shortest response time to a handshake segment or timestamp.
    min_response: Option<Nanos>,
    /// Highest timestamp sent to this end.
    newest: Option<u32>,
    /// A timestamp sent to this end and not yet echoed, and the time of the first segment with it.
    awaited: Option<(u32, Nanos)>,
    /// Time of the last segment from this end.
    last: Nanos,
}

impl TapToEndRtt {
    fn add_answer_time(&mut self, took: Nanos) {
        self.min_response = Some(self.min_response.map_or(took, |min| min.min(took)));
    }
}

impl TapRtts {
    /// Processes a segment from the end `from`. Returns the time since the timestamp that it echoes
    /// passed the tap, if this is the first echo.
    #[inline]
    pub(crate) fn process_segment(&mut self, segment: &Segment, from: usize) -> Option<Nanos> {
        if segment.flags.contains_any(Flags::SYN) || self.answered.is_some() {
            self.process_handshake(segment, from);
        }
        let (value, echo) = segment.options.timestamps?;
        let end = &mut self.ends[from];
        end.last = segment.time;
        // The echo of a later timestamp answers a later segment: the time is then not too short.
        let answers = |&(awaited, _): &(u32, Nanos)| {
            segment.flags.contains_any(Flags::ACK)
                && !is_earlier_timestamp(echo, awaited)
                && end.newest.is_some_and(|newest| !is_earlier_timestamp(newest, echo))
        };
        let since = end.awaited.filter(answers).map(|(_, since)| since);
        let answer = since.map(|since| segment.time.saturating_sub(since));
        if let Some(took) = answer {
            end.add_answer_time(took);
            end.awaited = None;
        }
        // With a slow clock, many segments have the same timestamp, and the echo may answer each of
        // them. Only the first one shows a time that is not too short. The first timestamp of a
        // capture without SYN may be older than the capture.
        let other = &mut self.ends[1 - from];
        let newest = other.newest.replace(value);
        match newest {
            Some(newest) if !is_earlier_timestamp(newest, value) => other.newest = Some(newest),
            None if !segment.flags.contains_any(Flags::SYN) => {}
            // Only one timestamp is awaited at a time. If the end is silent for a second, its echo
            // is no longer expected.
            _ if other.awaited.is_none_or(|(_, since)| {
                segment.time.saturating_sub(since.max(other.last)) > MAX_SILENCE
            }) =>
            {
                other.awaited = Some((value, segment.time));
            }
            _ => {}
        }
        answer
    }

    fn process_handshake(&mut self, segment: &Segment, from: usize) {
        let (syn, ack) =
            (segment.flags.contains_any(Flags::SYN), segment.flags.contains_any(Flags::ACK));
        match (syn, ack, self.opened, self.answered) {
            (true, false, None, None) if self.handshake.is_none() => {
                self.opened = Some((from, segment.time));
            }
            (true, true, Some((opener, since)), None) if opener != from => {
                self.ends[from].add_answer_time(segment.time.saturating_sub(since));
                self.answered = Some(segment.time);
            }
            (false, true, Some((opener, since)), Some(answered)) if opener == from => {
                self.ends[from].add_answer_time(segment.time.saturating_sub(answered));
                self.handshake = Some(segment.time.saturating_sub(since));
                (self.opened, self.answered) = (None, None);
            }
            (true, ..) => (self.opened, self.answered) = (None, None),
            _ => {}
        }
    }

    /// Round-trip time from the tap to the end `end`.
    #[inline(always)]
    pub(crate) fn rtt_to_end(&self, end: usize) -> Option<Nanos> {
        self.ends[end].min_response
    }

    /// Time from the SYN to the acknowledgement of the SYN-ACK: the RTT of the full path.
    pub(crate) fn handshake_rtt(&self) -> Option<Nanos> {
        self.handshake
    }

    /// Whether the tap may be behind a queue for data from the end `from`: it is not at this end, or
    /// both ends are so near that a shaper of an interface is the whole path.
    #[inline(always)]
    pub(crate) fn may_be_behind_queue(&self, from: usize) -> bool {
        let [near, far] = [from, 1 - from].map(|end| self.rtt_to_end(end).unwrap_or(0));
        near > MIN_REMOTE_RTT || near > 0 && near.saturating_add(far) < MIN_DISTINCT_RTT
    }

    /// Returns the position of the tap for data from the end `from`. `far`: minimum RTT of data and
    /// acknowledgements. `queue_s`: mean delay of a queue between the sender and the tap, if known.
    pub(crate) fn tap_side(
        &self,
        from: usize,
        far: Option<Nanos>,
        queue_s: Option<f64>,
    ) -> TapSide {
        let far_rtt = [self.rtt_to_end(1 - from), far].into_iter().flatten().min();
        let (Some(tap_rtt), Some(far_rtt)) = (self.rtt_to_end(from), far_rtt) else {
            return TapSide::Unknown;
        };
        let total = tap_rtt.saturating_add(far_rtt);
        if total < MIN_DISTINCT_RTT {
            return match queue_s {
                Some(queue_s) if queue_s >= MIN_SHAPER_DELAY_S => TapSide::Middle,
                _ => near_tap_side(tap_rtt, far_rtt),
            };
        }
        match tap_rtt as f64 / total as f64 {
            share if share <= MAX_NEAR_RTT_SHARE => TapSide::Sender,
            share if share >= 1.0 - MAX_NEAR_RTT_SHARE => TapSide::Receiver,
            _ => TapSide::Middle,
        }
    }
}

/// Position of a tap near both ends, without a queue before the tap.
fn near_tap_side(tap_rtt: Nanos, far_rtt: Nanos) -> TapSide {
    let is_far = |rtt: Nanos, other: Nanos| {
        rtt >= MIN_CREDIBLE_FAR_RTT && rtt >= other.saturating_mul(MIN_FAR_RTT_RATIO)
    };
    match (is_far(far_rtt, tap_rtt), is_far(tap_rtt, far_rtt)) {
        (true, _) => TapSide::Sender,
        (_, true) => TapSide::Receiver,
        _ => TapSide::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::segment::{Endpoint, Options};

    const MS: Nanos = 1_000_000;

    /// Sends data every `gap` from end 0, `away[0]` before the tap, to end 1, `away[1]` behind it
    /// (RTTs, ms). Both timestamp clocks tick every `tick`. The receiver acknowledges every second
    /// packet and echoes the first of them (RFC 7323, section 4.3). Returns what the tap sees from
    /// `begin` on.
    fn observe(away: [u64; 2], gap: u64, tick: u64, begin: u64) -> TapRtts {
        let stamp = |ms: u64| 5000 + (ms / tick) as u32;
        let mut seen = Vec::new(); // time at the tap, sender, timestamps
        let mut received = Vec::new(); // time at the sender, timestamp of an ack
        let (mut pending, mut last_received) = (None, 5000);
        for sent in (1000..8000).step_by(gap as usize) {
            let echo =
                received.iter().rev().find(|(time, _)| *time <= sent).map_or(5000, |ack| ack.1);
            seen.push((sent + away[0] / 2, 0, (stamp(sent), echo)));
            let arrived = sent + away[0] / 2 + away[1] / 2;
            last_received = stamp(arrived).max(last_received);
            match pending.take() {
                None => pending = Some(stamp(sent)),
                Some(first) => {
                    seen.push((arrived + away[1] / 2, 1, (last_received, first)));
                    received.push((arrived + away[1] / 2 + away[0] / 2, last_received));
                }
            }
        }
        seen.sort_by_key(|(time, ..)| *time);
        let mut tap = TapRtts::default();
        for (ms, from, timestamps) in seen.into_iter().filter(|(time, ..)| *time >= begin) {
            let address =
                |end: usize| Endpoint { address: IpAddr::from([10, 0, 0, end as u8]), port: 1 };
            let segment = Segment {
                frame: 1,
                time: ms * MS,
                source: address(from),
                destination: address(1 - from),
                ip_id: None,
                ttl: 64,
                ecn: 0,
                ip_bytes: 52,
                payload: 0,
                sequence: 0,
                acknowledgement: 0,
                flags: Flags(Flags::ACK),
                ae: false,
                window: 100,
                options: Options { timestamps: Some(timestamps), ..Options::default() },
                fragment: false,
            };
            tap.process_segment(&segment, from);
        }
        tap
    }

    #[test]
    fn response_times_are_never_too_short_with_slow_clocks() {
        for away in [[40, 40], [2, 60], [60, 2], [10, 100], [200, 20]] {
            for tick in [1, 4, 10, 100, 250, 1000] {
                for gap in [1, 7, 30] {
                    for begin in [0, 1503, 2777] {
                        let tap = observe(away, gap, tick, begin);
                        for end in [0, 1] {
                            let case = (away, tick, gap, begin, end);
                            let Some(found) = tap.rtt_to_end(end) else {
                                panic!("no response: {case:?}");
                            };
                            assert!(found >= away[end] * MS, "{found}: {case:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn tap_in_the_middle_is_not_at_an_end_with_slow_clocks() {
        for tick in [1, 10, 100, 1000] {
            for begin in [0, 2777] {
                let tap = observe([40, 40], 2, tick, begin);
                assert_eq!(tap.tap_side(0, None, None), TapSide::Middle, "{tick} {begin}");
                assert_eq!(tap.tap_side(1, None, None), TapSide::Middle, "{tick} {begin}");
            }
        }
    }
}
