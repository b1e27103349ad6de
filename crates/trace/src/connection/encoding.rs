//! Segments of a connection in few bytes: of each only what differs from the one before it from the same end.
//!
//! ```text
//! control 2 | elapsed 2..4, or time 8 | ack 0, 2, 4 | timestamps 0..4 each | sequence 0, 4 | payload 0, 4
//!   | IP identification 0..2 | window 0, 2 | flags, headers, marks 0, 3 | what few have
//! ```
//!
//! Most take some ten bytes. The number of the frame, the time to live and the addresses are left out.

use crate::frame::BLANK;
use crate::segment::{Endpoint, Flags, MOST_SACK_BLOCKS, Nanos, Options, Segment};

/// No segment takes more bytes.
pub(super) const LONGEST: usize = 96;
/// Nor one that has not what few have, while it is written.
pub(super) const PLAIN: usize = 44;
/// Nor fewer than this.
pub(super) const SHORTEST: usize = 4;

/// Bits of the control word, and where codes of two bits are.
const FROM: u16 = 1;
const ELAPSED: u32 = 1;
const ACK: u32 = 3;
const VALUE: u32 = 5;
const ECHO: u32 = 7;
const ID: u32 = 9;
const SEQUENCE: u32 = 11;
const PAYLOAD: u32 = 12;
const WINDOW: u32 = 13;
const REST: u32 = 14;
const MORE: u32 = 15;

/// Code of a time that is written whole: it lies before the last one, or long after it.
const WHOLE: u16 = 3;
/// Bytes by code.
const BY_TWO: [usize; 4] = [0, 2, 4, 4];
const BY_ONE: [usize; 4] = [0, 1, 2, 4];

/// Marks: ECN, and which of the following it has.
const ECN: u8 = 0x03;
const TIMED: u8 = 0x04;
const IDENTIFIED: u8 = 0x08;

/// What few have; the number of SACK blocks is in the lowest bits.
const BLOCKS: u8 = 0x07;
const CUT: u8 = 0x08;
const FRAGMENT: u8 = 0x10;
const SACK_PERMITTED: u8 = 0x20;
const MSS: u8 = 0x40;
const WINDOW_SCALE: u8 = 0x80;

/// What the last segment from each end said.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoder {
    /// The number of the next, if it continues the sequence.
    next: [u32; 2],
    acknowledgement: [u32; 2],
    value: [u32; 2],
    echo: [u32; 2],
    payload: [u32; 2],
    ip_id: [u16; 2],
    window: [u16; 2],
    flags: [u8; 2],
    /// Bytes of the IP packet that are not payload.
    headers: [u8; 2],
    marks: [u8; 2],
    /// Bytes since it was new.
    written: u16,
}

/// A segment as it is written, where it stays: copied at once, its bytes would be waited for.
struct Entry<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl Entry<'_> {
    /// Adds the `width` lowest bytes of a number.
    #[inline(always)]
    fn put(&mut self, value: u32, width: usize) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + 4) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        self.length += width;
    }
}

/// Whether a segment has what few have.
#[inline(always)]
pub(super) fn has_more(segment: &Segment) -> bool {
    let Options { sack_blocks, cut, mss, window_scale, sack_permitted, .. } = segment.options;
    let few = sack_blocks != 0 || cut || segment.fragment || segment.ecn > ECN;
    let opening = mss.is_some() || window_scale.is_some() || sack_permitted;
    few || opening || segment.ip_bytes.wrapping_sub(segment.payload) > 0xff
}

impl Encoder {
    /// Bytes written since it was new.
    #[inline(always)]
    pub(super) fn written(&self) -> u16 {
        self.written
    }

