//! The application of a script: its files, and the system calls on them.

use std::collections::HashMap;

use super::comparison::SCRIPT_START;
use super::error_queue::ErrorQueue;
use super::script_runner::ScriptRunner;
use super::system_call::{CallResult, SystemCall};
use super::{ScriptError, failed, not_supported};
use tcpcast_link::time::{MILLISECOND, Nanos};
use tcpcast_tcp::modern::{
    CongestionControlKind, Connection, ConnectionState, SendBufferSize, SocketError, SocketOptions,
    Stack, WriteFlags,
};

/// Maximum segment size on Ethernet.
const ETHERNET_MSS: u32 = 1460;
/// The window scale of Linux's default buffers.
const DEFAULT_WINDOW_SCALE: u8 = 7;
/// Linux's `SOCK_MIN_SNDBUF`, and its limit of the value of `SO_SNDBUF`.
const MIN_SEND_BUFFER: u64 = 4608;
const MAX_SEND_BUFFER: i64 = 1 << 30;
/// Maximum number of parts of a packet that is sent without copying: `MAX_SKB_FRAGS`.
const MAX_FRAGMENTS: usize = 17;
/// Options without effect here. Their values can be read.
const IGNORED_OPTIONS: [&str; 11] = [
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_RCVBUF",
    "SO_RCVBUFFORCE",
    "SO_PRIORITY",
    "SO_MARK",
    "SO_ZEROCOPY",
    "TCP_INQ",
    "IP_TOS",
    "IP_MTU_DISCOVER",
    "IP_FREEBIND",
];
/// Events of `poll` and `epoll`, by their names in `poll` and their values.
const POLL_EVENTS: [(&str, u32); 5] =
    [("POLLIN", 1), ("POLLOUT", 4), ("POLLERR", 8), ("POLLHUP", 0x10), ("POLLRDHUP", 0x2000)];

/// A socket that `epoll` watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watch {
    epoll: i64,
    file: i64,
    events: u32,
    /// `EPOLLET`, `EPOLLONESHOT`.
    is_edge_triggered: bool,
    is_one_shot: bool,
    /// Whether an event may have occurred since the last call.
    is_ready: bool,
}

/// Files of the application, and options of its socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Application {
    socket: Option<i64>,
    accepted: Option<i64>,
    socket_closed: bool,
    accepted_closed: bool,
    /// Whether the socket connects rather than listens.
    connects: bool,
    watches: Vec<Watch>,
    /// Maximum segment size set by the application.
    max_segment: Option<u32>,
    send_buffer: Option<SendBufferSize>,
    error_queue: ErrorQueue,
    /// Values of the other options.
    options: HashMap<String, i64>,
}

/// A call that may have to wait.
#[derive(Clone, Debug)]
pub struct BlockedCall {
    pub call: SystemCall,
    pub line: usize,
    pub returns_at: Nanos,
    /// Bytes written so far, and whether this is not the first attempt.
    written: u64,
    has_waited: bool,
}

impl BlockedCall {
    pub fn new(call: SystemCall, line: usize, returns_at: Nanos) -> Self {
        Self { call, line, returns_at, written: 0, has_waited: false }
    }

    pub fn check_result(&self, result: CallResult) -> Result<(), ScriptError> {
        self.call.check_result(result)
    }

    /// Result if the call must not wait.
    pub fn result_without_waiting(&self) -> CallResult {
        match self.call.name.as_str() {
            "connect" => CallResult::Fails("EINPROGRESS"),
            _ if self.written > 0 => CallResult::Returns(self.written as i64),
            _ => CallResult::Fails("EAGAIN"),
        }
    }
}

impl ScriptRunner {
    /// Runs a call, or continues it.
    pub(super) fn run_system_call(
        &mut self,
        blocked: &mut BlockedCall,
    ) -> Result<CallResult, ScriptError> {
        let call = &blocked.call;
        match call.name.as_str() {
            "socket" => self.socket(call),
            "bind" | "fcntl" | "open" | "epoll_create" => Ok(CallResult::Returns(call.returns)),
            "setsockopt" => self.set_option(call),
            "getsockopt" => self.get_option(call),
            "listen" => self.listen(call),
            "connect" => self.connect(call),
            "accept" => self.accept(call),
            "write" | "send" | "sendto" | "sendmsg" | "sendfile" => self.write(blocked),
            "read" | "recv" | "recvfrom" | "recvmsg" => self.read(call),
            "ioctl" => self.ioctl(call),
            "poll" => self.poll(call),
            "epoll_ctl" => self.change_watch(call),
            "epoll_wait" => self.wait_for_watches(call),
            "shutdown" => self.shut_down(call),
            "close" => self.close(call),
            other => not_supported(format!("the call {other}")),
        }
    }

