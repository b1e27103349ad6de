//! Access to the upstream channel of a cable network (DOCSIS): requests and grants.
//!
//! The head end divides time into MAP intervals and grants transmission times in them. A modem
//! whose packets wait requests a grant with the packets of its next grant. A modem without a grant
//! requests one at a random time of the next interval. The request must arrive some time before the
//! interval of the grant. These are the rules of CableLabs' model for ns-3 (`docsis-ns3`, model
//! overview, sections "CmNetDevice and CmtsUpstreamScheduler" and "Upstream System & Model
//! Parameters"), without collisions of requests and without other modems on the channel.

use crate::random::{RandomSource, RandomStream};
use crate::time::Nanos;
use serde::Deserialize;
use std::collections::VecDeque;

/// Parameters of the request-grant cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestGrantConfig {
    /// Length of a MAP interval, above 0.
    #[serde(rename = "map_interval_ns")]
    pub map_interval: Nanos,
    /// Minimum time from a request to the interval of its grant.
    #[serde(rename = "min_delay_ns")]
    pub min_delay: Nanos,
}

/// A modem that waits for grants.
#[derive(Clone, Debug)]
pub struct RequestGrant {
    config: RequestGrantConfig,
    draws: RandomStream,
    /// Times of the coming grants, at most one per MAP interval.
    grants: VecDeque<Nanos>,
    /// Time of the last request without a grant.
    contention: Nanos,
}

impl RequestGrant {
    /// Creates an idle modem.
    #[must_use]
    pub fn new(config: RequestGrantConfig, draws: RandomStream) -> Self {
        let map_interval = config.map_interval.max(1);
        let config = RequestGrantConfig { map_interval, ..config };
        Self { config, draws, grants: VecDeque::new(), contention: 0 }
    }

    /// Time of the grant of a packet that is ready at `now`. Calls are in order of time, and so are
    /// the grants.
    pub fn grant_time(&mut self, now: Nanos) -> Nanos {
        while self.grants.front().is_some_and(|grant| *grant < now) {
            self.grants.pop_front();
        }
        let RequestGrantConfig { map_interval, min_delay } = self.config;
        let next = |time: Nanos| time.div_ceil(map_interval) * map_interval;
        let position = |draws: &mut RandomStream| draws.next_bits() % map_interval;
        let interval = next(now);
        let requested = match self.grants.front() {
            Some(grant) if *grant < interval + map_interval => *grant,
            _ if self.contention >= now => self.contention,
            _ => {
                self.contention = interval + position(&mut self.draws);
                self.contention
            }
        };
        let interval = next(requested + min_delay);
        if let Some(grant) = self.grants.back().filter(|grant| **grant >= interval) {
            return *grant;
        }
        let grant = interval + position(&mut self.draws);
        self.grants.push_back(grant);
        grant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn modem() -> RequestGrant {
        let config = RequestGrantConfig { map_interval: 2 * MS, min_delay: 1_700_000 };
        RequestGrant::new(config, RandomStream::from_seed(1))
    }

    #[test]
    fn a_single_packet_waits_for_its_request_and_grant() {
        // The delay is the sum of the waits for the next interval, for the request in it, for 1.7
        // ms, for the next interval, and for its grant.
        let mut modem = modem();
        let delays: Vec<Nanos> =
            (0..4000).map(|n| n * 101_234_567).map(|now| modem.grant_time(now) - now).collect();
        let mean = delays.iter().sum::<Nanos>() / delays.len() as Nanos;
        assert!(delays.iter().all(|delay| (1_700_000..9_700_000).contains(delay)));
        // The request is uniform in an interval, and the grant is in the second or third interval
        // after its start.
        let expected = 1_000_000 + 2 * MS * 15 / 100 + 4 * MS * 85 / 100 + 1_000_000;
        assert!(mean.abs_diff(expected) < 100_000, "{mean} for {expected}");
    }

    #[test]
    fn a_backlog_requests_with_its_grants_and_shares_them() {
        let mut modem = modem();
        let grants: Vec<Nanos> = (0..10_000).map(|n| modem.grant_time(n * 100_000)).collect();
        assert!(grants.is_sorted());
        let mut distinct = grants.clone();
        distinct.dedup();
        // At most one grant per interval of 2 ms, and rarely none.
        let intervals: Vec<Nanos> = distinct.iter().map(|grant| grant / (2 * MS)).collect();
        assert!(intervals.is_sorted_by(|interval, next| interval < next));
        let possible = 10_000 * 100_000 / (2 * MS);
        assert!((possible * 8 / 10..=possible + 4).contains(&(distinct.len() as u64)));
        let delays = grants.iter().zip(0..).map(|(grant, n)| grant - n * 100_000);
        let mean = delays.skip(100).sum::<Nanos>() / 9900;
        assert!((3 * MS..6 * MS).contains(&mean), "{mean}");
    }
}
