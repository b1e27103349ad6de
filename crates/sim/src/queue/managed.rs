//! Disciplines of the crate `link` that drop or mark packets which they hold: CoDel, FQ-CoDel, PIE,
//! head-drop, and RED where it marks; and any in front of a link whose rate is not constant.
//!
//! A packet is dropped on arrival, to make room for another one, or when the link is about to take
//! it. What is dropped beside the packet that arrives is asked for after each call:
//! [`QueueDiscipline::take_dropped`].

use super::{Carried, LinkRate, Passed, QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::{Draws, Stream};
use serde::Deserialize;
use tcpcast_link::link::{HeldLink, Link, Offered};
use tcpcast_link::queue as disciplines;
use tcpcast_link::queue::{Limits, Reason};

use tcpcast_link::transmit::{AnyTransmitter, Transmitter as _};

/// Which discipline, in front of which link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedConfig {
    /// The discipline with its parameters.
    pub discipline: disciplines::QueueConfig,
    /// The link's rate.
    pub rate: LinkRate,
    /// Most bytes held, those in transmission included; `None` is unlimited.
    pub limit_bytes: Option<u64>,
}

/// A discipline that may drop or mark what it holds. Each source is a flow.
#[derive(Clone, Debug)]
pub struct Managed {
    link: HeldLink<disciplines::AnyQueue<Packet>, AnyTransmitter>,
    /// Whether the link's rate is not constant: then a packet waits until it leaves, for that takes
    /// no time of its own.
    shaped: bool,
    /// Bytes that the link took.
    bytes: u64,
    /// What was dropped beside the packet that arrived, and when; still to be asked for.
    dropped: Vec<(Nanos, Packet)>,
    /// Of the packet that was served last.
    passed: Option<Passed>,
    /// When it was last called.
    now: Nanos,
}

/// Passes on what a discipline publishes.
struct Told<'a, P> {
    probe: &'a mut P,
    dropped: &'a mut Vec<(Nanos, Packet)>,
}

impl<P: QueueProbe> disciplines::QueueProbe<Packet> for Told<'_, P> {
    fn dropped(&mut self, now: Nanos, packet: &tcpcast_link::Packet<Packet>, reason: Reason) {
        if reason == Reason::Early {
            self.probe.dropped_early();
        }
        self.dropped.push((now, packet.token));
    }

    fn found(&mut self, packets: u64) {
        self.probe.queue_seen(packets as usize);
    }

    fn held(&mut self, packets: u64, until: Nanos) {
        self.probe.queue_held(packets as usize, until);
    }

    fn averaged(&mut self, average: f64) {
        self.probe.queue_averaged(average);
    }
}

impl Managed {
    /// An empty queue that holds `most` packets, the one in transmission included; `None` is
    /// unlimited. `early` is for early drops, and for what flows are hashed with.
    #[must_use]
    pub fn new(config: ManagedConfig, most: Option<u64>, mut early: Stream) -> Self {
        use disciplines::{AnyQueue, FqCodelConfig, QueueConfig};
        let discipline = match config.discipline {
            QueueConfig::FqCodel(fq_codel) => {
                QueueConfig::FqCodel(FqCodelConfig { perturbation: early.bits(), ..fq_codel })
            }
            other => other,
        };
        let limits = Limits { packets: most, bytes: config.limit_bytes, ..Limits::default() };
        let transmitter = config.rate.transmitter();
        let queue = AnyQueue::new(discipline, limits, Stream::of(early.bits()));
        Self {
            link: HeldLink::new(queue, transmitter),
            shaped: !matches!(config.rate, LinkRate::Constant(_)),
            bytes: 0,
            dropped: Vec::new(),
            passed: None,
            now: 0,
        }
    }

    /// Does what was due by `now`. Nothing else looks at the queue between two calls, so that it may
    /// be done late.
    #[inline]
    fn catch_up(&mut self, now: Nanos) {
        self.now = now;
        if self.link.deadline() <= now {
            self.link.on_deadline(now);
        }
    }
}

impl QueueDiscipline for Managed {
    const HOLDS: bool = true;
    const DROPS_HELD: bool = true;

    #[inline]
    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        self.catch_up(now);
        let bytes = link.length();
        let arriving = tcpcast_link::Packet::new(*packet, packet.source(), bytes)
            .with_ecn(packet.label().ecn());
        let told = &mut Told { probe, dropped: &mut self.dropped };
        match self.link.offer(now, arriving, told) {
            Offered::Departs { leaves, found, marked } => {
                debug_assert!(!marked, "it waited for nobody");
                self.bytes += u64::from(bytes);
                Verdict::Departs { leaves, found: found as usize }
            }
            Offered::Held { found, .. } => {
                Verdict::Held { found: found as usize, pushed_out: None }
            }
            Offered::Dropped(_) => {
                // It was told of last, and the caller knows.
                self.dropped.pop();
                Verdict::Dropped
            }
        }
    }

    fn settle(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn restart(&mut self) {
        self.link.restart(self.now);
    }

    #[inline]
    fn held(&self) -> usize {
        self.link.held().packets as usize
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        if self.held() == 0 { 0 } else { self.link.leaves() - now }
    }

    fn waiting(&self) -> u64 {
        self.link.waiting().packets
    }

    fn fetch_ahead(&self, turns: usize, tell: impl FnMut(u32)) {
        self.link.prefetch_ahead(turns, tell);
    }

    #[inline]
    fn link_leaves(&self) -> Nanos {
        self.link.leaves()
    }

    #[inline]
    fn serve(
        &mut self,
        _link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        let now = self.link.leaves();
        self.catch_up(now);
        let told = &mut Told { probe, dropped: &mut self.dropped };
        let (leaves, served) = self.link.serve(told)?;
        self.bytes += u64::from(served.bytes);
        let begins = if self.shaped { leaves } else { now };
        self.passed = Some(Passed { waited: begins - served.entered, marked: served.marked });
        let mut packet = served.token;
        if served.marked {
            packet = packet.with_label(packet.label().marked());
        }
        Some((leaves, packet))
    }

    fn carried(&self, now: Nanos) -> Option<Carried> {
        let capacity = self.link.transmitter().capacity(now)?;
        Some(Carried { bytes: self.bytes, capacity })
    }

    #[inline]
    fn passed(&self) -> Option<Passed> {
        self.passed
    }

    #[inline]
    fn take_dropped(&mut self, into: &mut Vec<(Nanos, Packet)>, _probe: &mut impl QueueProbe) {
        if !self.dropped.is_empty() {
            into.append(&mut self.dropped);
        }
    }
}

#[cfg(test)]
#[path = "managed_tests.rs"]
mod tests;