    /// Writes the next segment of a connection; `last`: the latest time of those before it. There is room for
    /// [`LONGEST`], or for [`PLAIN`] if it does not have [more](has_more). The bytes that it takes.
    #[inline]
    pub(super) fn write(
        &mut self,
        segment: &Segment,
        from: usize,
        last: Nanos,
        room: &mut [u8],
    ) -> usize {
        debug_assert!(room.len() >= if has_more(segment) { LONGEST } else { PLAIN });
        let mut entry = Entry { bytes: room, length: 2 };
        let from = from & 1;
        let mut control = from as u16;
        control |= write_time(&mut entry, segment.time, last) << ELAPSED;
        let (value, echo) =
            segment.options.timestamps.unwrap_or((self.value[from], self.echo[from]));
        let ack = changed(&mut self.acknowledgement[from], segment.acknowledgement);
        let code = u16::from(ack != 0) + u16::from(ack >= 1 << 16);
        entry.put(ack, BY_TWO[usize::from(code)]);
        control |= code << ACK;
        for (place, known, now) in
            [(VALUE, &mut self.value[from], value), (ECHO, &mut self.echo[from], echo)]
        {
            let more = changed(known, now);
            let code = by_one(more);
            entry.put(more, BY_ONE[usize::from(code)]);
            control |= code << place;
        }
        let sequence = changed(&mut self.next[from], segment.sequence);
        self.next[from] = segment.sequence.wrapping_add(segment.payload);
        let bit = u16::from(sequence != 0);
        entry.put(sequence, usize::from(bit) * 4);
        control |= bit << SEQUENCE;
        let payload = changed(&mut self.payload[from], segment.payload);
        let bit = u16::from(payload != 0);
        entry.put(payload, usize::from(bit) * 4);
        control |= bit << PAYLOAD;
        control |= self.write_header(&mut entry, segment, from);
        control |= self.write_rest(&mut entry, segment, from);
        entry.bytes[..2].copy_from_slice(&control.to_le_bytes());
        self.written = self.written.wrapping_add(entry.length as u16);
        entry.length
    }

    /// Identification and window.
    #[inline(always)]
    fn write_header(&mut self, entry: &mut Entry<'_>, segment: &Segment, from: usize) -> u16 {
        let id = segment.ip_id.unwrap_or(self.ip_id[from].wrapping_add(1));
        // Most often it is the next.
        let skipped = id.wrapping_sub(self.ip_id[from]).wrapping_sub(1);
        self.ip_id[from] = id;
        let code = by_one(skipped.into());
        entry.put(skipped.into(), BY_ONE[usize::from(code)]);
        let bit = u16::from(segment.window != self.window[from]);
        self.window[from] = segment.window;
        entry.put(segment.window.into(), usize::from(bit) * 2);
        code << ID | bit << WINDOW
    }

    /// Flags, length of headers, marks; and what few segments have.
    #[inline(always)]
    fn write_rest(&mut self, entry: &mut Entry<'_>, segment: &Segment, from: usize) -> u16 {
        let mark = |has, mark| if has { mark } else { 0 };
        let marks = segment.ecn & ECN
            | mark(segment.options.timestamps.is_some(), TIMED)
            | mark(segment.ip_id.is_some(), IDENTIFIED);
        let headers = segment.ip_bytes.wrapping_sub(segment.payload);
        let rest = (segment.flags.0, headers as u8, marks);
        let bit = u16::from((self.flags[from], self.headers[from], self.marks[from]) != rest);
        (self.flags[from], self.headers[from], self.marks[from]) = rest;
        let [flags, headers_byte, marks] = [rest.0, rest.1, rest.2].map(u32::from);
        entry.put(flags | headers_byte << 8 | marks << 16, usize::from(bit) * 3);
        if has_more(segment) {
            write_more(entry, segment);
            return bit << REST | 1 << MORE;
        }
        bit << REST
    }
}

/// By how much it changes; it is changed.
#[inline(always)]
fn changed(known: &mut u32, now: u32) -> u32 {
    now.wrapping_sub(std::mem::replace(known, now))
}

/// The code of a number that takes 0, 1, 2 or 4 bytes.
#[inline(always)]
fn by_one(number: u32) -> u16 {
    u16::from(number != 0) + u16::from(number >= 1 << 8) + u16::from(number >= 1 << 16)
}

/// Writes when it was captured; the code of that.
#[inline(always)]
fn write_time(entry: &mut Entry<'_>, time: Nanos, last: Nanos) -> u16 {
    match u32::try_from(time.wrapping_sub(last)) {
        Ok(elapsed) => {
            let code = u16::from(elapsed >= 1 << 16) + u16::from(elapsed >= 1 << 24);
            entry.put(elapsed, usize::from(code) + 2);
            code
        }
        Err(_) => {
            entry.put(time as u32, 4);
            entry.put((time >> 32) as u32, 4);
            WHOLE
        }
    }
}