    fn socket(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        if call.returns < 0 || !call.argument(1).contains("STREAM") {
            return not_supported("a socket other than TCP");
        }
        let files = &self.application;
        if files.socket_closed && (files.connects || files.accepted_closed) {
            self.forget_connection();
            self.application = Application::default();
        } else if files.socket.is_some() {
            return not_supported("a second socket while the first one is open");
        }
        self.application.socket = Some(call.returns);
        Ok(CallResult::Returns(call.returns))
    }

    /// Creates the connection with the options of the socket.
    fn create_connection(&mut self, connects: bool) -> Connection {
        self.application.connects = connects;
        let dctcp = self.setup.stack.control == CongestionControlKind::Dctcp;
        let ecn = if connects { self.setup.offers_ecn } else { self.setup.accepts_ecn };
        let accurate_ecn =
            if connects { self.setup.offers_accurate_ecn } else { self.setup.stack.accurate_ecn };
        let stack = Stack { ecn: ecn || dctcp, accurate_ecn, ..self.setup.stack };
        let scale = self.setup.window_scale.unwrap_or(DEFAULT_WINDOW_SCALE);
        let mss = self.application.max_segment.unwrap_or(ETHERNET_MSS).min(ETHERNET_MSS);
        let mut connection = Connection::new(stack, mss, scale, 1);
        connection.set_options(self.socket_options());
        connection
    }

    fn socket_options(&self) -> SocketOptions {
        let value = |name| self.application.options.get(name).map_or(0, |&value| value as u64);
        SocketOptions {
            send_buffer: self.application.send_buffer.unwrap_or(self.setup.send_buffer),
            notsent_lowat: match value("TCP_NOTSENT_LOWAT") {
                0 => self.setup.notsent_lowat,
                lowat => lowat,
            },
            corked: value("TCP_CORK") != 0,
            user_timeout: value("TCP_USER_TIMEOUT") * MILLISECOND,
        }
    }

    fn listen(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        if self.connection.is_some() || call.number(0) != self.application.socket {
            return not_supported("a second listen");
        }
        let mut connection = self.create_connection(false);
        connection.listen();
        self.connection = Some(connection);
        Ok(CallResult::Returns(0))
    }

    fn connect(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let error = call.error.as_deref();
        let is_first = self.connection.is_none() && call.number(0) == self.application.socket;
        if is_first && !matches!(error, None | Some("EINPROGRESS" | "ECONNREFUSED" | "ETIMEDOUT")) {
            return not_supported(format!("connect that fails with {}", error.unwrap_or_default()));
        }
        if is_first {
            let mut connection = self.create_connection(true);
            connection.connect(self.now);
            self.connection = Some(connection);
        }
        let connection = self.open_connection(call)?;
        Ok(match (connection.error(), connection.state()) {
            (Some(error), _) => CallResult::Fails(error_name(error)),
            (None, ConnectionState::SynSent) => CallResult::Blocks,
            _ => CallResult::Returns(0),
        })
    }

    fn accept(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let state = self.connection.as_ref().map(Connection::state);
        match state {
            Some(ConnectionState::Listen | ConnectionState::SynReceived) => {
                return Ok(CallResult::Blocks);
            }
            Some(ConnectionState::Closed) if self.has_error() => (),
            None | Some(ConnectionState::Closed) => {
                return failed(format!("expected a connection to accept, got {state:?}"));
            }
            _ => (),
        }
        if self.application.accepted.is_some() {
            return not_supported("a second accept");
        }
        self.application.accepted = Some(call.returns);
        Ok(CallResult::Returns(call.returns))
    }

