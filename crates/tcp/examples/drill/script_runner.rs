//! Execution of a script in virtual time: the events, and the packets of the connection. The calls
//! of the application are in `application`.

use std::collections::VecDeque;

use super::application::{Application, BlockedCall};
use super::assertion::{self, Variables};
use super::comparison::{
    PacketComparison, SCRIPT_START, format_seconds, format_segment, format_spec,
};
use super::event::{Action, Event, EventTime};
use super::packet::{EcnSpec, PacketSpec};
use super::stack_settings::StackSettings;
use super::system_call::{CallResult, SystemCall};
use super::{Outcome, ScriptError, failed, not_supported};
use tcpcast_link::Ecn;
use tcpcast_link::time::{MILLISECOND, Nanos};
use tcpcast_tcp::modern::{
    AccEcnOption, ApplicationReading, Connection, ConnectionState, Preset, SackBlock, Segment,
    SegmentFlags, SegmentOptions, SendBufferSize, Timestamps,
};

/// Maximum wait for a packet that may be sent at any time.
const MAX_WAIT: Nanos = 120_000 * MILLISECOND;
/// Maximum number of timer events while waiting.
const MAX_TIMER_EVENTS: u32 = 100_000;

/// State of a running script.
pub struct ScriptRunner {
    pub(super) setup: StackSettings,
    pub(super) application: Application,
    pub(super) connection: Option<Connection>,
    pub(super) now: Nanos,
    /// Line of the event being executed.
    line: usize,
    /// Time of the previous event in the script.
    last: Nanos,
    /// A call that has not returned.
    blocked: Option<BlockedCall>,
    comparison: PacketComparison,
    sent: VecDeque<(Nanos, Segment)>,
    /// Bytes of each packet that arrives as part of a larger one; 0 if packets arrive as they are.
    arriving_size: u32,
    /// Packets of earlier connections that the script does not mention.
    unmentioned: usize,
    variables: Variables,
}

impl ScriptRunner {
    /// Creates the state at the start of a script.
    pub fn new(preset: Preset) -> Self {
        let mut stack = preset.stack();
        // Packets of 1 kB occupy more than twice their size in memory, so they do not grow the
        // window.
        stack.receiving.window_growth = 0;
        // The kernels of the scripts have 1 ms ticks, and the application reads only in explicit
        // calls.
        stack.tick = stack.tick.min(MILLISECOND);
        stack.timer_wheel = false;
        stack.receiving.reading = ApplicationReading::OnRequest;
        stack.receiving.buffer = 1 << 20;
        let setup = StackSettings {
            stack,
            window_scale: None,
            send_buffer: SendBufferSize::Unlimited,
            notsent_lowat: u64::MAX,
            min_burst: 2,
            accepts_ecn: true,
            offers_ecn: stack.ecn,
            offers_accurate_ecn: stack.accurate_ecn,
        };
        Self {
            setup,
            application: Application::default(),
            connection: None,
            now: SCRIPT_START,
            line: 1,
            last: 0,
            blocked: None,
            comparison: PacketComparison::default(),
            sent: VecDeque::new(),
            arriving_size: 0,
            unmentioned: 0,
            variables: Variables::new(),
        }
    }

    /// Executes the event of a line.
    pub fn execute(&mut self, line: usize, event: Event) -> Result<(), Outcome> {
        self.line = line;
        self.execute_event(event).map_err(|error| error.at_line(self.line))
    }

    fn execute_event(&mut self, event: Event) -> Result<(), ScriptError> {
        let (base, from, to, range) = match event.when {
            Some(EventTime::At { from, to, relative, range }) => {
                let base = if relative { self.last } else { 0 };
                (base, base + from, base + to, range)
            }
            Some(EventTime::Any) | None => {
                (0, self.now - SCRIPT_START, self.now - SCRIPT_START, false)
            }
        };
        let returns_at = event.returns_at.map(|at| SCRIPT_START + base + at);
        if let Action::Leaves(spec) = &event.act {
            let any_time = event.when == Some(EventTime::Any);
            let at = self.expect_packet(spec, from, to, any_time)?;
            self.last = if range || any_time { at } else { from };
            return Ok(());
        }
        self.advance(SCRIPT_START + from, false)?;
        self.now = self.now.max(SCRIPT_START + from);
        self.last = from;
        self.check_blocked_call(matches!(event.act, Action::Call(_)))?;
        match event.act {
            Action::Option(option) => self.apply_option(&option)?,
            Action::Shell(shell) => {
                let is_at_start = self.application == Application::default();
                self.setup.run_shell(&shell, is_at_start)?;
            }
            Action::Call(call) => self.start_call(call, returns_at)?,
            Action::Arrives(spec) => self.deliver_packet(&spec)?,
            Action::Asserts(python) => {
                let Some(connection) = &self.connection else {
                    return not_supported("an assertion before the connection exists");
                };
                let (info, state) = (connection.tcp_info(self.now), connection.state());
                assertion::run_block(&python, &info, state, &mut self.variables)?;
            }
            Action::Leaves(_) => (),
        }
        self.process_consequences()
    }