#[cold]
fn write_more(entry: &mut Entry<'_>, segment: &Segment) {
    let Options { mss, window_scale, sack_permitted, sack, sack_blocks, cut, .. } = segment.options;
    let blocks = usize::from(sack_blocks).min(MOST_SACK_BLOCKS);
    let mark = |has, mark| if has { mark } else { 0 };
    let has = blocks as u8
        | mark(cut, CUT)
        | mark(segment.fragment, FRAGMENT)
        | mark(sack_permitted, SACK_PERMITTED)
        | mark(mss.is_some(), MSS)
        | mark(window_scale.is_some(), WINDOW_SCALE);
    entry.put(u32::from(has) | u32::from(segment.ecn) << 8, 2);
    entry.put(segment.ip_bytes, 4);
    entry.put(u32::from(mss.unwrap_or(0)), if mss.is_some() { 2 } else { 0 });
    entry.put(window_scale.unwrap_or(0).into(), usize::from(window_scale.is_some()));
    for (left, right) in &sack[..blocks] {
        entry.put(*left, 4);
        entry.put(*right, 4);
    }
}

/// What is left to be read.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    /// A number of `width` bytes.
    #[inline(always)]
    fn take(&mut self, width: usize) -> u32 {
        let word = match self.bytes.get(self.at..self.at + 4) {
            Some(four) => four.try_into().map_or(0, u32::from_le_bytes),
            None => self.last(),
        };
        self.at += width;
        (u64::from(word) & ((1 << (8 * width)) - 1)) as u32
    }

    /// Fewer than four are left.
    #[cold]
    fn last(&self) -> u32 {
        let left = self.bytes.get(self.at..).unwrap_or_default();
        left.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
    }
}

/// Reads what an encoder wrote since it was new.
struct Decoder<'a> {
    bytes: Bytes<'a>,
    known: Encoder,
    /// The last from each end; whether it has what few have.
    segments: [Segment; 2],
    few: [bool; 2],
}

/// Shows the segments that an encoder has written since it was new; `last`: the latest time before them.
#[inline]
pub(super) fn read(
    bytes: &[u8],
    mut last: Nanos,
    ends: [Endpoint; 2],
    mut each: impl FnMut(&Segment),
) {
    let [first, second] = ends;
    let mut decoder = Decoder {
        bytes: Bytes { bytes, at: 0 },
        known: Encoder::default(),
        segments: [
            Segment { source: first, destination: second, ..BLANK },
            Segment { source: second, destination: first, ..BLANK },
        ],
        few: [false; 2],
    };
    while decoder.bytes.at < bytes.len() {
        let segment = decoder.next(last);
        last = last.max(segment.time);
        each(segment);
    }
}

impl Decoder<'_> {
    /// The next segment, written over the last from the same end.
    #[inline(always)]
    fn next(&mut self, last: Nanos) -> &Segment {
        let control = self.bytes.take(2) as u16;
        let from = usize::from(control & FROM);
        let (bytes, known, segment) = (&mut self.bytes, &mut self.known, &mut self.segments[from]);
        let code = |place: u32| usize::from(control >> place & 3);
        let bit = |place: u32| usize::from(control >> place & 1);
        segment.time = if code(ELAPSED) == usize::from(WHOLE) {
            u64::from(bytes.take(4)) | u64::from(bytes.take(4)) << 32
        } else {
            last.wrapping_add(bytes.take(code(ELAPSED) + 2).into())
        };
        let acknowledgement = &mut known.acknowledgement[from];
        segment.acknowledgement = raised(acknowledgement, bytes.take(BY_TWO[code(ACK)]));
        let value = raised(&mut known.value[from], bytes.take(BY_ONE[code(VALUE)]));
        let echo = raised(&mut known.echo[from], bytes.take(BY_ONE[code(ECHO)]));
        segment.sequence = raised(&mut known.next[from], bytes.take(4 * bit(SEQUENCE)));
        segment.payload = raised(&mut known.payload[from], bytes.take(4 * bit(PAYLOAD)));
        known.next[from] = segment.sequence.wrapping_add(segment.payload);
        let skipped = bytes.take(BY_ONE[code(ID)]) as u16;
        let id = known.ip_id[from].wrapping_add(1).wrapping_add(skipped);
        known.ip_id[from] = id;
        if bit(WINDOW) != 0 {
            segment.window = bytes.take(2) as u16;
        }
        if bit(REST) != 0 {
            let [flags, headers, marks, _] = bytes.take(3).to_le_bytes();
            segment.flags = Flags(flags);
            (known.headers[from], known.marks[from]) = (headers, marks);
        }
        let marks = known.marks[from];
        segment.ecn = marks & ECN;
        segment.ip_bytes = segment.payload.wrapping_add(known.headers[from].into());
        segment.ip_id = (marks & IDENTIFIED != 0).then_some(id);
        if self.few[from] {
            (segment.fragment, segment.options) = (false, BLANK.options);
        }
        segment.options.timestamps = (marks & TIMED != 0).then_some((value, echo));
        self.few[from] = bit(MORE) != 0;
        if self.few[from] {
            read_more(bytes, segment);
        }
        segment
    }
}

