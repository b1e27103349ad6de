//! A link: policer, random loss, queue and transmitter, jitter, and propagation.

use crate::counters::{DropCause, LinkCounters, QueueOccupancy, Service};
use crate::network::{LinkId, NetworkObserver, Passage};
use crate::pending::InTransit;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use tcpcast_link::link::{FifoLink, OfferOutcome, QueueingLink};
use tcpcast_link::loss::{LinkLossState, LossPlace};
use tcpcast_link::queue::{
    AnyQueue, BufferLimits, DropReason, QueueConfig, QueueDiscipline, QueueProbe,
};
use tcpcast_link::random::RandomStream;
use tcpcast_link::remark::EcnRemark;
use tcpcast_link::transmit::{
    AnyTransmitter, ConstantRate, TokenBucket, TokenBucketConfig, Transmitter,
};
use tcpcast_link::{Ecn, NEVER, Nanos, Packet};

/// Random delay behind the transmitter.
pub struct Jitter {
    /// Returns the delay of the next packet, which leaves the transmitter at the given time.
    pub delay: Box<dyn FnMut(Nanos) -> Nanos + Send + Sync>,
    /// Whether packets with a shorter delay overtake other packets; otherwise each packet waits for
    /// the preceding packets.
    pub reorder: bool,
}

impl fmt::Debug for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jitter").field("reorder", &self.reorder).finish_non_exhaustive()
    }
}

/// Returns the departure time of a packet of some bytes that arrives at a time, and its time in the
/// queue; `None` if the packet is dropped. Packets arrive in the order of time.
pub type ServeArrival = dyn FnMut(Nanos, u32) -> Option<(Nanos, Nanos)> + Send + Sync;

/// A FIFO queue and transmitter that a link shares with traffic that is not packets of the network.
pub struct SharedServer {
    /// Serves an arriving packet.
    pub serve: Box<ServeArrival>,
}

impl fmt::Debug for SharedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedServer").finish_non_exhaustive()
    }
}

/// A change of a link during the run.
#[derive(Clone, Debug)]
pub enum LinkChange {
    /// A constant rate in bit/s; `None` is unlimited. The packet in transmission keeps its rate.
    Rate(Option<NonZeroU64>),
    /// The propagation delay of packets that leave from now on, which may overtake others.
    Delay(Nanos),
    /// Random loss.
    Loss(Option<LinkLossState>),
}

/// Configuration of a link.
#[derive(Debug)]
pub struct LinkConfig {
    /// Rate above which packets are dropped on arrival.
    pub policer: Option<TokenBucketConfig>,
    /// Change of the ECN field of packets that enter the link.
    pub remark: Option<EcnRemark>,
    /// Random loss before the queue or behind the transmitter.
    pub loss: Option<LinkLossState>,
    /// The queue discipline.
    pub queue: QueueConfig,
    /// Queue limits; they define whether the packet in transmission counts.
    pub limits: BufferLimits,
    /// Random numbers for early drops, ties and flow hashes.
    pub draws: RandomStream,
    /// Transmitter, which serialises packets by their length. If its rate is not constant,
    /// transmission takes no time, and all time until departure counts as queueing delay.
    pub transmitter: AnyTransmitter,
    /// Replaces queue, limits and transmitter. It must have the rate of the transmitter.
    pub shared_server: Option<SharedServer>,
    /// Random delay.
    pub jitter: Option<Jitter>,
    /// Propagation delay.
    pub delay: Nanos,
    /// Whether the queue length is recorded even if nothing depends on it. It excludes packets that
    /// have not reached the link yet.
    pub counts_queue: bool,
    /// Changes and their times.
    pub changes: Vec<(Nanos, LinkChange)>,
}

impl LinkConfig {
    /// A link with a drop-tail queue. `rate_bps`: rate in bit/s; `None` is unlimited.
    #[must_use]
    pub fn drop_tail(rate_bps: Option<NonZeroU64>, limits: BufferLimits, delay: Nanos) -> Self {
        Self {
            policer: None,
            remark: None,
            loss: None,
            queue: QueueConfig::DropTail,
            limits,
            draws: RandomStream::from_seed(0),
            transmitter: AnyTransmitter::ConstantRate(ConstantRate::new(rate_bps)),
            shared_server: None,
            jitter: None,
            delay,
            counts_queue: false,
            changes: Vec::new(),
        }
    }
}

