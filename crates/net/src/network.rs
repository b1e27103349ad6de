//! Links, routes over them, and the packets in transit.

use crate::counters::{DropCause, LinkCounters, QueueOccupancy};
use crate::link::{DroppedPackets, Entry, Link, LinkChange, LinkConfig, Service};
use crate::pending::{HOST, InTransit, PendingPackets};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tcpcast_link::{Ecn, NEVER, Nanos, Packet};

/// A link of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// Number of the link: links are numbered from 0 in the order in which they were added.
    #[inline(always)]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A route of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

/// Links in the order in which packets pass them.
#[derive(Debug)]
struct Route {
    links: Box<[u32]>,
    /// Delay of the rest of the path, behind the last link.
    delay: Nanos,
    class: u16,
}

/// Receives notifications of packets.
///
/// Calls are ordered by time, with two exceptions: [`NetworkObserver::on_served`] is called as soon
/// as the departure is known, and the calls for a link that one flow uses alone may be made before
/// the packet reaches the link.
pub trait NetworkObserver<T> {
    /// A packet reached its host.
    fn on_delivered(&mut self, now: Nanos, payload: T, ecn: Ecn);
    /// A packet that entered a link was dropped there.
    fn on_dropped(&mut self, now: Nanos, link: LinkId, payload: T, cause: DropCause);
    /// Whether a packet that has entered a link is lost before the queue, in addition to the random
    /// loss of the link.
    #[inline(always)]
    fn loses_packet(&mut self, _link: LinkId, _payload: &T) -> bool {
        false
    }
    /// A packet entered a link.
    fn on_entered(&mut self, _now: Nanos, _link: LinkId, _payload: &T) {}
    /// The departure of a packet from the transmitter of a link is known. The packet may still be
    /// lost behind the transmitter.
    fn on_served(&mut self, _link: LinkId, _payload: &T, _service: &Service) {}
    /// A packet reached the next link or its host.
    fn on_left(&mut self, _now: Nanos, _link: LinkId, _payload: &T) {}
    /// A packet enters a queue and finds `packets`, including the packet in transmission.
    fn on_arrival_queue_length(&mut self, _link: LinkId, _packets: u64) {}
    /// A queue held `packets`, including the packet in transmission, until `until`.
    fn on_queue_length_interval(&mut self, _link: LinkId, _packets: u64, _until: Nanos) {}
    /// RED has updated its average queue length, in its unit.
    fn on_average_updated(&mut self, _link: LinkId, _average: f64) {}
    /// Source and destination host of a packet, for disciplines that are fair among hosts.
    fn hosts_of(&self, _payload: &T) -> [u32; 2] {
        [0, 0]
    }
    /// Differentiated services codepoint of a packet (RFC 2474), from 0 to 63.
    fn dscp_of(&self, _payload: &T) -> u8 {
        0
    }
    /// Bits ECE and CWR of a TCP packet, for disciplines that filter acknowledgements.
    fn ecn_echo_of(&self, _payload: &T) -> u8 {
        0
    }
    /// Whether `older` is a pure acknowledgement without information that `newer`, a later packet
    /// of the same flow, does not contain.
    fn supersedes(&self, _newer: &T, _older: &T) -> bool {
        false
    }
    /// Time at which a host processes a packet that reaches it at `due`; `due` or later.
    #[inline(always)]
    fn processing_time(&mut self, due: Nanos, _payload: &T) -> Nanos {
        due
    }
}

