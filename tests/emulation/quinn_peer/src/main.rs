//! Client and server that transfer files with quinn, for comparisons with the simulation.
//!
//! `quinn-peer server FOLDER` reads the certificate in the folder, and writes a line with sent and
//! lost packets into `FOLDER/packets` when a connection ends. `quinn-peer client FOLDER HANDSHAKE
//! BYTES COUNT` prints the times of each transfer in seconds as JSON: from the first packet to the
//! end of the handshake, from the request, which follows it, to the last byte, and both. HANDSHAKE
//! is `tls13`, or `tls13-0rtt` for requests with the first packet, after a first transfer.

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const PORT: u16 = 4433;
const ALPN: &[u8] = b"peer";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["server", folder] => run_server(Path::new(folder)).await,
        ["client", folder, handshake, bytes, count] => {
            let early = handshake == "tls13-0rtt";
            run_client(Path::new(folder), early, bytes.parse()?, count.parse()?).await
        }
        _ => Err("use server FOLDER, or client FOLDER HANDSHAKE BYTES COUNT".into()),
    }
}

async fn run_server(folder: &Path) -> Result<(), Failure> {
    let certificate = CertificateDer::from_pem_file(folder.join("certificate.pem"))?;
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem"))?;
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![ALPN.into()];
    tls.max_early_data_size = u32::MAX;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    let endpoint = Endpoint::server(config, ([0, 0, 0, 0], PORT).into())?;
    while let Some(incoming) = endpoint.accept().await {
        let packets = folder.join("packets");
        tokio::spawn(async move {
            // Data may be sent before the handshake is complete.
            let connection = match incoming.accept()?.into_0rtt() {
                Ok((connection, _)) => connection,
                Err(connecting) => connecting.await?,
            };
            while serve(&connection).await.is_ok() {}
            let path = connection.stats().path;
            let mut file = OpenOptions::new().append(true).create(true).open(packets)?;
            writeln!(file, "{} {}", path.sent_packets, path.lost_packets)?;
            Ok::<(), Failure>(())
        });
    }
    Ok(())
}

/// The defaults, without path MTU discovery, which the simulation does not have.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.mtu_discovery_config(None);
    Arc::new(transport)
}

/// Answers a request, the number of bytes as text, with that many bytes.
async fn serve(connection: &Connection) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.accept_bi().await?;
    let request = String::from_utf8(receive.read_to_end(100).await?)?;
    send.write_all(&vec![0; request.parse()?]).await?;
    send.finish()?;
    Ok(())
}

async fn run_client(folder: &Path, early: bool, bytes: usize, count: usize) -> Result<(), Failure> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("certificate.pem"))?)?;
    let mut tls =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.into()];
    tls.enable_early_data = early;
    if !early {
        tls.resumption = rustls::client::Resumption::disabled();
    }
    let mut endpoint = Endpoint::client(([0, 0, 0, 0], 0).into())?;
    endpoint
        .set_default_client_config(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)));
    if early {
        fetch(&endpoint, false, 1).await?;
    }
    let mut times = Vec::new();
    for _ in 0..count {
        times.push(fetch(&endpoint, early, bytes).await?);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    println!("[{}]", times.join(", "));
    Ok(())
}

/// Transfers a file over a new connection; returns its times.
async fn fetch(endpoint: &Endpoint, early: bool, bytes: usize) -> Result<String, Failure> {
    let host: std::net::IpAddr = std::env::var("TCPCAST_PEER")?.parse()?;
    let began = Instant::now();
    let connecting = endpoint.connect((host, PORT).into(), "peer")?;
    let connection = if early {
        match connecting.into_0rtt() {
            Ok((connection, _)) => connection,
            Err(_) => return Err("the server does not accept 0-RTT".into()),
        }
    } else {
        connecting.await?
    };
    let requested = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(bytes.to_string().as_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = receive.read_chunk(1 << 16, true).await? {
        received += chunk.bytes.len();
    }
    let ended = Instant::now();
    if received != bytes {
        return Err(format!("{received} of {bytes} bytes").into());
    }
    if early {
        // The ticket for the next connection arrives a round trip after the handshake.
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    connection.close(VarInt::from_u32(0), b"");
    // The server counts its packets when it receives the end.
    endpoint.wait_idle().await;
    Ok(format!(
        "{{\"handshake_s\": {:.6}, \"transfer_s\": {:.6}, \"total_s\": {:.6}}}",
        (requested - began).as_secs_f64(),
        (ended - requested).as_secs_f64(),
        (ended - began).as_secs_f64()
    ))
}
