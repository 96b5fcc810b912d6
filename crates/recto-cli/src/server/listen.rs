//! Connections: how many, how patient, and how they end.

use super::heads::{HEAD_BYTES_MAX, Heads, Heard};
use super::{Server, retention, route};
use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use recto_engine::Store;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// The most connections at once; more wait until one ends.
const CONNECTIONS_MAX: usize = 8_192;
/// How long the head of a request may take to come, and a connection may stay without one.
const HEAD_TIME_MAX: Duration = Duration::from_secs(60);
/// How long to wait if the system gives no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long requests that are cut may take to put down what they have.
const CUT_TIME_MAX: Duration = Duration::from_secs(5);

/// Answers what comes in until the server is told to end. Then nothing new is taken; what runs may go on for a while,
/// is cut after that, and gets a moment to put down what it has.
pub(crate) async fn serve<S: Store>(server: Arc<Server<S>>, listener: TcpListener) {
    let connections = GracefulShutdown::new();
    tokio::spawn(retention::keep_up(server.clone()));
    accept(&server, listener, &connections).await;
    let ended = async {
        connections.shutdown().await;
        server.closing.released().await;
    };
    tokio::pin!(ended);
    let patience = async {
        tokio::select! {
            () = sleep(server.setup().settings.shutdown) => server.closing.cut_now(),
            () = server.closing.cut() => {}
        }
    };
    tokio::select! {
        () = &mut ended => return,
        () = patience => {}
    }
    // Whoever is not done by now would not be done later either.
    let _ = timeout(CUT_TIME_MAX, ended).await;
}

async fn accept<S: Store>(server: &Arc<Server<S>>, listener: TcpListener, connections: &GracefulShutdown) {
    let router = route::router(server);
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let next = async {
            let seat = seats.clone().acquire_owned().await;
            (seat, listener.accept().await)
        };
        let (seat, accepted) = tokio::select! {
            next = next => next,
            () = server.closing.begun() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connections.watch(connection(stream, router.clone()));
                tokio::spawn(async move {
                    // A connection that fails has nobody left to tell.
                    let _ = connection.await;
                    drop(seat);
                });
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                server.tell(|| format!("no connection can be taken: {error}"));
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

type Connection = hyper::server::conn::http1::Connection<TokioIo<Heard>, Connected>;

fn connection(stream: TcpStream, router: Router) -> Connection {
    // Words of a stream go out as they come. Where the system refuses, they come later.
    let _ = stream.set_nodelay(true);
    let (stream, heads) = Heard::of(stream);
    // A hundred headers are the most, by the builder's own choice; to say so would cost an allocation each time.
    Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), Connected { router: TowerToHyperService::new(router), heads })
}

/// The routes, for one connection.
struct Connected {
    router: TowerToHyperService<Router>,
    heads: Heads,
}

impl Service<Request<Incoming>> for Connected {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.heads.clone());
        self.router.call(request)
    }
}