/// Outcome of a packet that enters a link.
pub(crate) enum Entry {
    /// The departure of the packet is known.
    Served(Service),
    /// The packet waits, or the queue dropped packets, possibly this one.
    Queued,
    /// Only this packet is dropped.
    Dropped(DropCause),
}

/// Queue and transmitter.
#[derive(Debug)]
enum Server<T> {
    /// Packets leave at once.
    Unlimited,
    /// An unlimited buffer whose queue length is not read.
    Uncounted(ConstantRate),
    /// Departures are known on arrival, and packets share the queue with other traffic.
    Shared(SharedServer),
    /// Departures are known on arrival.
    Fifo { link: Box<FifoLink<AnyTransmitter>>, last_leaves: Nanos },
    /// Packets are held until the transmitter is free.
    Holding(Box<QueueingLink<AnyQueue<InTransit<T>>, AnyTransmitter>>),
}

/// A link and its counters.
#[derive(Debug)]
pub struct Link<T> {
    policer: Option<TokenBucket>,
    remark: Option<EcnRemark>,
    loss: Option<LinkLossState>,
    server: Server<T>,
    /// Whether the rate varies; the transmission time is then taken as zero.
    varies: bool,
    /// Whether the link has, or may have later, a policer, random loss or jitter.
    is_uneven: bool,
    /// Whether the buffer is unlimited and its queue length is not read.
    is_unbounded: bool,
    /// Whether the queue length is read at any time, so that it must be exact at that time.
    counts_queue: bool,
    jitter: Option<Jitter>,
    /// Departure of the last packet after the jitter, if the order is kept.
    last_departure: Nanos,
    delay: Nanos,
    changes: bool,
    /// Number of flows on all routes over the link.
    pub(crate) flows: u32,
    /// Whether packets are processed before they reach the link, so that they need no event there.
    pub(crate) is_computed_on_entry: bool,
    /// Whether bursts of segmentation offload enter the link as single packets.
    pub(crate) splits_bursts: bool,
    /// Whether the network has an event at the next departure.
    pub(crate) has_departure_event: bool,
    /// Links of a group share their counters.
    pub(crate) group: u32,
    occupancy: QueueOccupancy,
    /// Times that packets have spent in the queue and in transmission, modulo 2^64; a waiting packet
    /// counts as the negative time of its arrival.
    pub(crate) sojourns: u64,
    capacity: Capacity,
}

/// Bits that a link with a constant rate could have sent, times 10^9, up to a time.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    rate_bps: Option<NonZeroU64>,
    nanobits: u128,
    until: Nanos,
}

impl Capacity {
    fn nanobits_until(&self, now: Nanos) -> u128 {
        let rate = self.rate_bps.map_or(0, NonZeroU64::get);
        self.nanobits + u128::from(rate) * u128::from(now - self.until)
    }

    fn change_rate(&mut self, now: Nanos, rate_bps: Option<NonZeroU64>) {
        *self = Self { rate_bps, nanobits: self.nanobits_until(now), until: now };
    }
}

/// Packets dropped by a queue, with time and cause.
pub(crate) type DroppedPackets<T> = Vec<(Nanos, Packet<InTransit<T>>, DropCause)>;

/// Collects the events of a queue.
struct LinkProbe<'a, T, O> {
    link: LinkId,
    dropped: &'a mut DroppedPackets<T>,
    occupancy: &'a mut QueueOccupancy,
    observer: &'a mut O,
}

