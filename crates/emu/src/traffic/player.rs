//! A player that plays segments of a stream from its buffer.

use super::StreamConfig;
use tcpcast_link::time::Nanos;

/// Counters of a player; times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlayerCounters {
    pub startups: u64,
    pub startup: Nanos,
    pub stalls: u64,
    pub stalled: Nanos,
    pub played: Nanos,
}

/// State of a player. Times are since the start of the run, and do not decrease.
#[derive(Clone, Debug)]
pub(super) struct Player {
    config: StreamConfig,
    pub counters: PlayerCounters,
    began: Option<Nanos>,
    /// Buffered playing time as of `since`.
    buffered: Nanos,
    since: Nanos,
    playing: bool,
    stalled_at: Option<Nanos>,
}

impl Player {
    pub(super) fn new(config: StreamConfig) -> Self {
        Self {
            config,
            counters: PlayerCounters::default(),
            began: None,
            buffered: 0,
            since: 0,
            playing: false,
            stalled_at: None,
        }
    }

    /// Bytes of a segment.
    pub(super) fn segment_bytes(&self) -> u64 {
        self.config.segment_bytes
    }

    /// Requests the first segment.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.began.get_or_insert(now);
        self.since = self.since.max(now);
    }

    /// Plays until `now`. Stalls when the buffer becomes empty.
    pub(super) fn play_until(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.since);
        self.since += elapsed;
        if !self.playing {
            return;
        }
        let played = elapsed.min(self.buffered);
        self.counters.played += played;
        self.buffered -= played;
        if self.buffered == 0 {
            self.playing = false;
            self.counters.stalls += 1;
            self.stalled_at = Some(self.since - (elapsed - played));
        }
    }

    /// Adds a segment. Returns the time until the next one is requested.
    pub(super) fn add_segment(&mut self, now: Nanos) -> Nanos {
        self.play_until(now);
        self.buffered += self.config.segment;
        if !self.playing && self.buffered >= self.config.start_buffer {
            self.playing = true;
            if let Some(stalled_at) = self.stalled_at.take() {
                self.counters.stalled += self.since - stalled_at;
            } else {
                self.counters.startups += 1;
                self.counters.startup += self.since - self.began.unwrap_or(self.since);
            }
        }
        let full = self.buffered + self.config.segment;
        if self.playing { full.saturating_sub(self.config.max_buffer) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn player_starts_stalls_and_waits_for_space() {
        let config =
            StreamConfig { segment_bytes: 1000, segment: 100, start_buffer: 200, max_buffer: 250 };
        let mut player = Player::new(config);
        player.begin(10);
        assert_eq!(player.add_segment(40), 0);
        // 200 are buffered, and a further segment fits when 150 are left.
        assert_eq!(player.add_segment(60), 50);
        let counters = |player: &Player| {
            let PlayerCounters { startups, startup, stalls, stalled, played } = player.counters;
            [startups, startup, stalls, stalled, played]
        };
        assert_eq!(counters(&player), [1, 50, 0, 0, 0]);
        player.play_until(300);
        assert_eq!(counters(&player), [1, 50, 1, 0, 200]);
        assert_eq!((player.add_segment(310), player.add_segment(320)), (0, 50));
        assert_eq!(counters(&player), [1, 50, 1, 60, 200]);
    }
}
