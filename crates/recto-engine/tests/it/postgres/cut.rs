//! Something between a store and its server that cuts connections when a commit passes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How a commit is sent.
const COMMIT: &[u8] = b"COMMIT\0";

/// When a connection is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Before the server hears of the commit.
    Before,
    /// After the server has done it, and before the store hears so.
    After,
    /// After the server has done it; from then on nobody comes through.
    AfterAndForGood,
}

/// A proxy that passes everything on until it is told to cut.
pub(super) struct Proxy {
    port: u16,
    /// How many more commits are cut, and how many were.
    left: Arc<AtomicUsize>,
    cut: Arc<AtomicUsize>,
}

impl Proxy {
    /// Listens in front of a server.
    pub(super) fn before(server: &str, cut: Cut) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (left, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (server, shared) = (server.to_string(), (left.clone(), done.clone()));
        // It ends with the process; nobody connects any more once the store is dropped.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if cut == Cut::AfterAndForGood && shared.1.load(Ordering::SeqCst) > 0 {
                    continue;
                }
                let server = TcpStream::connect(&server).unwrap();
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (shared, ends) = (shared.clone(), (client.try_clone().unwrap(), server.try_clone().unwrap()));
                thread::spawn(move || forth(client, server, cut, &shared.0, &shared.1));
                thread::spawn(move || back(ends.1, ends.0));
            }
        });
        Proxy { port, left, cut: done }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the next commits.
    pub(super) fn cut_next(&self, commits: usize) {
        self.left.store(commits, Ordering::SeqCst);
    }

    /// Returns how many commits were cut.
    pub(super) fn count(&self) -> usize {
        self.cut.load(Ordering::SeqCst)
    }
}

fn forth(mut client: TcpStream, mut server: TcpStream, cut: Cut, left: &AtomicUsize, done: &AtomicUsize) {
    let mut bytes = [0; 64 * 1024];
    while let Ok(length @ 1..) = client.read(&mut bytes) {
        let sent = &bytes[..length];
        let is_commit = sent.windows(COMMIT.len()).any(|it| it == COMMIT);
        let one_less = |left: usize| left.checked_sub(1);
        if is_commit && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            done.fetch_add(1, Ordering::SeqCst);
            // Whoever waits for an answer hears of the end instead.
            drop(client.shutdown(Shutdown::Both));
            if cut != Cut::Before {
                drop(server.write_all(sent));
                drop(server.shutdown(Shutdown::Write));
            } else {
                drop(server.shutdown(Shutdown::Both));
            }
            return;
        }
        if server.write_all(sent).is_err() {
            break;
        }
    }
    drop(server.shutdown(Shutdown::Both));
}

fn back(mut server: TcpStream, mut client: TcpStream) {
    let mut bytes = [0; 64 * 1024];
    while let Ok(length @ 1..) = server.read(&mut bytes) {
        if client.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    drop(client.shutdown(Shutdown::Both));
}
