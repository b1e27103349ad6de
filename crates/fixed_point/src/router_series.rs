//! The max-plus recursion of a flow over routers in series (INRIA report 4154, section 5.1).
//!
//! x(i, n) is the time at which packet n leaves router i. s(i, n) is its aggregated service time:
//! the time from reaching the head of its flow's queue to the departure. d is the propagation
//! delay:
//!
//! ```text
//! x(0, n) = max( x(K+1, n - v(n-1)) + d(K+1, 0), x(0, n-1), start ) + s(0, n)
//! x(i, n) = max( x(i-1, n) + d(i-1, i), x(i, n-1) ) + s(i, n)
//! ```
//!
//! This module implements the second line for the links at both ends of a path. Per-source hops
//! with a buffer or cross traffic also follow the second line ([`crate::per_source_hops`]). The
//! service times of the shared router result from its scheduler ([`crate::shared_router`]). The
//! first line describes the sender ([`tcpcast_tcp::InstantFeedbackSender`]): a packet is ready
//! after the file start, the departure of the preceding packet, and the ACK that opens the window.
//! Without losses, this is the ACK of packet n - v(n-1). A loss reduces the window, and the lost
//! packet is no longer outstanding.

use tcpcast_sim::clock::Nanos;

/// A router used by a single flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleFlowRouter {
    /// Service time of a packet.
    pub service: Nanos,
    /// Propagation to the next router.
    pub delay: Nanos,
}

/// Routers in series; equal for all flows of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterSeries {
    routers: Vec<SingleFlowRouter>,
}

/// Times at which the last packet of a flow left each router of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastDepartures(Vec<Nanos>);

impl RouterSeries {
    /// Creates a route over these routers, in order.
    #[must_use]
    pub fn new(routers: Vec<SingleFlowRouter>) -> Self {
        Self { routers }
    }

    /// State of a flow that has not sent anything.
    #[must_use]
    pub fn initial_departures(&self) -> LastDepartures {
        LastDepartures(vec![0; self.routers.len()])
    }

    /// Passes a packet that arrives at the first router at `arrives`. Returns its arrival time
    /// behind the last router.
    pub fn pass_packet_through_routers(&self, left: &mut LastDepartures, arrives: Nanos) -> Nanos {
        self.routers.iter().zip(&mut left.0).fold(arrives, |at, (router, left)| {
            *left = at.max(*left) + router.service;
            *left + router.delay
        })
    }

    /// Delay of a packet without queueing.
    #[must_use]
    pub fn unloaded_delay(&self) -> Nanos {
        self.routers.iter().map(|router| router.service + router.delay).sum()
    }

    /// Longest service time, which is the minimum spacing of successive packets behind the route.
    #[must_use]
    pub fn longest_service_time(&self) -> Nanos {
        self.routers.iter().map(|router| router.service).max().unwrap_or(0)
    }
}
