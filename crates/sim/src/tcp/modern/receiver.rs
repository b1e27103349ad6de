//! The receiving end: puts data in order, and says when to acknowledge what.

use super::reassembly::{Placed, Reassembly};
use super::segment::{SackBlock, SackBlocks, Timestamps};
use super::stack::{DelayedAcks, MILLISECOND, Stack};
use crate::clock::{NEVER, Nanos};

/// The congestion bits of a packet: RFC 3168, section 5.
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

/// A data packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its first byte.
    pub start: u64,
    /// Bytes of data.
    pub len: u32,
    /// Whether the stream ends with it.
    pub fin: bool,
    /// Its congestion bits.
    pub ecn: Ecn,
    /// Congestion window reduced.
    pub cwr: bool,
    /// Its stamps.
    pub timestamps: Option<Timestamps>,
}

/// An acknowledgement to send now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// The next byte expected.
    pub ack: u64,
    /// How many bytes beyond that are taken.
    pub window: u64,
    /// What else is held.
    pub sacks: SackBlocks,
    /// The stamp that it echoes.
    pub echo: Option<u32>,
    /// ECN echo.
    pub ece: bool,
}

/// The shortest delay of an acknowledgement in Linux.
const SHORTEST_DELAY: Nanos = 40 * MILLISECOND;
/// The longest, and that of a conversation.
const LONGEST_DELAY: Nanos = 500 * MILLISECOND;
const CONVERSATION_DELAY: Nanos = 200 * MILLISECOND;
/// Packets that are acknowledged at once at the start.
const QUICK_ACKS: u32 = 16;
/// Duplicate acknowledgements that are sent before the next ones wait, and how many may.
const UNCOMPRESSED: u32 = 3;
const COMPRESSED: u32 = 44;

/// Whether an acknowledgement is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// None is.
    Nothing,
    /// At once.
    Now,
    /// Later.
    At(Nanos),
}

/// How Linux delays acknowledgements.
#[derive(Clone, Copy, Debug)]
struct Delay {
    /// How long; [`None`] before the first packet.
    ato: Option<Nanos>,
    /// Acknowledgements that are not delayed.
    quick: u32,
    last_arrival: Nanos,
    /// Both ends send: acknowledgements ride on data.
    conversation: bool,
    /// A packet that is not full waits to be acknowledged.
    small: bool,
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Receiver {
    reassembly: Reassembly,
    /// What was acknowledged last.
    acknowledged: u64,
    /// What the application has read.
    read: u64,
    /// The byte after the last one that was allowed.
    allowed: u64,
    due: Due,
    /// Duplicate acknowledgements that wait, and those that did not.
    compressed: u32,
    uncompressed: u32,
    compressed_until: Option<Nanos>,
    delay: Delay,
    /// The largest packet so far.
    largest: u32,
    echoes: bool,
    /// DCTCP: whether the last packet was marked.
    marked: bool,
    /// An acknowledgement to send before the one that is due.
    before: Option<Box<Outgoing>>,
    seen_ect: bool,
    newest_stamp: Option<u32>,
    srtt: Option<Nanos>,
}

impl Receiver {
    /// The end of a connection whose first byte is `start`.
    #[must_use]
    pub fn new(start: u64, stack: &Stack) -> Self {
        Self {
            reassembly: Reassembly::new(start),
            acknowledged: start,
            read: start,
            allowed: start + stack.receiving.buffer,
            due: Due::Nothing,
            compressed: 0,
            uncompressed: 0,
            compressed_until: None,
            delay: Delay {
                ato: None,
                quick: 0,
                last_arrival: 0,
                conversation: false,
                small: false,
            },
            largest: 536,
            echoes: false,
            marked: false,
            before: None,
            seen_ect: false,
            newest_stamp: None,
            srtt: None,
        }
    }

    /// The handshake has told the round-trip time and a stamp.
    pub fn establish(&mut self, srtt: Option<Nanos>, newest_stamp: Option<u32>) {
        self.srtt = srtt;
        self.newest_stamp = newest_stamp;
    }

    /// The next byte expected.
    #[inline(always)]
    #[must_use]
    pub fn next(&self) -> u64 {
        self.reassembly.next()
    }