/// A network of links.
///
/// Packets with a payload of type `T` follow routes. Events are processed in order of time; at one
/// time, departures of held packets come first (by link), then changes of links, then arrivals at
/// links (by link, then by order of scheduling), then deliveries to hosts.
///
/// A link that one flow uses alone, or that only delays packets, processes its packets as soon as
/// their arrival is known, without an event; see [`Network::with_events_on_all_links`].
///
/// # Example
///
/// ```
/// use std::num::NonZeroU64;
/// use tcpcast_link::queue::BufferLimits;
/// use tcpcast_link::{Ecn, NEVER, Nanos, Packet};
/// use tcpcast_net::{DropCause, LinkConfig, LinkId, Network, NetworkObserver};
///
/// struct Hosts(Vec<(Nanos, &'static str)>);
///
/// impl NetworkObserver<&'static str> for Hosts {
///     fn on_delivered(&mut self, now: Nanos, payload: &'static str, _ecn: Ecn) {
///         self.0.push((now, payload));
///     }
///     fn on_dropped(&mut self, _: Nanos, _: LinkId, _: &'static str, _: DropCause) {}
/// }
///
/// let mut network = Network::default();
/// // 1500 bytes take 1 ms; then 10 ms on the link, and 5 ms on the rest of the path.
/// let limits = BufferLimits::limit_packets(100);
/// let link = network.add_link(LinkConfig::drop_tail(NonZeroU64::new(12_000_000), limits, 10_000_000));
/// let route = network.add_route(&[link], 5_000_000, 0, 1);
/// let mut hosts = Hosts(Vec::new());
/// network.send(0, route, Packet::new("first", 0, 1500), &mut hosts);
/// network.send(0, route, Packet::new("second", 0, 1500), &mut hosts);
/// while network.next_time() < NEVER {
///     network.step(&mut hosts);
/// }
/// assert_eq!(hosts.0, [(16_000_000, "first"), (17_000_000, "second")]);
/// assert_eq!(network.link(link).counters(0).left.bytes, 3000);
/// ```
#[derive(Debug)]
pub struct Network<T> {
    links: Vec<Link<T>>,
    routes: Vec<Route>,
    pending: PendingPackets<T>,
    /// Time and link of the next departure of each link with waiting packets.
    departures: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Changes in order of time and link.
    changes: VecDeque<(Nanos, u32, LinkChange)>,
    /// Time of the next departure or change.
    next_link_event: Nanos,
    /// Buffer for the packets that a queue drops during one call.
    dropped: DroppedPackets<T>,
    now: Nanos,
    /// Minimum delay of a packet behind the transmitter of its last link.
    min_last_delay: Nanos,
    has_events_on_all_links: bool,
}

impl<T: Copy> Default for Network<T> {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            routes: Vec::new(),
            pending: PendingPackets::default(),
            departures: BinaryHeap::new(),
            changes: VecDeque::new(),
            next_link_event: NEVER,
            dropped: Vec::new(),
            now: 0,
            min_last_delay: NEVER,
            has_events_on_all_links: false,
        }
    }
}

impl<T: Copy> Network<T> {
    /// Processes packets at all links in order of time, for observers that need this order. Must be
    /// called before routes are added.
    #[must_use]
    pub fn with_events_on_all_links(mut self) -> Self {
        self.has_events_on_all_links = true;
        self
    }

    /// Adds a link.
    pub fn add_link(&mut self, mut config: LinkConfig) -> LinkId {
        let id = self.links.len() as u32;
        assert!(id < HOST, "a network has at most {HOST} links");
        let changes = std::mem::take(&mut config.changes);
        self.links.push(Link::new(config, !changes.is_empty()));
        self.changes.extend(changes.into_iter().map(|(time, change)| (time, id, change)));
        self.changes.make_contiguous().sort_by_key(|(time, link, _)| (*time, *link));
        self.find_next_link_event();
        LinkId(id)
    }

    /// Adds a route over links, for `flows` flows of a class. `delay`: rest of the path behind the
    /// last link. All routes must be added before the first packet is sent.
    pub fn add_route(&mut self, links: &[LinkId], delay: Nanos, class: u16, flows: u32) -> RouteId {
        let links: Box<[u32]> = links.iter().map(|link| link.0).collect();
        let mut arrive_in_order = true;
        for link in &links {
            let link = &mut self.links[*link as usize];
            link.flows = link.flows.saturating_add(flows);
            let is_private = link.flows == 1 && arrive_in_order && link.holds_no_packets();
            let needs_no_event = is_private || link.only_delays();
            link.is_computed_on_entry = needs_no_event && !self.has_events_on_all_links;
            arrive_in_order &= link.keeps_order();
            let classes = link.counters.len().max(usize::from(class) + 1);
            link.counters.resize(classes, LinkCounters::default());
        }
        let last = links.last().map_or(0, |link| self.links[*link as usize].min_delay());
        self.min_last_delay = self.min_last_delay.min(last + delay);
        self.routes.push(Route { links, delay, class });
        RouteId(self.routes.len() as u32 - 1)
    }

