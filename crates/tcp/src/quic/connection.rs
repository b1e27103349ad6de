//! One end of a connection: packets in both directions, timers, and the handshake.

use super::ack_tracker::AckTracker;
use super::congestion::QuicCongestion;
use super::datagram::{
    CRYPTO_HEADER, Chunk, Datagram, MIN_DATAGRAM, QuicPacket, STREAM_HEADER, STREAM_OVERHEAD,
    Space, header_bytes,
};
use super::handshake::{HandshakeBytes, HandshakeState};
use super::recovery::{ProbeTimeouts, QuicRtt, SpaceRecovery};
use super::rules::QuicRules;
use super::sent_packets::SentPacket;
use super::streams::{ChunkToSend, SendStream};
use crate::modern::cc::path_model::BbrState;
use crate::modern::{
    CongestionWindow, EndpointRole, HandshakeKind, InsertOutcome, OutstandingPacket,
    ReassemblyQueue, Stack,
};
use tcpcast_link::Ecn;
use tcpcast_link::time::{NEVER, Nanos};

/// Smallest room in which a datagram gets another packet.
const MIN_ROOM: u32 = 64;

/// What a datagram caused at the end that received it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// Whether it contained new stream data.
    pub has_new_data: bool,
    /// Packets of stream data that were acknowledged.
    pub acked_packets: u32,
    /// Round-trip time, if it was measured.
    pub rtt: Option<Nanos>,
    /// Window before a reduction.
    pub reduced_from: Option<u32>,
    pub is_persistent: bool,
    pub recovered: bool,
}

/// What a datagram that is sent contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Number of the packet of stream data, from 1; 0 without stream data.
    pub number: u32,
    pub is_retransmission: bool,
    pub is_eliciting: bool,
    /// Bytes of its packets.
    pub bytes: u32,
}

/// A timer that expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expired {
    Nothing,
    /// Packets are lost by the time threshold; the window before a reduction.
    Loss {
        reduced_from: Option<u32>,
    },
    Probe,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct QuicConnection {
    rules: QuicRules,
    packet_threshold: u32,
    mss: u32,
    ecn: bool,
    kind: HandshakeKind,
    spaces: [SpaceRecovery; 3],
    acks: [AckTracker; 3],
    rtt: QuicRtt,
    timeouts: ProbeTimeouts,
    pub(super) congestion: QuicCongestion,
    pub(super) handshake: HandshakeState,
    bytes: HandshakeBytes,
    crypto: [SendStream; 2],
    crypto_received: [ReassemblyQueue; 2],
    pub(super) stream: SendStream,
    received: ReassemblyQueue,
    /// Limit of the stream that was announced to the other end, and whether it must be sent.
    announced: u64,
    is_limit_due: bool,
    is_done_due: bool,
    probes_due: [u32; 3],
    /// Start of the timer of a client without packets in flight.
    flight_ended_at: Nanos,
    /// Packets with a congestion mark that acknowledgements have reported.
    ce_reported: u64,
    is_abandoned: bool,
    /// Time of the last datagram or timer: a deadline that has passed meanwhile is due at once.
    touched_at: Nanos,
    lost: Vec<(u64, SentPacket)>,
}

impl QuicConnection {
    /// An end of a new connection; `seed` determines random choices of the congestion control.
    pub(super) fn new(
        now: Nanos,
        role: EndpointRole,
        seed: u64,
        kind: HandshakeKind,
        stack: &Stack,
        rules: &QuicRules,
    ) -> Self {
        let queue = ReassemblyQueue::new(0, false);
        let mut connection = Self {
            rules: *rules,
            packet_threshold: stack.reordering.initial,
            mss: stack.mss,
            ecn: stack.ecn,
            kind,
            spaces: [(); 3].map(|()| SpaceRecovery::new()),
            acks: [(); 3].map(|()| AckTracker::new()),
            rtt: QuicRtt::new(rules.initial_rtt),
            timeouts: ProbeTimeouts::default(),
            congestion: QuicCongestion::new(now, seed, full_datagram(stack.mss), stack, rules),
            handshake: HandshakeState::new(role, kind),
            bytes: HandshakeBytes::new(kind, stack.certificate),
            crypto: [SendStream::default(), SendStream::default()],
            crypto_received: [queue.clone(), queue.clone()],
            stream: SendStream::default(),
            received: queue,
            announced: rules.window,
            is_limit_due: false,
            is_done_due: false,
            probes_due: [0; 3],
            flight_ended_at: now,
            ce_reported: 0,
            is_abandoned: false,
            touched_at: now,
            lost: Vec::new(),
        };
        connection.start();
        connection
    }

