//! The return path: an acknowledgement from its receiver to its sender.

use super::Network;
use super::path::ClassPath;
use super::source::SimulatedSource;
use crate::clock::Nanos;
use crate::event_queue::PacketPlace;
use crate::packet::Packet;
use crate::probe::{SenderListener, SourceRecord, TapPlace};
use crate::queue::QueueDiscipline;
use tcpcast_tcp::modern::Segment;
use tcpcast_tcp::{PacketsToSend, SendingEnd};

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Sends an acknowledgement. It reaches the return bottleneck at the virtual time `now` -
    /// `return_lookahead`, or later if the egress link is still busy with the previous one.
    #[inline(always)]
    pub(crate) fn send_new_ack<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        ack: Packet,
        segment: &Segment,
    ) {
        let reached = self.now - self.return_lookahead;
        source.return_free = reached.max(source.return_free + path.egress.ack_time);
        if source.return_free == reached {
            if HAS_TAPS || HAS_HOP || !S::IS_POLLED {
                let ack = self.store_segment(source, ack, segment);
                self.send_stored_ack(source, path, reached, ack, false);
            } else {
                self.send_ack_or_store_segment(source, path, reached, ack, segment);
            }
        } else {
            let ack = self.store_segment(source, ack, segment);
            self.schedule_waiting_ack(source, path, reached, ack);
        }
    }

    /// Sends two acknowledgements. Neither is processed before both are sent.
    #[cold]
    pub(super) fn send_two_new_acks<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        acks: [(Packet, Segment); 2],
    ) {
        let reached = self.now - self.return_lookahead;
        let acks = acks.map(|(ack, segment)| self.store_segment(source, ack, &segment));
        for ack in acks {
            source.return_free = reached.max(source.return_free + path.egress.ack_time);
            self.schedule_waiting_ack(source, path, reached, ack);
        }
        // Over an unlimited access link, a later acknowledgement of the same instant would otherwise
        // be sent before these two leave.
        source.return_free = source.return_free.max(reached + 1);
    }

    /// Schedules an acknowledgement that waits for its access link.
    #[inline(always)]
    fn schedule_waiting_ack<S: SendingEnd>(
        &mut self,
        source: &SimulatedSource<S>,
        path: &ClassPath,
        reached: Nanos,
        ack: Packet,
    ) {
        self.report_packet_at_tap(source, TapPlace::Receiver, reached - path.to_return, &ack);
        let due = source.return_free + self.return_lookahead;
        self.events.schedule_packet(PacketPlace::Return, source.record.class(), due, ack);
    }

    /// Sends an acknowledgement over the return path without taps. Usually the acknowledgement
    /// reaches its sender before any other event; then its segment need not be stored.
    #[inline(always)]
    fn send_ack_or_store_segment<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        reached: Nanos,
        ack: Packet,
        segment: &Segment,
    ) {
        let leaves = self.return_link.transmit_cached_length(reached);
        let due = self.ack_arrival_at_sender(source, path, leaves);
        if self.precedes_all_events(due) {
            self.now = due;
            if source.connection == ack.connection() {
                let SimulatedSource { sender, record, .. } = source;
                let sent = self.pass_ack_to_sender(sender, record, path, &ack, segment);
                self.finish_transfer_or_send(source, path, ack, sent);
            }
        } else {
            let ack = self.store_segment(source, ack, segment);
            self.events.schedule_packet(PacketPlace::Sender, source.record.class(), due, ack);
        }
    }

    /// Sends an acknowledgement whose header is stored; `waited` is true if the acknowledgement
    /// waited for its access link.
    #[inline(always)]
    fn send_stored_ack<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        reached: Nanos,
        ack: Packet,
        waited: bool,
    ) {
        if HAS_HOP && self.hops.has_return_link() {
            return self.enter_return_link(source, path, ack, waited);
        }
        let leaves = self.return_link.transmit_cached_length(reached);
        if HAS_TAPS && self.capturing {
            let shown = self.captured_header::<S>(&ack);
            if !waited {
                self.pass_to_captures(
                    TapPlace::Receiver,
                    &source.record,
                    reached - path.to_return,
                    &ack,
                    shown,
                );
            }
            self.pass_to_captures(TapPlace::BottleneckOut, &source.record, reached, &ack, shown);
            self.pass_to_captures(TapPlace::BottleneckIn, &source.record, leaves, &ack, shown);
        }
        let due = self.ack_arrival_at_sender(source, path, leaves);
        if self.precedes_all_events(due) {
            self.now = due;
            self.process_ack(source, path, ack);
        } else {
            self.events.schedule_packet(PacketPlace::Sender, source.record.class(), due, ack);
        }
    }

    /// Time at which the sender processes an acknowledgement that leaves the return bottleneck at
    /// `leaves`.
    #[inline(always)]
    fn ack_arrival_at_sender<S: SendingEnd>(
        &self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        leaves: Nanos,
    ) -> Nanos {
        source.ack_free = source.ack_free.max(leaves + path.back) + path.ingress.ack_time;
        source.ack_free + self.sender_lookahead
    }

    #[inline(never)]
    pub(super) fn send_waiting_ack<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        ack: Packet,
    ) {
        self.send_stored_ack(source, path, self.now - self.return_lookahead, ack, true);
    }

    /// Processes an acknowledgement that reaches its sender.
    #[inline(always)]
    pub(crate) fn process_ack<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        ack: Packet,
    ) {
        self.report_packet_at_tap(source, TapPlace::Sender, self.current_sender_time(), &ack);
        if S::IS_POLLED {
            return self.process_stored_ack(source, path, ack);
        }
        if source.connection == ack.connection() {
            let SimulatedSource { sender, record, .. } = source;
            let sent = self.pass_ack_to_sender(sender, record, path, &ack, &Segment::default());
            self.finish_transfer_or_send(source, path, ack, sent);
        }
    }

    /// Processes an acknowledgement with a stored segment, which is rare.
    #[inline(never)]
    fn process_stored_ack<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        ack: Packet,
    ) {
        let now = self.current_sender_time();
        let segment = self.segments.remove(ack.label());
        if source.connection == ack.connection() {
            let SimulatedSource { sender, record, .. } = source;
            let listener = &mut SenderListener::new(&mut self.probes, record, ack.source());
            let sent = sender.on_ack(now, ack.number(), segment, &path.tcp, listener);
            self.finish_transfer_or_send(source, path, ack, sent);
        }
    }

    /// Passes an acknowledgement of the current connection to its sender.
    #[inline(always)]
    fn pass_ack_to_sender<S: SendingEnd>(
        &mut self,
        sender: &mut S,
        record: &mut SourceRecord,
        path: &ClassPath,
        ack: &Packet,
        segment: &Segment,
    ) -> PacketsToSend {
        let now = self.current_sender_time();
        let listener = &mut SenderListener::new(&mut self.probes, record, ack.source());
        sender.on_ack(now, ack.number(), segment, &path.tcp, listener)
    }

    /// Stores the segment of an acknowledgement until it arrives.
    #[inline(always)]
    fn store_segment<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        ack: Packet,
        segment: &Segment,
    ) -> Packet {
        if !S::IS_POLLED {
            return ack;
        }
        let label = self.segments.store_ack(segment, source.ack_serial);
        source.ack_serial = source.ack_serial.wrapping_add(1);
        ack.with_label(label)
    }

    /// Ends the transfer if the sender has finished; otherwise sends the next packets.
    #[inline(always)]
    fn finish_transfer_or_send<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        ack: Packet,
        sent: PacketsToSend,
    ) {
        if source.sender.is_finished() {
            self.finish_transfer(source, ack.source());
        } else {
            self.send_packets_and_set_timer(source, path, ack, sent);
        }
    }
}
