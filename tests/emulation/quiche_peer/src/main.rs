//! Client and server that transfer files with quiche, for comparisons with the simulation.
//!
//! `quiche-peer server FOLDER` reads the certificate in the folder, and writes a line with sent and
//! lost packets into `FOLDER/packets` when a connection ends. `quiche-peer client FOLDER HANDSHAKE
//! BYTES COUNT` prints the times of each transfer in seconds as JSON: from the first packet to the
//! end of the handshake, from the request, which follows it, to the last byte, and both. HANDSHAKE
//! is `tls13`, or `tls13-0rtt` for requests with the first packet, after a first transfer.

use quiche::{Config, Connection, ConnectionId, RecvInfo};
use std::collections::{hash_map::Entry, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

const PORT: u16 = 4433;
/// First bidirectional stream of a client.
const STREAM: u64 = 0;
/// Window that does not limit these transfers: the application sets it, quiche has no default.
const WINDOW: u64 = 1 << 26;
const MAX_DATAGRAM: usize = 1200;
const CONNECTION_ID_BYTES: usize = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["server", folder] => run_server(Path::new(folder)),
        ["client", _, handshake, bytes, count] => {
            run_client(handshake == "tls13-0rtt", bytes.parse()?, count.parse()?)
        }
        _ => Err("use server FOLDER, or client FOLDER HANDSHAKE BYTES COUNT".into()),
    }
}

/// The defaults, with datagrams of the size of the other implementations.
fn config() -> Result<Config, Failure> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[b"peer"])?;
    config.set_max_send_udp_payload_size(MAX_DATAGRAM);
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_local(WINDOW);
    config.set_initial_max_stream_data_bidi_remote(WINDOW);
    config.set_initial_max_streams_bidi(1);
    config.verify_peer(false);
    config.enable_early_data();
    Ok(config)
}

