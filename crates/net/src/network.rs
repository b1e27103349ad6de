//! Links, routes over them, and the packets in transit.

use crate::counters::{DropCause, LinkCounters, QueueOccupancy, Service};
use crate::link::{DroppedPackets, Entry, Link, LinkChange, LinkConfig};
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

/// A route of a network: the number of its first hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

/// A link as a packet passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The link.
    pub link: LinkId,
    /// Number of the counters of the class of the packet, which the link may share with others: see
    /// [`Network::counted_passages`].
    pub counters: u32,
}

/// A place on a route.
#[derive(Clone, Copy, Debug)]
struct Hop {
    /// A link; [`HOST`] behind the last one.
    link: u32,
    /// Counters of the class of the route on the link.
    counters: u32,
    /// The previous link, if a packet that arrives here leaves it only now.
    leaves: Option<Passage>,
    /// Delay of the rest of the path, behind the last link.
    delay: Nanos,
}

impl Hop {
    #[inline(always)]
    fn passage(&self) -> Passage {
        Passage { link: LinkId(self.link), counters: self.counters }
    }
}

/// Links that share their counters.
#[derive(Debug, Default)]
struct LinkGroup {
    /// Numbers of the counters by class.
    counters: Vec<Option<u32>>,
    /// Number of links.
    links: u32,
    /// Links with an occupancy: see [`Link::is_uncounted`].
    counted: Vec<u32>,
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
    fn loses_packet(&mut self, _at: Passage, _payload: &T) -> bool {
        false
    }
    /// A packet entered a link.
    fn on_entered(&mut self, _now: Nanos, _at: Passage, _payload: &T) {}
    /// The departure of a packet from the transmitter of a link is known. The packet may still be
    /// lost behind the transmitter.
    fn on_served(&mut self, _at: Passage, _payload: &T, _service: &Service) {}
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
    /// A packet reaches a link that splits bursts. If the packet is a burst, appends the payload and
    /// the length of each packet of the burst to `parts`; they take the place of the burst.
    #[inline(always)]
    fn split_burst(&mut self, _burst: &T, _bytes: u32, _parts: &mut Vec<(T, u32)>) {}
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
/// assert_eq!(network.counters(link, 0).left.bytes, 3000);
/// ```
#[derive(Debug)]
pub struct Network<T> {
    links: Vec<Link<T>>,
    /// Hops of all routes.
    hops: Vec<Hop>,
    /// Counters by the numbers in the hops, each with its first link and its class.
    counters: Vec<LinkCounters>,
    counted: Vec<(LinkId, u16)>,
    groups: Vec<LinkGroup>,
    pending: PendingPackets<T>,
    /// Time and link of the next departure of each link with waiting packets.
    departures: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Changes in order of time and link.
    changes: VecDeque<(Nanos, u32, LinkChange)>,
    /// Time of the next departure or change.
    next_link_event: Nanos,
    /// Buffer for the packets that a queue drops during one call.
    dropped: DroppedPackets<T>,
    /// Buffer for the packets of a burst that a link splits.
    parts: Vec<(T, u32)>,
    now: Nanos,
    /// Minimum delay of a packet behind the transmitter of its last link.
    min_last_delay: Nanos,
    has_events_on_all_links: bool,
}

impl<T: Copy> Default for Network<T> {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            hops: Vec::new(),
            counters: Vec::new(),
            counted: Vec::new(),
            groups: Vec::new(),
            pending: PendingPackets::default(),
            departures: BinaryHeap::new(),
            changes: VecDeque::new(),
            next_link_event: NEVER,
            dropped: Vec::new(),
            parts: Vec::new(),
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

    /// Adds a link with separate counters.
    pub fn add_link(&mut self, config: LinkConfig) -> LinkId {
        self.groups.push(LinkGroup::default());
        self.add_link_to_group(config, self.groups.len() as u32 - 1)
    }

    /// Adds a link that shares its counters with `other`.
    pub fn add_link_with_counters_of(&mut self, config: LinkConfig, other: LinkId) -> LinkId {
        self.add_link_to_group(config, self.links[other.index()].group)
    }

    fn add_link_to_group(&mut self, mut config: LinkConfig, group: u32) -> LinkId {
        let id = self.links.len() as u32;
        assert!(id < HOST, "a network has at most {HOST} links");
        let changes = std::mem::take(&mut config.changes);
        self.links.push(Link::new(config, !changes.is_empty(), group));
        self.groups[group as usize].links += 1;
        self.update_counted_links(id);
        self.changes.extend(changes.into_iter().map(|(time, change)| (time, id, change)));
        self.changes.make_contiguous().sort_by_key(|(time, link, _)| (*time, *link));
        self.find_next_link_event();
        LinkId(id)
    }

