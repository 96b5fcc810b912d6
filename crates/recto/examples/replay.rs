//! What a policy would have cost: a finished conversation, walked call by call, and any past page again.
#![expect(clippy::print_stdout, reason = "an example is there to show")]

use recto::{Error, Policy, Replay, Target, transcript};

const TRANSCRIPT: &str = r#"{"messages": [
  {"role": "user", "content": "Read a.txt"},
  {"role": "assistant", "content": null, "tool_calls":
    [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a.txt\"}"}}]},
  {"role": "tool", "tool_call_id": "c1", "content": "hello"},
  {"role": "assistant", "content": "It says hello."}
]}"#;

fn main() -> Result<(), Error> {
    let target = Target::named("gpt-4o").expect("built in");
    let conversation = transcript::read(TRANSCRIPT)?.remove(0);
    let (log, policy) = (conversation.into_log(target.tokenizer)?, Policy::safe());
    let mut replay = Replay::new(&log, &policy, &target);
    let mut usd = 0.0;
    while let Some(turn) = replay.next() {
        let compiled = turn.compiled?;
        usd += compiled.receipt.money.usd;
        let again = replay.again(&compiled.receipt.ticket)?;
        println!(
            "turn {}: {} messages, the same again: {}",
            turn.turn,
            compiled.page.messages.len(),
            again == compiled.page
        );
    }
    println!("{usd:.6} USD in all");
    Ok(())
}
