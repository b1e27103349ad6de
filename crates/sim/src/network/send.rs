//! Transmission of a packet over the access link of its source to the first shared hop.

use super::Network;
use super::access::AccessLink;
use super::path::Path;
use super::source::Source;
use crate::clock::Nanos;
use crate::event_queue::Place;
use crate::loss::LossPlace;
use crate::packet::{Kind, Label, Packet};
use crate::probe::{Listener, Tap};
use crate::queue::QueueDiscipline;
use crate::tcp::{SendingEnd, Transmission};

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Time of the sender in an event at `now`.
    #[inline(always)]
    pub(crate) fn sender_now(&self) -> Nanos {
        self.now - self.sender_lookahead
    }

    /// Sends packets over the access link and sets the timer; `any` is a packet of the connection.
    #[inline(always)]
    pub(crate) fn send<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        any: Packet,
        sent: Transmission,
    ) {
        if S::POLLS {
            return self.send_polled(source, path, any);
        }
        let now = self.sender_now();
        self.set_sender_timer(source, any.source());
        let packet = |number, kind| any.with(number, Label::new(kind, 0));
        if sent.retransmit != 0 {
            self.retransmit(source, path, now, packet(sent.retransmit, Kind::Retransmission));
        }
        for number in sent.from..sent.from + sent.count {
            if number < sent.fresh_from {
                self.retransmit(source, path, now, packet(number, Kind::Retransmission));
            } else {
                self.send_packet(source, path, now, packet(number, Kind::Data), true);
            }
        }
    }

    /// Polls a sender and sends its packets. All packets and timers are collected before the first
    /// packet is sent, because sending may advance the clock to the arrival of the packet.
    #[inline(always)]
    fn send_polled<S: SendingEnd>(&mut self, source: &mut Source<S>, path: &Path, any: Packet) {
        let now = self.sender_now();
        let Self { burst, probes, .. } = self;
        let index = any.source();
        let listener = &mut Listener::new(probes, &mut source.record, index);
        source.sender.poll_transmit(now, &path.tcp, listener, move |number, label| {
            burst.push(any.with(number, label));
        });
        self.set_sender_timer(source, index);
        self.set_pacing_timer(source, path, index);
        if !self.burst.is_empty() {
            self.send_burst(source, path, now);
        }
    }

    /// Sends the packets that were collected from the sender.
    #[inline(never)]
    fn send_burst<S: SendingEnd>(&mut self, source: &mut Source<S>, path: &Path, now: Nanos) {
        let mut burst = std::mem::take(&mut self.burst);
        // Handshake packets and a FIN without data do not count as data.
        let opening = source.sender.is_opening();
        for packet in &burst {
            self.send_packet(source, path, now, *packet, packet.number() != 0 && !opening);
        }
        burst.clear();
        self.burst = burst;
    }

    #[inline(never)]
    fn retransmit<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        now: Nanos,
        packet: Packet,
    ) {
        self.send_packet(source, path, now, packet, true);
    }

    #[inline(always)]
    fn send_packet<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        now: Nanos,
        packet: Packet,
        counts_as_data: bool,
    ) {
        self.totals.sent += 1;
        let numbers = HAS_TAPS && !S::POLLS && self.watched;
        let packet = if numbers { self.with_serial(packet) } else { packet };
        if !S::POLLS || counts_as_data {
            self.probes.sent(now, &mut source.record, &packet);
            if !S::LOSS_FEEDBACK && packet.kind() == Kind::Data {
                source.record.enter_flight(now);
            }
        }
        self.report_passage(source, Tap::Sender, now, &packet);
        let link = &path.ingress;
        if !path.is_lossless {
            if let Some(at) = self.lost_on_ingress(source, path, now, packet) {
                if let Some(loss) = &mut self.loss {
                    loss.lost_before(packet.source());
                }
                return self.dropped_on_access(at, source, packet);
            }
        }
        let idle = source.ingress_free <= now;
        source.ingress_free = source.ingress_free.max(now) + time_on::<S>(link, &packet);
        let mut due = source.ingress_free + link.delay;
        if HAS_HOP && self.hops.starts_per_source() {
            let Some(arrival) = self.reach_first_shared(source, path, due, packet) else { return };
            due = arrival;
        }
        if S::POLLS {
            // `sender_lookahead` is for full packets: a shorter packet would arrive before `now`.
            due = due.max(self.now);
        }
        if self.is_next(due) && !self.overtakes(source, due) {
            self.now = due;
            self.arrive_at_first_shared(source, path, packet);
        } else {
            self.schedule_arrival(source, path, idle, due, packet);
        }
    }

    /// Returns the time at which a packet is lost on the ingress link; `None` if it is not lost.
    #[inline(never)]
    fn lost_on_ingress<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        now: Nanos,
        packet: Packet,
    ) -> Option<Nanos> {
        let (link, index) = (&path.ingress, packet.source());
        if self.access_loss.ingress_loses(LossPlace::Before, index)
            || !link.has_room(now, source.ingress_free)
        {
            return Some(now);
        }
        if path.ingress_loses_behind && self.access_loss.ingress_loses(LossPlace::Behind, index) {
            source.ingress_free = source.ingress_free.max(now) + time_on::<S>(link, &packet);
            return Some(source.ingress_free);
        }
        None
    }

    #[inline(never)]
    fn with_serial(&self, packet: Packet) -> Packet {
        let label = Label::new(packet.kind(), self.totals.sent as u16);
        packet.with_label(label)
    }

    /// Schedules the arrival of a data packet at the bottleneck at `due`; `idle` is true if its
    /// access link was idle.
    #[inline(always)]
    fn schedule_arrival<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        idle: bool,
        due: Nanos,
        packet: Packet,
    ) {
        let class = source.record.class();
        if idle || (HAS_HOP && self.hops.starts_per_source()) {
            self.events.schedule(Place::Bottleneck, class, due, packet);
        } else if self.events.schedule_in_order(Place::BottleneckQueued, class, due, packet) {
            // Scheduled as a separate event.
        } else if is_full::<S>(&packet)
            && due - path.ingress.data_time > self.now
            && !path.ingress_loses_behind
        {
            // The arrival of the previous packet will schedule this packet.
            let after = due - path.ingress.data_time;
            self.ingress_waiting.push(&mut source.ingress_waiting, after, due, packet);
        } else {
            self.events.schedule(Place::BottleneckQueued, class, due, packet);
        }
    }
}

/// Transmission time of a packet on an access link.
#[inline(always)]
pub(super) fn time_on<S: SendingEnd>(link: &AccessLink, packet: &Packet) -> Nanos {
    let short = if S::POLLS { packet.label().short_bytes() } else { None };
    short.map_or(link.data_time, |bytes| link.time_of(bytes))
}

/// Whether a packet is full: the next packet on the access link follows it after the transmission
/// time of a full packet.
#[inline(always)]
pub(super) fn is_full<S: SendingEnd>(packet: &Packet) -> bool {
    !S::POLLS || packet.label().short_bytes().is_none()
}