/// What it is changed to.
#[inline(always)]
fn raised(known: &mut u32, more: u32) -> u32 {
    *known = known.wrapping_add(more);
    *known
}

#[cold]
fn read_more(bytes: &mut Bytes<'_>, segment: &mut Segment) {
    let has = bytes.take(1) as u8;
    segment.ecn = bytes.take(1) as u8;
    segment.ip_bytes = bytes.take(4);
    segment.fragment = has & FRAGMENT != 0;
    let options = &mut segment.options;
    options.cut = has & CUT != 0;
    options.sack_permitted = has & SACK_PERMITTED != 0;
    options.mss = (has & MSS != 0).then(|| bytes.take(2) as u16);
    options.window_scale = (has & WINDOW_SCALE != 0).then(|| bytes.take(1) as u8);
    options.sack_blocks = (has & BLOCKS).min(MOST_SACK_BLOCKS as u8);
    for block in &mut options.sack[..usize::from(has & BLOCKS).min(MOST_SACK_BLOCKS)] {
        *block = (bytes.take(4), bytes.take(4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers near each other, and any.
    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![3 => 0_u32..300, 1 => 0_u32..100_000, 1 => any::<u32>()]
    }

    prop_compose! {
        fn options()(
            timestamps in prop::option::of((number(), number())),
            sack in prop::collection::vec((number(), number()), 0..=MOST_SACK_BLOCKS),
            mss in prop::option::weighted(0.2, any::<u16>()),
            window_scale in prop::option::weighted(0.2, 0_u8..15),
            sack_permitted in prop::bool::weighted(0.2),
            cut in prop::bool::weighted(0.2),
        ) -> Options {
            let mut options =
                Options { mss, window_scale, sack_permitted, timestamps, cut, ..Options::default() };
            options.sack_blocks = sack.len() as u8;
            options.sack[..sack.len()].copy_from_slice(&sack);
            options
        }
    }

    prop_compose! {
        fn anything()(
            from in 0_usize..2,
            time in prop_oneof![0_u64..1 << 17, 0_u64..1 << 26, any::<u64>()],
            (sequence, acknowledgement, payload) in (number(), number(), number()),
            ip_id in prop::option::weighted(0.8, any::<u16>()),
            (window, flags, ecn) in (0_u16..3, any::<u8>(), prop_oneof![0_u8..4, any::<u8>()]),
            headers in prop_oneof![Just(40_u32), Just(52), any::<u32>()],
            options in prop_oneof![Just(Options::default()), options()],
            fragment in prop::bool::weighted(0.1),
        ) -> (usize, Segment) {
            let ip_bytes = payload.wrapping_add(headers);
            let flags = Flags(flags);
            (from, Segment {
                time, sequence, acknowledgement, payload, ip_id, window, flags, ecn, ip_bytes,
                options, fragment, ..BLANK
            })
        }
    }

    proptest! {
        /// All but what nobody asks for.
        #[test]
        fn what_is_written_is_read(segments in prop::collection::vec(anything(), 0..60), start: u64) {
            let ends = [1, 2].map(|port| Endpoint { port, ..BLANK.source });
            let mut encoder = Encoder::default();
            let (mut last, mut bytes, mut expected) = (start, Vec::new(), Vec::new());
            for (from, segment) in segments {
                let mut room = vec![0; if has_more(&segment) { LONGEST } else { PLAIN }];
                let length = encoder.write(&segment, from, last, &mut room);
                prop_assert!((SHORTEST..room.len() - 3).contains(&length));
                bytes.extend_from_slice(&room[..length]);
                last = last.max(segment.time);
                let (source, destination) = (ends[from], ends[1 - from]);
                expected.push(Segment { source, destination, ..segment });
            }
            let mut found = Vec::new();
            read(&bytes, start, ends, |segment| found.push(*segment));
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn data_that_go_on_take_few_bytes() {
        let mut encoder = Encoder::default();
        let options = Options { timestamps: Some((5, 6)), ..Options::default() };
        let mut data = Segment { payload: 1448, ip_bytes: 1500, ip_id: Some(9), options, ..BLANK };
        let mut room = [0; PLAIN];
        encoder.write(&data, 0, 0, &mut room);
        data.time = 12_000;
        data.sequence += data.payload;
        data.ip_id = Some(10);
        assert_eq!(encoder.write(&data, 0, 0, &mut room), SHORTEST);
    }
}
