//! Receiving end: reassembles data and schedules acknowledgements.

mod delayed_ack;
mod ecn_echo;
mod window_autotuning;

use self::delayed_ack::{AckDueTime, DelayedAckState, MIN_DELAY, PushedPackets, QUICK_ACKS};
use self::window_autotuning::WindowAutotuning;
use super::accurate_ecn::ReceivedMarks;
use super::reassembly::{InsertOutcome, ReassemblyQueue};
use super::segment::{CumulativeAck, OutgoingAck, SackBlock, SackBlocks, Timestamps};
use super::stack::{AckDelayRule, ApplicationReading, Stack};
use tcpcast_link::Ecn;
use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// An arriving data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivingData {
    /// First byte.
    pub start: u64,
    /// Bytes of data.
    pub len: u32,
    /// Whether the packet ends the stream.
    pub fin: bool,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// Congestion window reduced.
    pub cwr: bool,
    /// Push.
    pub push: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
}

impl ArrivingData {
    /// Sequence number after the packet; FIN occupies one.
    #[inline(always)]
    fn end(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.fin)
    }
}

/// Duplicate acknowledgements sent before compression starts, and the maximum number compressed.
const MAX_UNCOMPRESSED_ACKS: u32 = 3;
const MAX_COMPRESSED_ACKS: u32 = 44;

/// Receiving end of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    reassembly: ReassemblyQueue,
    /// Last acknowledgement number sent.
    acknowledged: u64,
    /// End of the data read by the application.
    read: u64,
    /// End of the advertised window.
    allowed: u64,
    due: AckDueTime,
    /// Duplicate acknowledgements compressed and not compressed, and their acknowledgement number.
    compressed: u32,
    uncompressed: u32,
    compressed_next: u64,
    compressed_until: Option<Nanos>,
    delay: DelayedAckState,
    /// Largest packet so far, in bytes of data.
    largest: u32,
    /// Remaining growth of the window up to the size of the buffer.
    growth: u64,
    tuning: Option<WindowAutotuning>,
    echoes: bool,
    /// DCTCP: whether the last packet was marked.
    marked: bool,
    /// Acknowledgement to send before data and the acknowledgement that is due.
    earlier_ack: Option<Box<OutgoingAck>>,
    seen_ect: bool,
    /// Counters of accurate ECN.
    marks: Option<Box<ReceivedMarks>>,
    newest_stamp: Option<u32>,
    srtt: Option<Nanos>,
}

impl Receiver {
    /// Creates the receiver of a connection whose first byte is `start`.
    #[inline(always)]
    #[must_use]
    pub fn new(start: u64, stack: &Stack) -> Self {
        let memory = stack.receiving.memory;
        let tuning = memory.map(|memory| WindowAutotuning::new(memory, start, stack));
        Self {
            reassembly: ReassemblyQueue::new(start, stack.receiving.extends_reported),
            acknowledged: start,
            read: start,
            allowed: start + stack.receiving.initial_window(),
            due: AckDueTime::NONE,
            compressed: 0,
            uncompressed: 0,
            compressed_next: 0,
            compressed_until: None,
            delay: DelayedAckState {
                ato: None,
                quick: 0,
                last_arrival: 0,
                interactive: false,
                pushed: PushedPackets::None,
                read: AckDueTime::NONE,
            },
            largest: 536,
            growth: if tuning.is_some() { 0 } else { stack.receiving.window_growth },
            tuning,
            echoes: false,
            marked: false,
            earlier_ack: None,
            seen_ect: false,
            marks: None,
            newest_stamp: None,
            srtt: None,
        }
    }

    /// The handshake is complete: sets the round-trip time and the newest timestamp.
    pub fn on_established(&mut self, srtt: Option<Nanos>, newest_stamp: Option<u32>) {
        self.srtt = srtt;
        self.newest_stamp = newest_stamp;
    }

    /// Starts to count marks for accurate ECN.
    pub(super) fn count_marks(&mut self, marks: ReceivedMarks) {
        self.marks = Some(Box::new(marks));
    }

    #[inline(always)]
    pub(super) fn received_marks_mut(&mut self) -> Option<&mut ReceivedMarks> {
        self.marks.as_deref_mut()
    }

    /// Smoothed round-trip time of the handshake.
    pub(super) fn srtt(&self) -> Option<Nanos> {
        self.srtt
    }

