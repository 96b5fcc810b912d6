use super::*;

/// Waits until nothing new is taken.
fn until_closed(served: &Served) {
    let start = Instant::now();
    while TcpStream::connect(served.at).is_ok() {
        assert!(start.elapsed() < PATIENCE);
    }
}

#[test]
fn a_request_that_runs_is_answered_before_the_end() {
    for signal in ["TERM", "INT"] {
        let place = Place::new();
        let served = place.serve(&[]);
        let mut stream = served.half_asked();
        served.signal(signal);
        until_closed(&served);
        stream.write_all(&BODY.as_bytes()[BODY.len() - 9..]).unwrap();
        Answer::read(&mut stream).is_let_in();
        let ran = served.ended();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
}

#[test]
fn a_second_signal_cuts_what_runs() {
    let place = Place::with("[server]\nshutdown_seconds = 3600\n");
    let served = place.serve(&[]);
    let mut stream = served.half_asked();
    served.signal("INT");
    until_closed(&served);
    served.signal("INT");
    assert_eq!(Answer::read(&mut stream).told(), (400, "broken_off"));
    let ran = served.ended();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn what_runs_for_too_long_is_cut() {
    let place = Place::with("[server]\nshutdown_seconds = 0\n");
    let served = place.serve(&[]);
    let mut stream = served.half_asked();
    served.signal("TERM");
    assert_eq!(Answer::read(&mut stream).told(), (400, "broken_off"));
    assert_eq!(served.ended().code, Some(0));
}

#[test]
fn a_connection_without_a_request_does_not_keep_the_server() {
    let place = Place::with("[server]\nshutdown_seconds = 3600\n");
    let served = place.serve(&[]);
    let mut idle = served.connect();
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let silent = served.connect();
    served.get("/health");
    served.ends();
    drop((idle, silent));
}
