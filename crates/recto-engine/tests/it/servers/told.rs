//! What one server does, another sees: sessions are taken by one of them at a time, pages go on where the other was.

use super::{address, open};
use crate::engine::block_on;
use recto::page::Mode;
use recto::target::Instructions;
use recto::{Entry, Policy, Seq, Target};
use recto_engine::store::postgres::Postgres;
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Remembering, Tenant};
use std::time::Duration;

const TURNS: u64 = 10;

fn at() -> At {
    At::new(&Tenant::default(), "talk")
}

fn call() -> Call {
    let target = Target::eval().remembering(Instructions::Replaced);
    let session = Some(Remembering::new("somebody", "folder", Duration::from_secs(600)));
    Call { session, ..Call::new("main", Policy::none(), target) }
}

fn answer(words: &str) -> Answer {
    Answer { entries: vec![Entry::assistant(words)], session: Some("s1".into()), ..Answer::default() }
}

async fn pair() -> [Engine<Postgres>; 2] {
    let address = address();
    let pair = [Engine::over(open(&address).await), Engine::over(open(&address).await)];
    pair[0].open(&at(), Opening::default()).await.unwrap();
    pair
}

#[test]
fn a_session_is_used_by_one_server_at_a_time_and_goes_on_at_the_other() {
    block_on(async {
        let pair = pair().await;
        for turn in 0..TURNS {
            let [one, other] = if turn.is_multiple_of(2) { [&pair[0], &pair[1]] } else { [&pair[1], &pair[0]] };
            one.append(&at(), Append::any([Entry::user(format!("words {turn}"))])).await.unwrap();
            let compiled = one.compile(&at(), &call()).await.unwrap();
            let places: Vec<u64> = compiled.page.messages.iter().filter_map(|it| it.seq).map(|seq| seq.0).collect();
            assert_eq!(places, [2 * turn], "only what is new is sent, whoever sent the rest");
            assert_eq!(compiled.page.mode == Mode::Full, turn == 0);
            let refused = other.compile(&at(), &call()).await.unwrap_err();
            assert!(refused.is_in_use(), "{refused}");
            one.acknowledge(&at(), &compiled.receipt.ticket, answer(&format!("answer {turn}"))).await.unwrap();
            let held = other.session(&at(), &"main".into(), "somebody").await.unwrap().expect("it was called");
            assert_eq!((held.session.acked(), held.id.as_deref()), (Some(Seq(2 * turn + 1)), Some("s1")));
        }
    });
}

#[test]
fn a_key_that_one_server_revokes_opens_nothing_at_another() {
    block_on(async {
        let [one, other] = pair().await;
        let (_, secret) = one.add_key("ci", &Tenant::default(), None).await.unwrap();
        assert!(other.authenticate(&secret).await.unwrap().is_some());
        one.revoke_key("ci").await.unwrap();
        assert!(other.authenticate(&secret).await.unwrap().is_none());
    });
}