    /// Next byte expected.
    #[inline(always)]
    #[must_use]
    pub fn next_expected(&self) -> u64 {
        self.reassembly.next_expected()
    }

    /// In-order bytes not yet read by the application.
    #[must_use]
    pub fn readable_bytes(&self) -> u64 {
        self.reassembly.data_end() - self.read
    }

    /// Largest packet so far, in bytes of data.
    #[must_use]
    pub fn largest_packet(&self) -> u32 {
        self.largest
    }

    /// End of the advertised window.
    #[must_use]
    pub fn window_end(&self) -> u64 {
        self.allowed
    }

    /// Whether the complete stream was received.
    #[must_use]
    pub fn is_stream_complete(&self) -> bool {
        self.reassembly.is_complete()
    }

    /// Time at which [`Receiver::on_deadline`] must be called, [`NEVER`] if no timer runs.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        let delayed = self.due.time_if_in_future().unwrap_or(NEVER);
        self.compressed_until.map_or(delayed, |at| at.min(delayed))
    }

    /// A data packet arrives: call [`Receiver::poll_ack`] for resulting acknowledgements. Returns
    /// whether the packet contained new data.
    #[inline(always)]
    pub fn on_data(&mut self, now: Nanos, data: &ArrivingData, stack: &Stack) -> bool {
        if stack.ecn {
            self.update_ecn_echo(data.len, data.ecn, data.cwr, stack);
        }
        self.on_data_fast_path(now, data, stack) || self.on_data_slow_path(now, *data, stack)
    }

    /// Fast path for a packet in order with nothing missing; returns false if the fast path does
    /// not apply.
    #[inline(always)]
    fn on_data_fast_path(&mut self, now: Nanos, data: &ArrivingData, stack: &Stack) -> bool {
        if self.compressed > 0
            || data.timestamps.is_some_and(|stamps| self.is_old_timestamp(stamps))
            || !self.reassembly.append_in_order(data.start, data.len, data.fin)
        {
            return false;
        }
        self.update_newest_stamp(data);
        self.accept_new_data(now, data, false, stack);
        if data.fin {
            self.due = AckDueTime::NOW;
        }
        self.schedule_ack(now, true, stack);
        true
    }

    /// Processes any packet.
    #[inline(never)]
    fn on_data_slow_path(&mut self, now: Nanos, data: ArrivingData, stack: &Stack) -> bool {
        if data.timestamps.is_some_and(|stamps| self.is_old_timestamp(stamps)) {
            self.reject_old_timestamp(&data, stack);
            return false;
        }
        self.update_newest_stamp(&data);
        if self.compressed > 0 {
            self.flush_compressed_acks(SackBlock { start: data.start, end: data.end() }, stack);
        }
        let before = self.next_expected();
        let result =
            self.reassembly.insert_packet(data.start, data.len, data.fin, stack.receiving.dsack);
        match result {
            InsertOutcome::Duplicate => {
                self.enter_quick_ack_mode(QUICK_ACKS);
                self.due = AckDueTime::NOW;
                return false;
            }
            InsertOutcome::AlreadyHeld => {
                self.schedule_ack(now, false, stack);
                return false;
            }
            InsertOutcome::FillsGap if self.reassembly.is_in_order() => self.due = AckDueTime::NOW,
            InsertOutcome::InOrder | InsertOutcome::FillsGap | InsertOutcome::Held => (),
        }
        self.accept_new_data(now, &data, result == InsertOutcome::Held, stack);
        if data.fin && self.is_stream_complete() && before != self.next_expected() {
            self.due = AckDueTime::NOW;
        }
        self.schedule_ack(now, self.reassembly.is_in_order(), stack);
        true
    }

    /// RFC 7323, section 4.3: stores the timestamp of a packet that contains the byte expected by
    /// the last acknowledgement. Packets that end before this byte are not acceptable (section 5.3,
    /// R3).
    #[inline(always)]
    fn update_newest_stamp(&mut self, data: &ArrivingData) {
        let Some(stamps) = data.timestamps else { return };
        if data.start <= self.acknowledged && data.end() >= self.acknowledged {
            let newest = self.newest_stamp.unwrap_or(stamps.value);
            let ahead = stamps.value.wrapping_sub(newest) as i32;
            self.newest_stamp = Some(if ahead > 0 { stamps.value } else { newest });
        }
    }

    /// Processes the timestamps of a packet without data.
    pub fn on_timestamp_without_data(&mut self, start: u64, stamps: Timestamps) {
        let (len, fin, ecn) = (0, false, Ecn::NotEct);
        let timestamps = Some(stamps);
        let data = ArrivingData { start, len, fin, ecn, cwr: false, push: false, timestamps };
        self.update_newest_stamp(&data);
    }

    /// Accepts a packet with new data; `above_gap` is true if the packet is above a gap.
    #[inline(always)]
    fn accept_new_data(&mut self, now: Nanos, data: &ArrivingData, above_gap: bool, stack: &Stack) {
        // The packets of a burst are not longer than others: `tcp_measure_rcv_mss`.
        self.largest = self.largest.max(data.len.min(stack.mss));
        if !above_gap {
            self.adapt_delay_to_arrival(now, data, stack);
        }
        if self.growth > 0 && (!above_gap || stack.detection.uses_sack()) {
            self.grow_receive_window(data, stack);
        }
        if stack.receiving.reading != ApplicationReading::OnRequest {
            self.read = self.reassembly.data_end();
        }
        if self.tuning.is_some() {
            self.measure_rtt(now, data.timestamps);
            if stack.receiving.reading != ApplicationReading::OnRequest {
                self.grow_buffer(now, stack);
            }
        }
    }

    /// Bytes that may arrive beyond the data read.
    #[inline(always)]
    fn space(&self, stack: &Stack) -> u64 {
        match &self.tuning {
            None => stack.receiving.buffer,
            Some(tuning) => tuning.clamp - self.growth,
        }
    }

    /// Whether a timestamp is older than the newest in-order one by more than Linux's tolerance
    /// (`TCP_PAWS_WINDOW`).
    #[inline(always)]
    fn is_old_timestamp(&self, stamps: Timestamps) -> bool {
        self.newest_stamp.is_some_and(|newest| newest.wrapping_sub(stamps.value) as i32 > 1)
    }

    /// RFC 7323, section 5.3, R1: acknowledges but discards a packet with an old timestamp. A
    /// packet sent before another one that was accepted in order looks like a packet from long ago.
    #[cold]
    fn reject_old_timestamp(&mut self, data: &ArrivingData, stack: &Stack) {
        if data.start < self.next_expected() {
            self.enter_quick_ack_mode(QUICK_ACKS);
            if stack.receiving.dsack {
                self.reassembly.report_duplicate(data.start, data.len);
            }
        }
        self.due = AckDueTime::NOW;
    }

    /// Schedules an acknowledgement, immediate or delayed; `in_order` if nothing is missing.
    #[inline(always)]
    fn schedule_ack(&mut self, now: Nanos, in_order: bool, stack: &Stack) {
        if self.due == AckDueTime::NOW {
            return;
        }
        match stack.receiving.delayed_acks {
            AckDelayRule::Off => self.due = AckDueTime::NOW,
            AckDelayRule::Fixed { timeout } => {
                let full = self.next_expected() - self.acknowledged > u64::from(self.largest);
                if !in_order || full {
                    self.due = AckDueTime::NOW;
                } else if self.due == AckDueTime::NONE {
                    self.due = AckDueTime::due_at(now + timeout);
                }
            }
            AckDelayRule::Linux => self.schedule_ack_as_linux(now, in_order, stack),
        }
    }

    #[inline(always)]
    fn schedule_ack_as_linux(&mut self, now: Nanos, in_order: bool, stack: &Stack) {
        let full = self.next_expected() - self.acknowledged > u64::from(self.largest);
        let quick = self.delay.quick > 0 && !self.delay.interactive;
        // As in Linux: true if the new window is at least the advertised one.
        let window_moves = self.read + self.space(stack) >= self.allowed;
        let reading = stack.receiving.reading;
        let drained = reading == ApplicationReading::EachPacket && self.pushes_cause_ack();
        if reading == ApplicationReading::EachInstant && in_order && !quick {
            self.defer_ack_until_read(now, stack);
        } else if (full && window_moves) || quick || (drained && in_order) {
            self.due = AckDueTime::NOW;
        } else if in_order {
            self.delay_ack(now, stack);
        } else {
            self.compress_duplicate_acks(now, stack);
        }
    }

    /// Compresses duplicate acknowledgements after the third. The count restarts when part of the
    /// gap is filled, which is then acknowledged immediately.
    #[inline(never)]
    fn compress_duplicate_acks(&mut self, now: Nanos, stack: &Stack) {
        let can = stack.receiving.sack_compression && stack.detection.uses_sack();
        if !can || self.compressed >= MAX_COMPRESSED_ACKS {
            self.due = AckDueTime::NOW;
            return;
        }
        if self.compressed_next != self.next_expected() {
            self.compressed_next = self.next_expected();
            self.uncompressed = 0;
        }
        let share = u64::from(stack.kernel.sack_compression_percent);
        if self.uncompressed < MAX_UNCOMPRESSED_ACKS || share == 0 {
            self.uncompressed += 1;
            self.due = AckDueTime::NOW;
        } else {
            self.compressed += 1;
            let wait = (self.srtt.unwrap_or(20 * MILLISECOND) * share / 100).min(MILLISECOND);
            self.compressed_until.get_or_insert(now + wait);
        }
    }

    /// Sends compressed acknowledgements before other blocks displace their blocks: otherwise the
    /// sender would assume that the unreported data is lost, and later, when it is acknowledged,
    /// that it was reordered.
    #[inline(never)]
    fn flush_compressed_acks(&mut self, new: SackBlock, stack: &Stack) {
        if self.reassembly.would_displace_unreported_blocks(new) {
            self.earlier_ack = Some(Box::new(self.send_ack_with_blocks(stack)));
        }
    }

    /// A timer expired.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.compressed_until.is_some_and(|at| at <= now) {
            self.compressed_until = None;
            self.due = AckDueTime::NOW;
        }
        if self.due.time_if_in_future().is_some_and(|at| at <= now) {
            if self.is_read_pending() {
                return self.on_all_data_read();
            }
            self.due = AckDueTime::NOW;
            if self.delay.interactive {
                self.delay.interactive = false;
                self.delay.ato = Some(MIN_DELAY);
            } else {
                let rto = self.srtt.unwrap_or(0) + 200 * MILLISECOND;
                self.delay.ato = self.delay.ato.map(|ato| (ato * 2).min(rto));
            }
        }
    }

    /// The application reads; the window update may be sent.
    pub fn on_read(&mut self, now: Nanos, bytes: u64, stack: &Stack) {
        self.read = (self.read + bytes).min(self.reassembly.data_end());
        if self.tuning.is_some() {
            self.grow_buffer(now, stack);
        }
        let waits = self.due.time_if_in_future().is_some();
        let drained = self.readable_bytes() == 0;
        let reopens = self.is_window_update_due(stack);
        if (waits && bytes > 0 && self.read_causes_ack(drained)) || reopens {
            self.due = AckDueTime::NOW;
        }
    }

    /// End of the window that the free space allows, or 0 if a smaller part of the buffer is free
    /// than Linux's `__tcp_select_window` advertises: silly window avoidance of the receiver.
    fn selected_window_end(&mut self, stack: &Stack) -> u64 {
        let (space, next) = (self.space(stack), self.next_expected());
        let end = self.read + space;
        if stack.receiving.delayed_acks != AckDelayRule::Linux {
            return end;
        }
        let free = end.saturating_sub(next);
        if free < space / 2 {
            self.delay.quick = 0;
        }
        if free < (space / 16).max(u64::from(self.largest).min(space)) { 0 } else { end }
    }

    /// Whether the application has freed so much space that the sender must know: in Linux's
    /// `tcp_cleanup_rbuf` twice the advertised window, otherwise half of the buffer (RFC 9293,
    /// section 3.8.6.2.2).
    fn is_window_update_due(&mut self, stack: &Stack) -> bool {
        let (space, next) = (self.space(stack), self.next_expected());
        if stack.receiving.delayed_acks != AckDelayRule::Linux {
            return self.allowed < next + u64::from(self.largest)
                && self.read + space >= next + space / 2;
        }
        let advertised = self.receive_window();
        let window = self.selected_window_end(stack).saturating_sub(next);
        2 * advertised <= space && window > 0 && window >= 2 * advertised
    }

    /// Data is sent and carries an acknowledgement, so none is due. Replaces `sacks`. The connection is
    /// interactive if the other end sent data shortly before.
    #[inline(always)]
    pub fn on_data_sent(
        &mut self,
        now: Nanos,
        stack: &Stack,
        sacks: &mut SackBlocks,
    ) -> CumulativeAck {
        if self.delay.ato.is_some_and(|ato| now - self.delay.last_arrival < ato) {
            self.delay.interactive = true;
        }
        if self.reassembly.has_blocks_to_report() || !sacks.is_empty() {
            *sacks = self.sack_blocks_to_send(stack);
        }
        self.send_cumulative_ack(stack)
    }

    /// Makes an acknowledgement due immediately.
    pub fn make_ack_due(&mut self) {
        self.due = AckDueTime::NOW;
    }

    /// A packet without data below the window requests an acknowledgement.
    pub fn on_packet_below_window(&mut self) {
        self.enter_quick_ack_mode(QUICK_ACKS);
        self.due = AckDueTime::NOW;
    }

    /// Returns the next acknowledgement to send now; call until [`None`].
    #[inline(always)]
    pub fn poll_ack(&mut self, stack: &Stack) -> Option<OutgoingAck> {
        if self.earlier_ack.is_some() {
            return self.earlier_ack.take().map(|outgoing| *outgoing);
        }
        (self.due == AckDueTime::NOW).then(|| self.send_ack_with_blocks(stack))
    }

    /// Whether an acknowledgement must precede data and the acknowledgement that is due.
    #[inline(always)]
    pub(super) fn has_earlier_ack(&self) -> bool {
        self.earlier_ack.is_some()
    }

    /// Whether an acknowledgement is due now.
    #[inline(always)]
    pub(super) fn is_ack_due(&self) -> bool {
        self.due == AckDueTime::NOW || self.earlier_ack.is_some()
    }

    /// Like [`Receiver::poll_ack`], but [`None`] if the acknowledgement might have SACK blocks.
    #[inline(always)]
    pub(super) fn poll_cumulative_ack(&mut self, stack: &Stack) -> Option<CumulativeAck> {
        let has_no_blocks = self.due == AckDueTime::NOW
            && self.earlier_ack.is_none()
            && !self.reassembly.has_blocks_to_report();
        has_no_blocks.then(|| self.send_cumulative_ack(stack))
    }

    fn send_ack_with_blocks(&mut self, stack: &Stack) -> OutgoingAck {
        let sacks = self.sack_blocks_to_send(stack);
        let CumulativeAck { ack, window, echo, ece, .. } = self.send_cumulative_ack(stack);
        OutgoingAck { ack, window, sacks, echo, ece }
    }

    /// Sends an acknowledgement of all in-order data.
    #[inline(always)]
    fn send_cumulative_ack(&mut self, stack: &Stack) -> CumulativeAck {
        let room = match stack.receiving.reading {
            ApplicationReading::OnRequest => self.selected_window_end(stack),
            _ => self.read + self.space(stack),
        };
        self.allowed = self.allowed.max(room);
        let ack = self.cumulative_ack(stack);
        self.acknowledged = self.next_expected();
        if self.delay.quick > 0 && self.due != AckDueTime::NONE {
            self.delay.quick -= 1;
            if self.delay.quick == 0 {
                self.delay.ato = Some(MIN_DELAY);
            }
        }
        self.due = AckDueTime::NONE;
        self.compressed = 0;
        self.compressed_until = None;
        self.delay.pushed = PushedPackets::None;
        self.reassembly.clear_duplicate();
        ack
    }

    fn sack_blocks_to_send(&self, stack: &Stack) -> SackBlocks {
        let max = if stack.timestamps { 3 } else { 4 };
        if stack.detection.uses_sack() && self.reassembly.has_blocks_to_report() {
            self.reassembly.blocks_to_report(max)
        } else {
            SackBlocks::default()
        }
    }

    /// Linux's `tcp_receive_window`: 0 if a FIN, which is not counted in the window, follows its
    /// last byte.
    #[inline(always)]
    fn receive_window(&self) -> u64 {
        self.allowed.saturating_sub(self.next_expected())
    }

    #[inline(always)]
    fn cumulative_ack(&self, stack: &Stack) -> CumulativeAck {
        CumulativeAck {
            ack: self.next_expected(),
            window: self.receive_window(),
            seq: 0,
            echo: self.newest_stamp.filter(|_| stack.timestamps),
            ece: self.echoes,
        }
    }

    fn outgoing_ack(&self, stack: &Stack) -> OutgoingAck {
        let CumulativeAck { ack, window, echo, ece, .. } = self.cumulative_ack(stack);
        OutgoingAck { ack, window, sacks: self.sack_blocks_to_send(stack), echo, ece }
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