impl<T: Copy, O: NetworkObserver<T>> QueueProbe<InTransit<T>> for LinkProbe<'_, T, O> {
    fn on_drop(&mut self, now: Nanos, packet: &Packet<InTransit<T>>, reason: DropReason) {
        self.dropped.push((now, *packet, drop_cause(reason)));
    }

    #[inline]
    fn on_arrival_queue_length(&mut self, packets: u64) {
        self.observer.on_arrival_queue_length(self.link, packets);
    }

    #[inline]
    fn on_queue_length_interval(&mut self, packets: u64, until: Nanos) {
        self.occupancy.add_interval(packets, until);
        self.observer.on_queue_length_interval(self.link, packets, until);
    }

    fn on_average_updated(&mut self, average: f64) {
        self.observer.on_average_updated(self.link, average);
    }

    fn hosts_of(&self, packet: &Packet<InTransit<T>>) -> [u32; 2] {
        self.observer.hosts_of(&packet.token.payload)
    }

    fn dscp_of(&self, packet: &Packet<InTransit<T>>) -> u8 {
        self.observer.dscp_of(&packet.token.payload)
    }

    fn ecn_echo_of(&self, packet: &Packet<InTransit<T>>) -> u8 {
        self.observer.ecn_echo_of(&packet.token.payload)
    }

    fn supersedes(&self, newer: &Packet<InTransit<T>>, older: &Packet<InTransit<T>>) -> bool {
        self.observer.supersedes(&newer.token.payload, &older.token.payload)
    }
}

/// Collects the events of a FIFO link, which drops only arriving packets.
struct FifoProbe<'a, T, O> {
    link: LinkId,
    occupancy: &'a mut QueueOccupancy,
    observer: &'a mut O,
    payload: PhantomData<T>,
}

impl<T: Copy, O: NetworkObserver<T>> QueueProbe<()> for FifoProbe<'_, T, O> {
    fn on_drop(&mut self, _now: Nanos, _packet: &Packet<()>, _reason: DropReason) {}

    #[inline(always)]
    fn on_arrival_queue_length(&mut self, packets: u64) {
        self.observer.on_arrival_queue_length(self.link, packets);
    }

    #[inline(always)]
    fn on_queue_length_interval(&mut self, packets: u64, until: Nanos) {
        self.occupancy.add_interval(packets, until);
        self.observer.on_queue_length_interval(self.link, packets, until);
    }
}

fn drop_cause(reason: DropReason) -> DropCause {
    match reason {
        DropReason::Full => DropCause::Full,
        DropReason::Early => DropCause::Early,
        DropReason::Superseded => DropCause::Superseded,
    }
}

impl<T: Copy> Link<T> {
    pub(crate) fn new(config: LinkConfig, changes: bool, group: u32) -> Self {
        let LinkConfig { queue, limits, draws, transmitter, .. } = config;
        let (shaped_bps, splits_bursts) = match queue {
            QueueConfig::Cake(cake) => (cake.rate_bps, cake.split_gso),
            QueueConfig::Dualpi2(dualpi2) => (None, dualpi2.split_gso),
            _ => (None, false),
        };
        let rate_bps = match &transmitter {
            AnyTransmitter::ConstantRate(rate) => {
                rate.rate_bps().into_iter().chain(shaped_bps).min()
            }
            _ => None,
        };
        let varies = !matches!(transmitter, AnyTransmitter::ConstantRate(_));
        let server = match (&transmitter, queue, config.shared_server) {
            (.., Some(shared)) => Server::Shared(shared),
            // An unlimited transmitter never lets a queue build up, unless the queue has a shaper.
            (AnyTransmitter::ConstantRate(_), ..) if rate_bps.is_none() && !changes => {
                Server::Unlimited
            }
            // Departures that are known on arrival would not follow a change of the rate.
            (_, QueueConfig::DropTail, _) if !changes => {
                let link = Box::new(FifoLink::new(limits, transmitter));
                Server::Fifo { link, last_leaves: 0 }
            }
            _ => {
                let queue = AnyQueue::new(queue, limits, draws);
                Server::Holding(Box::new(QueueingLink::new(queue, transmitter)))
            }
        };
        let is_uneven =
            config.policer.is_some() || config.loss.is_some() || config.jitter.is_some() || changes;
        Self {
            policer: config.policer.map(TokenBucket::new),
            remark: config.remark,
            loss: config.loss,
            server,
            varies,
            is_uneven,
            is_unbounded: limits.packets.is_none()
                && limits.bytes.is_none()
                && !config.counts_queue,
            counts_queue: config.counts_queue,
            jitter: config.jitter,
            last_departure: 0,
            delay: config.delay,
            changes,
            flows: 0,
            is_computed_on_entry: false,
            splits_bursts,
            has_departure_event: false,
            group,
            occupancy: QueueOccupancy::default(),
            sojourns: 0,
            capacity: Capacity { rate_bps, nanobits: 0, until: 0 },
        }
    }