    /// Ends the script. Returns the number of sent packets that it does not mention.
    pub fn finish(mut self) -> Result<usize, Outcome> {
        let end = self.blocked.as_ref().map(|blocked| blocked.returns_at);
        let result = end.map_or(Ok(()), |end| {
            let end = end + self.comparison.tolerance;
            self.advance(end, false)?;
            self.now = self.now.max(end);
            self.check_blocked_call(true)
        });
        result.map_err(|error| error.at_line(self.line))?;
        Ok(self.unmentioned + self.sent.len())
    }

    /// Starts a call. A call that blocks must return at the time `returns_at`.
    fn start_call(
        &mut self,
        call: SystemCall,
        returns_at: Option<Nanos>,
    ) -> Result<(), ScriptError> {
        let mut blocked = BlockedCall::new(call, self.line, returns_at.unwrap_or(self.now));
        let result = self.run_system_call(&mut blocked)?;
        match (result, returns_at) {
            (CallResult::Blocks, Some(_)) => self.blocked = Some(blocked),
            (CallResult::Blocks, None) => blocked.check_result(blocked.result_without_waiting())?,
            (result, _) => self.check_return(&blocked, result)?,
        }
        Ok(())
    }

    /// Tolerance of times.
    pub(super) fn tolerance(&self) -> Nanos {
        self.comparison.tolerance
    }

    /// A new connection starts; further packets of the previous one are not checked.
    pub(super) fn forget_connection(&mut self) {
        self.unmentioned += self.sent.len();
        self.sent.clear();
        self.connection = None;
        self.comparison.start_connection();
    }

    /// Collects sent packets, and continues a blocked call, which may lead to further packets.
    fn process_consequences(&mut self) -> Result<(), ScriptError> {
        self.collect_sent_packets();
        self.note_wakeups();
        let Some(mut blocked) = self.blocked.take() else { return Ok(()) };
        match self.run_system_call(&mut blocked)? {
            CallResult::Blocks => self.blocked = Some(blocked),
            result => self.check_return(&blocked, result)?,
        }
        self.collect_sent_packets();
        Ok(())
    }

    /// Checks the result and the time at which a call returns.
    fn check_return(&mut self, call: &BlockedCall, result: CallResult) -> Result<(), ScriptError> {
        let line = std::mem::replace(&mut self.line, call.line);
        call.check_result(result)?;
        if self.now.abs_diff(call.returns_at) > self.comparison.tolerance {
            let (at, now) = (format_seconds(call.returns_at), format_seconds(self.now));
            let name = &call.call.name;
            return failed(format!("expected {name} to return at {at}, got its return at {now}"));
        }
        self.line = line;
        Ok(())
    }

    /// Checks that a blocked call is not late. The application cannot make `another` call before it
    /// returns.
    fn check_blocked_call(&mut self, another: bool) -> Result<(), ScriptError> {
        match &self.blocked {
            Some(blocked)
                if another || self.now > blocked.returns_at + self.comparison.tolerance =>
            {
                self.line = blocked.line;
                let (name, until) = (&blocked.call.name, format_seconds(self.now));
                let at = format_seconds(blocked.returns_at);
                failed(format!("expected {name} to return at {at}, got no return until {until}"))
            }
            _ => Ok(()),
        }
    }

