//! Conversations of an agent that calls a tool again and again, carried on by a few clients at once.

use reqwest::Client;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: [&str; 16] = [
    "let", "match", "return", "value", "index", "buffer", "token", "entry", "error", "while", "store", "page", "None",
    "Some", "0x1f", "->",
];

/// How many conversations there are, how many go on at once, how many calls each makes, what they had before, and how long
/// a tool's result is.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) clients: usize,
    pub(crate) conversations: u32,
    pub(crate) calls: u32,
    pub(crate) known_calls: u32,
    pub(crate) result_bytes: usize,
}

/// A conversation: its messages as they stand in a body, without the end of it.
pub(crate) struct Talk {
    body: String,
    result_bytes: usize,
    seed: u64,
}

impl Load {
    /// Returns conversations that nobody has seen before.
    pub(crate) fn begin(&self, round: u32) -> Vec<Talk> {
        (0..self.conversations).map(|number| self.talk(round, number)).collect()
    }

    fn talk(&self, round: u32, number: u32) -> Talk {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let seed = NEXT.fetch_add(1, Ordering::Relaxed);
        let system = "You are an agent that reads files, and says what is in them.";
        let body = format!(
            "{{\"model\":\"gpt-4o\",\"tools\":[{{\"type\":\"function\",\"function\":{{\"name\":\"read_file\",\
             \"parameters\":{{\"type\":\"object\",\"properties\":{{\"path\":{{\"type\":\"string\"}}}}}}}}}}],\
             \"messages\":[{{\"role\":\"system\",\"content\":\"{system}\"}},\
             {{\"role\":\"user\",\"content\":\"Look at file {number} of round {round}, please: {seed}.\"}}"
        );
        let mut talk = Talk { body, result_bytes: self.result_bytes, seed };
        for known in 0..self.known_calls {
            talk.heard(&format!("call_known_{known}"));
        }
        talk
    }
}

impl Talk {
    /// Adds a call, and what its tool says.
    fn heard(&mut self, call: &str) {
        let arguments = "{\\\"path\\\":\\\"src/main.rs\\\"}";
        write!(
            self.body,
            ",{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"{call}\",\"type\":\"function\",\
             \"function\":{{\"name\":\"read_file\",\"arguments\":\"{arguments}\"}}}}]}},\
             {{\"role\":\"tool\",\"tool_call_id\":\"{call}\",\"content\":\""
        )
        .expect("text can be added to");
        let end = self.body.len() + self.result_bytes;
        self.body += "fn main()";
        while self.body.len() < end {
            // Any generator does, if its words differ from file to file.
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let word = WORDS[(self.seed >> 60) as usize];
            let gap = if self.seed >> 32 & 7 == 0 { "\\n" } else { " " };
            write!(self.body, "{gap}{word}{}", self.seed >> 33 & 255).expect("text can be added to");
        }
        self.body += "\"}";
    }

    async fn call(&mut self, client: &Client, url: &str) {
        let request = client.post(url).header("content-type", "application/json").body(format!("{}]}}", self.body));
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let bytes = answer.bytes().await.expect("a whole answer");
        let text = str::from_utf8(&bytes).expect("text");
        assert!(status.is_success(), "{status}: {text}");
        let call = text.split("\"id\":\"call_").nth(1).and_then(|rest| rest.split('"').next()).expect("a call");
        self.heard(&format!("call_{call}"));
    }
}

/// Makes so many calls in each conversation, by so many clients at once.
pub(crate) async fn carry_on(url: &str, talks: &mut Vec<Talk>, calls: u32, clients: usize) {
    let client = client();
    let url = format!("{url}/v1/chat/completions");
    let share = talks.len().div_ceil(clients);
    let mut tasks = Vec::new();
    while !talks.is_empty() {
        let mut mine = talks.split_off(talks.len().saturating_sub(share));
        let (client, url) = (client.clone(), url.clone());
        tasks.push(tokio::spawn(async move {
            for talk in &mut mine {
                for _ in 0..calls {
                    talk.call(&client, &url).await;
                }
            }
            mine
        }));
    }
    for task in tasks {
        talks.extend(task.await.expect("every call was answered"));
    }
}

pub(crate) fn client() -> Client {
    Client::builder().no_proxy().build().expect("a client")
}
