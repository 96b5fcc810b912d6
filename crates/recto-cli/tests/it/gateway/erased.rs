//! What a client gets whose conversation somebody erases, beside the server.

use super::asking::Talk;
use super::said::Said;
use super::which::world;
use recto::wire::Wire;
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{At, Engine, Forks, Tenant};
use recto_testkit::fake::{Gate, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How often a client asks while its conversation is erased again and again.
const TURNS: usize = 60;

#[test]
fn whoever_names_it_is_refused_and_others_begin_anew() {
    for wire in Wire::CLIENTS {
        let (world, client) = world(&["One.", "Two."]);
        let named = client.with("x-recto-conversation", "monday");
        let talk = Talk::new(wire).user("First.");
        let talk = talk.clone().heard(&named.asks(&talk)).user("Second.");
        world.run(&["erase", "monday", "--yes"]);
        let refused = named.asks(&talk);
        assert_eq!(refused.told(), (410, "erased"), "{}", refused.text());
        assert!(refused.text().contains("monday") && refused.text().contains("was erased"), "{}", refused.text());
        assert_eq!(world.calls().len(), 1, "nothing was sent");
        assert!(world.names().is_empty());
        let other = client.asks(&talk);
        assert_eq!((other.status, world.names()), (200, vec![other.conversation()]));
    }
}

#[test]
fn one_that_goes_while_it_is_answered_has_its_answer_and_no_record() {
    for wire in Wire::CLIENTS {
        let (mut world, client) = world(&["One."]);
        let talk = Talk::new(wire).user("First.");
        let first = client.asks(&talk);
        let talk = talk.heard(&first).user("Second.");
        let gate = Gate::default();
        world.fake.push(Reply::default().text("Two.").waiting_after(3, &gate));
        let coming = client.streams(&talk);
        gate.reached();
        world.run(&["erase", &first.conversation(), "--yes"]);
        gate.open();
        assert_eq!(coming.whole().status, 200);
        client.until("recto_requests_in_flight", 1);
        assert!(client.metrics().contains("\nrecto_unrecorded_total 0\n"), "{}", client.metrics());
        assert!(world.names().is_empty());
        // The client knows nothing of that, and goes on.
        world.fake.push(Reply::default().text("Three."));
        let next = client.asks(&talk.user("Third."));
        assert_eq!(next.status, 200, "{}", next.text());
        assert_eq!(world.names(), [next.conversation()]);
        let said = world.said(&next.conversation());
        assert_eq!(said.last(), Some(&Said::Assistant("Three.".into())));
        world.stop();
    }
}

#[test]
fn one_that_goes_under_the_hands_of_its_client_is_begun_anew() {
    let (world, client) = world(&[]);
    let (is_over, store) = (Arc::new(AtomicBool::new(false)), world.folder.at("kept.db"));
    let erasing = thread::spawn({
        let is_over = is_over.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (engine, tenant) = (Engine::over(Sqlite::open(store).unwrap()), Tenant::default());
                let mut erased = 0;
                while !is_over.load(Ordering::SeqCst) {
                    for it in engine.list(&tenant, None, 100).await.unwrap() {
                        let at = At { tenant: tenant.clone(), conversation: it.id };
                        engine.erase(&at, Forks::Erase).await.unwrap();
                        erased += 1;
                    }
                }
                erased
            })
        }
    });
    let mut talk = Talk::new(Wire::OpenaiChat);
    for nth in 0..TURNS {
        world.fake.push(Reply::default().text(&format!("Answer {nth}.")));
        talk = talk.user(&format!("Question {nth}."));
        let answer = client.asks(&talk);
        assert_eq!(answer.status, 200, "{}", answer.text());
        talk = talk.heard(&answer);
    }
    is_over.store(true, Ordering::SeqCst);
    assert!(erasing.join().unwrap() > 1);
    assert_eq!(world.calls().len(), TURNS);
    world.run(&["doctor"]);
}
