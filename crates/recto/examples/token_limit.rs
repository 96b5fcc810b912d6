//! History within so many tokens, as a sliding window that moves in strides.
#![expect(clippy::print_stdout, reason = "an example is there to show")]

use recto::reduce::{Grain, TokenLimit};
use recto::{Entry, Error, Log, Policy, Replay, Target, Tokenizer, Tokens};

fn main() -> Result<(), Error> {
    let mut log = Log::counted_by(Tokenizer::O200k);
    for number in 0..40 {
        log.append(Entry::user(format!("Question {number}: what comes after {number}?")))?;
        log.append(Entry::assistant(format!("After {number} comes {}.", number + 1)))?;
    }
    let limit = TokenLimit { tokens: Tokens(200), slack: Tokens(100), grain: Grain::Exchange };
    let (policy, target) = (Policy::named("window").then(limit), Target::named("gpt-4o").expect("built in"));
    for turn in Replay::new(&log, &policy, &target) {
        let receipt = turn.compiled?.receipt;
        println!(
            "turn {:>2}: {:>4} tokens, {:>4} of them cached",
            turn.turn,
            receipt.ledger.used(),
            receipt.prefix.tokens
        );
    }
    Ok(())
}