    /// Sets whether packets are processed before they reach the link. No packet has entered it.
    pub(crate) fn set_computed_on_entry(&mut self, is_computed: bool) {
        self.is_computed_on_entry = is_computed;
        self.server = match std::mem::replace(&mut self.server, Server::Unlimited) {
            Server::Fifo { link, last_leaves } if is_computed && self.is_unbounded => {
                match link.transmitter() {
                    AnyTransmitter::ConstantRate(rate) => Server::Uncounted(rate.clone()),
                    _ => Server::Fifo { link, last_leaves },
                }
            }
            Server::Uncounted(rate) if !is_computed => {
                let rate = AnyTransmitter::ConstantRate(rate);
                let link = Box::new(FifoLink::new(BufferLimits::default(), rate));
                Server::Fifo { link, last_leaves: 0 }
            }
            other => other,
        };
    }

    /// Updates the occupancy of the queue to `now`, if all events before have been processed.
    pub(crate) fn update_occupancy(
        &mut self,
        id: LinkId,
        now: Nanos,
        observer: &mut impl NetworkObserver<T>,
    ) -> QueueOccupancy {
        let occupancy = &mut self.occupancy;
        // Packets of a link without events are processed before they reach it.
        let until = now.max(occupancy.until());
        let held = match &mut self.server {
            Server::Unlimited | Server::Uncounted(_) | Server::Shared(_) => 0,
            Server::Fifo { link, .. } => {
                let probe = &mut FifoProbe { link: id, occupancy, observer, payload: PhantomData };
                link.advance_to(until, probe);
                link.held_backlog().packets
            }
            Server::Holding(link) => {
                let leaves = link.next_departure();
                if leaves <= until && !self.has_departure_event {
                    let dropped = &mut Vec::new();
                    let probe = &mut LinkProbe { link: id, dropped, occupancy, observer };
                    link.transmit_next_packet(probe);
                }
                link.queue().held_backlog().packets
            }
        };
        self.occupancy.add_interval(held, until);
        observer.on_queue_length_interval(id, held, until);
        self.occupancy
    }

    /// Restarts the queue, the transmitter and the random loss of an idle link.
    pub(crate) fn restart(&mut self, now: Nanos) {
        if let Some(policer) = &mut self.policer {
            policer.reset_when_idle();
        }
        if let Some(loss) = &mut self.loss {
            loss.restart_process();
        }
        match &mut self.server {
            Server::Unlimited | Server::Uncounted(_) | Server::Shared(_) => (),
            Server::Fifo { link, .. } => link.reset_when_empty(),
            Server::Holding(link) => link.reset_when_empty(now),
        }
    }

    /// Occupancy of the queue up to its last update.
    #[must_use]
    pub fn occupancy(&self) -> QueueOccupancy {
        self.occupancy
    }

    /// Total time of packets in the queue and in transmission up to `now`, modulo 2^64.
    pub(crate) fn sojourns_until(&self, now: Nanos) -> u64 {
        let remaining = match &self.server {
            Server::Unlimited | Server::Uncounted(_) | Server::Shared(_) => 0,
            Server::Fifo { link, .. } => link.sum_of_remaining_times(now),
            Server::Holding(link)
                if link.queue().held_backlog().packets == 0 || link.is_held_by_shaper() =>
            {
                0
            }
            Server::Holding(link) => link.next_departure() - now,
        };
        let waiting = self.waiting_packets().wrapping_mul(now);
        self.sojourns.wrapping_add(waiting).wrapping_sub(remaining)
    }

    /// Minimum time from the departure of a packet to its arrival at the far end.
    pub(crate) fn min_delay(&self) -> Nanos {
        if self.changes { 0 } else { self.delay }
    }

