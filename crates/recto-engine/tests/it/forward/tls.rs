//! Providers behind encryption and proxies: real certificates of an authority that nobody else knows, and a proxy that
//! is really asked.

use super::{Asked, PATIENCE, chat, forward, ok};
use crate::child::{Running, setting, tell};
use crate::folder::TempFolder;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use recto::wire::Wire;
use recto_engine::Error;
use recto_engine::upstream::{Limits, Settings, Upstream};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

const CHILD: &str = "forward::tls::a_child_asks_as_its_environment_says";
const URL: &str = "RECTO_TEST_URL";
const CA: &str = "RECTO_TEST_CA";

/// A provider whose certificate an authority of its own has signed.
struct Provider {
    address: SocketAddr,
    /// The authority's certificate.
    ca: PathBuf,
    _folder: TempFolder,
    served: JoinHandle<Vec<Option<Asked>>>,
}

impl Provider {
    /// Answers so many connections.
    fn start(name: &str, connections: usize) -> Provider {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "an authority that nobody knows");
        let ca_text = authority.self_signed(&authority_key).unwrap().pem();
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let certificate = CertificateParams::new([name.to_string()]).unwrap().signed_by(&key, &issuer).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let secret = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let config = Arc::new(builder.with_single_cert(vec![certificate.der().clone()], secret).unwrap());
        let folder = TempFolder::new();
        let ca = folder.path().join("authority.pem");
        std::fs::write(&ca, ca_text).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || (0..connections).map(|_| served(&listener, &config)).collect();
        Provider { address, ca, _folder: folder, served: std::thread::spawn(serve) }
    }
}

/// Answers one connection; nothing if the other side did not trust us.
fn served(listener: &TcpListener, config: &Arc<ServerConfig>) -> Option<Asked> {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut connection = ServerConnection::new(Arc::clone(config)).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).ok()?;
    }
    let mut stream = StreamOwned::new(connection, stream);
    let asked = Asked::of(&mut stream);
    stream.write_all(&ok("", b"encrypted")).unwrap();
    stream.conn.send_close_notify();
    stream.flush().unwrap();
    Some(asked)
}

fn ask(url: &str, ca: Option<PathBuf>) -> Result<String, Error> {
    let limits = Limits { connect: Duration::from_secs(5), ..Limits::default() };
    let settings = Settings { ca, retries_max: 0, limits, ..Settings::new("fake", url, Wire::OpenaiChat) };
    let answered = forward(&Upstream::of(settings)?, chat()).0?;
    Ok(String::from_utf8(answered.1).unwrap())
}

#[test]
fn a_private_authority_is_trusted_only_if_its_file_is_named() {
    let provider = Provider::start("127.0.0.1", 2);
    let url = format!("https://{}/v1", provider.address);
    let error = ask(&url, None).unwrap_err();
    assert!(error.is_refused() && error.to_string().contains("certificate"), "{error}");
    assert_eq!(error.hint().unwrap(), "if its certificate is your own, name the authority's file with `ca`");
    assert_eq!(ask(&url, Some(provider.ca)).unwrap(), "encrypted");
    let asked = provider.served.join().unwrap();
    assert!(asked[0].is_none(), "nothing is said to whom is not trusted");
    assert!(asked[1].as_ref().unwrap().first.starts_with("POST /v1/chat/completions "));
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let provider = Provider::start("elsewhere.test", 1);
    let error = ask(&format!("https://{}/v1", provider.address), Some(provider.ca)).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(provider.served.join().unwrap()[0].is_none());
}

/// A proxy that leads one connection to this address, whatever name it is asked for, and returns how it was asked.
fn leading(listener: TcpListener, to: SocketAddr) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        near.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = String::new();
        let mut reader = BufReader::new(near.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0);
        }
        let far = TcpStream::connect(to).unwrap();
        near.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
        let (mut up, mut down) = (far.try_clone().unwrap(), near);
        let upwards = std::thread::spawn(move || drop(std::io::copy(&mut reader, &mut up)));
        drop(std::io::copy(&mut &far, &mut down));
        drop(down.shutdown(std::net::Shutdown::Both));
        upwards.join().unwrap();
        head
    })
}

/// Has a process ask `upstream.test`, with this proxy in its environment, and returns what came of it.
fn asked_by_child(provider: &Provider, proxy: SocketAddr, no_proxy: &str) -> String {
    let mut environment: Vec<(&str, String)> =
        vec![(URL, "https://upstream.test/v1".into()), (CA, provider.ca.display().to_string())];
    for name in ["HTTPS_PROXY", "https_proxy"] {
        environment.push((name, format!("http://{proxy}")));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        environment.push((name, no_proxy.into()));
    }
    let mut child = Running::start(CHILD, &environment);
    let told = child.line().unwrap();
    assert!(child.end());
    told
}

#[test]
fn a_child_asks_as_its_environment_says() {
    let (Some(url), Some(ca)) = (setting(URL), setting(CA)) else { return };
    tell(&ask(&url, Some(ca.into())).unwrap_or_else(|error| format!("failed: {error}")));
}

#[test]
fn a_proxy_of_the_environment_is_asked_and_reads_nothing() {
    let provider = Provider::start("upstream.test", 1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = listener.local_addr().unwrap();
    let lead = leading(listener, provider.address);
    assert_eq!(asked_by_child(&provider, proxy, ""), "encrypted");
    assert!(lead.join().unwrap().starts_with("CONNECT upstream.test:443 HTTP/1.1\r\n"));
    assert_eq!(provider.served.join().unwrap()[0].as_ref().unwrap().all("host"), ["upstream.test"]);
}

#[test]
fn whom_the_environment_excepts_is_not_reached_through_a_proxy() {
    let provider = Provider::start("upstream.test", 0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let told = asked_by_child(&provider, listener.local_addr().unwrap(), "upstream.test");
    assert!(told.starts_with("failed: "), "nobody has that name: {told}");
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "the proxy was left alone");
}
