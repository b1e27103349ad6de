//! What the network reports: deliveries, drops, and the counters of links.

use super::parcel::{CLIENT, Parcel, ParcelContent, Parcels, SERVER};
use super::taps::Taps;
use super::wait_groups::WaitGroups;
use crate::clock::Nanos;
use crate::jitter::HostProcessingDelay;
use crate::probe::{CrossPacketEvent, Probes, TapPlace};
use crate::round_loss::RoundLoss;
use std::collections::VecDeque;
use tcpcast_link::Ecn;
use tcpcast_net::{DropCause, LinkId, Network, NetworkObserver, Passage, Service};

/// Processing delays of the hosts of a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassHostDelay {
    pub delay: HostProcessingDelay,
    /// Ends at which an arriving packet is delayed: the receiver of data, also on behalf of the
    /// sender for the acknowledgement, or both ends.
    pub at: [bool; 2],
}

impl ClassHostDelay {
    /// Delay of a packet that reaches a host at `due`.
    #[inline(always)]
    fn packet_delay(&self, flow: u32, due: Nanos) -> Nanos {
        match self.at {
            [true, true] => self.delay.timer_delay(flow, due) + 1,
            _ => self.delay.delay_of_both_hosts(flow, due),
        }
    }
}

/// A link of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkRole {
    /// Number of the link in the configuration.
    pub declared: u32,
    pub is_headline: bool,
    pub has_queue: bool,
    /// Whether each source has a link of its own.
    pub is_own: bool,
    /// Whether the link is a policer, at which packets never wait.
    pub is_policer: bool,
}

/// What is recorded of the packets of a class on a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassageRole {
    /// Group of the histogram of queueing delays; [`NO_GROUP`] without a queue.
    wait_group: u32,
    is_headline: bool,
    is_policer: bool,
    is_cross: bool,
}

/// Number of no group.
const NO_GROUP: u32 = u32::MAX;

/// What links see of the packets of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowHeader {
    /// Host of the client.
    pub client: u32,
    pub dscp: u8,
    /// Bytes of the payload of a full packet.
    pub payload_bytes: u32,
}

/// A packet that a link has dropped in the current event. Its parcel exists until the event ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DroppedParcel {
    pub at: Nanos,
    pub link: LinkId,
    pub index: u32,
    pub cause: DropCause,
}

/// Observer of the network. Everything that needs the state of a flow is stored until the event
/// ends.
pub(crate) struct Wire {
    pub probes: Probes,
    pub parcels: Parcels,
    pub links: Vec<LinkRole>,
    /// By the numbers of the counters of the network.
    passages: Vec<PassageRole>,
    wait_groups: WaitGroups,
    /// The headline link if it has one instance, so that its queue length is recorded.
    pub recorded: Option<LinkId>,
    /// The packet that the current event delivers.
    pub delivered: Option<(u32, Ecn)>,
    /// Packets of a burst that are delivered next.
    pub delivered_parts: VecDeque<(u32, Ecn)>,
    pub dropped: Vec<DroppedParcel>,
    pub headers: Vec<FlowHeader>,
    /// Connection of each flow whose first packet has reached the headline link.
    pub seen: Vec<u32>,
    /// Host delays by class, and for each flow and end the time at which the host processes the
    /// last packet.
    pub host_delays: Vec<Option<ClassHostDelay>>,
    pub processed_at: Vec<[Nanos; 2]>,
    pub has_host_delays: bool,
    /// Time of the current event.
    pub now: Nanos,
    /// Correlated loss on the headline link.
    pub round_losses: Option<Box<RoundLoss>>,
    /// Taps of captures, if there are any.
    pub taps: Option<Box<Taps>>,
    /// The packet that is entering the headline link.
    entering: u32,
}

impl Wire {
    pub fn new(
        probes: Probes,
        wait_groups: WaitGroups,
        host_delays: Vec<Option<ClassHostDelay>>,
    ) -> Self {
        Self {
            probes,
            parcels: Parcels::default(),
            links: Vec::new(),
            passages: Vec::new(),
            wait_groups,
            recorded: None,
            delivered: None,
            delivered_parts: VecDeque::new(),
            dropped: Vec::new(),
            headers: Vec::new(),
            seen: Vec::new(),
            has_host_delays: host_delays.iter().any(Option::is_some),
            host_delays,
            processed_at: Vec::new(),
            now: 0,
            round_losses: None,
            taps: None,
            entering: 0,
        }
    }

