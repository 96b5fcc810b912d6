//! Answers that come piece by piece. A thousand that take a minute: every byte arrives, and the memory that they took comes
//! back. And what one costs beside a proxy that only passes on.

use crate::process::Serving;
use crate::{Figure, ROUNDS, load};
use axum::body::Bytes;
use http_body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Interval;

/// The header of a request with how many events its answer shall have, and the one with the time between two of them.
pub(crate) const EVENTS: &str = "x-bench-events";
pub(crate) const PERIOD_MS: &str = "x-bench-period-ms";

const STREAMS: usize = 1_000;
const SECONDS: u64 = 60;
const MEMORY_RATIO_MAX: f64 = 1.1;
/// How long after the last stream the memory is looked at, and the processor time.
const SETTLING: Duration = Duration::from_secs(2);

/// How many answers are heard at once to see what they cost, how many there are in a round, of how many events, and how
/// long after each other these come: so long that each is passed on by itself.
const LISTENERS: usize = 16;
const ANSWERS: usize = 64;
const ANSWER_EVENTS: u64 = 200;
const ANSWER_PERIOD_MS: u64 = 5;
const COST_RATIO_MAX: f64 = 2.0;

/// An answer that comes piece by piece.
pub(crate) struct Slow {
    interval: Interval,
    sent: u64,
    events: u64,
}

impl Slow {
    pub(crate) fn new(events: u64, period: Duration) -> Slow {
        Slow { interval: tokio::time::interval(period), sent: 0, events }
    }
}

impl Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Slow>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let slow = self.get_mut();
        if slow.sent == slow.events {
            return Poll::Ready(None);
        }
        ready!(slow.interval.poll_tick(cx));
        slow.sent += 1;
        Poll::Ready(Some(Ok(Frame::data(event(slow.sent, slow.events).into()))))
    }
}

/// The event of this number; the last ones end the stream as Chat Completions does.
fn event(number: u64, events: u64) -> String {
    let (delta, finish, end) = match number == events {
        true => (String::new(), "\"stop\"", "data: [DONE]\n\n"),
        false => (format!("\"content\":\"word {number} \""), "null", ""),
    };
    format!(
        "data: {{\"id\":\"chatcmpl-slow\",\"object\":\"chat.completion.chunk\",\"created\":1790000000,\
         \"model\":\"gpt-4o\",\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":{finish}}}]}}\n\n{end}"
    )
}

/// Streams through Recto: how many came broken, and the memory afterwards against before.
pub(crate) async fn measured(recto: &Serving) -> Figure {
    let fresh = recto.resident_kib();
    // What a server needs for so many at once is there from then on.
    let broken_before = all(&recto.url, 2).await;
    tokio::time::sleep(SETTLING).await;
    let before = recto.resident_kib();
    let broken = broken_before + all(&recto.url, SECONDS).await;
    tokio::time::sleep(SETTLING).await;
    let after = recto.resident_kib();
    let ratio = after as f64 / before as f64;
    let text = format!(
        "streams: {STREAMS} for {SECONDS} s: {broken} broken; memory afterwards {ratio:.2} x, at most \
         {MEMORY_RATIO_MAX} ({after} KiB, {before} KiB after {STREAMS} short ones, {fresh} KiB before those)"
    );
    Figure { text, is_met: broken == 0 && ratio <= MEMORY_RATIO_MAX }
}

/// Processor time of a streamed answer through Recto, which looks for calls of its own tool in it, against one through the
/// bare proxy.
pub(crate) async fn cost(proxy: &Serving, recto: &Serving) -> Figure {
    let mut spent = [Duration::ZERO; 2];
    for round in 0..=ROUNDS {
        for (at, server) in [proxy, recto].into_iter().enumerate() {
            let start = server.processor_time();
            hear_answers(&server.url, round).await;
            tokio::time::sleep(SETTLING).await;
            // The first round warms up.
            if round > 0 {
                spent[at] += server.processor_time() - start;
            }
        }
    }
    let [bare, ours] = spent.map(|time| time / (ROUNDS * ANSWERS as u32));
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    let text = format!(
        "streamed: answers of {ANSWER_EVENTS} events, policy default: {ratio:.2} x, at most {COST_RATIO_MAX} \
         ({ours:.0?}, {bare:.0?})"
    );
    Figure { text, is_met: ratio <= COST_RATIO_MAX }
}

async fn hear_answers(url: &str, round: u32) {
    let client = load::client();
    let expected: String = (1..=ANSWER_EVENTS).map(|number| event(number, ANSWER_EVENTS)).collect();
    let tasks = (0..LISTENERS).map(|listener| {
        let (client, url, expected) = (client.clone(), format!("{url}/v1/chat/completions"), expected.clone());
        tokio::spawn(async move {
            for answer in 0..ANSWERS / LISTENERS {
                let body = format!(
                    "{{\"model\":\"gpt-4o\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"Answer \
                     {answer} of {listener} in round {round}\"}}]}}"
                );
                let request = client.post(&url).body(body).header("content-type", "application/json");
                let request = request.header(EVENTS, ANSWER_EVENTS).header(PERIOD_MS, ANSWER_PERIOD_MS);
                let came = request.send().await.expect("an answer").text().await.expect("all of it");
                assert_eq!(came, expected, "every byte of it");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("every answer was heard");
    }
}

/// Opens all streams at once, one event a second, and returns how many didn't bring every byte.
async fn all(url: &str, seconds: u64) -> usize {
    let client = load::client();
    let expected: String = (1..=seconds).map(|number| event(number, seconds)).collect();
    let tasks: Vec<_> = (0..STREAMS)
        .map(|number| {
            let body = format!(
                "{{\"model\":\"gpt-4o\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"Stream \
                 {number} of {seconds} s\"}}]}}"
            );
            let request = client.post(format!("{url}/v1/chat/completions")).body(body);
            let request = request.header("content-type", "application/json");
            let request = request.header(EVENTS, seconds).header(PERIOD_MS, 1_000);
            tokio::spawn(async move { request.send().await?.text().await })
        })
        .collect();
    let mut broken = 0;
    for task in tasks {
        let came = task.await.expect("no task fails");
        broken += usize::from(!came.is_ok_and(|text| text == expected));
    }
    broken
}
