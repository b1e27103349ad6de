//! The max-plus recursion of a flow over routers in series (INRIA report 4154, section 5.1).
//!
//! With x(i, n) the date at which packet n leaves router i, s(i, n) its aggregated service time
//! there, from head of the line in its own flow to served, and d the propagation:
//!
//! ```text
//! x(0, n) = max( x(K+1, n - v(n-1)) + d(K+1, 0), x(0, n-1), click ) + s(0, n)
//! x(i, n) = max( x(i-1, n) + d(i-1, i), x(i, n-1) ) + s(i, n)
//! ```
//!
//! The second line is here, for the links at both ends of a flow's path. Hops of its own that have
//! a buffer or cross traffic follow it, too ([`crate::own`]). The third part of the path is the
//! shared router: its service times come of the scheduler ([`crate::shared`]). The first line is a
//! sender's: a packet is ready when the file start, the packet before it and the acknowledgement
//! that opens the window have come. While nothing is lost, that is the one of packet n - v(n-1); at
//! a loss the window shrinks, and the packet is not out any more ([`tcpcast_sim::tcp::MaxPlus`]).

use tcpcast_sim::clock::Nanos;

/// A router of a flow's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    /// Service time of a packet.
    pub service: Nanos,
    /// Propagation to the next router.
    pub delay: Nanos,
}

/// Routers in series; the same for all flows of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    routers: Vec<Router>,
}

/// Dates at which the last packet of one flow left each router of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left(Vec<Nanos>);

impl Route {
    /// A route over these routers, in order.
    #[must_use]
    pub fn new(routers: Vec<Router>) -> Self {
        Self { routers }
    }

    /// The dates of a flow that has not sent anything.
    #[must_use]
    pub fn unused(&self) -> Left {
        Left(vec![0; self.routers.len()])
    }

    /// A packet arrives at the first router: when it arrives behind the last one.
    pub fn pass(&self, left: &mut Left, arrives: Nanos) -> Nanos {
        self.routers.iter().zip(&mut left.0).fold(arrives, |at, (router, left)| {
            *left = at.max(*left) + router.service;
            *left + router.delay
        })
    }

    /// The time that a packet takes where no other is before it.
    #[must_use]
    pub fn alone(&self) -> Nanos {
        self.routers.iter().map(|router| router.service + router.delay).sum()
    }

    /// The longest service time: packets that follow each other come out no closer than this.
    #[must_use]
    pub fn slowest(&self) -> Nanos {
        self.routers.iter().map(|router| router.service).max().unwrap_or(0)
    }
}
