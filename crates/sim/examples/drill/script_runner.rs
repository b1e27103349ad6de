//! Execution of a script: application, connection, and packets in virtual time.

use std::collections::VecDeque;

use super::assertion::{self, Variables};
use super::comparison::{
    PacketComparison, SCRIPT_START, format_seconds, format_segment, format_spec,
};
use super::event::{Action, Event, EventTime};
use super::packet::{EcnSpec, PacketSpec};
use super::stack_settings::StackSettings;
use super::system_call::SystemCall;
use super::{ScriptError, failed, not_supported};
use tcpcast_sim::clock::{MILLISECOND, Nanos};
use tcpcast_sim::tcp::modern::{
    ApplicationReading, CongestionControlKind, Connection, ConnectionState, EcnCodepoint, Preset,
    SackBlock, Segment, SegmentFlags, SegmentOptions, Timestamps,
};

/// Maximum segment size on Ethernet.
const MSS: u32 = 1460;
/// Maximum wait for a packet that may be sent at any time.
const MAX_WAIT: Nanos = 120_000 * MILLISECOND;
/// The window scale of Linux's default buffers.
const DEFAULT_WINDOW_SCALE: u8 = 7;
/// Maximum number of timer events while waiting.
const MAX_TIMER_EVENTS: u32 = 100_000;

/// File descriptors of the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FileDescriptors {
    socket: Option<i64>,
    accepted: Option<i64>,
    socket_closed: bool,
    accepted_closed: bool,
}

