//! Two servers on one database, and clients that are answered by either, call by call.

use super::asking::{Answer, Client, Talk};
use super::said::{Said, repeated};
use super::world::{Between, World};
use recto::wire::Wire;
use recto_testkit::fake::Reply;
use std::sync::Barrier;

const TURNS: usize = 6;
/// How many talk at once.
const CLIENTS: usize = 4;

/// A world with two servers, and a client of each.
fn pair(policy: &'static str) -> (World, [Client; 2]) {
    let mut world = World::new(Between::OnPostgres(policy));
    let url = world.serve_another(policy);
    let one = Client::of(&world);
    let other = one.at(&url);
    (world, [one, other])
}

/// Says something, hears the answer, and goes on with the other server; returns the talk and the answers.
fn talks(clients: &[Client; 2], wire: Wire, name: &str) -> (Talk, Vec<Answer>) {
    let (mut talk, mut answers) = (Talk::new(wire), Vec::new());
    for turn in 0..TURNS {
        talk = talk.user(&format!("WORDS-{name}-{turn}."));
        let answer = clients[turn % 2].asks(&talk);
        talk = talk.heard(&answer);
        answers.push(answer);
    }
    (talk, answers)
}

#[test]
fn a_conversation_goes_on_at_whichever_server_is_asked() {
    for wire in Wire::CLIENTS {
        for policy in ["none", "safe"] {
            let (mut world, clients) = pair(policy);
            (0..TURNS).for_each(|turn| world.fake.push(Reply::default().text(&format!("ANSWER-{turn}."))));
            let (talk, answers) = talks(&clients, wire, "a");
            let names: Vec<String> = answers.iter().map(Answer::conversation).collect();
            assert!(names.iter().all(|name| *name == names[0]), "{wire}: recognised by what was said: {names:?}");
            assert_eq!(world.calls().len(), TURNS);
            let expected = Said::all(wire, &talk.body());
            assert_eq!(world.kept(), [expected], "{wire}: everything once, in order");
        }
    }
}

#[test]
fn of_clients_that_talk_at_once_to_both_servers_each_has_its_own_conversation() {
    let (mut world, clients) = pair("none");
    (0..CLIENTS * TURNS).for_each(|_| world.fake.push(Reply::default().text("The same answer.")));
    let barrier = Barrier::new(CLIENTS);
    let mut expected: Vec<Vec<Said>> = std::thread::scope(|scope| {
        let talking = |number: usize| {
            let (clients, barrier) = (&clients, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let (talk, _) = talks(clients, Wire::OpenaiChat, &number.to_string());
                Said::all(talk.wire, &talk.body())
            })
        };
        let talking: Vec<_> = (0..CLIENTS).map(talking).collect();
        talking.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let mut kept = world.kept();
    let key = |said: &Vec<Said>| format!("{said:?}");
    expected.sort_by_key(key);
    kept.sort_by_key(key);
    assert_eq!(kept, expected);
    // Each of them says the same answer again and again; the words of users are said once.
    let words: Vec<Said> = kept.concat().into_iter().filter(|it| matches!(it, Said::User(_))).collect();
    assert_eq!((words.len(), repeated(&words).len()), (CLIENTS * TURNS, 0));
}

/// The control: servers that don't share a store know nothing of each other's conversations.
#[test]
fn servers_on_stores_of_their_own_are_found_to_double() {
    let worlds = [(); 2].map(|()| World::new(Between::Recto("none")));
    for world in &worlds {
        (0..TURNS).for_each(|turn| world.fake.push(Reply::default().text(&format!("ANSWER-{turn}."))));
    }
    let clients = [Client::of(&worlds[0]), Client::of(&worlds[1])];
    let (_, answers) = talks(&clients, Wire::OpenaiChat, "a");
    let mut names: Vec<String> = answers.iter().map(Answer::conversation).collect();
    names.sort();
    names.dedup();
    assert!(names.len() > 1, "{names:?}");
}
