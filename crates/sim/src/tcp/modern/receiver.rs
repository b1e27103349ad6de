//! Receiving end: reassembles data and schedules acknowledgements.

mod delay;
mod ecn;

use self::delay::{Delay, Due, MIN_DELAY, QUICK_ACKS};
use super::reassembly::{Outcome, Reassembly};
use super::segment::{Cumulative, Outgoing, SackBlock, SackBlocks, Timestamps};
use super::stack::{DelayedAcks, MILLISECOND, Reading, Stack};
use crate::clock::{NEVER, Nanos};

/// ECN codepoint of a packet: RFC 3168, section 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not use ECN.
    #[default]
    NotCapable,
    /// ECT(0) or ECT(1).
    Capable,
    /// Congestion experienced.
    Marked,
}

/// An arriving data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
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

impl Data {
    /// Sequence number after the packet; FIN occupies one.
    #[inline(always)]
    fn end(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.fin)
    }
}

/// Duplicate acknowledgements sent before compression starts, and the maximum number compressed.
const UNCOMPRESSED: u32 = 3;
const COMPRESSED: u32 = 44;

/// Receiving end of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    reassembly: Reassembly,
    /// Last acknowledgement number sent.
    acknowledged: u64,
    /// End of the data read by the application.
    read: u64,
    /// End of the advertised window.
    allowed: u64,
    due: Due,
    /// Duplicate acknowledgements compressed and not compressed, and their acknowledgement number.
    compressed: u32,
    uncompressed: u32,
    compressed_next: u64,
    compressed_until: Option<Nanos>,
    delay: Delay,
    /// Largest packet so far, in bytes of data.
    largest: u32,
    /// Remaining growth of the window up to the size of the buffer.
    growth: u64,
    echoes: bool,
    /// DCTCP: whether the last packet was marked.
    marked: bool,
    /// Acknowledgement to send before the one that is due.
    earlier_ack: Option<Box<Outgoing>>,
    seen_ect: bool,
    newest_stamp: Option<u32>,
    srtt: Option<Nanos>,
}

impl Receiver {
    /// Creates the receiver of a connection whose first byte is `start`.
    #[must_use]
    pub fn new(start: u64, stack: &Stack) -> Self {
        Self {
            reassembly: Reassembly::new(start, stack.receiving.extends_reported),
            acknowledged: start,
            read: start,
            allowed: start + stack.receiving.buffer,
            due: Due::NONE,
            compressed: 0,
            uncompressed: 0,
            compressed_next: 0,
            compressed_until: None,
            delay: Delay {
                ato: None,
                quick: 0,
                last_arrival: 0,
                interactive: false,
                pushed: false,
                read: Due::NONE,
            },
            largest: 536,
            growth: stack.receiving.window_growth,
            echoes: false,
            marked: false,
            earlier_ack: None,
            seen_ect: false,
            newest_stamp: None,
            srtt: None,
        }
    }

    /// The handshake is complete: sets the round-trip time and the newest timestamp.
    pub fn establish(&mut self, srtt: Option<Nanos>, newest_stamp: Option<u32>) {
        self.srtt = srtt;
        self.newest_stamp = newest_stamp;
    }

    /// Next byte expected.
    #[inline(always)]
    #[must_use]
    pub fn next(&self) -> u64 {
        self.reassembly.next()
    }

    /// Reads one word of each cache line that most packets need.
    #[must_use]
    pub(super) fn prefetch(&self) -> u64 {
        let waits = self.compressed_until.is_some() ^ (self.due == Due::NOW);
        let empty = self.reassembly.is_in_order();
        self.next() ^ self.allowed ^ self.delay.last_arrival ^ u64::from(waits ^ empty)
    }

