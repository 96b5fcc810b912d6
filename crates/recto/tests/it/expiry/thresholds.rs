//! Results that stay by number or by size, and the presets that are named after somebody's threshold.

use super::{Talk, expiry, text_on};
use recto::expiry::ExpiryAction;
use recto::reduce::{Expire, Recent};
use recto::{Compiled, Entry, Policy, Seq, Tokens};

/// What a call did after one more result had come.
struct Made {
    /// How many tokens its edits save.
    saved: u64,
    /// Which results stand whole on its page.
    whole: Vec<usize>,
    /// How much of what the user has said stands there, word for word.
    users: usize,
}

/// Lives through calls, each with one more result of so many tokens before it.
fn lived(policy: Policy, results: usize, tokens: usize) -> Vec<Made> {
    let (mut talk, mut seqs, mut made) = (Talk::new(policy), Vec::new(), Vec::new());
    talk.say(Entry::user("Look at all of them."));
    let mut asked = Vec::new();
    for nth in 0..results {
        let said = format!("{nth:04}").repeat(tokens);
        seqs.push(talk.result("read", &said));
        let words = format!("What of {nth}?");
        asked.push((talk.say(Entry::user(&*words)), words));
        let (planned, compiled) = talk.call();
        let whole = (0..seqs.len()).filter(|at| is_whole(&compiled, seqs[*at], 4 * tokens)).collect();
        let saved = planned.edits.iter().map(|edit| (edit.before - edit.after).0).sum();
        let users = asked.iter().filter(|(seq, words)| text_on(&compiled, *seq).as_ref() == Some(words)).count();
        made.push(Made { saved, whole, users });
    }
    made
}

/// Whether a result stands whole; what stands there instead tells how to ask for it.
fn is_whole(compiled: &Compiled, seq: Seq, chars: usize) -> bool {
    let Some(text) = text_on(compiled, seq) else { return false };
    let is_whole = text.len() == chars;
    assert!(is_whole || text.contains(&format!("recto_expand m{}", seq.0)), "{text}");
    is_whole
}

/// The newest of so many results.
fn newest(of: usize, stay: usize) -> Vec<usize> {
    (of.saturating_sub(stay)..of).collect()
}

#[test]
fn the_newest_results_are_protected_by_what_they_cost() {
    let removing = |protect| Expire { protect: Tokens(protect), ..Expire::all(expiry(0, ExpiryAction::Remove)) };
    // One that has not been seen stays anyway; one that lies partly among the protected stays whole.
    for (protect, stay) in [(0, 1), (1, 1), (300, 1), (301, 2), (899, 3), (900, 3), (901, 4), (u64::MAX, 20)] {
        let policy = Policy::named("protecting").then(removing(protect)).immediately();
        for (at, made) in lived(policy, 20, 300).iter().enumerate() {
            assert_eq!(made.whole, newest(at + 1, stay), "protecting {protect}, call {at}");
        }
    }
}

#[test]
fn protect_40k_takes_old_results_in_batches_and_leaves_the_newest() {
    let all = lived(Policy::protect_40k(), 60, 5_000);
    let (mut batches, mut whole) = (0, Vec::new());
    for (at, made) in all.iter().enumerate() {
        whole.push(at);
        if made.saved > 0 {
            assert!(made.saved >= 20_000, "call {at}: {}", made.saved);
            whole = newest(at + 1, 8);
            batches += 1;
        }
        assert_eq!(made.whole, whole, "call {at}");
        // Four that could go save a little less than 20,000, for their stubs.
        assert!(whole.len() <= 8 + 4, "call {at}: {}", whole.len());
    }
    assert_eq!(batches, 10);
}

#[test]
fn clear_over_100k_takes_all_but_three_whenever_history_is_longer() {
    let all = lived(Policy::clear_over_100k(), 60, 5_000);
    let (mut batches, mut whole) = (0, Vec::new());
    for (at, made) in all.iter().enumerate() {
        whole.push(at);
        if made.saved > 0 {
            assert!(whole.len() == 20 || whole.len() == 21, "call {at}: {}", whole.len());
            // Three that the model has seen, and the one that it has not.
            whole = newest(at + 1, 4);
            batches += 1;
        }
        assert_eq!(made.whole, whole, "call {at}");
    }
    assert_eq!(batches, 3);
    assert!(lived(Policy::clear_over_100k(), 15, 5_000).iter().all(|made| made.saved == 0));
}

#[test]
fn mask_10_leaves_ten_results_at_every_call() {
    for (at, made) in lived(Policy::mask_10(), 40, 50).iter().enumerate() {
        assert_eq!(made.whole, newest(at + 1, 11), "call {at}");
    }
}

#[test]
fn presets_with_thresholds_never_touch_what_the_user_says() {
    let keeps = |policy: Policy| lived(policy, 40, 6_000).iter().enumerate().all(|(at, made)| made.users == at + 1);
    for name in ["protect_40k", "clear_over_100k", "mask_10"] {
        assert!(keeps(Policy::preset(name).unwrap()), "{name}");
    }
    let forgetful = Policy::named("forgetful").then(Recent::messages(6)).immediately();
    assert!(!keeps(forgetful), "a policy that does touch it is found out");
}