/// State of a running script.
pub struct ScriptRunner {
    setup: StackSettings,
    mss: u32,
    files: FileDescriptors,
    connection: Option<Connection>,
    connects: bool,
    now: Nanos,
    /// Time of the previous event in the script.
    last: Nanos,
    comparison: PacketComparison,
    sent: VecDeque<(Nanos, Segment)>,
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
            min_burst: 2,
            accepts_ecn: true,
            offers_ecn: stack.ecn,
        };
        Self {
            setup,
            mss: MSS,
            files: FileDescriptors::default(),
            connection: None,
            connects: false,
            now: SCRIPT_START,
            last: 0,
            comparison: PacketComparison::default(),
            sent: VecDeque::new(),
            unmentioned: 0,
            variables: Variables::new(),
        }
    }

    /// Executes an event.
    pub fn execute(&mut self, event: Event) -> Result<(), ScriptError> {
        let (from, to, range) = match event.when {
            Some(EventTime::At { from, to, relative, range }) => {
                let base = if relative { self.last } else { 0 };
                (base + from, base + to, range)
            }
            Some(EventTime::Any) | None => {
                (self.now - SCRIPT_START, self.now - SCRIPT_START, false)
            }
        };
        if let Action::Leaves(spec) = &event.act {
            let any_time = event.when == Some(EventTime::Any);
            let at = self.expect_packet(spec, from, to, any_time)?;
            self.last = if range || any_time { at } else { from };
            return Ok(());
        }
        self.advance(SCRIPT_START + from, false)?;
        self.now = self.now.max(SCRIPT_START + from);
        self.last = from;
        match event.act {
            Action::Option(option) => self.apply_option(&option)?,
            Action::Shell(shell) => {
                let is_at_start = self.files == FileDescriptors::default();
                self.setup.run_shell(&shell, is_at_start)?;
            }
            Action::Call(call) => self.run_system_call(&call)?,
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
        self.collect_sent_packets();
        Ok(())
    }

    /// Ends the script. Returns the number of sent packets that it does not mention.
    pub fn finish(self) -> Result<usize, ScriptError> {
        let state = self.connection.as_ref().map(Connection::state);
        if self.connects && state == Some(ConnectionState::SynSent) {
            return failed("expected connect to succeed, got no answer to SYN");
        }
        Ok(self.unmentioned + self.sent.len())
    }

    fn apply_option(&mut self, option: &str) -> Result<(), ScriptError> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, value.parse::<u64>()) {
            ("--tolerance_usecs", Ok(micros)) => self.comparison.tolerance = micros * 1000,
            ("--tcp_ts_tick_usecs", Ok(1000))
            | ("--mss", Ok(_))
            | ("--send_omit_free", _)
            | ("--local_port" | "--bind_port", _) => (),
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
            self.collect_sent_packets();
        }
        failed("expected time to advance, got a timer that expires repeatedly")
    }

    fn collect_sent_packets(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(segment) = connection.poll_transmit(self.now, &mut ()) {
            self.sent.push_back((self.now, segment));
        }
    }

    // ------------------------------------------------------------------ packets

    fn deliver_packet(&mut self, spec: &PacketSpec) -> Result<(), ScriptError> {
        let Some(connection) = &mut self.connection else {
            return not_supported(
                "a packet that arrives before the application needs_sender_events or connects",
            );
        };
        let state = connection.state();
        let is_syn = spec.flags.starts_with('S') && !spec.flags.contains('.');
        if is_syn && !matches!(state, ConnectionState::Listen | ConnectionState::SynReceived) {
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
            ece: has('E'),
            cwr: has('W'),
            psh: has('P'),
        };
        let offset = self.comparison.timestamp_offset.unwrap_or(0);
        let timestamps = spec.options.timestamps.map(|(value, echo)| Timestamps {
            value,
            echo: if echo == 0 { 0 } else { echo.wrapping_add(offset) },
        });
        let sacks = spec.options.sacks.iter().map(|&(start, end)| SackBlock { start, end });
        let segment = Segment {
            seq: spec.start,
            len: spec.len,
            ack: spec.ack.unwrap_or(0),
            window: spec.window.unwrap_or(0),
            flags,
            ecn: match spec.ecn {
                EcnSpec::Any | EcnSpec::NotCapable => EcnCodepoint::NotCapable,
                EcnSpec::Capable => EcnCodepoint::Capable,
                EcnSpec::Marked => EcnCodepoint::Marked,
            },
            options: SegmentOptions {
                mss: spec.options.mss,
                window_scale: spec.options.window_scale,
                sack_permitted: spec.options.sack_permitted,
                timestamps,
                sacks: sacks.collect(),
            },
        };
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

    // -------------------------------------------------------------- application

    fn run_system_call(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        match call.name.as_str() {
            "socket" => self.socket(call),
            "bind" => Ok(()),
            "fcntl" => Ok(()),
            "setsockopt" => self.set_option(call),
            "getsockopt" => self.get_option(call),
            "listen" | "connect" => self.connect(call),
            "accept" => self.accept(call),
            "write" | "send" | "sendto" => self.write(call),
            "read" | "recv" => self.read(call),
            "shutdown" if call.argument(1) == "SHUT_WR" => self.close(call),
            "close" => self.close(call),
            other => not_supported(format!("the call {other}")),
        }
    }

    fn socket(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        if call.returns < 0 || !call.argument(1).contains("STREAM") {
            return not_supported("a socket other than TCP");
        }
        let files = self.files;
        if files.socket_closed && (self.connects || files.accepted_closed) {
            // A new connection starts; further packets of the previous one are not checked.
            self.unmentioned += self.sent.len();
            self.sent.clear();
            self.connection = None;
            self.comparison.timestamp_offset = None;
            self.files = FileDescriptors::default();
        } else if files.socket.is_some() {
            return not_supported("a second socket while the first one is open");
        }
        self.files.socket = Some(call.returns);
        Ok(())
    }

    fn connect(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        if self.connection.is_some() || call.number(0) != self.files.socket {
            return not_supported(format!("a second {}", call.name));
        }
        self.connects = call.name == "connect";
        let dctcp = self.setup.stack.control == CongestionControlKind::Dctcp;
        let ecn = if self.connects { self.setup.offers_ecn } else { self.setup.accepts_ecn };
        let stack = tcpcast_sim::tcp::modern::Stack { ecn: ecn || dctcp, ..self.setup.stack };
        let mut connection = Connection::new(
            stack,
            self.mss,
            self.setup.window_scale.unwrap_or(DEFAULT_WINDOW_SCALE),
            1,
        );
        match (self.connects, call.returns, call.error.as_deref()) {
            (false, 0, _) => connection.listen(),
            (true, 0, _) | (true, -1, Some("EINPROGRESS")) => connection.connect(),
            _ => return not_supported(format!("{} that returns {}", call.name, call.returns)),
        }
        self.connection = Some(connection);
        Ok(())
    }

    fn accept(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        if self.files.accepted.is_some() || call.returns < 0 {
            return not_supported("a second accept, or one that fails");
        }
        let state = self.connection.as_ref().map(Connection::state);
        if matches!(
            state,
            None | Some(
                ConnectionState::Listen | ConnectionState::SynReceived | ConnectionState::Closed
            )
        ) {
            return failed(format!("expected a connection to accept, got {state:?}"));
        }
        self.files.accepted = Some(call.returns);
        Ok(())
    }

    /// The connection of a file descriptor.
    fn open_connection(&mut self, call: &SystemCall) -> Result<&mut Connection, ScriptError> {
        let file = call.number(0);
        let ours = if self.connects { self.files.socket } else { self.files.accepted };
        match &mut self.connection {
            Some(connection) if file.is_some() && file == ours => Ok(connection),
            _ => not_supported(format!("{} of file {}", call.name, call.argument(0))),
        }
    }

    fn write(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        let flags = if call.name == "write" { "0" } else { call.argument(3) };
        if !["0", "MSG_NOSIGNAL", "MSG_DONTWAIT"].contains(&flags) {
            return not_supported(format!("{} with {flags}", call.name));
        }
        let bytes = call.number(2);
        let now = self.now;
        let connection = self.open_connection(call)?;
        let open =
            matches!(connection.state(), ConnectionState::Established | ConnectionState::CloseWait);
        match bytes {
            // The size of the send buffer is not modelled.
            Some(bytes) if bytes >= 0 && bytes == call.returns && open => {
                connection.write(now, bytes as u64, &mut ());
                Ok(())
            }
            _ => not_supported(format!("{} that returns {}", call.name, call.returns)),
        }
    }

    fn read(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        let Some(max) = call.number(2).filter(|&max| max >= 0) else {
            return not_supported("read without a size");
        };
        let connection = self.open_connection(call)?;
        let readable = connection.receiver().readable_bytes() as i64;
        let at_end = connection.receiver().is_stream_complete();
        let expected = match (call.returns, call.error.as_deref()) {
            (-1, Some("EAGAIN")) if !at_end => 0,
            (returns, None) if returns > 0 || at_end => returns,
            (returns, _) => return not_supported(format!("read that returns {returns}")),
        };
        let got = readable.min(max);
        if got != expected {
            return failed(format!("expected {expected} bytes to read, got {got}"));
        }
        connection.consume_received_bytes(got as u64);
        Ok(())
    }

    fn close(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        if call.returns != 0 {
            return not_supported(format!("{} that returns {}", call.name, call.returns));
        }
        if !self.connects && call.number(0) == self.files.socket {
            // Closes the listening socket; the connection remains.
            self.files.socket_closed = true;
            return Ok(());
        }
        let now = self.now;
        let closes = call.name == "close";
        let connection = self.open_connection(call)?;
        if matches!(connection.state(), ConnectionState::Established | ConnectionState::CloseWait) {
            if closes { connection.close(now) } else { connection.shut_down_sending() }
        } else if connection.state() == ConnectionState::SynSent {
            return not_supported("close before the connection is established");
        }
        self.files.socket_closed |= closes && self.connects;
        self.files.accepted_closed |= closes && !self.connects;
        Ok(())
    }

    fn set_option(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        let value = call.argument(3).trim_matches(['[', ']', '"']).to_owned();
        let number = call.number(3);
        match (call.argument(2), number) {
            ("SO_REUSEADDR" | "SO_REUSEPORT" | "SO_SNDBUF" | "SO_SNDBUFFORCE", _)
            | ("SO_RCVBUF" | "SO_RCVBUFFORCE" | "SO_PRIORITY" | "SO_MARK", _)
            | ("TCP_NOTSENT_LOWAT" | "TCP_INFO", _) => Ok(()),
            ("TCP_NODELAY", Some(on)) => self.change_settings(|setup| {
                setup.stack.no_delay = on != 0;
                Ok(())
            }),
            ("TCP_CONGESTION", _) => {
                self.change_settings(|setup| setup.set_congestion_control(&value))
            }
            ("TCP_MAXSEG", Some(mss)) if self.connection.is_none() && mss > 0 => {
                self.mss = self.mss.min(mss as u32);
                Ok(())
            }
            (option, _) => not_supported(format!("the socket option {option}")),
        }
    }

    /// Changes the settings and, if there is a connection, its stack.
    fn change_settings(
        &mut self,
        change: impl Fn(&mut StackSettings) -> Result<(), ScriptError>,
    ) -> Result<(), ScriptError> {
        change(&mut self.setup)?;
        let (control, no_delay) = (self.setup.stack.control, self.setup.stack.no_delay);
        if let Some(connection) = &mut self.connection {
            connection.change_stack_options(|stack| {
                (stack.control, stack.no_delay) = (control, no_delay)
            });
        }
        Ok(())
    }

    fn get_option(&mut self, call: &SystemCall) -> Result<(), ScriptError> {
        let state = self.connection.as_ref().map(Connection::state);
        match (call.argument(2), call.number(3)) {
            ("SO_ERROR", Some(0)) if state == Some(ConnectionState::Established) => Ok(()),
            (option, _) => not_supported(format!("the socket option {option}")),
        }
    }
}
