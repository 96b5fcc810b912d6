//! Agents written with frameworks: seven calls with tools, with whole answers and with streams, straight to the
//! provider and through Recto. `RECTO_FRAMEWORKS_PYTHON` is a Python that has LangChain, the OpenAI Agents SDK and
//! Pydantic AI, `RECTO_FRAMEWORKS_NODE` the `node_modules` that has the Vercel AI SDK. A framework takes long to load,
//! so one process has all talks, each in a world of its own.

use super::clients::{Language, Mode, WORDS, check_kept, check_sent, plan, program, script, told};
use super::world::{Between, World};
use recto::wire::Wire;
use serde_json::{Value, json};

/// Each mode without Recto and with it, and once more under the policy that holds if nobody chooses one.
const TALKS: [(Mode, Between); 5] = [
    (Mode::Whole, Between::Nothing),
    (Mode::Whole, Between::Recto("none")),
    (Mode::Streams, Between::Nothing),
    (Mode::Streams, Between::Recto("none")),
    (Mode::Streams, Between::Recto("safe")),
];
/// How many calls a talk has.
const CALLS: usize = 7;

/// A talk, and everything that the agent saw in it.
struct Talk {
    wire: Wire,
    mode: Mode,
    between: Between,
    world: World,
    saw: Vec<Value>,
}

/// Has all talks over these wires; `None` if the packages are not there.
fn talk(language: Language, framework: &str, wires: &[Wire]) -> Option<Vec<Talk>> {
    let (variable, file) = match language {
        Language::Python => ("RECTO_FRAMEWORKS_PYTHON", "frameworks.py"),
        Language::Node => ("RECTO_FRAMEWORKS_NODE", "frameworks.mjs"),
    };
    let home = crate::run::Folder::new();
    let command = program(language, variable, file, &home.path)?;
    let begun = wires.iter().flat_map(|wire| TALKS.map(|(mode, between)| (*wire, mode, between)));
    let mut talks: Vec<Talk> = begun
        .map(|(wire, mode, between)| {
            let world = World::new(between);
            script().into_iter().for_each(|reply| world.fake.push(reply));
            Talk { wire, mode, between, world, saw: Vec::new() }
        })
        .collect();
    let plans: Vec<Value> = talks.iter().map(|it| plan(it.wire, it.mode, &it.world)).collect();
    let output = told(command, &json!({"framework": framework, "talks": plans}));
    let refused: Vec<_> = talks.iter().flat_map(|it| it.world.fake.log()).filter_map(|it| it.refusal).collect();
    assert!(output.status.success(), "{framework}: {} {refused:#?}", String::from_utf8_lossy(&output.stderr));
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let mut saw: Value = serde_json::from_str(line).unwrap();
        let number = saw["talk"].take().as_u64().unwrap() as usize;
        talks[number].saw.push(saw);
    }
    Some(talks)
}

/// What all frameworks must find: through Recto it is as without it, and what was said is kept once.
fn check(language: Language, framework: &str, wires: &[Wire]) {
    let Some(talks) = talk(language, framework, wires) else { return };
    let mut direct: Option<Talk> = None;
    for talk in talks {
        let what = format!("{framework} {} {:?} {:?}", talk.wire, talk.mode, talk.between);
        let calls = talk.world.calls();
        assert_eq!(calls.len(), CALLS, "{what}");
        assert!(talk.saw.len() >= CALLS, "{what}: {:#?}", talk.saw);
        let heard = serde_json::to_string(&talk.saw).unwrap();
        (0..CALLS)
            .filter(|at| ![1, 3].contains(at))
            .for_each(|at| assert!(heard.contains(&format!("ANSWER-{at}.")), "{what}"));
        let sent = calls.last().unwrap().request.json().to_string();
        WORDS.iter().for_each(|words| assert!(sent.contains(&words[..8]), "{what}: it goes on from what was said"));
        match talk.between {
            Between::Nothing => direct = Some(talk),
            Between::Recto("none") => {
                let direct = direct.as_ref().expect("it comes first");
                assert_eq!(direct.saw, talk.saw, "{what}: it sees what it sees without Recto");
                check_sent(&what, &direct.world.calls(), &calls);
                check_kept(talk.wire, &calls, talk.world);
            }
            _ => {
                let direct = direct.as_ref().expect("it comes first");
                assert_eq!(direct.saw.len(), talk.saw.len(), "{what}: it sees as much");
                check_kept(talk.wire, &calls, talk.world);
            }
        }
    }
}

#[test]
fn an_agent_of_langchain_sees_what_it_would_without_recto() {
    check(Language::Python, "langchain", &Wire::CLIENTS);
}

#[test]
fn an_agent_of_openai_agents_sees_what_it_would_without_recto() {
    check(Language::Python, "openai_agents", &[Wire::OpenaiChat, Wire::OpenaiResponses]);
}

#[test]
fn an_agent_of_pydantic_ai_sees_what_it_would_without_recto() {
    check(Language::Python, "pydantic_ai", &Wire::CLIENTS);
}

#[test]
fn an_agent_of_the_vercel_ai_sdk_sees_what_it_would_without_recto() {
    check(Language::Node, "vercel", &Wire::CLIENTS);
}