    /// Packets in the queue, without those whose departure is known.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        match &self.server {
            Server::Holding(link) => link.queue().waiting_backlog().packets,
            _ => 0,
        }
    }

    /// Bytes that a token bucket or a trace could have sent by then, or that a policer could have
    /// let pass.
    #[must_use]
    pub fn varying_capacity_bytes_until(&self, until: Nanos) -> Option<u64> {
        match &self.server {
            Server::Unlimited | Server::Uncounted(_) | Server::Shared(_) => {
                self.policer.as_ref().and_then(|policer| policer.capacity_bytes_until(until))
            }
            Server::Fifo { link, .. } => link.transmitter().capacity_bytes_until(until),
            Server::Holding(link) => link.transmitter().capacity_bytes_until(until),
        }
    }

    /// Bits, times 10^9, that could have been sent by then, with changes of the rate up to now; 0
    /// while the rate is unlimited.
    #[must_use]
    pub fn capacity_nanobits_until(&self, until: Nanos) -> u128 {
        self.varying_capacity_bytes_until(until).map_or_else(
            || self.capacity.nanobits_until(until),
            |bytes| u128::from(bytes) * 8_000_000_000,
        )
    }

    /// Whether the occupancy of the queue is not known, but only its integral as
    /// [`LinkCounters::held`](crate::LinkCounters::held).
    #[inline(always)]
    #[must_use]
    pub fn is_uncounted(&self) -> bool {
        matches!(self.server, Server::Uncounted(_) | Server::Shared(_))
    }

    /// Whether the link has a queue: packets may wait.
    #[must_use]
    pub fn has_queue(&self) -> bool {
        !matches!(self.server, Server::Unlimited)
    }

    /// Whether the link only delays packets, so that the order of their arrivals has no effect.
    pub(crate) fn only_delays(&self) -> bool {
        let is_plain = self.policer.is_none()
            && self.remark.is_none()
            && self.loss.is_none()
            && self.jitter.is_none();
        is_plain && !self.changes && matches!(self.server, Server::Unlimited)
    }

    /// Whether packets may be processed before they reach the link, if they arrive in order: their
    /// outcome is known on arrival, and the length of the queue is not read.
    pub(crate) fn allows_processing_ahead(&self) -> bool {
        !self.changes && !self.counts_queue && !matches!(self.server, Server::Holding(_))
    }

    /// Whether packets reach the far end in the order in which they are transmitted.
    pub(crate) fn keeps_order(&self) -> bool {
        !self.changes && self.jitter.as_ref().is_none_or(|jitter| !jitter.reorder)
    }

    /// Processes a packet that reaches the link at `now`. Adds the packets that the queue drops to
    /// `dropped`, unless it drops only this packet.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        at: Passage,
        now: Nanos,
        packet: &mut Packet<InTransit<T>>,
        counters: &mut LinkCounters,
        dropped: &mut DroppedPackets<T>,
        observer: &mut impl NetworkObserver<T>,
    ) -> Entry {
        let id = at.link;
        counters.entered.count_packet(packet.bytes);
        if let Some(remark) = &mut self.remark {
            packet.ecn = remark.remark(packet.ecn);
        }
        observer.on_entered(now, at, &packet.token.payload);
        if observer.loses_packet(at, &packet.token.payload) {
            return Entry::Dropped(DropCause::Random);
        }
        let &mut Packet { bytes, flow, ecn, .. } = packet;
        if self.is_uneven {
            if self.policer.as_mut().is_some_and(|policer| !policer.allows_packet(now, bytes)) {
                return Entry::Dropped(DropCause::Full);
            }
            if self.loses_packet_at(LossPlace::Before) {
                return Entry::Dropped(DropCause::Random);
            }
        }
        let (leaves, waited, marked) = match &mut self.server {
            Server::Unlimited => (now, 0, false),
            Server::Uncounted(rate) => {
                let waited = rate.free_at().saturating_sub(now);
                let leaves = rate.transmit(now, bytes);
                counters.held += leaves - now;
                (leaves, waited, false)
            }
            Server::Shared(SharedServer { serve }) => match serve(now, bytes) {
                Some((leaves, waited)) => {
                    counters.held += leaves - now;
                    (leaves, waited, false)
                }
                None => return Entry::Dropped(DropCause::Full),
            },
            Server::Fifo { link, last_leaves } => {
                let arriving = Packet::new((), flow, bytes).with_ecn(ecn);
                let occupancy = &mut self.occupancy;
                let probe = &mut FifoProbe { link: id, occupancy, observer, payload: PhantomData };
                let Some(leaves) = link.offer(now, arriving, probe) else {
                    return Entry::Dropped(DropCause::Full);
                };
                let begins = if self.varies { leaves } else { (*last_leaves).max(now) };
                *last_leaves = leaves;
                (leaves, begins - now, false)
            }
            Server::Holding(link) => {
                let occupancy = &mut self.occupancy;
                let probe = &mut LinkProbe { link: id, dropped, occupancy, observer };
                if link.next_departure() <= now && !self.has_departure_event {
                    // Nothing waits: the transmitter has been idle since the last departure.
                    run_expired_queue_timer(link, link.next_departure());
                    link.transmit_next_packet(probe);
                }
                run_expired_queue_timer(link, now);
                let OfferOutcome::Departs { leaves, marked } = link.offer(now, *packet, probe)
                else {
                    return Entry::Queued;
                };
                (leaves, if self.varies { leaves - now } else { 0 }, marked)
            }
        };
        Entry::Served(Service { entered: now, waited, leaves, marked })
    }

    /// Time at which the next waiting packet must be served; [`NEVER`] if none waits.
    #[inline]
    pub(crate) fn next_departure(&self) -> Nanos {
        match &self.server {
            Server::Holding(link) if link.queue().waiting_backlog().packets > 0 => {
                link.next_departure()
            }
            _ => NEVER,
        }
    }

    /// Starts the transmission of the next packet at the departure of the previous one. Adds the
    /// packets that the queue drops to `dropped`.
    pub(crate) fn serve_next(
        &mut self,
        id: LinkId,
        dropped: &mut DroppedPackets<T>,
        observer: &mut impl NetworkObserver<T>,
    ) -> Option<(Service, Packet<InTransit<T>>)> {
        let Server::Holding(link) = &mut self.server else { return None };
        let begins = link.next_departure();
        run_expired_queue_timer(link, begins);
        let occupancy = &mut self.occupancy;
        let probe = &mut LinkProbe { link: id, dropped, occupancy, observer };
        let (leaves, packet) = link.transmit_next_packet(probe)?;
        let (entered, marked) = (packet.entered, packet.marked);
        let waited = if self.varies { leaves } else { begins } - entered;
        Some((Service { entered, waited, leaves, marked }, packet))
    }

    /// Counts a packet whose departure is known, and marks it. Returns when it reaches the far end, or
    /// when it is lost.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        at: Passage,
        packet: &mut Packet<InTransit<T>>,
        service: &Service,
        counters: &mut LinkCounters,
        observer: &mut impl NetworkObserver<T>,
    ) -> Result<Nanos, Nanos> {
        counters.count_service(packet.bytes, service);
        observer.on_served(at, &packet.token.payload, service);
        if service.marked {
            packet.ecn = Ecn::Ce;
        }
        let mut leaves = service.leaves;
        if self.is_uneven {
            if self.loses_packet_at(LossPlace::Behind) {
                return Err(leaves);
            }
            if let Some(jitter) = &mut self.jitter {
                leaves += (jitter.delay)(leaves);
                if !jitter.reorder {
                    leaves = leaves.max(self.last_departure);
                    self.last_departure = leaves;
                }
            }
        }
        Ok(leaves + self.delay)
    }

    /// Returns true if a packet is lost at random at this place.
    #[inline]
    fn loses_packet_at(&mut self, place: LossPlace) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses_packet_at(place))
    }

    /// Applies a change at `now`.
    pub(crate) fn apply_change(&mut self, now: Nanos, change: LinkChange) {
        match change {
            LinkChange::Delay(delay) => self.delay = delay,
            LinkChange::Loss(loss) => self.loss = loss,
            LinkChange::Rate(rate) => {
                self.capacity.change_rate(now, rate);
                let Server::Holding(link) = &mut self.server else { return };
                let busy_until = link.next_departure();
                let free_at = if busy_until == NEVER { 0 } else { busy_until };
                let transmitter = ConstantRate::new(rate).busy_until(free_at);
                link.set_transmitter(AnyTransmitter::ConstantRate(transmitter));
                self.varies = false;
            }
        }
    }
}

/// Runs the queue's timer if the deadline has passed. The call may be late, because the state of
/// the queue is not used between calls.
#[inline]
fn run_expired_queue_timer<T: Copy, Q: QueueDiscipline<T>, X: Transmitter>(
    link: &mut QueueingLink<Q, X>,
    now: Nanos,
) {
    if link.queue().deadline() <= now {
        link.queue_mut().on_deadline(now);
    }
}