    /// A link.
    #[must_use]
    pub fn link(&self, link: LinkId) -> &Link<T> {
        &self.links[link.0 as usize]
    }

    /// Updates the occupancy of the queue of a link to `now`, the time of the last event or later.
    pub fn update_occupancy(
        &mut self,
        link: LinkId,
        now: Nanos,
        observer: &mut impl NetworkObserver<T>,
    ) -> QueueOccupancy {
        self.links[link.index()].update_occupancy(link, now, observer)
    }

    /// Both sides of Little's law for a link at `now`, the time of the last event or later, modulo
    /// 2^64: the number of packets in the queue and in transmission integrated over time, and the
    /// sum of their times there. `None` if the link processes packets before they reach it.
    pub fn littles_law(
        &mut self,
        link: LinkId,
        now: Nanos,
        observer: &mut impl NetworkObserver<T>,
    ) -> Option<(u64, u64)> {
        let link_state = &mut self.links[link.index()];
        let held = link_state.update_occupancy(link, now, observer).packet_nanos as u64;
        let is_ahead = link_state.is_computed_on_entry;
        (!is_ahead).then(|| (held, link_state.sojourns_until(now)))
    }

    /// All links, in the order in which they were added.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &Link<T>)> {
        (0..).map(LinkId).zip(&self.links)
    }

    /// Number of packets, by link, that have entered and have neither left nor been dropped. Takes
    /// time in proportion to the number of packets in transit.
    #[must_use]
    pub fn packets_on_links(&self) -> Vec<u64> {
        let mut packets: Vec<u64> = self.links.iter().map(Link::waiting_packets).collect();
        for packet in self.pending.iter() {
            let token = &packet.token;
            let links = &self.routes[token.route as usize].links;
            let hop = usize::from(token.hop) + usize::from(token.lost.is_some());
            if hop > 0 {
                packets[links[hop - 1] as usize] += 1;
            }
        }
        packets
    }

    /// Number of packets that are neither delivered nor dropped.
    #[must_use]
    pub fn packets_in_transit(&self) -> u64 {
        let waiting: u64 = self.links.iter().map(Link::waiting_packets).sum();
        waiting + self.pending.iter().count() as u64
    }

    /// Restarts queues, transmitters and random loss of all links; no packet may be in transit.
    pub fn restart_idle_links(&mut self, now: Nanos) {
        self.links.iter_mut().for_each(|link| link.restart(now));
    }

    /// Sends a packet over a route at `now`. Events before `now` must have been processed.
    pub fn send(
        &mut self,
        now: Nanos,
        route: RouteId,
        packet: Packet<T>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        debug_assert!(self.now <= now && now <= self.next_time(), "an event was not processed");
        self.now = now;
        let token = InTransit { payload: packet.token, route: route.0, hop: 0, lost: None };
        let Packet { flow, bytes, ecn, .. } = packet;
        let mut packet = Packet { entered: now, token, flow, bytes, ecn, marked: false };
        let Route { links, delay, .. } = &self.routes[route.0 as usize];
        match links.first() {
            None => {
                packet.entered = observer.processing_time(now + delay, &packet.token.payload);
                self.pending.push(HOST, &packet);
            }
            // Departures from the link at `now` come before arrivals.
            Some(first)
                if !self.links[*first as usize].is_computed_on_entry && self.next_time() <= now =>
            {
                self.pending.push(*first, &packet);
            }
            Some(_) => self.enter_link(now, &mut packet, observer),
        }
    }

    /// Time of the next event; [`NEVER`] if nothing is in transit.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Nanos {
        self.next_link_event.min(self.pending.next_time())
    }

    /// Lower bound of the time of the next event at a host or of a known arrival at a link.
    #[must_use]
    pub fn next_delivery_bound(&self) -> Nanos {
        self.pending.next_time().min(self.next_departure().saturating_add(self.min_last_delay))
    }

    fn next_departure(&self) -> Nanos {
        self.departures.peek().map_or(NEVER, |Reverse((time, _))| *time)
    }

    fn next_change(&self) -> Nanos {
        self.changes.front().map_or(NEVER, |(time, ..)| *time)
    }

    fn find_next_link_event(&mut self) {
        self.next_link_event = self.next_departure().min(self.next_change());
    }

    /// Processes the next event, if any.
    #[inline]
    pub fn step(&mut self, observer: &mut impl NetworkObserver<T>) {
        if self.next_link_event > self.pending.next_time() {
            if let Some(packet) = self.pending.pop() {
                self.now = packet.entered;
                self.process_arrival(packet, observer);
            }
        } else {
            self.process_link_event(observer);
        }
    }

    /// Processes the next departure or change.
    fn process_link_event(&mut self, observer: &mut impl NetworkObserver<T>) {
        let now = self.next_link_event;
        if now == NEVER {
            return;
        }
        self.now = now;
        if self.next_departure() == now {
            if let Some(Reverse((_, link))) = self.departures.pop() {
                self.serve_next_packet(link, observer);
            }
        } else if let Some((_, link, change)) = self.changes.pop_front() {
            self.links[link as usize].apply_change(now, change);
        }
        self.find_next_link_event();
    }

    /// Processes all events up to `now`.
    pub fn advance_to(&mut self, now: Nanos, observer: &mut impl NetworkObserver<T>) {
        while self.next_time() <= now.min(NEVER - 1) {
            self.step(observer);
        }
    }

    /// Processes a packet that reaches a link or its host at the current time.
    #[inline]
    fn process_arrival(
        &mut self,
        mut packet: Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        let InTransit { payload, route, hop, lost } = packet.token;
        if let Some(cause) = lost {
            return self.count_dropped_packet(&packet, cause, observer);
        }
        if hop > 0 {
            self.count_leaving_packet(self.now, &packet, observer);
        }
        if usize::from(hop) == self.routes[route as usize].links.len() {
            observer.on_delivered(self.now, payload, packet.ecn);
        } else {
            self.enter_link(self.now, &mut packet, observer);
        }
    }

    /// Processes a packet that reaches a link at `time`, and at following links without events.
    fn enter_link(
        &mut self,
        mut time: Nanos,
        packet: &mut Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        loop {
            let (link, class) = self.link_and_class(&packet.token);
            let entered = &mut self.links[link as usize];
            entered.counters[class].entered.count_packet(packet.bytes);
            observer.on_entered(time, LinkId(link), &packet.token.payload);
            if observer.loses_packet(LinkId(link), &packet.token.payload) {
                return self.drop_packet(time, packet, DropCause::Random, observer);
            }
            match entered.enter(LinkId(link), time, packet, &mut self.dropped, observer) {
                Entry::Served(service) => {
                    entered.sojourns = entered.sojourns.wrapping_add(service.leaves - time);
                    match self.forward_packet(service, packet, observer) {
                        Some(due) => time = due,
                        None => return,
                    }
                }
                Entry::Dropped(cause) => return self.drop_packet(time, packet, cause, observer),
                Entry::Queued => {
                    entered.sojourns = entered.sojourns.wrapping_sub(time);
                    self.process_dropped_packets(observer);
                    self.schedule_departure(link);
                    return self.find_next_link_event();
                }
            }
        }
    }

    /// Starts the transmission of the next packet that waits at a link.
    fn serve_next_packet(&mut self, link: u32, observer: &mut impl NetworkObserver<T>) {
        let served = &mut self.links[link as usize];
        served.has_departure_event = false;
        let next = served.serve_next(LinkId(link), &mut self.dropped, observer);
        let leaves = next.as_ref().map_or(0, |(service, _)| service.leaves);
        served.sojourns = served.sojourns.wrapping_add(leaves);
        self.process_dropped_packets(observer);
        self.schedule_departure(link);
        let Some((service, mut packet)) = next else { return };
        if let Some(time) = self.forward_packet(service, &mut packet, observer) {
            self.enter_link(time, &mut packet, observer);
        }
    }

    /// Schedules the next departure from a link if packets wait.
    fn schedule_departure(&mut self, link: u32) {
        let waiting = &mut self.links[link as usize];
        let time = waiting.next_departure();
        if time != NEVER && !waiting.has_departure_event {
            waiting.has_departure_event = true;
            self.departures.push(Reverse((time, link)));
        }
    }

    /// Schedules the arrival of a transmitted packet at the next place of its route. If the next
    /// link needs no event, returns the time of arrival instead.
    #[inline(always)]
    fn forward_packet(
        &mut self,
        service: Service,
        packet: &mut Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) -> Option<Nanos> {
        let (link, class) = self.link_and_class(&packet.token);
        observer.on_served(LinkId(link), &packet.token.payload, &service);
        if service.marked {
            packet.ecn = Ecn::Ce;
        }
        let mut due = match self.links[link as usize].transmit_packet(class, packet.bytes, service)
        {
            Ok(due) => due,
            Err(lost_at) => {
                self.drop_packet(lost_at, packet, DropCause::Random, observer);
                return None;
            }
        };
        packet.token.hop += 1;
        let Route { links, delay, .. } = &self.routes[packet.token.route as usize];
        let place = match links.get(usize::from(packet.token.hop)) {
            None => {
                due = observer.processing_time(due + delay, &packet.token.payload);
                HOST
            }
            Some(next) if self.links[*next as usize].is_computed_on_entry => {
                self.count_leaving_packet(due, packet, observer);
                return Some(due);
            }
            Some(next) => *next,
        };
        packet.entered = due;
        self.pending.push(place, packet);
        None
    }

    fn process_dropped_packets(&mut self, observer: &mut impl NetworkObserver<T>) {
        let mut dropped = std::mem::take(&mut self.dropped);
        for (time, mut packet, cause) in dropped.drain(..) {
            let (link, _) = self.link_and_class(&packet.token);
            let sojourns = &mut self.links[link as usize].sojourns;
            *sojourns = sojourns.wrapping_add(time);
            self.drop_packet(time, &mut packet, cause, observer);
        }
        self.dropped = dropped;
    }

    /// Drops a packet at the link that it has entered, at `time` or as soon as this time is reached.
    fn drop_packet(
        &mut self,
        time: Nanos,
        packet: &mut Packet<InTransit<T>>,
        cause: DropCause,
        observer: &mut impl NetworkObserver<T>,
    ) {
        if time > self.now {
            packet.entered = time;
            packet.token.lost = Some(cause);
            self.pending.push(self.link_and_class(&packet.token).0, packet);
        } else {
            self.count_dropped_packet(packet, cause, observer);
        }
    }

    fn count_dropped_packet(
        &mut self,
        packet: &Packet<InTransit<T>>,
        cause: DropCause,
        observer: &mut impl NetworkObserver<T>,
    ) {
        let (link, class) = self.link_and_class(&packet.token);
        self.links[link as usize].counters[class].count_drop(cause);
        observer.on_dropped(self.now, LinkId(link), packet.token.payload, cause);
    }

    /// Counts a packet that leaves the last link that it has passed.
    #[inline]
    fn count_leaving_packet(
        &mut self,
        now: Nanos,
        packet: &Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        let passed = InTransit { hop: packet.token.hop - 1, ..packet.token };
        let (link, class) = self.link_and_class(&passed);
        self.links[link as usize].counters[class].left.count_packet(packet.bytes);
        observer.on_left(now, LinkId(link), &packet.token.payload);
    }

    /// Next link of a packet, and its class.
    #[inline]
    fn link_and_class(&self, token: &InTransit<T>) -> (u32, usize) {
        let route = &self.routes[token.route as usize];
        (route.links[usize::from(token.hop)], usize::from(route.class))
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