    #[inline(always)]
    pub fn role(&self, link: LinkId) -> &LinkRole {
        &self.links[link.index()]
    }

    /// Prepares for the packets of new routes; `cross` is the class of cross traffic.
    pub fn add_passages<T: Copy>(&mut self, network: &Network<T>, cross: u16) {
        for (link, class) in &network.counted_passages()[self.passages.len()..] {
            let LinkRole { declared, is_headline, has_queue, is_policer, .. } = *self.role(*link);
            let is_cross = *class == cross;
            let wait_group = match (has_queue, is_cross) {
                (false, _) => NO_GROUP,
                (true, true) => self.wait_groups.of_cross(declared) as u32,
                (true, false) => self.wait_groups.of_class(declared, usize::from(*class)) as u32,
            };
            self.passages.push(PassageRole { wait_group, is_headline, is_policer, is_cross });
        }
    }

    /// Counts a packet that enters the headline link.
    #[inline(always)]
    fn enter_headline(&mut self, now: Nanos, index: u32) {
        let Parcel { flow, connection, number, packets, of, is_data, .. } =
            *self.parcels.get(index);
        self.entering = index;
        if !is_data {
            return;
        }
        let seen = &mut self.seen[flow as usize];
        if *seen < connection {
            *seen = connection;
            self.probes.population.record_source_start(now);
        }
        self.probes.count_arrival(of, number, 0);
        if packets > 1 {
            self.count_other_arrivals(index);
        }
    }

    /// Counts a packet that the headline link transmits.
    #[inline(always)]
    fn leave_headline(&mut self, role: PassageRole, index: u32, service: &Service) {
        let Service { marked, leaves, .. } = *service;
        if self.taps.is_some() {
            self.report_at_headline(TapPlace::BottleneckOut, leaves, index, marked);
        }
        let Parcel { of, packets, is_data, .. } = *self.parcels.get(index);
        if is_data && !role.is_policer {
            self.probes.count_transmitted_of_class(of.class(), service);
            if packets > 1 {
                self.count_other_transmissions(packets, of.class(), service);
            }
        }
    }

    /// Counts the packets after the first one of a burst that enters the headline link.
    #[cold]
    #[inline(never)]
    fn count_other_arrivals(&mut self, index: u32) {
        let Parcel { number, packets, of, .. } = *self.parcels.get(index);
        for at in 1..packets {
            self.probes.count_arrival(of, number + at, 0);
        }
    }

    /// Counts the packets after the first one of a burst that the headline link transmits.
    #[cold]
    #[inline(never)]
    fn count_other_transmissions(&mut self, packets: u32, class: usize, service: &Service) {
        for _ in 1..packets {
            self.probes.count_transmitted_of_class(class, service);
        }
    }

    fn queue_is_recorded(&self, link: LinkId) -> bool {
        self.recorded == Some(link)
    }
}

impl NetworkObserver<u32> for Wire {
    #[inline(always)]
    fn on_delivered(&mut self, now: Nanos, parcel: u32, ecn: Ecn) {
        self.now = now;
        self.delivered = Some((parcel, ecn));
    }

    fn on_dropped(&mut self, now: Nanos, link: LinkId, index: u32, cause: DropCause) {
        self.dropped.push(DroppedParcel { at: now, link, index, cause });
    }

    #[inline(always)]
    fn loses_packet(&mut self, at: Passage, parcel: &u32) -> bool {
        self.round_losses.is_some()
            && self.passages[at.counters as usize].is_headline
            && self.parcels.get(*parcel).is_lost
    }

    #[inline(always)]
    fn on_entered(&mut self, now: Nanos, at: Passage, parcel: &u32) {
        if self.passages[at.counters as usize].is_headline {
            self.enter_headline(now, *parcel);
            if self.taps.is_some() {
                self.report_at_headline(TapPlace::BottleneckIn, now, *parcel, false);
            }
        }
    }