    /// Whether the peer has reset the connection, which can still be accepted.
    fn has_error(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.error().is_some())
    }

    /// File of the connection.
    fn connected_file(&self) -> Option<i64> {
        let files = &self.application;
        if files.connects { files.socket } else { files.accepted }
    }

    /// The connection of a file descriptor.
    fn open_connection(&mut self, call: &SystemCall) -> Result<&mut Connection, ScriptError> {
        let (file, ours) = (call.number(0), self.connected_file());
        match &mut self.connection {
            Some(connection) if file.is_some() && file == ours => Ok(connection),
            _ => not_supported(format!("{} of file {}", call.name, call.argument(0))),
        }
    }

    // --------------------------------------------------------------------- data

    fn write(&mut self, blocked: &mut BlockedCall) -> Result<CallResult, ScriptError> {
        let call = &blocked.call;
        let (bytes, flags) = match call.name.as_str() {
            "sendmsg" => (call.vector_bytes(), call.argument(2)),
            "sendfile" => (call.number(3), "0"),
            "write" => (call.number(2), "0"),
            _ => (call.number(2), call.argument(3)),
        };
        let Some(bytes) = bytes.and_then(|bytes| u64::try_from(bytes).ok()) else {
            return not_supported(format!("{} without a size", call.name));
        };
        if flags.contains("MSG_FASTOPEN") {
            return self.connect_with_data(bytes);
        }
        let (call, mut how) = (&blocked.call, WriteFlags::default());
        for flag in flags.split('|').map(str::trim) {
            match flag {
                "0" | "MSG_NOSIGNAL" | "MSG_DONTWAIT" => (),
                "MSG_ZEROCOPY" if call.vector_lengths().len() <= MAX_FRAGMENTS => (),
                "MSG_MORE" => how.more = true,
                "MSG_EOR" => how.ends_record = true,
                _ => return not_supported(format!("{} with {flag}", call.name)),
            }
        }
        if self.connection.is_none() && call.number(0) == self.application.socket {
            return Ok(CallResult::Fails("EPIPE"));
        }
        let is_null = call.argument(1) == "NULL";
        let zero_copy = flags.contains("MSG_ZEROCOPY")
            && self.application.options.get("SO_ZEROCOPY").is_some_and(|&on| on != 0);
        let (now, left) = (self.now, bytes - blocked.written);
        let connection = self.open_connection(call)?;
        if is_null && bytes > 0 {
            return Ok(CallResult::Fails("EFAULT"));
        }
        // Linux wakes the application only when more space is free than a new call needs.
        if std::mem::replace(&mut blocked.has_waited, true) && connection.waits_for_space() {
            return Ok(CallResult::Blocks);
        }
        let accepted = match connection.write(now, left, how, &mut ()) {
            Ok(accepted) => accepted,
            Err(_) if blocked.written > 0 => return Ok(blocked.result_without_waiting()),
            Err(error) => return Ok(CallResult::Fails(error_name(error))),
        };
        blocked.written += accepted;
        let end = connection.sender().una() + connection.sender().unacked_and_unsent_bytes();
        if accepted > 0 {
            self.application.error_queue.add_written_data(end, zero_copy);
        }
        Ok(match blocked.written {
            written if written == bytes => CallResult::Returns(bytes as i64),
            _ => CallResult::Blocks,
        })
    }

    /// Opens the connection with data on its SYN.
    fn connect_with_data(&mut self, bytes: u64) -> Result<CallResult, ScriptError> {
        if self.connection.is_some() || !self.setup.stack.fast_open {
            return not_supported("MSG_FASTOPEN of an open connection, or with a cookie");
        }
        let mut connection = self.create_connection(true);
        let accepted = connection.connect_with_data(self.now, bytes, &mut ());
        self.connection = Some(connection);
        Ok(CallResult::Returns(accepted as i64))
    }

    fn read(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let message = call.name == "recvmsg";
        let max = match message {
            true => call.vector_bytes(),
            false => call.number(2),
        };
        let flags = call.argument(if message { 2 } else { 3 });
        let Some(max) = max.and_then(|max| u64::try_from(max).ok()) else {
            return not_supported(format!("{} without a size", call.name));
        };
        if message && flags == "MSG_ERRQUEUE" {
            let tolerance = self.tolerance();
            return self.application.error_queue.receive(call, SCRIPT_START, tolerance);
        }
        if !["", "0", "MSG_DONTWAIT"].contains(&flags) {
            return not_supported(format!("{} with {flags}", call.name));
        }
        let reports_unread = self.application.options.get("TCP_INQ").is_some_and(|&on| on != 0);
        let is_null = call.argument(1) == "NULL";
        let now = self.now;
        let connection = self.open_connection(call)?;
        if is_null && connection.receiver().readable_bytes() > 0 {
            return Ok(CallResult::Fails("EFAULT"));
        }
        let result = match connection.read(now, max) {
            Ok(Some(bytes)) => CallResult::Returns(bytes as i64),
            Ok(None) => return Ok(CallResult::Blocks),
            Err(error) => CallResult::Fails(error_name(error)),
        };
        if message {
            // At the end of the stream, Linux reports a byte, so that the application reads again.
            let at_end = connection.receiver().is_stream_complete();
            let unread = connection.receiver().readable_bytes().max(u64::from(at_end));
            let unread = reports_unread.then(|| unread.to_string());
            let types: Vec<_> = call.values_of("cmsg_type").collect();
            let expected = call.values_of("cmsg_data").next().filter(|_| types == ["TCP_CM_INQ"]);
            if types.len() != usize::from(expected.is_some()) {
                return not_supported(format!("recvmsg with {}", types.join(", ")));
            }
            if expected != unread.as_deref() {
                return failed(format!("expected {expected:?} unread bytes, got {unread:?}"));
            }
        }
        Ok(result)
    }

    fn ioctl(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let connection = self.open_connection(call)?;
        let value = match call.argument(1) {
            "SIOCINQ" | "FIONREAD" => connection.receiver().readable_bytes(),
            "SIOCOUTQ" => connection.sender().unacked_and_unsent_bytes(),
            "SIOCOUTQNSD" => connection.sender().unsent_bytes(),
            other => return not_supported(format!("ioctl {other}")),
        };
        check_value(call, call.argument(2), &value.to_string())
    }

    fn shut_down(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let connection = self.open_connection(call)?;
        let (receives, sends) = match call.argument(1) {
            "SHUT_RD" => (true, false),
            "SHUT_WR" => (false, true),
            "SHUT_RDWR" => (true, true),
            other => return not_supported(format!("shutdown with {other}")),
        };
        if connection.state() == ConnectionState::Closed {
            return Ok(CallResult::Fails("ENOTCONN"));
        }
        if receives {
            connection.shut_down_receiving();
        }
        if sends {
            connection.shut_down_sending();
        }
        Ok(CallResult::Returns(0))
    }

    fn close(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let file = call.number(0);
        let application = &mut self.application;
        let watches = application.watches.len();
        application.watches.retain(|watch| Some(watch.epoll) != file && Some(watch.file) != file);
        let is_epoll = application.watches.len() < watches && self.connected_file() != file;
        let application = &mut self.application;
        if !application.connects && file == application.socket {
            // Closes the listening socket; the connection remains.
            application.socket_closed = true;
        } else if !is_epoll {
            let now = self.now;
            self.open_connection(call)?.close(now);
            let application = &mut self.application;
            application.socket_closed |= application.connects;
            application.accepted_closed |= !application.connects;
        }
        Ok(CallResult::Returns(0))
    }

    // ------------------------------------------------------------------- events

    /// Events of the connection: Linux's `tcp_poll`.
    fn poll_events(&mut self, file: i64) -> Result<u32, ScriptError> {
        let has_notifications = !self.application.error_queue.is_empty();
        let ours = self.connected_file();
        let Some(connection) = self.connection.as_mut().filter(|_| ours == Some(file)) else {
            return not_supported(format!("events of file {file}"));
        };
        let closed = connection.state() == ConnectionState::Closed;
        let ended = connection.receiver().is_stream_complete();
        let flags = [
            ("POLLIN", connection.is_readable()),
            ("POLLOUT", connection.poll_writable()),
            ("POLLERR", connection.error().is_some() || has_notifications),
            ("POLLHUP", closed),
            ("POLLRDHUP", ended || closed),
        ];
        let set = flags.iter().filter(|(_, set)| *set);
        set.map(|(name, _)| parse_events(name)).sum()
    }

    fn poll(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let files: Vec<_> = call.values_of("fd").collect();
        let wanted: Vec<_> = call.values_of("events").collect();
        let expected: Vec<_> = call.values_of("revents").collect();
        let mut count = 0;
        for ((file, wanted), expected) in files.iter().zip(wanted).zip(expected) {
            let file = file.parse().unwrap_or(-1);
            let always = parse_events("POLLERR|POLLHUP")?;
            let events = self.poll_events(file)? & (parse_events(wanted)? | always);
            if events == 0 && call.number(2) != Some(0) {
                return Ok(CallResult::Blocks);
            }
            check_events(call, expected, events)?;
            count += i64::from(events != 0);
        }
        Ok(CallResult::Returns(count))
    }

    fn change_watch(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let (Some(epoll), Some(file)) = (call.number(0), call.number(2)) else {
            return not_supported("epoll_ctl without files");
        };
        self.application.watches.retain(|watch| (watch.epoll, watch.file) != (epoll, file));
        if call.argument(1) != "EPOLL_CTL_DEL" {
            let names = call.values_of("events").next().unwrap_or_default();
            let is = |flag| names.split('|').any(|name| name.trim() == flag);
            let (is_edge_triggered, is_one_shot) = (is("EPOLLET"), is("EPOLLONESHOT"));
            let plain = names.split('|').filter(|name| {
                !["EPOLLET", "EPOLLONESHOT", "EPOLLEXCLUSIVE"].contains(&name.trim())
            });
            let events = parse_events(&plain.collect::<Vec<_>>().join("|"))?;
            let events = events | parse_events("POLLERR|POLLHUP")?;
            let watch =
                Watch { epoll, file, events, is_edge_triggered, is_one_shot, is_ready: true };
            self.application.watches.push(watch);
        }
        Ok(CallResult::Returns(0))
    }

    /// Events of which `epoll` learns.
    pub(super) fn note_wakeups(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        let wakeups = connection.take_wakeups();
        let (next, una) = (connection.sender().next_byte(), connection.sender().una());
        let notified = self.application.error_queue.update(self.now, next, una);
        for watch in &mut self.application.watches {
            let wanted = |name| parse_events(name).is_ok_and(|event| watch.events & event != 0);
            watch.is_ready |= (wakeups.readable && wanted("POLLIN"))
                || (wakeups.writable && wanted("POLLOUT"))
                || (notified && wanted("POLLERR"));
        }
    }

    fn wait_for_watches(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let epoll = call.number(0);
        let expected = call.values_of("events").next().unwrap_or_default();
        for index in 0..self.application.watches.len() {
            let watch = self.application.watches[index];
            if Some(watch.epoll) != epoll || !watch.is_ready {
                continue;
            }
            let events = self.poll_events(watch.file)? & watch.events;
            let watch = &mut self.application.watches[index];
            watch.is_ready = events != 0 && !watch.is_edge_triggered && !watch.is_one_shot;
            if events == 0 {
                continue;
            }
            if watch.is_one_shot {
                watch.events = 0;
            }
            check_events(call, expected, events)?;
            return Ok(CallResult::Returns(1));
        }
        if call.number(3) != Some(0) {
            return Ok(CallResult::Blocks);
        }
        check_events(call, expected, 0)?;
        Ok(CallResult::Returns(0))
    }

    // ------------------------------------------------------------------ options

    fn set_option(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let value = call.argument(3).trim_matches(['[', ']', '"']).to_owned();
        let (name, number) = (call.argument(2), call.number(3));
        match (name, number) {
            ("TCP_CONGESTION", _) => {
                self.setup.set_congestion_control(&value)?;
                let control = self.setup.stack.control;
                if let Some(connection) = &mut self.connection {
                    connection.change_stack_options(|stack| stack.control = control);
                }
                return Ok(CallResult::Returns(0));
            }
            ("SO_SNDBUF" | "SO_SNDBUFFORCE", Some(bytes @ 0..)) => {
                let size = (2 * bytes.min(MAX_SEND_BUFFER) as u64).max(MIN_SEND_BUFFER);
                self.application.send_buffer = Some(SendBufferSize::Fixed(size));
            }
            ("TCP_MAXSEG", Some(mss @ 1..)) if self.connected_file() != call.number(0) => {
                self.application.max_segment = u32::try_from(mss).ok();
                if let Some(connection) = &mut self.connection {
                    connection.set_advertised_mss((mss as u32).min(ETHERNET_MSS));
                }
            }
            ("TCP_NODELAY", Some(on)) => {
                self.setup.stack.no_delay = on != 0;
                if let Some(connection) = &mut self.connection {
                    connection.set_no_delay(on != 0);
                }
            }
            ("SO_RCVBUF" | "SO_RCVBUFFORCE", Some(bytes @ 1..)) if self.connection.is_none() => {
                self.setup.set_receive_buffer(bytes);
            }
            ("SO_TIMESTAMPING", _) => {
                let sender = self.connection.as_ref().map(Connection::sender);
                let first = sender.map_or(1, |sender| sender.una());
                self.application.error_queue.request_times(&value, first);
            }
            ("TCP_CORK" | "TCP_USER_TIMEOUT" | "TCP_NOTSENT_LOWAT", Some(0..=0xffff_ffff)) => (),
            _ if IGNORED_OPTIONS.contains(&name) => (),
            _ => return not_supported(format!("the socket option {name}")),
        }
        self.application.options.insert(name.to_owned(), number.unwrap_or(0));
        let options = self.socket_options();
        if let Some(connection) = &mut self.connection {
            connection.set_options(options);
        }
        Ok(CallResult::Returns(0))
    }

    fn get_option(&mut self, call: &SystemCall) -> Result<CallResult, ScriptError> {
        let name = call.argument(2);
        let connected = self.connected_file() == call.number(0);
        let connection = self.connection.as_mut().filter(|_| connected);
        let value = match (name, connection) {
            ("SO_ERROR", Some(connection)) => {
                connection.take_error().map_or("0".to_owned(), |error| error_name(error).into())
            }
            ("TCP_MAXSEG", Some(connection)) if connection.state() != ConnectionState::SynSent => {
                connection.stack().mss.to_string()
            }
            ("TCP_MAXSEG", _) => match self.application.max_segment {
                Some(mss) => mss.to_string(),
                None => return not_supported("TCP_MAXSEG before the connection is established"),
            },
            ("SO_SNDBUF", _) => match self.application.send_buffer {
                Some(SendBufferSize::Fixed(size)) => size.to_string(),
                _ => return not_supported("SO_SNDBUF that the script does not set"),
            },
            ("TCP_NODELAY", _) => u8::from(self.setup.stack.no_delay).to_string(),
            _ => {
                let known = ["TCP_CORK", "TCP_USER_TIMEOUT", "TCP_NOTSENT_LOWAT"];
                match self.application.options.get(name) {
                    Some(value) => value.to_string(),
                    None if known.contains(&name) => "0".to_owned(),
                    None => return not_supported(format!("the socket option {name}")),
                }
            }
        };
        check_value(call, call.argument(3), &value)
    }
}