    /// Replaces a connection by a new one, which reuses its memory.
    pub(super) fn restart(
        &mut self,
        now: Nanos,
        seed: u64,
        kind: HandshakeKind,
        stack: &Stack,
        rules: &QuicRules,
    ) {
        let fresh = Self::new(now, self.handshake.role, seed, kind, stack, rules);
        let old = std::mem::replace(self, fresh);
        (self.spaces, self.acks, self.stream) = (old.spaces, old.acks, old.stream);
        self.spaces.iter_mut().for_each(SpaceRecovery::restart);
        self.acks.iter_mut().for_each(AckTracker::restart);
        self.start();
    }

    fn start(&mut self) {
        self.stream.restart(self.rules.window);
        self.crypto.iter_mut().for_each(|stream| stream.restart(u64::MAX));
        if self.kind != HandshakeKind::None && self.handshake.role == EndpointRole::Client {
            self.crypto[Space::Initial as usize].write(u64::from(self.bytes.client_hello));
        }
    }

    /// Takes the base round-trip time as the first sample: a connection without a handshake.
    pub(super) fn open(&mut self, now: Nanos, rtt: Nanos) {
        self.rtt.add_sample(now, rtt, 0);
        self.congestion.on_first_rtt(now, rtt);
    }

    /// Whether the application of this end may write.
    pub(super) fn is_open(&self) -> bool {
        match self.handshake.role {
            EndpointRole::Client => self.handshake.sends_application,
            EndpointRole::Server if self.kind == HandshakeKind::Tls13ZeroRtt => {
                self.handshake.sends_application
            }
            EndpointRole::Server => self.handshake.reads_application,
        }
    }

    /// Congestion window and threshold.
    #[must_use]
    pub fn window(&self) -> &CongestionWindow {
        self.congestion.window()
    }

    /// State of BBR, and the payload of its packets.
    pub(super) fn bbr_state(&self) -> Option<(BbrState, u32)> {
        self.congestion.bbr_state()
    }

    /// Ack-eliciting packets in flight.
    #[must_use]
    pub fn packets_in_flight(&self) -> u32 {
        self.congestion.packets_in_flight()
    }

