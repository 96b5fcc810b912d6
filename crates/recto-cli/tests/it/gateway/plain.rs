//! A provider on a plain socket, that takes and answers anything.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long something may take to be seen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request as it came.
#[derive(Debug)]
pub(super) struct Came {
    /// Method, path and query.
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Came {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A provider that hands out what came. Each connection holds one request.
pub(super) struct Plain {
    at: SocketAddr,
    came: Receiver<Came>,
    accepting: Option<JoinHandle<()>>,
    is_ending: Arc<AtomicBool>,
}

impl Plain {
    /// Starts one that answers in this way; the connection ends with the answer.
    pub(super) fn answering(answer: impl Fn(&Came, &mut TcpStream) + Send + 'static) -> Plain {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, is_ending) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (sender, came) = channel();
        let accepting = std::thread::spawn({
            let is_ending = Arc::clone(&is_ending);
            move || accept(&listener, &is_ending, &sender, answer)
        });
        Plain { at, came, accepting: Some(accepting), is_ending }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    /// Returns the next request that came.
    #[track_caller]
    pub(super) fn came(&self) -> Came {
        self.came.recv_timeout(PATIENCE).expect("a request")
    }

    /// Whether nothing else has come.
    pub(super) fn is_empty(&self) -> bool {
        self.came.try_recv().is_err()
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::SeqCst);
        // A last connection wakes the thread; if it fails, the thread has ended already.
        drop(TcpStream::connect(self.at));
        drop(self.accepting.take().map(JoinHandle::join));
    }
}

fn accept(
    listener: &TcpListener,
    is_ending: &AtomicBool,
    sender: &Sender<Came>,
    answer: impl Fn(&Came, &mut TcpStream),
) {
    for stream in listener.incoming() {
        if is_ending.load(Ordering::SeqCst) {
            return;
        }
        let mut stream = stream.unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let Some(came) = read(&stream) else { continue };
        answer(&came, &mut stream);
        // Nobody may be listening any more.
        drop(sender.send(came));
    }
}

fn read(stream: &TcpStream) -> Option<Came> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(line.trim_end().to_string())
    };
    let first = line()?;
    let mut came = Came { line: first.trim_end_matches(" HTTP/1.1").into(), headers: Vec::new(), body: Vec::new() };
    while let Some((name, value)) = line()?.split_once(':') {
        came.headers.push((name.to_lowercase(), value.trim().to_string()));
    }
    came.body = vec![0; came.header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut came.body).ok()?;
    Some(came)
}