/// Compares a value that a call stores.
fn check_value(call: &SystemCall, expected: &str, got: &str) -> Result<CallResult, ScriptError> {
    let number = super::system_call::number;
    let expected = expected.trim_matches(['[', ']']);
    let agrees = expected == got || number(expected).is_some_and(|n| Some(n) == number(got));
    if agrees || expected == "..." {
        return Ok(CallResult::Returns(0));
    }
    failed(format!("expected {} to store {expected}, got {got}", call.name))
}

/// Parses events such as `EPOLLIN|EPOLLOUT`, or `0`.
fn parse_events(names: &str) -> Result<u32, ScriptError> {
    let names = names.split('|').map(str::trim).filter(|name| !["", "0"].contains(name));
    names
        .map(|name| {
            let plain = name.strip_prefix('E').unwrap_or(name);
            let event = POLL_EVENTS.iter().find(|(known, _)| *known == plain);
            event.map_or_else(|| not_supported(format!("the event {name}")), |(_, bit)| Ok(*bit))
        })
        .sum()
}

fn check_events(call: &SystemCall, expected: &str, got: u32) -> Result<(), ScriptError> {
    if parse_events(expected)? == got {
        return Ok(());
    }
    let names = POLL_EVENTS.iter().filter(|(_, bit)| got & bit != 0).map(|(name, _)| *name);
    let names = names.collect::<Vec<_>>().join("|");
    failed(format!("expected {} to report {expected}, got {names:?}", call.name))
}

fn error_name(error: SocketError) -> &'static str {
    match error {
        SocketError::BrokenPipe => "EPIPE",
        SocketError::ConnectionReset => "ECONNRESET",
        SocketError::ConnectionRefused => "ECONNREFUSED",
        SocketError::TimedOut => "ETIMEDOUT",
    }
}