    fn apply_option(&mut self, option: &str) -> Result<(), ScriptError> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, value.parse::<u64>()) {
            ("--tolerance_usecs", Ok(micros)) => self.comparison.tolerance = micros * 1000,
            ("--tcp_ts_tick_usecs", Ok(micros @ (0 | 1000))) => {
                self.comparison.compares_timestamps = micros > 0;
            }
            ("--mss", Ok(size @ 88..=65_535)) => self.arriving_size = size as u32,
            ("--send_omit_free", _) | ("--local_port" | "--bind_port", _) => (),
            ("--ip_version", _) if value.starts_with("ipv4") => (),
            _ => return not_supported(format!("the option {option}")),
        }
        Ok(())
    }

    /// Runs timers up to `until`, or until a packet is sent if `until_sent`.
    fn advance(&mut self, until: Nanos, until_sent: bool) -> Result<(), ScriptError> {
        for _ in 0..MAX_TIMER_EVENTS {
            let Some(connection) = &mut self.connection else { return Ok(()) };
            let at = connection.deadline();
            if at > until || (until_sent && !self.sent.is_empty()) {
                return Ok(());
            }
            self.now = self.now.max(at);
            connection.on_deadline(self.now, &mut ());
            self.process_consequences()?;
        }
        failed("expected time to advance, got a timer that expires repeatedly")
    }

    pub(super) fn collect_sent_packets(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(segment) = connection.poll_transmit(self.now) {
            self.sent.push_back((self.now, segment));
        }
    }

    // ------------------------------------------------------------------ packets

    fn deliver_packet(&mut self, spec: &PacketSpec) -> Result<(), ScriptError> {
        // In packetdrill, packets arrive a little later than the script states.
        self.now += 1;
        let Some(connection) = &mut self.connection else {
            return not_supported("a packet that arrives before listen or connect");
        };
        let state = connection.state();
        let is_syn = spec.flags.starts_with('S') && !spec.flags.contains('.');
        let accepts_syn = matches!(
            state,
            ConnectionState::Listen | ConnectionState::SynReceived | ConnectionState::FastOpen
        );
        if is_syn && !accepts_syn {
            return not_supported("a second connection, or a SYN to an existing one");
        }
        if spec.options.any {
            return not_supported("unspecified options of a packet that arrives");
        }
        let has = |flag: char| spec.flags.contains(flag);
        let flags = SegmentFlags {
            syn: has('S'),
            fin: has('F'),
            rst: has('R'),
            ack: has('.'),
            ae: has('A'),
            ece: has('E'),
            cwr: has('W'),
            psh: has('P'),
        };
        let timestamps = spec.options.timestamps.map(|(value, echo)| Timestamps {
            value,
            echo: self.comparison.echoed_timestamp(echo),
        });
        let sacks = spec.options.sacks.iter().map(|&(start, end)| SackBlock { start, end });
        let mut segment = Segment {
            seq: spec.start,
            len: spec.len,
            ack: spec.ack.unwrap_or(0),
            window: spec.window.unwrap_or(0).into(),
            messages: 0,
            flags,
            ecn: match spec.ecn {
                EcnSpec::Any | EcnSpec::NotCapable => Ecn::NotEct,
                EcnSpec::Capable => Ecn::Ect0,
                EcnSpec::Scalable => Ecn::Ect1,
                EcnSpec::Marked => Ecn::Ce,
            },
            options: SegmentOptions {
                mss: spec.options.mss,
                window_scale: spec.options.window_scale,
                sack_permitted: spec.options.sack_permitted,
                timestamps,
                sacks: sacks.collect(),
                accurate_ecn: spec.options.accurate_ecn.as_ref().map(|fields| {
                    let mut bytes = [0; 3];
                    bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = *from);
                    AccEcnOption { fields: fields.len() as u8, bytes }
                }),
            },
        };
        // The interface combines packets of the given size into a larger one (GRO).
        while self.arriving_size > 0 && segment.len > self.arriving_size {
            let len = self.arriving_size;
            let flags = SegmentFlags { fin: false, psh: false, ..segment.flags };
            let first = Segment { len, flags, ..segment };
            connection.on_segment(self.now, &first, &mut ());
            (segment.seq, segment.len) = (segment.seq + u64::from(len), segment.len - len);
        }
        connection.on_segment(self.now, &segment, &mut ());
        Ok(())
    }

    /// Expects a packet, which may be sent as several consecutive packets. Returns the time of the
    /// first.
    fn expect_packet(
        &mut self,
        spec: &PacketSpec,
        from: u64,
        to: u64,
        any_time: bool,
    ) -> Result<u64, ScriptError> {
        let wait = if any_time { MAX_WAIT } else { self.comparison.tolerance };
        let latest = SCRIPT_START + to + wait;
        self.advance(latest, true)?;
        let Some((at, first)) = self.sent.pop_front() else {
            self.now = self.now.max(SCRIPT_START + from);
            let until = format_seconds(latest);
            return failed(format!("expected {}, got no packet until {until}", format_spec(spec)));
        };
        let earliest = (SCRIPT_START + from).saturating_sub(self.comparison.tolerance);
        let got = format_segment(at, &first);
        if at < earliest || at > latest {
            let window = format!("{} to {}", format_seconds(earliest), format_seconds(latest));
            return failed(format!("expected {} at {window}, got {got}", format_spec(spec)));
        }
        let mut len = first.len;
        let mut fin = first.flags.fin;
        while len < spec.len {
            let next = self.sent.front().filter(|(next_at, next)| {
                *next_at <= at + self.comparison.tolerance && next.seq == first.seq + u64::from(len)
            });
            let Some((_, next)) = next.filter(|(_, next)| next.len > 0) else { break };
            len += next.len;
            fin |= next.flags.fin;
            self.sent.pop_front();
        }
        let combined = Segment { len, flags: SegmentFlags { fin, ..first.flags }, ..first };
        self.comparison.has_buffer_size = self.setup.window_scale.is_some();
        self.comparison.compare(spec, &combined).map_err(|what| {
            ScriptError::Failed(format!("expected {}, got {got}: {what}", format_spec(spec)))
        })?;
        Ok(at - SCRIPT_START)
    }
}