    /// Bytes of the stream of the other end that were received in order.
    #[inline]
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received.next_expected()
    }

    /// Received bytes of the stream of the other end between two positions.
    #[must_use]
    pub fn received_between(&self, start: u64, end: u64) -> u64 {
        let in_order = self.received.next_expected().clamp(start, end) - start;
        let held = self.received.held_blocks();
        let first = held.partition_point(|block| block.end <= start);
        let blocks = held[first..].iter().take_while(|block| block.start < end);
        in_order + blocks.map(|block| block.end.min(end) - block.start.max(start)).sum::<u64>()
    }

    /// Position after the last received byte of the stream of the other end.
    #[must_use]
    pub fn received_end(&self) -> u64 {
        self.received.held_blocks().last().map_or(self.received.next_expected(), |last| last.end)
    }

    /// From now on, this end sends only acknowledgements.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
        self.congestion.pacer.stop_waiting();
    }

    // Receiving.

    /// A datagram arrives: call [`QuicConnection::poll`] for resulting datagrams.
    pub(super) fn on_datagram(
        &mut self,
        now: Nanos,
        datagram: &Datagram,
        is_marked: bool,
    ) -> Received {
        let mut result = Received::default();
        self.touched_at = now;
        if !self.handshake.is_confirmed {
            self.handshake.on_received(datagram.payload);
        }
        self.on_packet(now, &datagram.first, is_marked, &mut result);
        for packet in &datagram.others {
            self.on_packet(now, packet, is_marked, &mut result);
        }
        if self.congestion.packets_in_flight() == 0 {
            self.flight_ended_at = now;
        }
        result
    }

    /// Whether the keys of a packet exist. A packet without keys is dropped.
    #[inline]
    fn can_read(&self, packet: &QuicPacket) -> bool {
        let state = &self.handshake;
        match packet.space {
            Space::Application if packet.zero_rtt => {
                self.kind == HandshakeKind::Tls13ZeroRtt && state.has_handshake_keys
            }
            Space::Application => state.reads_application,
            Space::Handshake => state.has_handshake_keys && !state.discarded[1],
            Space::Initial => !state.discarded[0],
        }
    }

    #[inline]
    fn on_packet(
        &mut self,
        now: Nanos,
        packet: &QuicPacket,
        is_marked: bool,
        result: &mut Received,
    ) {
        let space = packet.space;
        if !self.can_read(packet)
            || !self.acks[space as usize].on_packet(now, packet, is_marked, &self.rules)
        {
            return;
        }
        if space == Space::Handshake && self.handshake.role == EndpointRole::Server {
            // The client can read our packets: RFC 9000, section 8.1, and RFC 9001, section 4.9.1.
            self.handshake.is_validated = true;
            self.discard(Space::Initial);
        }
        if !packet.acked.is_empty() {
            self.on_ack(now, packet, result);
        }
        match packet.data {
            Some(chunk) if space == Space::Application => {
                let before = self.received.next_expected();
                let outcome = self.received.insert_packet(chunk.start, chunk.len, false, false);
                result.has_new_data |=
                    !matches!(outcome, InsertOutcome::AlreadyHeld | InsertOutcome::Duplicate);
                if self.received.next_expected() != before {
                    self.update_limit();
                }
            }
            Some(chunk) => self.on_crypto(space, chunk),
            None => (),
        }
        if let Some(limit) = packet.max_data {
            self.stream.raise_limit(limit);
        }
        if packet.handshake_done {
            self.confirm();
        }
    }

    /// The application has read more: announces a larger limit if enough of the window is used.
    #[inline]
    fn update_limit(&mut self) {
        let (read, window) = (self.received.next_expected(), self.rules.window);
        let limit = match self.rules.window_doubles {
            true if 2 * read > self.announced => 2 * self.announced,
            true => return,
            false => read + window,
        };
        if limit - self.announced >= window / 8 {
            (self.announced, self.is_limit_due) = (limit, true);
        }
    }

    fn on_crypto(&mut self, space: Space, chunk: Chunk) {
        let Some(received) = self.crypto_received.get_mut(space as usize) else { return };
        received.insert_packet(chunk.start, chunk.len, false, false);
        let got = received.next_expected();
        let (state, bytes) = (&mut self.handshake, &self.bytes);
        match (state.role, space) {
            (EndpointRole::Server, Space::Initial)
                if !state.has_handshake_keys && got >= u64::from(bytes.client_hello) =>
            {
                (state.has_handshake_keys, state.sends_application) = (true, true);
                self.crypto[0].write(u64::from(bytes.server_hello));
                self.crypto[1].write(u64::from(bytes.server_rest));
            }
            (EndpointRole::Client, Space::Initial) => {
                state.has_handshake_keys |= got >= u64::from(bytes.server_hello);
            }
            (EndpointRole::Client, Space::Handshake)
                if !state.reads_application && got >= u64::from(bytes.server_rest) =>
            {
                (state.reads_application, state.sends_application) = (true, true);
                self.crypto[1].write(u64::from(bytes.finished));
            }
            (EndpointRole::Server, Space::Handshake)
                if !state.reads_application && got >= u64::from(bytes.finished) =>
            {
                state.reads_application = true;
                self.is_done_due = true;
                self.confirm();
            }
            _ => (),
        }
    }

    /// The handshake is confirmed: RFC 9001, section 4.1.2.
    fn confirm(&mut self) {
        self.handshake.is_confirmed = true;
        self.discard(Space::Initial);
        self.discard(Space::Handshake);
    }

    /// Discards the keys of a space: RFC 9002, section 6.4.
    fn discard(&mut self, space: Space) {
        let index = space as usize;
        if std::mem::replace(&mut self.handshake.discarded[index], true) {
            return;
        }
        let packets = self.spaces[index].sent.in_flight();
        let bytes = self.spaces[index].sent.discard();
        self.congestion.remove_from_flight(packets, bytes);
        self.spaces[index].loss_time = NEVER;
        self.acks[index].discard();
        self.probes_due[index] = 0;
        self.timeouts.count = 0;
    }

    /// An ACK frame arrives: RFC 9002, appendix A.7.
    fn on_ack(&mut self, now: Nanos, packet: &QuicPacket, result: &mut Received) {
        let space = packet.space;
        let state = &mut self.spaces[space as usize];
        let Some(largest) = packet.acked.last().map(|range| range.end - 1) else { return };
        let first_in_flight = state.sent.first_number();
        let mut delivered = self.congestion.begin_ack(state.sent.next_number());
        let was_recovering = self.congestion.is_in_recovery();
        let mut largest_sent_at = None;
        for range in packet.acked.iter().rev() {
            if range.end <= first_in_flight {
                break;
            }
            for number in range.start.max(first_in_flight)..range.end {
                let Some(sent) = state.sent.take(number) else { continue };
                self.congestion.on_packet_acked(number, &sent, &mut delivered);
                if number == largest {
                    largest_sent_at = Some(sent.sent_at());
                }
                match (sent.data, self.crypto.get_mut(space as usize)) {
                    (Some(chunk), None) => result.acked_packets += self.stream.on_acked(chunk),
                    (Some(chunk), Some(crypto)) => _ = crypto.on_acked(chunk),
                    (None, _) => (),
                }
                if let Some(acknowledged) = sent.acknowledges_below.checked_sub(1) {
                    self.acks[space as usize].on_ack_acknowledged(acknowledged);
                }
            }
        }
        state.largest_acked = state.largest_acked.max(Some(largest));
        if delivered.packets == 0 {
            return;
        }
        if let Some(sent_at) = largest_sent_at {
            let delay = match space {
                Space::Application => packet.ack_delay.min(self.rules.max_ack_delay),
                _ => 0,
            };
            let is_first = self.rtt.sampled().is_none();
            self.rtt.add_sample(now, now - sent_at, delay);
            if is_first {
                self.congestion.on_first_rtt(now, now - sent_at);
            }
            (result.rtt, delivered.rtt) = (Some(now - sent_at), Some(now - sent_at));
            if packet.ce_count > self.ce_reported {
                self.ce_reported = packet.ce_count;
                let next = self.spaces[space as usize].sent.next_number();
                self.congestion.on_congestion(now, sent_at, next);
            }
        }
        self.congestion.grow_window(now, &delivered, &self.rtt, &self.rules);
        result.recovered |= was_recovering && !self.congestion.is_in_recovery();
        let (reduced_from, is_persistent) = self.detect_losses(now, space);
        result.reduced_from = result.reduced_from.or(reduced_from);
        result.is_persistent |= is_persistent;
        self.congestion.set_window_and_rate(now, &delivered, &self.rtt);
        if self.knows_validation() {
            self.timeouts.count = 0;
        }
    }

    /// Whether this end is the server, or knows that the server has validated its address.
    fn knows_validation(&self) -> bool {
        self.handshake.role == EndpointRole::Server
            || self.handshake.is_confirmed
            || self.spaces[Space::Handshake as usize].largest_acked.is_some()
    }

    /// Sends the contents of lost packets again; returns the window before a reduction, and whether
    /// congestion is persistent.
    fn detect_losses(&mut self, now: Nanos, space: Space) -> (Option<u32>, bool) {
        let mut lost = std::mem::take(&mut self.lost);
        let state = &mut self.spaces[space as usize];
        let (rtt, threshold) = (&self.rtt, self.packet_threshold);
        let is_persistent = state.detect_losses(now, rtt, threshold, &self.rules, &mut lost);
        let next = state.sent.next_number();
        let mut reduced_from = None;
        if !lost.is_empty() {
            reduced_from = self.congestion.on_lost(now, &lost, is_persistent, next, &self.rules);
            for (_, packet) in lost.drain(..) {
                self.send_again(space, &packet);
            }
        }
        self.lost = lost;
        (reduced_from, is_persistent)
    }

    fn send_again(&mut self, space: Space, packet: &SentPacket) {
        if let Some(chunk) = packet.data {
            self.crypto.get_mut(space as usize).unwrap_or(&mut self.stream).on_lost(chunk);
        }
        self.is_limit_due |= packet.has_max_data;
        self.is_done_due |= packet.has_handshake_done;
    }

    // Timers.

    /// Time at which packets are lost or a probe is due; [`NEVER`] if nothing is in flight.
    #[inline]
    pub(super) fn loss_deadline(&self) -> Nanos {
        if self.is_abandoned {
            return NEVER;
        }
        let lost = self.spaces.iter().map(|state| state.loss_time).min().unwrap_or(NEVER);
        if lost < NEVER {
            return lost.max(self.touched_at);
        }
        self.probe_deadline().map_or(NEVER, |(due, _)| due.max(self.touched_at))
    }

    fn probe_deadline(&self) -> Option<(Nanos, Space)> {
        let state = &self.handshake;
        if state.is_confirmed {
            return self.timeouts.next(&self.spaces, [false, false, true], &self.rtt, &self.rules);
        }
        if state.budget() < MIN_ROOM {
            return None;
        }
        let usable = [!state.discarded[0], !state.discarded[1], false];
        let due = self.timeouts.next(&self.spaces, usable, &self.rtt, &self.rules);
        if due.is_some() || self.knows_validation() {
            return due;
        }
        // Our packets raise the number of bytes that the server may send: RFC 9002, section 6.2.2.1.
        let space = if state.has_handshake_keys { Space::Handshake } else { Space::Initial };
        Some((self.timeouts.without_flight(self.flight_ended_at, &self.rtt), space))
    }

    /// Time at which an acknowledgement is due; [`NEVER`] if none waits.
    #[inline]
    pub(super) fn ack_deadline(&self) -> Nanos {
        // Acknowledgements of Initial and Handshake packets are sent immediately.
        self.acks[Space::Application as usize].deadline()
    }

    /// Time at which the pacer allows a waiting packet; [`NEVER`] if none waits.
    #[inline]
    pub(super) fn next_paced_time(&self) -> Nanos {
        self.congestion.pacer.next_send_time()
    }

    /// A deadline is reached: call [`QuicConnection::poll`] for resulting datagrams.
    pub(super) fn on_timer(&mut self, now: Nanos) -> Expired {
        self.touched_at = now;
        self.acks[Space::Application as usize].on_deadline(now);
        if self.is_abandoned {
            return Expired::Nothing;
        }
        for space in Space::ALL {
            if self.spaces[space as usize].loss_time <= now {
                let (reduced_from, _) = self.detect_losses(now, space);
                return Expired::Loss { reduced_from };
            }
        }
        let Some((_, space)) = self.probe_deadline().filter(|(due, _)| *due <= now) else {
            return Expired::Nothing;
        };
        self.timeouts.count += 1;
        self.flight_ended_at = now;
        let has_flight = self.spaces[space as usize].sent.in_flight() > 0;
        self.probes_due[space as usize] += if has_flight { self.rules.probes } else { 1 };
        self.fill_probe(space);
        Expired::Probe
    }

    /// RFC 9002, section 6.2.4: probes carry new data, or data of the oldest packets.
    fn fill_probe(&mut self, space: Space) {
        let has_data = match space {
            Space::Application => self.stream.has_data(),
            _ => self.crypto[space as usize].has_data(),
        };
        if has_data || (space == Space::Application && !self.rules.probes_carry_data) {
            return;
        }
        let count = self.probes_due[space as usize] as usize;
        let mut oldest = std::mem::take(&mut self.lost);
        let packets = self.spaces[space as usize].sent.iter_mut();
        oldest.extend(packets.take(count).map(|packet| (0, *packet)));
        for (_, packet) in oldest.drain(..) {
            self.send_again(space, &packet);
        }
        self.lost = oldest;
    }

    // Sending.

    /// Whether an acknowledgement is due or a packet may be sent.
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        if self.is_abandoned {
            return self.acks[Space::Application as usize].is_due();
        }
        !self.handshake.is_confirmed
            || self.acks[Space::Application as usize].is_due()
            || self.has_application_data()
            || self.probes_due[Space::Application as usize] > 0
    }

    #[inline]
    fn has_application_data(&self) -> bool {
        self.stream.has_data() || self.is_limit_due || self.is_done_due
    }

    /// Fills in the next datagram to send now; returns [`None`] if there is none.
    #[inline]
    pub(super) fn poll(&mut self, now: Nanos, datagram: &mut Datagram) -> Option<Sent> {
        datagram.others.clear();
        if self.handshake.is_confirmed {
            let full = full_datagram(self.mss);
            let sent = self.write_packet(now, Space::Application, full, &mut datagram.first)?;
            datagram.payload = sent.bytes;
            datagram.ecn = self.ecn_of(sent.is_eliciting);
            return Some(sent);
        }
        self.poll_coalesced(now, datagram)
    }

    fn ecn_of(&self, is_eliciting: bool) -> Ecn {
        if self.ecn && is_eliciting { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// Like [`QuicConnection::poll`], with packets of several spaces in a datagram.
    fn poll_coalesced(&mut self, now: Nanos, datagram: &mut Datagram) -> Option<Sent> {
        let full = full_datagram(self.mss).min(self.handshake.budget());
        let mut room = full.min(MIN_DATAGRAM);
        let (mut result, mut is_padded, mut count, mut bytes) = (None::<Sent>, false, 0, 0);
        for space in Space::ALL {
            if count == 0 && space == Space::Application {
                room = full;
            }
            if room < MIN_ROOM || !self.has_keys_to_send(space) {
                continue;
            }
            let mut packet = QuicPacket::default();
            let Some(sent) = self.write_packet(now, space, room, &mut packet) else { continue };
            room -= sent.bytes;
            bytes += sent.bytes;
            let is_client = self.handshake.role == EndpointRole::Client;
            is_padded |= space == Space::Initial && (is_client || sent.is_eliciting);
            if space == Space::Handshake && is_client {
                self.discard(Space::Initial);
            }
            let earlier = result.unwrap_or_default();
            result = Some(Sent {
                number: earlier.number.max(sent.number),
                is_retransmission: earlier.is_retransmission || sent.is_retransmission,
                is_eliciting: earlier.is_eliciting || sent.is_eliciting,
                bytes,
            });
            match count {
                0 => datagram.first = packet,
                _ => datagram.others.push(packet),
            }
            count += 1;
        }
        let sent = result?;
        let least = if is_padded { MIN_DATAGRAM.min(full) } else { 0 };
        datagram.payload = bytes.max(least);
        datagram.ecn = self.ecn_of(sent.is_eliciting);
        self.handshake.on_sent(datagram.payload);
        Some(sent)
    }

    fn has_keys_to_send(&self, space: Space) -> bool {
        let state = &self.handshake;
        match space {
            Space::Initial => !state.discarded[0],
            Space::Handshake => state.has_handshake_keys && !state.discarded[1],
            Space::Application => state.sends_application,
        }
    }

    /// Writes a packet of at most `max` bytes if there is something to send.
    #[inline]
    fn write_packet(
        &mut self,
        now: Nanos,
        space: Space,
        max: u32,
        packet: &mut QuicPacket,
    ) -> Option<Sent> {
        let index = space as usize;
        let zero_rtt = space == Space::Application && !self.handshake.reads_application && {
            self.handshake.role == EndpointRole::Client
        };
        let sends_frames = !self.is_abandoned && self.may_send_frames(now, space);
        let acks = !zero_rtt && self.acks[index].is_due();
        if !sends_frames && !acks {
            return None;
        }
        let number = self.spaces[index].sent.next_number();
        packet.reset(space, number, zero_rtt);
        let mut room = max.saturating_sub(header_bytes(space, zero_rtt));
        if acks || (!zero_rtt && self.acks[index].is_waiting()) {
            self.acks[index].write_ack(now, room, packet);
            room = room.saturating_sub(packet.ack_bytes);
        }
        let mut sent = Sent::default();
        if sends_frames {
            self.write_frames(space, room, packet, &mut sent);
        }
        (sent.is_eliciting, sent.bytes) = (packet.is_ack_eliciting(), packet.bytes());
        if !sent.is_eliciting {
            self.spaces[index].sent.push(None);
            return Some(sent);
        }
        let mut outstanding = OutstandingPacket::default();
        self.congestion.on_sent(now, number, &mut outstanding, sent.bytes);
        let state = &mut self.spaces[index];
        state.sent.push(Some(SentPacket::new(packet, outstanding, sent.bytes)));
        state.last_eliciting_sent = now;
        self.probes_due[index] = self.probes_due[index].saturating_sub(1);
        Some(sent)
    }

    /// Whether ack-eliciting frames wait, and window and pacer allow a packet with them. Probes are
    /// limited by neither: RFC 9002, section 7.5.
    #[inline]
    fn may_send_frames(&mut self, now: Nanos, space: Space) -> bool {
        if self.probes_due[space as usize] > 0 {
            return true;
        }
        let has_frames = match space {
            Space::Application => self.has_application_data(),
            _ => self.crypto[space as usize].has_data(),
        };
        if space == Space::Application {
            self.congestion.pacer.stop_waiting();
        }
        if !has_frames {
            if space == Space::Application && !self.stream.expects_more() {
                self.congestion.set_app_limited(true);
            }
            return false;
        }
        if space == Space::Application {
            self.congestion.set_app_limited(false);
        }
        self.congestion.allows_datagram(&self.rules)
            && !self.congestion.must_wait_for_pacer(now, &self.rtt, &self.rules)
    }

    #[inline]
    fn write_frames(&mut self, space: Space, room: u32, packet: &mut QuicPacket, sent: &mut Sent) {
        if space == Space::Application {
            packet.handshake_done = std::mem::take(&mut self.is_done_due);
            if std::mem::take(&mut self.is_limit_due) {
                packet.max_data = Some(self.announced);
            }
            let other = packet.bytes() - header_bytes(space, packet.zero_rtt);
            let left = room.saturating_sub(other - packet.ack_bytes).saturating_sub(STREAM_HEADER);
            if let Some(next) = self.stream.take_chunk(left.min(self.mss)) {
                let ChunkToSend { chunk, number, is_retransmission } = next;
                packet.data = Some(chunk);
                (sent.number, sent.is_retransmission) = (number, is_retransmission);
            }
        } else if let Some(next) =
            self.crypto[space as usize].take_chunk(room.saturating_sub(CRYPTO_HEADER))
        {
            packet.data = Some(next.chunk);
        }
        packet.ping = self.probes_due[space as usize] > 0 && !packet.is_ack_eliciting();
    }
}

/// UDP payload of a datagram full of stream data.
fn full_datagram(mss: u32) -> u32 {
    mss + STREAM_OVERHEAD
}