    #[inline(always)]
    fn on_served(&mut self, at: Passage, parcel: &u32, service: &Service) {
        let role = self.passages[at.counters as usize];
        if role.wait_group != NO_GROUP {
            self.probes.link_waits.add_time(role.wait_group as usize, service.waited);
        }
        if role.is_cross {
            let stream = self.parcels.get(*parcel).number as usize;
            let event = CrossPacketEvent::Carried { waited: Some(service.waited) };
            self.probes.cross.count_event(stream, event);
        } else if role.is_headline {
            self.leave_headline(role, *parcel, service);
        }
    }

    #[inline(always)]
    fn on_arrival_queue_length(&mut self, link: LinkId, packets: u64) {
        if self.queue_is_recorded(link) {
            let Parcel { of, is_data, content, .. } = *self.parcels.get(self.entering);
            if content != ParcelContent::Cross {
                self.probes.occupancy.record_arrival(packets as usize);
            }
            if is_data {
                self.probes.count_queue_seen(of, packets);
            }
        }
    }

    #[inline(always)]
    fn on_queue_length_interval(&mut self, link: LinkId, packets: u64, until: Nanos) {
        if self.queue_is_recorded(link) {
            self.probes.occupancy.record_length_until(packets as usize, until);
        }
    }

    fn on_average_updated(&mut self, link: LinkId, average: f64) {
        if self.role(link).is_headline {
            self.probes.early.count_average(average);
        }
    }

    fn hosts_of(&self, parcel: &u32) -> [u32; 2] {
        let Parcel { flow, to, content, .. } = *self.parcels.get(*parcel);
        if content == ParcelContent::Cross {
            return [u32::MAX - flow; 2];
        }
        let client = self.headers[flow as usize].client;
        // Each source has a server of its own.
        if usize::from(to) == CLIENT { [flow, client] } else { [client, flow] }
    }

    fn dscp_of(&self, parcel: &u32) -> u8 {
        let Parcel { flow, content, .. } = *self.parcels.get(*parcel);
        if content == ParcelContent::Cross { 0 } else { self.headers[flow as usize].dscp }
    }

    fn ecn_echo_of(&self, parcel: &u32) -> u8 {
        let flags = self.parcels.get(*parcel).segment.flags;
        u8::from(flags.ece) << 1 | u8::from(flags.cwr)
    }

    fn supersedes(&self, newer: &u32, older: &u32) -> bool {
        let [newer, older] = [newer, older].map(|index| self.parcels.get(*index));
        newer.content == ParcelContent::Segment
            && (newer.content, newer.connection) == (older.content, older.connection)
            && newer.segment.messages == older.segment.messages
            && newer.segment.supersedes(&older.segment)
    }

    #[inline(always)]
    fn split_burst(&mut self, burst: &u32, bytes: u32, parts: &mut Vec<(u32, u32)>) {
        if self.parcels.get(*burst).packets > 1 {
            let payload = self.headers[self.parcels.get(*burst).flow as usize].payload_bytes;
            self.parcels.split_burst(*burst, bytes, payload, parts);
        }
    }

    #[inline(always)]
    fn processing_time(&mut self, due: Nanos, parcel: &u32) -> Nanos {
        if self.parcels.get(*parcel).is_delayed {
            self.delayed_processing_time(due, *parcel)
        } else {
            due
        }
    }
}

impl Wire {
    /// A host processes a packet together with all packets that arrive before its processing.
    #[inline(always)]
    fn delayed_processing_time(&mut self, due: Nanos, index: u32) -> Nanos {
        let Parcel { flow, to, of, content, .. } = *self.parcels.get(index);
        if content == ParcelContent::Cross {
            return due;
        }
        let Some(host) = &self.host_delays[of.class()] else { return due };
        let processed_at = &mut self.processed_at[flow as usize][usize::from(to)];
        if due > *processed_at {
            *processed_at = due + host.packet_delay(flow, due);
        }
        *processed_at
    }
}

/// The other end.
pub(crate) fn other_end(end: usize) -> usize {
    SERVER + CLIENT - end
}