    /// A word of each line that most packets need, so that they are there when one comes.
    #[must_use]
    pub(super) fn fetch(&self) -> u64 {
        let waits = self.compressed_until.is_some() ^ (self.due == Due::Now);
        let empty = self.reassembly.is_in_order();
        self.next() ^ self.allowed ^ self.delay.last_arrival ^ u64::from(waits ^ empty)
    }

    /// Bytes in order that the application has not read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.reassembly.data_end() - self.read
    }

    /// Whether the end of the stream has been reached.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.reassembly.is_complete()
    }

    /// When [`Receiver::on_deadline`] is to be called, [`NEVER`] if not.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        let delayed = match self.due {
            Due::At(at) => at,
            _ => NEVER,
        };
        self.compressed_until.map_or(delayed, |at| at.min(delayed))
    }

    /// A data packet arrives; [`Receiver::poll_ack`] has what it leads to. Says whether it brought
    /// anything that had not come before.
    #[inline]
    pub fn on_data(&mut self, now: Nanos, data: &Data, stack: &Stack) -> bool {
        let before = self.next();
        if stack.ecn {
            self.hear_ecn(data, stack);
        }
        if self.compressed > 0 {
            self.tell_compressed(data, stack);
        }
        let placed = self.reassembly.place(data.start, data.len, data.fin, stack.receiving.dsack);
        if data.start <= self.acknowledged || placed == Placed::InOrder {
            self.newest_stamp = data.timestamps.map(|s| s.value).or(self.newest_stamp);
        }
        match placed {
            Placed::Duplicate => {
                self.enter_quick_mode(QUICK_ACKS);
                self.due = Due::Now;
                return false;
            }
            Placed::Fills if self.reassembly.is_in_order() => self.due = Due::Now,
            Placed::InOrder | Placed::Fills | Placed::Held => (),
        }
        self.largest = self.largest.max(data.len);
        self.hear_arrival(now, data.len, stack);
        if stack.receiving.reads_at_once {
            self.read = self.reassembly.data_end();
        }
        if data.fin && self.at_end() && before != self.next() {
            self.due = Due::Now;
        }
        self.schedule(now, placed, stack);
        true
    }

    #[inline(always)]
    fn schedule(&mut self, now: Nanos, placed: Placed, stack: &Stack) {
        if self.due == Due::Now {
            return;
        }
        let in_order = self.reassembly.is_in_order() && placed != Placed::Held;
        match stack.receiving.delayed_acks {
            DelayedAcks::Off => self.due = Due::Now,
            DelayedAcks::Fixed { timeout } => {
                let full = self.next() - self.acknowledged > u64::from(self.largest);
                if !in_order || full {
                    self.due = Due::Now;
                } else if self.due == Due::Nothing {
                    self.due = Due::At(now + timeout);
                }
            }
            DelayedAcks::Linux => self.schedule_linux(now, in_order, stack),
        }
    }

    #[inline(always)]
    fn schedule_linux(&mut self, now: Nanos, in_order: bool, stack: &Stack) {
        let full = self.next() - self.acknowledged > u64::from(self.largest);
        let quick = self.delay.quick > 0 && !self.delay.conversation;
        let drained = stack.receiving.reads_at_once && self.delay.small && !self.delay.conversation;
        if (full && self.window_moves(stack)) || quick || (drained && in_order) {
            self.due = Due::Now;
        } else if in_order {
            self.delay_ack(now, stack);
        } else {
            self.compress(now, stack);
        }
    }

    /// Linux: the window would not be smaller than what was advertised.
    fn window_moves(&self, stack: &Stack) -> bool {
        self.read + stack.receiving.buffer >= self.allowed
    }

    #[inline(always)]
    fn delay_ack(&mut self, now: Nanos, stack: &Stack) {
        let mut wait = self.delay.ato.unwrap_or(SHORTEST_DELAY);
        if wait > SHORTEST_DELAY {
            let talks = self.delay.conversation || self.delay.small;
            let most = if talks { CONVERSATION_DELAY } else { LONGEST_DELAY };
            let by_rtt = self.srtt.map_or(most, |srtt| srtt.max(SHORTEST_DELAY));
            wait = wait.min(most).min(by_rtt);
        }
        let at = now + stack.in_ticks(wait.min(CONVERSATION_DELAY));
        self.due = match self.due {
            Due::At(before) if before <= now + wait / 4 => Due::Now,
            Due::At(before) => Due::At(before.min(at)),
            _ => Due::At(at),
        };
    }

    /// After three duplicate acknowledgements the next ones wait for each other.
    #[inline(never)]
    fn compress(&mut self, now: Nanos, stack: &Stack) {
        let can = stack.receiving.sack_compression && stack.detection.uses_sack();
        if !can || self.compressed >= COMPRESSED {
            self.due = Due::Now;
        } else if self.uncompressed < UNCOMPRESSED {
            self.uncompressed += 1;
            self.due = Due::Now;
        } else {
            self.compressed += 1;
            let wait = (self.srtt.unwrap_or(20 * MILLISECOND) / 20).min(MILLISECOND);
            self.compressed_until.get_or_insert(now + wait);
        }
    }

    /// Acknowledgements that wait for each other go before the blocks that they report are crowded
    /// out: what is never reported looks lost, and reordered when it is acknowledged.
    #[inline(never)]
    fn tell_compressed(&mut self, data: &Data, stack: &Stack) {
        let end = data.start + u64::from(data.len) + u64::from(data.fin);
        if self.reassembly.crowds_out(SackBlock { start: data.start, end }) {
            self.before = Some(Box::new(self.acknowledge(stack)));
        }
    }

    /// A timer expired.
    pub fn on_deadline(&mut self, now: Nanos, _stack: &Stack) {
        if self.compressed_until.is_some_and(|at| at <= now) {
            self.compressed_until = None;
            self.due = Due::Now;
        }
        if matches!(self.due, Due::At(at) if at <= now) {
            self.due = Due::Now;
            if self.delay.conversation {
                self.delay.conversation = false;
                self.delay.ato = Some(SHORTEST_DELAY);
            } else {
                let rto = self.srtt.unwrap_or(0) + 200 * MILLISECOND;
                self.delay.ato = self.delay.ato.map(|ato| (ato * 2).min(rto));
            }
        }
    }

    /// Packets that come close to each other keep the delay short: RFC 5681, section 4.2, lets it
    /// be up to 500 ms.
    #[inline(always)]
    fn hear_arrival(&mut self, now: Nanos, len: u32, stack: &Stack) {
        if stack.receiving.delayed_acks != DelayedAcks::Linux {
            return;
        }
        self.delay.small = len < self.largest;
        let rto = self.srtt.unwrap_or(0) + 200 * MILLISECOND;
        let gap = now - self.delay.last_arrival;
        self.delay.last_arrival = now;
        match self.delay.ato {
            None => {
                self.add_quick_acks(QUICK_ACKS);
                self.delay.ato = Some(SHORTEST_DELAY);
            }
            Some(ato) if gap <= SHORTEST_DELAY / 2 => {
                self.delay.ato = Some(ato / 2 + SHORTEST_DELAY / 2);
            }
            Some(ato) if gap < ato => self.delay.ato = Some((ato / 2 + gap).min(rto)),
            Some(_) if gap > rto => self.add_quick_acks(QUICK_ACKS),
            Some(_) => (),
        }
    }

    #[inline(never)]
    fn add_quick_acks(&mut self, most: u32) {
        let window = self.allowed - self.next();
        let acks = window / (2 * u64::from(self.largest));
        let acks = u32::try_from(acks).unwrap_or(u32::MAX).max(2).min(most);
        self.delay.quick = self.delay.quick.max(acks);
    }

    fn enter_quick_mode(&mut self, most: u32) {
        self.add_quick_acks(most);
        self.delay.conversation = false;
        self.delay.ato = Some(SHORTEST_DELAY);
    }

    /// RFC 3168, section 6.1.3; each mark for DCTCP: RFC 8257, section 3.2.
    fn hear_ecn(&mut self, data: &Data, stack: &Stack) {
        let marked = data.ecn == Ecn::Marked;
        if data.len == 0 {
            return;
        }
        if stack.echoes_each_mark() {
            if self.marked != marked {
                if matches!(self.due, Due::At(_)) {
                    // What was delayed says what the packets before were.
                    self.before = Some(Box::new(self.outgoing(stack)));
                }
                self.due = Due::Now;
            }
            self.marked = marked;
            self.echoes = marked;
            return;
        }
        if data.cwr {
            self.echoes = false;
            self.due = Due::Now;
        }
        match data.ecn {
            Ecn::Marked => {
                if !self.echoes {
                    self.enter_quick_mode(2);
                }
                self.echoes = true;
                self.seen_ect = true;
            }
            // Probably a retransmission, which is not ECN-capable.
            Ecn::NotCapable if self.seen_ect => self.enter_quick_mode(2),
            Ecn::NotCapable => (),
            Ecn::Capable => self.seen_ect = true,
        }
    }

    /// The application reads; what the window opens by may be told to the sender.
    pub fn on_read(&mut self, bytes: u64, stack: &Stack) {
        self.read = (self.read + bytes).min(self.reassembly.data_end());
        let room = self.read + stack.receiving.buffer;
        let waits = matches!(self.due, Due::At(_));
        let drained = self.readable() == 0 && self.delay.small && !self.delay.conversation;
        let full = self.next() - self.acknowledged > u64::from(self.largest);
        let reopens = self.allowed < self.next() + u64::from(self.largest)
            && room >= self.next() + stack.receiving.buffer / 2;
        if (waits && bytes > 0 && (drained || full)) || reopens {
            self.due = Due::Now;
        }
    }

    /// Data is sent that carries an acknowledgement: none is due any more. It is a conversation if
    /// the other end has sent something just before.
    pub fn on_data_sent(&mut self, now: Nanos, stack: &Stack) -> Outgoing {
        if self.delay.ato.is_some_and(|ato| now - self.delay.last_arrival < ato) {
            self.delay.conversation = true;
        }
        self.acknowledge(stack)
    }

    /// An acknowledgement is to be sent at once.
    pub fn acknowledge_now(&mut self) {
        self.due = Due::Now;
    }

    /// A packet without data below the window asks for an acknowledgement.
    pub fn on_out_of_window(&mut self) {
        self.enter_quick_mode(QUICK_ACKS);
        self.due = Due::Now;
    }

    /// The next acknowledgement to send now; to be asked until there is none.
    #[inline(always)]
    pub fn poll_ack(&mut self, stack: &Stack) -> Option<Outgoing> {
        if self.before.is_some() {
            return self.before.take().map(|outgoing| *outgoing);
        }
        (self.due == Due::Now).then(|| self.acknowledge(stack))
    }

    #[inline(always)]
    fn acknowledge(&mut self, stack: &Stack) -> Outgoing {
        let room = self.read + stack.receiving.buffer;
        self.allowed = self.allowed.max(room);
        let outgoing = self.outgoing(stack);
        if self.acknowledged != self.next() {
            self.uncompressed = 0;
        }
        self.acknowledged = self.next();
        if self.delay.quick > 0 && self.due != Due::Nothing {
            self.delay.quick -= 1;
            if self.delay.quick == 0 {
                self.delay.ato = Some(SHORTEST_DELAY);
            }
        }
        self.due = Due::Nothing;
        self.compressed = 0;
        self.compressed_until = None;
        self.delay.small = false;
        self.reassembly.duplicate_told();
        outgoing
    }

    #[inline(always)]
    fn outgoing(&self, stack: &Stack) -> Outgoing {
        let most = if stack.timestamps { 3 } else { 4 };
        let sacks = if stack.detection.uses_sack() && self.reassembly.has_blocks() {
            self.reassembly.blocks(most)
        } else {
            SackBlocks::default()
        };
        Outgoing {
            ack: self.next(),
            window: self.allowed.saturating_sub(self.next()),
            sacks,
            echo: self.newest_stamp.filter(|_| stack.timestamps),
            ece: self.echoes,
        }
    }

    /// What is held out of order.
    #[must_use]
    pub fn held(&self) -> &[SackBlock] {
        self.reassembly.held()
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