    /// Updates the list of links with an occupancy after a change of a link.
    fn update_counted_links(&mut self, id: u32) {
        let link = &self.links[id as usize];
        let counted = &mut self.groups[link.group as usize].counted;
        match counted.iter().rposition(|other| *other == id) {
            Some(at) if link.is_uncounted() => drop(counted.swap_remove(at)),
            None if !link.is_uncounted() => counted.push(id),
            _ => (),
        }
    }

    /// Prepares a link for routes that are added after its first packet.
    pub fn expect_more_routes(&mut self, link: LinkId) {
        self.links[link.index()].flows = u32::MAX;
    }

    /// Adds a route over links, for `flows` flows of a class. `delay`: rest of the path behind the
    /// last link. All routes over a link must be added before the first packet is sent over it,
    /// unless [`Network::expect_more_routes`] was called.
    pub fn add_route(&mut self, links: &[LinkId], delay: Nanos, class: u16, flows: u32) -> RouteId {
        let first = self.hops.len() as u32;
        let mut arrive_in_order = true;
        let mut leaves = None;
        for LinkId(id) in links {
            let link = &mut self.links[*id as usize];
            link.flows = link.flows.saturating_add(flows);
            let is_private = link.flows == 1 && arrive_in_order && link.allows_processing_ahead();
            let needs_no_event = is_private || link.only_delays();
            let (was_computed, was_uncounted) = (link.is_computed_on_entry, link.is_uncounted());
            link.set_computed_on_entry(needs_no_event && !self.has_events_on_all_links);
            let changes_counting = was_uncounted != link.is_uncounted();
            arrive_in_order &= link.keeps_order();
            let is_computed = link.is_computed_on_entry;
            if changes_counting {
                self.update_counted_links(*id);
            }
            if was_computed && !is_computed {
                self.mark_ends_of_link(*id);
            }
            let counters = self.find_or_add_counters(*id, class);
            let hop = Hop { link: *id, counters, leaves, delay: 0 };
            leaves = (!is_computed).then(|| hop.passage());
            self.hops.push(hop);
        }
        self.hops.push(Hop { link: HOST, counters: 0, leaves, delay });
        let last = links.last().map_or(0, |link| self.links[link.index()].min_delay());
        self.min_last_delay = self.min_last_delay.min(last + delay);
        RouteId(first)
    }

    /// A link of earlier routes needs events now.
    fn mark_ends_of_link(&mut self, link: u32) {
        let mut passed = None;
        for hop in &mut self.hops {
            hop.leaves = hop.leaves.or(passed);
            passed = (hop.link == link).then(|| hop.passage());
        }
    }

    fn find_or_add_counters(&mut self, link: u32, class: u16) -> u32 {
        let group = &mut self.groups[self.links[link as usize].group as usize].counters;
        if group.len() <= usize::from(class) {
            group.resize(usize::from(class) + 1, None);
        }
        *group[usize::from(class)].get_or_insert_with(|| {
            self.counters.push(LinkCounters::default());
            self.counted.push((LinkId(link), class));
            self.counters.len() as u32 - 1
        })
    }

    fn group(&self, link: LinkId) -> &LinkGroup {
        &self.groups[self.links[link.index()].group as usize]
    }

    /// Number of links that share their counters with a link, with this link.
    #[must_use]
    pub fn links_with_counters_of(&self, link: LinkId) -> u32 {
        self.group(link).links
    }

    /// Counters of a class on a link, and on the links that share its counters; zero if no packet of
    /// the class has entered.
    #[must_use]
    pub fn counters(&self, link: LinkId, class: u16) -> LinkCounters {
        let number = self.group(link).counters.get(usize::from(class)).copied().flatten();
        let counters = number.map(|number| self.counters[number as usize]);
        counters.unwrap_or_default()
    }

    /// Links and classes by the numbers of their counters; the links that share counters have the
    /// same number. New routes append to this list.
    #[must_use]
    pub fn counted_passages(&self) -> &[(LinkId, u16)] {
        &self.counted
    }

    /// Counters of all classes on a link, and on the links that share its counters.
    fn counters_of_all_classes(&self, link: LinkId) -> impl Iterator<Item = LinkCounters> {
        let numbers = self.group(link).counters.iter().flatten();
        numbers.map(|number| self.counters[*number as usize])
    }

    /// Bytes of all packets whose transmission began on a link, and on the links that share its
    /// counters.
    #[must_use]
    pub fn transmitted_bytes(&self, link: LinkId) -> u64 {
        self.counters_of_all_classes(link).map(|counters| counters.transmitted.bytes).sum()
    }

