//! The provider on a port of this machine.

use super::http::{self, After, Next};
use super::provider::{Exchange, Provider, Settings};
use super::reply::{Gate, Reply};
use std::io::{self, BufReader, BufWriter};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Connections beyond it are closed at once.
const CONNECTIONS_MAX: usize = 128;

/// An HTTP server that answers as the provider does. Dropping it ends every connection and joins every thread.
///
/// ```
/// use recto_testkit::fake::{Reply, Server};
/// let server = Server::start();
/// server.push(Reply::default().text("hi"));
/// assert!(server.url().starts_with("http://127.0.0.1:"));
/// ```
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    provider: Mutex<Provider>,
    answered: Condvar,
    connections: Mutex<Vec<Connection>>,
    gates: Mutex<Vec<Gate>>,
    ending: AtomicBool,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    thread: JoinHandle<()>,
}

impl Server {
    /// Starts a provider with default settings on a free port.
    pub fn start() -> Server {
        Server::with(Settings::default())
    }

    /// Starts a provider on a free port.
    pub fn with(settings: Settings) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on this machine");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            provider: Mutex::new(Provider::new(settings)),
            answered: Condvar::new(),
            connections: Mutex::default(),
            gates: Mutex::default(),
            ending: AtomicBool::new(false),
        });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Server { shared, address, accepting: Some(accepting) }
    }

    /// Returns the address without a path: `http://127.0.0.1:…`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds an answer behind those that wait.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.gates).extend(reply.delivery.gates.iter().map(|(_, gate)| gate.clone()));
        self.provider().push(reply);
    }

    /// Returns every exchange so far.
    pub fn log(&self) -> Vec<Exchange> {
        self.provider().log().to_vec()
    }

    /// Waits until so many requests were answered, and returns the exchanges.
    pub fn wait_for(&self, exchanges: usize) -> Vec<Exchange> {
        let waits = |provider: &mut Provider| provider.log().len() < exchanges;
        let provider = self.shared.answered.wait_while(self.provider(), waits);
        provider.unwrap_or_else(PoisonError::into_inner).log().to_vec()
    }

    /// Returns the provider behind the port. Requests wait while it is held.
    pub fn provider(&self) -> MutexGuard<'_, Provider> {
        lock(&self.shared.provider)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        for gate in lock(&self.shared.gates).iter() {
            gate.open();
        }
        // A last connection wakes the thread that accepts; if it fails, that thread has ended already.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
        let connections = std::mem::take(&mut *lock(&self.shared.connections));
        for connection in &connections {
            drop(connection.stream.shutdown(Shutdown::Both));
        }
        for connection in connections {
            drop(connection.thread.join());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.ending.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let mut connections = lock(&shared.connections);
        connections.retain(|connection| !connection.thread.is_finished());
        let Ok(own) = stream.try_clone() else { continue };
        if connections.len() < CONNECTIONS_MAX {
            let shared = Arc::clone(shared);
            let thread = std::thread::spawn(move || {
                // A client that goes away is its own business.
                drop(serve(&own, &shared));
                drop(own.shutdown(Shutdown::Both));
            });
            connections.push(Connection { stream, thread });
        }
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = BufWriter::new(stream);
    loop {
        let (request, was_read) = match http::read(&mut reader, &mut writer)? {
            Next::Request(request) => (request, true),
            Next::TooLarge(request) => (request, false),
            Next::End => return Ok(()),
        };
        let closes = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let answer = match was_read {
            true => lock(&shared.provider).answer(&request),
            false => lock(&shared.provider).answer_too_large(&request),
        };
        shared.answered.notify_all();
        let after = http::write(&mut writer, &answer)?;
        if after == After::Drop || closes || !was_read {
            return Ok(());
        }
    }
}