    /// In-order bytes not yet read by the application.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.reassembly.data_end() - self.read
    }

    /// Whether the complete stream was received.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.reassembly.is_complete()
    }

    /// Time at which [`Receiver::on_deadline`] must be called, [`NEVER`] if no timer runs.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        let delayed = self.due.later().unwrap_or(NEVER);
        self.compressed_until.map_or(delayed, |at| at.min(delayed))
    }

    /// A data packet arrives: call [`Receiver::poll_ack`] for resulting acknowledgements. Returns
    /// whether the packet contained new data.
    #[inline(always)]
    pub fn on_data(&mut self, now: Nanos, data: &Data, stack: &Stack) -> bool {
        if stack.ecn {
            self.on_ecn(data.len, data.ecn, data.cwr, stack);
        }
        self.on_data_fast_path(now, data, stack) || self.on_data_slow_path(now, *data, stack)
    }

    /// Fast path for a packet in order with nothing missing; returns false if it does not apply.
    #[inline(always)]
    fn on_data_fast_path(&mut self, now: Nanos, data: &Data, stack: &Stack) -> bool {
        if self.compressed > 0
            || data.timestamps.is_some_and(|stamps| self.is_old(stamps))
            || !self.reassembly.append(data.start, data.len, data.fin)
        {
            return false;
        }
        self.update_newest_stamp(data);
        self.take(now, data, false, stack);
        if data.fin {
            self.due = Due::NOW;
        }
        self.schedule(now, true, stack);
        true
    }

    /// Processes any packet.
    #[inline(never)]
    fn on_data_slow_path(&mut self, now: Nanos, data: Data, stack: &Stack) -> bool {
        if data.timestamps.is_some_and(|stamps| self.is_old(stamps)) {
            self.reject(&data, stack);
            return false;
        }
        self.update_newest_stamp(&data);
        if self.compressed > 0 {
            self.flush_compressed(SackBlock { start: data.start, end: data.end() }, stack);
        }
        let before = self.next();
        let result = self.reassembly.insert(data.start, data.len, data.fin, stack.receiving.dsack);
        match result {
            Outcome::Duplicate => {
                self.enter_quick_mode(QUICK_ACKS);
                self.due = Due::NOW;
                return false;
            }
            Outcome::AlreadyHeld => {
                self.schedule(now, false, stack);
                return false;
            }
            Outcome::FillsGap if self.reassembly.is_in_order() => self.due = Due::NOW,
            Outcome::InOrder | Outcome::FillsGap | Outcome::Held => (),
        }
        self.take(now, &data, result == Outcome::Held, stack);
        if data.fin && self.at_end() && before != self.next() {
            self.due = Due::NOW;
        }
        self.schedule(now, self.reassembly.is_in_order(), stack);
        true
    }

    /// RFC 7323, section 4.3: stores the timestamp of a packet that contains the byte expected by
    /// the last acknowledgement. Packets that end before it are not acceptable (section 5.3, R3).
    #[inline(always)]
    fn update_newest_stamp(&mut self, data: &Data) {
        let Some(stamps) = data.timestamps else { return };
        if data.start <= self.acknowledged && data.end() >= self.acknowledged {
            let newest = self.newest_stamp.unwrap_or(stamps.value);
            let ahead = stamps.value.wrapping_sub(newest) as i32;
            self.newest_stamp = Some(if ahead > 0 { stamps.value } else { newest });
        }
    }

    /// Accepts a packet with new data; `held` if it is above a gap.
    #[inline(always)]
    fn take(&mut self, now: Nanos, data: &Data, held: bool, stack: &Stack) {
        self.largest = self.largest.max(data.len);
        if !held {
            self.on_arrival(now, data, stack);
        }
        if self.growth > 0 && (!held || stack.detection.uses_sack()) {
            self.grow_window(data, stack);
        }
        if stack.receiving.reading != Reading::OnRequest {
            self.read = self.reassembly.data_end();
        }
    }

    /// Whether a timestamp is older than the newest in-order one by more than Linux's tolerance
    /// (`TCP_PAWS_WINDOW`).
    #[inline(always)]
    fn is_old(&self, stamps: Timestamps) -> bool {
        self.newest_stamp.is_some_and(|newest| newest.wrapping_sub(stamps.value) as i32 > 1)
    }

    /// RFC 7323, section 5.3, R1: acknowledges but discards a packet with an old timestamp. A
    /// packet sent before another one that was accepted in order looks like a packet from long ago.
    #[cold]
    fn reject(&mut self, data: &Data, stack: &Stack) {
        if data.start < self.next() {
            self.enter_quick_mode(QUICK_ACKS);
            if stack.receiving.dsack {
                self.reassembly.report_duplicate(data.start, data.len);
            }
        }
        self.due = Due::NOW;
    }

    /// Schedules an acknowledgement, immediate or delayed; `in_order` if nothing is missing.
    #[inline(always)]
    fn schedule(&mut self, now: Nanos, in_order: bool, stack: &Stack) {
        if self.due == Due::NOW {
            return;
        }
        match stack.receiving.delayed_acks {
            DelayedAcks::Off => self.due = Due::NOW,
            DelayedAcks::Fixed { timeout } => {
                let full = self.next() - self.acknowledged > u64::from(self.largest);
                if !in_order || full {
                    self.due = Due::NOW;
                } else if self.due == Due::NONE {
                    self.due = Due::at(now + timeout);
                }
            }
            DelayedAcks::Linux => self.schedule_linux(now, in_order, stack),
        }
    }

    #[inline(always)]
    fn schedule_linux(&mut self, now: Nanos, in_order: bool, stack: &Stack) {
        let full = self.next() - self.acknowledged > u64::from(self.largest);
        let quick = self.delay.quick > 0 && !self.delay.interactive;
        // Linux: whether the window would not be smaller than the advertised one.
        let window_moves = self.read + stack.receiving.buffer >= self.allowed;
        let reading = stack.receiving.reading;
        let drained =
            reading == Reading::EachPacket && self.delay.pushed && !self.delay.interactive;
        if reading == Reading::EachInstant && in_order && !quick {
            self.defer_to_reader(now, stack);
        } else if (full && window_moves) || quick || (drained && in_order) {
            self.due = Due::NOW;
        } else if in_order {
            self.delay_ack(now, stack);
        } else {
            self.compress(now, stack);
        }
    }

    /// Compresses duplicate acknowledgements after the third. The count restarts when part of the
    /// gap is filled, which is then acknowledged immediately.
    #[inline(never)]
    fn compress(&mut self, now: Nanos, stack: &Stack) {
        let can = stack.receiving.sack_compression && stack.detection.uses_sack();
        if !can || self.compressed >= COMPRESSED {
            self.due = Due::NOW;
            return;
        }
        if self.compressed_next != self.next() {
            self.compressed_next = self.next();
            self.uncompressed = 0;
        }
        if self.uncompressed < UNCOMPRESSED {
            self.uncompressed += 1;
            self.due = Due::NOW;
        } else {
            self.compressed += 1;
            let wait = (self.srtt.unwrap_or(20 * MILLISECOND) / 20).min(MILLISECOND);
            self.compressed_until.get_or_insert(now + wait);
        }
    }

    /// Sends compressed acknowledgements before their blocks are displaced by others: data that is
    /// never reported looks lost, and later looks reordered when it is acknowledged.
    #[inline(never)]
    fn flush_compressed(&mut self, new: SackBlock, stack: &Stack) {
        if self.reassembly.crowds_out(new) {
            self.earlier_ack = Some(Box::new(self.acknowledge(stack)));
        }
    }

    /// A timer expired.
    pub fn on_deadline(&mut self, now: Nanos) {
        if self.compressed_until.is_some_and(|at| at <= now) {
            self.compressed_until = None;
            self.due = Due::NOW;
        }
        if self.due.later().is_some_and(|at| at <= now) {
            if self.is_read_pending() {
                return self.on_instant_read();
            }
            self.due = Due::NOW;
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
    pub fn on_read(&mut self, bytes: u64, stack: &Stack) {
        self.read = (self.read + bytes).min(self.reassembly.data_end());
        let room = self.read + stack.receiving.buffer;
        let waits = self.due.later().is_some();
        let drained = self.readable() == 0;
        let reopens = self.allowed < self.next() + u64::from(self.largest)
            && room >= self.next() + stack.receiving.buffer / 2;
        if (waits && bytes > 0 && self.acks_read(drained)) || reopens {
            self.due = Due::NOW;
        }
    }

    /// Data is sent and carries an acknowledgement, so none is due. The connection is interactive
    /// if the other end sent data shortly before.
    pub fn on_data_sent(&mut self, now: Nanos, stack: &Stack) -> Outgoing {
        if self.delay.ato.is_some_and(|ato| now - self.delay.last_arrival < ato) {
            self.delay.interactive = true;
        }
        self.acknowledge(stack)
    }

    /// Makes an acknowledgement due immediately.
    pub fn acknowledge_now(&mut self) {
        self.due = Due::NOW;
    }

    /// A packet without data below the window requests an acknowledgement.
    pub fn on_out_of_window(&mut self) {
        self.enter_quick_mode(QUICK_ACKS);
        self.due = Due::NOW;
    }

    /// Returns the next acknowledgement to send now; call until [`None`].
    #[inline(always)]
    pub fn poll_ack(&mut self, stack: &Stack) -> Option<Outgoing> {
        if self.earlier_ack.is_some() {
            return self.earlier_ack.take().map(|outgoing| *outgoing);
        }
        (self.due == Due::NOW).then(|| self.acknowledge(stack))
    }

    /// Whether an acknowledgement is due now.
    #[inline(always)]
    pub(super) fn is_ack_due(&self) -> bool {
        self.due == Due::NOW || self.earlier_ack.is_some()
    }

    /// Like [`Receiver::poll_ack`], but [`None`] if the acknowledgement might have SACK blocks.
    #[inline(always)]
    pub(super) fn poll_cumulative(&mut self, stack: &Stack) -> Option<Cumulative> {
        let has_no_blocks =
            self.due == Due::NOW && self.earlier_ack.is_none() && !self.reassembly.has_blocks();
        has_no_blocks.then(|| self.acknowledge_in_order(stack))
    }

    fn acknowledge(&mut self, stack: &Stack) -> Outgoing {
        let sacks = self.sacks(stack);
        let Cumulative { ack, window, echo, ece, .. } = self.acknowledge_in_order(stack);
        Outgoing { ack, window, sacks, echo, ece }
    }

    /// Sends an acknowledgement of all in-order data.
    #[inline(always)]
    fn acknowledge_in_order(&mut self, stack: &Stack) -> Cumulative {
        let room = self.read + stack.receiving.buffer;
        self.allowed = self.allowed.max(room);
        let ack = self.cumulative(stack);
        self.acknowledged = self.next();
        if self.delay.quick > 0 && self.due != Due::NONE {
            self.delay.quick -= 1;
            if self.delay.quick == 0 {
                self.delay.ato = Some(MIN_DELAY);
            }
        }
        self.due = Due::NONE;
        self.compressed = 0;
        self.compressed_until = None;
        self.delay.pushed = false;
        self.reassembly.clear_duplicate();
        ack
    }

    fn sacks(&self, stack: &Stack) -> SackBlocks {
        let max = if stack.timestamps { 3 } else { 4 };
        if stack.detection.uses_sack() && self.reassembly.has_blocks() {
            self.reassembly.blocks(max)
        } else {
            SackBlocks::default()
        }
    }

    /// Linux's `tcp_receive_window`: 0 if a FIN, which is not counted in the window, follows its
    /// last byte.
    #[inline(always)]
    fn window(&self) -> u64 {
        self.allowed.saturating_sub(self.next())
    }

    #[inline(always)]
    fn cumulative(&self, stack: &Stack) -> Cumulative {
        Cumulative {
            ack: self.next(),
            window: self.window(),
            seq: 0,
            echo: self.newest_stamp.filter(|_| stack.timestamps),
            ece: self.echoes,
        }
    }

    fn outgoing(&self, stack: &Stack) -> Outgoing {
        let Cumulative { ack, window, echo, ece, .. } = self.cumulative(stack);
        Outgoing { ack, window, sacks: self.sacks(stack), echo, ece }
    }

    /// Data held out of order.
    #[must_use]
    pub fn held(&self) -> &[SackBlock] {
        self.reassembly.held()
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