    /// Packets in the queue and in transmission of a link, and of the links that share its counters,
    /// integrated over time up to the last update of their occupancy, modulo 2^64.
    #[must_use]
    pub fn packet_nanos(&self, link: LinkId) -> u64 {
        let counted = self.group(link).counted.iter();
        let counted = counted.map(|link| self.links[*link as usize].occupancy().packet_nanos);
        let others = self.counters_of_all_classes(link).map(|counters| counters.held);
        counted.chain(others).fold(0, u64::wrapping_add)
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

    /// Updates the occupancy of the queues of all links to `now`, the time of the last event or later.
    pub fn update_occupancies(&mut self, now: Nanos, observer: &mut impl NetworkObserver<T>) {
        for link in self.groups.iter().flat_map(|group| &group.counted) {
            self.links[*link as usize].update_occupancy(LinkId(*link), now, observer);
        }
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
        let held = link_state.update_occupancy(link, now, observer).packet_nanos;
        let is_ahead = link_state.is_computed_on_entry || link_state.is_uncounted();
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
            let hop = packet.token.hop as usize;
            if packet.token.lost.is_some() {
                packets[self.hops[hop].link as usize] += 1;
            } else if let Some(at) = self.hops[hop].leaves {
                packets[at.link.index()] += 1;
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
    #[inline(always)]
    pub fn send(
        &mut self,
        now: Nanos,
        route: RouteId,
        packet: Packet<T>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        debug_assert!(self.now <= now && now <= self.next_time(), "an event was not processed");
        self.now = now;
        let hop = self.hops[route.0 as usize];
        if hop.link == HOST {
            let due = observer.processing_time(now + hop.delay, &packet.token);
            self.pending.push(HOST, &in_transit(due, route, packet));
        } else {
            self.send_over_links(now, route, packet, observer);
        }
    }

    /// Sends a packet over a route with links.
    #[inline(never)]
    fn send_over_links(
        &mut self,
        now: Nanos,
        route: RouteId,
        packet: Packet<T>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        let mut packet = in_transit(now, route, packet);
        let hop = self.hops[route.0 as usize];
        // Departures from the link at `now` come before arrivals.
        if !self.links[hop.link as usize].is_computed_on_entry && self.next_time() > now {
            self.enter_link(now, hop.passage(), &mut packet, observer);
        } else if let Some(due) = self.pass_computed_links(now, hop, &mut packet, observer) {
            packet.entered = due;
            self.pending.push(HOST, &packet);
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
            self.process_arrival(observer);
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

    /// Processes the first pending packet, which reaches a link or its host.
    #[inline(always)]
    fn process_arrival(&mut self, observer: &mut impl NetworkObserver<T>) {
        // Only a link needs a copy of the whole packet.
        let Some(packet) = self.pending.pop() else { return };
        let Packet { entered, token: InTransit { payload, hop, lost }, bytes, ecn, .. } = *packet;
        let place = self.hops[hop as usize];
        self.now = entered;
        if place.link == HOST && lost.is_none() {
            if let Some(passed) = place.leaves {
                self.count_leaving_packet(entered, passed, bytes, &payload, observer);
            }
            return observer.on_delivered(entered, payload, ecn);
        }
        let mut packet = *packet;
        if let Some(cause) = lost {
            return self.count_dropped_packet(&packet, cause, observer);
        }
        if let Some(passed) = place.leaves {
            self.count_leaving_packet(entered, passed, bytes, &payload, observer);
        }
        self.enter_link(entered, place.passage(), &mut packet, observer);
    }

    /// Counts a packet that leaves a link for the next place of its route.
    #[inline(always)]
    fn count_leaving_packet(
        &mut self,
        now: Nanos,
        at: Passage,
        bytes: u32,
        payload: &T,
        observer: &mut impl NetworkObserver<T>,
    ) {
        self.counters[at.counters as usize].left.count_packet(bytes);
        observer.on_left(now, at.link, payload);
    }

    /// Processes a packet that reaches a link with events at `time`.
    fn enter_link(
        &mut self,
        time: Nanos,
        at: Passage,
        packet: &mut Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        let link = &self.links[at.link.index()];
        if !link.splits_bursts || !self.split_burst(time, at, packet, observer) {
            self.enter_link_whole(time, at, packet, observer);
        }
    }

    /// Processes the packets of a burst that reaches a link at `time` one by one. Returns false if
    /// the packet is not a burst.
    #[inline(never)]
    fn split_burst(
        &mut self,
        time: Nanos,
        at: Passage,
        burst: &Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) -> bool {
        observer.split_burst(&burst.token.payload, burst.bytes, &mut self.parts);
        if self.parts.is_empty() {
            return false;
        }
        let mut parts = std::mem::take(&mut self.parts);
        for (payload, bytes) in parts.drain(..) {
            let token = InTransit { payload, ..burst.token };
            let mut packet = Packet { token, bytes, ..*burst };
            self.enter_link_whole(time, at, &mut packet, observer);
        }
        self.parts = parts;
        true
    }

    /// Processes a packet that enters a link with events at `time`.
    #[inline(always)]
    fn enter_link_whole(
        &mut self,
        time: Nanos,
        at: Passage,
        packet: &mut Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        let link = &mut self.links[at.link.index()];
        let counters = &mut self.counters[at.counters as usize];
        let entry = link.enter(at, time, packet, counters, &mut self.dropped, observer);
        match entry {
            Entry::Served(service) => {
                link.sojourns = link.sojourns.wrapping_add(service.leaves - time);
                let due = link.transmit(at, packet, &service, counters, observer);
                self.forward_packet(due, at, packet, observer);
            }
            Entry::Dropped(cause) => self.drop_packet(time, packet, cause, observer),
            Entry::Queued => {
                link.sojourns = link.sojourns.wrapping_sub(time);
                self.process_dropped_packets(observer);
                self.schedule_departure(at.link.0);
                self.find_next_link_event();
            }
        }
    }

    /// Moves a packet that reaches the next place of its route, `hop`, at `time` over links that need
    /// no events. Returns when its host processes it, or schedules its arrival at another link.
    #[inline(always)]
    fn pass_computed_links(
        &mut self,
        mut time: Nanos,
        mut hop: Hop,
        packet: &mut Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) -> Option<Nanos> {
        while hop.link != HOST {
            let link = &mut self.links[hop.link as usize];
            if !link.is_computed_on_entry {
                packet.entered = time;
                self.pending.push(hop.link, packet);
                return None;
            }
            let at = hop.passage();
            let counters = &mut self.counters[hop.counters as usize];
            let service = match link.enter(at, time, packet, counters, &mut self.dropped, observer)
            {
                Entry::Served(service) => service,
                Entry::Dropped(cause) => {
                    self.drop_packet(time, packet, cause, observer);
                    return None;
                }
                Entry::Queued => unreachable!("a link without events holds no packets"),
            };
            match link.transmit(at, packet, &service, counters, observer) {
                Ok(due) => time = due,
                Err(lost_at) => {
                    self.drop_packet(lost_at, packet, DropCause::Random, observer);
                    return None;
                }
            }
            counters.left.count_packet(packet.bytes);
            observer.on_left(time, at.link, &packet.token.payload);
            packet.token.hop += 1;
            hop = self.hops[packet.token.hop as usize];
        }
        Some(observer.processing_time(time + hop.delay, &packet.token.payload))
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
        let at = self.hops[packet.token.hop as usize].passage();
        let counters = &mut self.counters[at.counters as usize];
        let due = self.links[link as usize].transmit(at, &mut packet, &service, counters, observer);
        self.forward_packet(due, at, &mut packet, observer);
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

    /// Schedules the next event of a packet that a link with events has transmitted. `due`: time of
    /// its arrival at the next place, or of its loss.
    #[inline(always)]
    fn forward_packet(
        &mut self,
        due: Result<Nanos, Nanos>,
        at: Passage,
        packet: &mut Packet<InTransit<T>>,
        observer: &mut impl NetworkObserver<T>,
    ) {
        let due = match due {
            Ok(due) => due,
            Err(at) => return self.drop_packet(at, packet, DropCause::Random, observer),
        };
        packet.token.hop += 1;
        let next = self.hops[packet.token.hop as usize];
        if next.link != HOST && self.links[next.link as usize].is_computed_on_entry {
            // The packet is processed there now, so it also leaves this link now.
            self.count_leaving_packet(due, at, packet.bytes, &packet.token.payload, observer);
        }
        if let Some(due) = self.pass_computed_links(due, next, packet, observer) {
            packet.entered = due;
            self.pending.push(HOST, packet);
        }
    }

    #[inline(always)]
    fn process_dropped_packets(&mut self, observer: &mut impl NetworkObserver<T>) {
        if self.dropped.is_empty() {
            return;
        }
        let mut dropped = std::mem::take(&mut self.dropped);
        for (time, mut packet, cause) in dropped.drain(..) {
            let link = self.hops[packet.token.hop as usize].link;
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
            self.pending.push(self.hops[packet.token.hop as usize].link, packet);
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
        let hop = self.hops[packet.token.hop as usize];
        self.counters[hop.counters as usize].count_drop(cause);
        observer.on_dropped(self.now, LinkId(hop.link), packet.token.payload, cause);
    }
}

/// A packet at the first place of a route.
#[inline(always)]
fn in_transit<T: Copy>(now: Nanos, route: RouteId, packet: Packet<T>) -> Packet<InTransit<T>> {
    let token = InTransit { payload: packet.token, hop: route.0, lost: None };
    let Packet { flow, bytes, ecn, .. } = packet;
    Packet { entered: now, token, flow, bytes, ecn, marked: false }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