/// Sends all datagrams that a connection may send now.
fn transmit(socket: &UdpSocket, connection: &mut Connection) -> Result<(), Failure> {
    let mut datagram = [0; 1500];
    loop {
        match connection.send(&mut datagram) {
            Ok((length, info)) => drop(socket.send_to(&datagram[..length], info.to)?),
            Err(quiche::Error::Done) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until a datagram arrives or `wait` has passed; calls `receive` for all datagrams that wait.
fn receive_all(
    socket: &UdpSocket,
    wait: Duration,
    mut receive: impl FnMut(&mut [u8], SocketAddr) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut datagram = [0; 65_535];
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(wait.max(Duration::from_micros(1))))?;
    loop {
        match socket.recv_from(&mut datagram) {
            Ok((length, from)) => receive(&mut datagram[..length], from)?,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        socket.set_nonblocking(true)?;
    }
}

fn new_connection_id() -> Result<ConnectionId<'static>, Failure> {
    let mut id = vec![0; CONNECTION_ID_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(ConnectionId::from_vec(id))
}

/// A connection of the server, and the bytes that it still has to write.
struct Served {
    connection: Connection,
    request: Vec<u8>,
    left: Option<usize>,
}

impl Served {
    /// Answers a request, the number of bytes as text, with that many bytes.
    fn serve(&mut self) -> Result<(), Failure> {
        let mut buffer = [0; 1 << 16];
        if self.left.is_none() && self.connection.stream_readable(STREAM) {
            let (length, is_complete) = self.connection.stream_recv(STREAM, &mut buffer)?;
            self.request.extend_from_slice(&buffer[..length]);
            if is_complete {
                self.left = Some(std::str::from_utf8(&self.request)?.parse()?);
            }
        }
        while let Some(left) = self.left.filter(|left| *left > 0) {
            let length = left.min(buffer.len());
            match self.connection.stream_send(STREAM, &buffer[..length], length == left) {
                Ok(written) => self.left = Some(left - written),
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn run_server(folder: &Path) -> Result<(), Failure> {
    let name = |file: &str| folder.join(file).to_string_lossy().into_owned();
    let mut config = config()?;
    config.load_cert_chain_from_pem_file(&name("certificate.pem"))?;
    config.load_priv_key_from_pem_file(&name("key.pem"))?;
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    let to = socket.local_addr()?;
    let mut all: HashMap<SocketAddr, Served> = HashMap::new();
    loop {
        let timeouts = all.values().filter_map(|served| served.connection.timeout());
        let wait = timeouts.min().unwrap_or(LONGEST_WAIT);
        receive_all(&socket, wait, |datagram, from| {
            if let Entry::Vacant(entry) = all.entry(from) {
                let id = new_connection_id()?;
                let connection = quiche::accept(&id, None, to, from, &mut config)?;
                entry.insert(Served { connection, request: Vec::new(), left: None });
            }
            if let Some(served) = all.get_mut(&from) {
                // A datagram after the end of its connection is no error.
                let _ = served.connection.recv(datagram, RecvInfo { from, to });
            }
            Ok(())
        })?;
        for served in all.values_mut() {
            if served.connection.timeout().is_some_and(|left| left.is_zero()) {
                served.connection.on_timeout();
            }
            if served.connection.is_established() || served.connection.is_in_early_data() {
                served.serve()?;
            }
            transmit(&socket, &mut served.connection)?;
        }
        let ended =
            |served: &Served| served.connection.is_draining() || served.connection.is_closed();
        for (_, served) in all.extract_if(|_, served| ended(served)) {
            let stats = served.connection.stats();
            let mut file = OpenOptions::new().append(true).create(true).open(name("packets"))?;
            writeln!(file, "{} {}", stats.sent, stats.lost)?;
        }
    }
}

fn run_client(early: bool, bytes: usize, count: usize) -> Result<(), Failure> {
    let mut config = config()?;
    let mut session = None;
    if early {
        fetch(&mut config, 1, &mut session, true)?;
    }
    let mut times = Vec::new();
    for _ in 0..count {
        times.push(fetch(&mut config, bytes, &mut session, early)?);
        std::thread::sleep(Duration::from_millis(300));
    }
    println!("[{}]", times.join(", "));
    Ok(())
}

/// Transfers a file over a new connection; returns its times. With a session, the request is sent as
/// early data, and `keeps_session` waits for the session of the next connection.
fn fetch(
    config: &mut Config,
    bytes: usize,
    session: &mut Option<Vec<u8>>,
    keeps_session: bool,
) -> Result<String, Failure> {
    let host: IpAddr = std::env::var("TCPCAST_PEER")?.parse()?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((host, PORT))?;
    let (to, peer) = (socket.local_addr()?, SocketAddr::from((host, PORT)));
    let began = Instant::now();
    let id = new_connection_id()?;
    let mut connection = quiche::connect(Some("peer"), &id, to, peer, config)?;
    let early = session.is_some();
    if let Some(session) = session.as_ref() {
        connection.set_session(session)?;
    }
    let mut buffer = [0; 1 << 16];
    let (mut requested, mut received, mut ended) = (None, 0, None);
    loop {
        if requested.is_none() && early && !connection.is_in_early_data() {
            transmit(&socket, &mut connection)?;
            if !connection.is_in_early_data() {
                return Err("the server does not accept 0-RTT".into());
            }
        }
        if requested.is_none() && (early || connection.is_established()) {
            requested = Some(Instant::now());
            connection.stream_send(STREAM, bytes.to_string().as_bytes(), true)?;
        }
        while connection.stream_readable(STREAM) {
            let (length, is_complete) = connection.stream_recv(STREAM, &mut buffer)?;
            received += length;
            if is_complete {
                ended = Some(Instant::now());
            }
        }
        let has_session = !keeps_session || connection.session().is_some();
        if ended.is_some() && has_session {
            if keeps_session {
                *session = connection.session().map(<[u8]>::to_vec);
            }
            // An error says that the server has closed the connection already.
            let _ = connection.close(true, 0, b"");
            transmit(&socket, &mut connection)?;
            break;
        }
        transmit(&socket, &mut connection)?;
        let wait = connection.timeout().unwrap_or(LONGEST_WAIT);
        receive_all(&socket, wait, |datagram, from| {
            connection.recv(datagram, RecvInfo { from, to })?;
            Ok(())
        })?;
        if connection.timeout().is_some_and(|left| left.is_zero()) {
            connection.on_timeout();
        }
        if connection.is_closed() {
            return Err("the connection has ended".into());
        }
    }
    let (Some(requested), Some(ended)) = (requested, ended) else {
        return Err("no request was sent".into());
    };
    if received != bytes {
        return Err(format!("{received} of {bytes} bytes").into());
    }
    Ok(format!(
        "{{\"handshake_s\": {:.6}, \"transfer_s\": {:.6}, \"total_s\": {:.6}}}",
        (requested - began).as_secs_f64(),
        (ended - requested).as_secs_f64(),
        (ended - began).as_secs_f64()
    ))
}
