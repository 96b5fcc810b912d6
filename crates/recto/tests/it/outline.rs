//! A body in outline agrees with the body decoded, and no body makes it stumble.

use crate::chain::{list, model, odd, read, said, written};
use crate::fuzz::damaged;
use expect_test::expect;
use recto::wire::Ending;
use recto::{Entry, Role, Wire, transcript};
use recto_testkit::mixed::Dice;
use recto_testkit::shared;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const BODIES: u64 = 300;
const DAMAGED: usize = 4_000;
/// How many of the shared conversations are looked at.
const CONVERSATIONS: usize = 40;

/// Whatever decoding a body finds, its outline finds.
fn agrees(wire: Wire, body: &str) {
    let decoded = wire.decode(body).unwrap();
    let outline = wire.outline(body).unwrap_or_else(|error| panic!("{error}\n{body}"));
    assert_eq!(outline.model.as_deref(), decoded.model.as_deref(), "{body}");
    let tools: Vec<&RawValue> = outline.tools.map(|raw| serde_json::from_str(raw).unwrap()).unwrap_or_default();
    // Functions come in groups there.
    assert!(tools.len() == decoded.tools.len() || wire == Wire::Gemini, "{body}");
    let extra = |name: &str| decoded.extra.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let is_streaming = match wire {
        Wire::Ollama => decoded.extra.get("stream") != Some(&Value::Bool(false)),
        _ => decoded.extra.get("stream") == Some(&Value::Bool(true)),
    };
    assert_eq!(outline.is_streaming, is_streaming, "{body}");
    if matches!(wire, Wire::OpenaiChat | Wire::OpenaiResponses) {
        assert_eq!(outline.session.as_deref(), extra("prompt_cache_key"), "{body}");
    }
    if wire == Wire::OpenaiResponses {
        assert_eq!(outline.previous.as_deref(), extra("previous_response_id"), "{body}");
    }
    if wire == Wire::OpenaiChat {
        assert_eq!(outline.elements.len(), decoded.entries.len(), "{body}");
        assert_eq!(outline.read_from(0).unwrap().marks, decoded.marks, "{body}");
    }
    let is_within = |raw: &&str| body.as_bytes().as_ptr_range().contains(&raw.as_ptr());
    assert!(outline.elements.iter().all(is_within) && outline.instructions.iter().all(is_within));
    // Reasoning is bound to what stands before it only where all of it was read.
    let unbound = |entries: &[Entry]| serde_json::to_string(entries).unwrap();
    let read = read(wire, body, 0);
    assert_eq!(said(&read), said(&decoded.entries), "{body}");
    if !unbound(&decoded.entries).contains("\"prefix\"") {
        assert_eq!(read, decoded.entries, "{body}");
    }
}

#[test]
fn an_outline_agrees_with_the_body_decoded() {
    for wire in Wire::ALL {
        for seed in 0..BODIES {
            let mut dice = Dice::new(seed);
            let body = odd(wire, &mut dice);
            agrees(wire, &body);
            let outline = wire.outline(&body).unwrap();
            let value: Value = serde_json::from_str(&body).unwrap();
            let elements: Vec<Value> = outline.elements.iter().map(|raw| serde_json::from_str(raw).unwrap()).collect();
            assert_eq!(value[list(wire)], Value::from(elements));
            assert_eq!(outline.model.as_deref(), Some(model(wire)).filter(|_| wire != Wire::Gemini));
            let at = dice.below(outline.elements.len() + 1);
            assert_eq!(said(&read(wire, &body, at)), said(&read(wire, &body, 0)), "{wire}, seed {seed}, at {at}");
        }
    }
}

#[test]
fn an_outline_agrees_on_real_conversations() {
    let Some(folder) = shared::folder("data/conversations", "outlines of real conversations") else { return };
    let files = shared::jsonl(&folder);
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let all = texts.flat_map(|text| transcript::read(&text).unwrap()).take(CONVERSATIONS);
    for (at, conversation) in all.enumerate() {
        let wire = Wire::ALL[at % Wire::ALL.len()];
        agrees(wire, &written(wire, conversation.entries, None));
    }
}

#[test]
fn of_a_field_given_twice_the_last_counts() {
    let message = r#"{"role":"user","content":"a"}"#;
    for wire in Wire::ALL {
        let list = list(wire);
        // Gemini knows no other.
        let second = if wire == Wire::Gemini { "model" } else { "system" };
        for body in [
            format!(r#"{{"{list}":[],"model":"a","{list}":[{message}],"model":"b"}}"#),
            format!(r#"{{"{list}":[{message}],"{list}":[]}}"#),
            format!(r#"{{"{list}":7,"{list}":[{message}],"stream":false,"stream":true}}"#),
            format!(r#"{{"{list}":[{{"role":"user","role":"{second}","content":"a"}}]}}"#),
            format!(r#"{{"\u00{:02x}{}":[{message}],"m\u006fdel":"\u0061\ud800"}}"#, list.as_bytes()[0], &list[1..]),
            format!(r#"{{"\ud800":1,"{list}":[{{"role":"user","content":"\ud800"}}],"prompt_cache_key":"\udc00x"}}"#),
            format!(r#" {{ "{list}" : [ {message} , {message} ] , "model" : null , "tools" : null }} "#),
            "{}".to_string(),
        ] {
            agrees(wire, &body);
        }
    }
    for body in [r#"{"input":null}"#, r#"{"input":"a\"b","instructions":"x"}"#, r#"{"input":7,"input":"a\ud800"}"#] {
        agrees(Wire::OpenaiResponses, body);
    }
    let twice = r#"{"messages":[{"role":"user","role":"system","content":"a"},{"content":"b","role":"user"}]}"#;
    assert_eq!(Wire::OpenaiChat.outline(twice).unwrap().leading, 1);
}

#[test]
fn marks_of_sessions_and_of_the_provider_are_found() {
    let found = |wire: Wire, body: &Value| {
        let text = body.to_string();
        let outline = wire.outline(&text).unwrap();
        format!("{:?} {:?} {:?} {:?}", outline.session, outline.previous, outline.held_by, outline.instructions)
    };
    let body = json!({"prompt_cache_key": "k", "metadata": {"user_id": "u\n"}, "previous_response_id": "resp_1",
        "conversation": {"id": "conv_1"}, "system": [], "instructions": "x"});
    let plain = json!({"prompt_cache_key": 7, "metadata": {"user_id": ""}, "conversation": "conv_2",
        "previous_response_id": null, "system": null, "instructions": null});
    let rows = Wire::ALL.map(|wire| format!("{wire}: {}\n{wire}: {}\n", found(wire, &body), found(wire, &plain)));
    expect![[r#"
        openai_chat: Some("k") None None None
        openai_chat: None None None None
        openai_responses: Some("k") Some("resp_1") Some("conv_1") Some("\"x\"")
        openai_responses: None None Some("conv_2") None
        anthropic: Some("u\n") None None Some("[]")
        anthropic: None None None None
        gemini: None None None None
        gemini: None None None None
        ollama: None None None None
        ollama: None None None None
    "#]]
    .assert_eq(&rows.concat());
}

#[test]
fn leading_instructions_are_counted() {
    let leading = |wire: Wire, elements: Value| {
        let text = json!({list(wire): elements}).to_string();
        wire.outline(&text).unwrap().leading
    };
    let of = |role: &str| json!({"role": role, "content": "a"});
    let roles = json!([of("system"), of("developer"), of("user"), of("system")]);
    assert_eq!(Wire::ALL.map(|wire| leading(wire, roles.clone())), [2, 2, 0, 0, 2]);
    let items =
        json!([{"type": "message", "role": "developer", "content": []}, {"type": "reasoning", "role": "system"}]);
    assert_eq!(leading(Wire::OpenaiResponses, items), 1);
    assert_eq!(leading(Wire::OpenaiChat, json!([7, of("system")])), 0);
    assert_eq!(leading(Wire::OpenaiResponses, json!("text")), 0);
}

#[test]
fn what_is_no_body_is_refused_where_it_is_wrong() {
    let wrong = |wire: Wire| {
        let list = list(wire);
        let bodies = [
            String::new(),
            "[]".to_string(),
            format!("{{\n \"{list}\": 7}}"),
            format!("{{\"{list}\": [{{\"role\": \"user\"}}"),
            format!("{{\"{list}\": []}} x"),
            format!("{{\"{list}\": [\"\t\"]}}"),
            format!("{{\"{list}\": [], \"model\": 7}}"),
            format!("{{\"{list}\": {{}}, \"model\": \"a\"}}"),
        ];
        let told = |body: &String| match wire.outline(body) {
            Err(error) => format!("{error}\n"),
            Ok(outline) => panic!("{outline:?}"),
        };
        bodies.iter().map(told).collect::<String>()
    };
    expect![[r#"
        line 1, column 1: EOF while parsing a value
        line 1, column 1: invalid type: sequence, expected an object
        line 2, column 14: messages: invalid type: integer `7`, expected a sequence
        line 1, column 30: EOF while parsing a list
        line 1, column 18: trailing characters
        line 1, column 15: control character (\u0000-\u001F) found while parsing a string
        line 1, column 27: model: invalid type: integer `7`, expected a string
        line 1, column 14: messages: invalid type: map, expected a sequence
    "#]]
    .assert_eq(&wrong(Wire::OpenaiChat));
    assert_eq!(wrong(Wire::Anthropic), wrong(Wire::OpenaiChat));
    expect![[r#"
        line 1, column 1: EOF while parsing a value
        line 1, column 1: invalid type: sequence, expected an object
        line 2, column 11: input: invalid type: integer `7`, expected a sequence
        line 1, column 27: EOF while parsing a list
        line 1, column 15: trailing characters
        line 1, column 12: control character (\u0000-\u001F) found while parsing a string
        line 1, column 24: model: invalid type: integer `7`, expected a string
        line 1, column 11: input: invalid type: map, expected a sequence
    "#]]
    .assert_eq(&wrong(Wire::OpenaiResponses));
    assert!(Wire::OpenaiChat.outline(r#"{"messages": null}"#).is_err());
}

#[test]
fn a_mistake_in_an_element_is_told_where_it_stands_in_the_body() {
    let body = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"},\n {\"role\": \"user\", \"content\": 7}]}";
    for wire in [Wire::OpenaiChat, Wire::Anthropic] {
        let error = wire.outline(body).unwrap().read_from(1).unwrap_err();
        assert_eq!(error.to_string(), wire.decode(body).unwrap_err().to_string());
        assert_eq!(error.place().map(|place| (place.line, place.column)), Some((2, 30)), "{error}");
    }
}

#[test]
fn outlines_survive_damage() {
    for wire in Wire::ALL {
        let mut dice = Dice::new(wire as u64 + 40);
        let bodies: Vec<String> = (0..20).map(|_| odd(wire, &mut dice)).collect();
        let (mut good, mut bad) = (0, 0);
        for _ in 0..DAMAGED {
            let seed = dice.pick(&bodies);
            let body = damaged(seed, &mut dice);
            if wire.decode(&body).is_ok() {
                agrees(wire, &body);
                good += 1;
            } else if let Ok(outline) = wire.outline(&body) {
                let at = dice.below(outline.elements.len() + 2);
                if let Ok(read) = outline.read_from(at) {
                    said(&read.entries);
                }
                bad += 1;
            }
        }
        assert!(good > DAMAGED / 50 && bad > DAMAGED / 100, "{wire}: {good} bodies can be read, {bad} can't");
    }
}

#[test]
fn an_output_is_the_same_whether_its_call_was_read_with_it_or_not() {
    let call = json!({"type": "local_shell_call", "id": "ls_1", "call_id": "a", "status": "completed",
        "action": {"type": "exec", "command": ["ls"]}});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "a.txt"});
    let body =
        json!({"input": [{"role": "user", "content": "Look."}, call, output, {"role": "user", "content": "So?"}]});
    let body = body.to_string();
    let outline = Wire::OpenaiResponses.outline(&body).unwrap();
    let whole = Wire::OpenaiResponses.decode(&body).unwrap().entries;
    // With what stands before it, it is read as in the whole body; alone, it is a result; its atom is one.
    let behind = outline.read_from(2).unwrap();
    let alone = Wire::OpenaiResponses.read_elements(&outline.elements[2..], None).unwrap();
    assert_eq!(behind.entries, whole[2..]);
    assert_eq!((behind.entries[0].role, alone.entries[0].role), (Role::User, Role::Tool));
    assert_eq!(said(&behind.entries), said(&alone.entries));
}

/// Outlines a body by one that may begin the same, and returns whether it could be.
fn agrees_behind(wire: Wire, before: &str, body: &str) -> bool {
    let Some(layout) = wire.outline(before).unwrap().layout() else { return false };
    let same = before.bytes().zip(body.bytes()).take_while(|(one, other)| one == other).count();
    let elements = layout.elements().partition_point(|element| element.end <= same);
    let Some(start) = layout.elements()[..elements].last().map(|last| last.end) else { return false };
    let is_same = body.as_bytes()[start..].ends_with(before[layout.ending()].as_bytes());
    let endings = if is_same { vec![Ending::Same, Ending::Other] } else { vec![Ending::Other] };
    let outlined = endings.into_iter().filter_map(|ending| layout.outline(body, elements, ending));
    let outlined: Vec<String> = outlined.map(|outline| format!("{outline:?}")).collect();
    for outline in &outlined {
        assert_eq!(*outline, format!("{:?}", wire.outline(body).unwrap()), "{before}\n{body}");
    }
    !outlined.is_empty()
}

#[test]
fn a_body_that_begins_the_same_is_outlined_the_same() {
    let endings = [
        "]}",
        " ] , \"model\" : \"other\" , \"tools\":[{\"a\":[]}],\"n\":1 } ",
        "],\"stream\":true,\"strea\\u006d\":false,\"x\":[[]]}",
        "],\"metadata\":{\"user_id\":\"u\"},\"system\":\"s\",\"instructions\":null,\"prompt_cache_key\":\"k\"}",
    ];
    for wire in Wire::ALL {
        let (mut behind, mut damages) = (0, 0);
        for seed in 0..BODIES {
            let mut dice = Dice::new(seed + 9_000);
            let before = odd(wire, &mut dice);
            let layout = wire.outline(&before).unwrap().layout().unwrap();
            let (said, ending) = before.split_at(layout.ending().start);
            let message = &before[dice.pick(layout.elements()).clone()];
            for ending in endings.into_iter().chain([ending]) {
                for more in [String::new(), format!(",{message}"), format!(" , {message}\n,\t{message} ")] {
                    let body = format!("{said}{more}{ending}");
                    assert!(agrees_behind(wire, &before, &body), "{body}");
                    // What was found by another is as good as what was found alone.
                    agrees_behind(wire, &body, &format!("{said}{more},{message}{ending}"));
                    damages += usize::from(agrees_behind(wire, &body, &damaged(&body, &mut dice)));
                }
            }
            behind += 1;
            for wrong in ["", "]", "],}", ",]}", "]}}", "] x}", "],\"a\"}", "],\"a\":1,}", "],1:2}", "]}]"] {
                assert!(!agrees_behind(wire, &before, &format!("{said}{wrong}")), "{wrong}");
            }
            // Another list is the one that counts, wherever it stands.
            let list = list(wire);
            agrees_behind(wire, &before, &format!("{said}],\"{list}\":[{message}]}}"));
            agrees_behind(wire, &before, &format!("{said}],\"{list}\":7}}"));
            let twice = format!("{{\"{list}\":[{message}],\"{list}\":[{message},{message}],\"model\":\"b\"}}");
            assert!(agrees_behind(wire, &twice, &twice.replace("\"b\"", "\"c\"")));
        }
        assert!(damages > behind, "{wire}: {damages}");
    }
}

#[test]
fn plain_messages_are_read_as_others_are() {
    // A field that says nothing makes a message one that is read field by field.
    let odd_one = |element: &str| element.replacen('{', "{\"zz\":null,", 1);
    let (mut dice, mut good) = (Dice::new(77), 0);
    let texts = [
        r#"{"role":"user","content":"a\n\u00e9","name":"x"}"#,
        r#"{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}"#,
        r#"{"role":"assistant","content":null,"refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":
            [{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g"}}]}"#,
        r#"{"role":"assistant","content":"","reasoning_content":"hm","reasoning":null,"refusal":"","tool_calls":null}"#,
        r#"{"role":"tool","tool_call_id":"a","content":"done","name":null}"#,
        r#"{"role":"tool","tool_call_id":"a","content":[{"text":"a","type":"text"}]}"#,
        r#"{"role":"user","content":"","tool_call_id":null,"tool_calls":[]}"#,
        r#"{"role":{"user":null},"content":"a"}"#,
        r#"{"role":"assistant","tool_calls":[["a","function",["f","{}"]]]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"a","function":["f","{}"]}]}"#,
        r#"{"role":"user","content":[["text","a"]]}"#,
    ];
    let bodies: Vec<String> = (0..40).map(|_| odd(Wire::OpenaiChat, &mut dice)).collect();
    let mut elements: Vec<String> = texts.map(str::to_string).to_vec();
    for body in &bodies {
        elements.extend(Wire::OpenaiChat.outline(body).unwrap().elements.iter().map(ToString::to_string));
    }
    let damage = |_| {
        let element: &String = dice.pick(&elements);
        damaged(element, &mut dice)
    };
    let damages: Vec<String> = (0..DAMAGED).map(damage).collect();
    let splices = (0..DAMAGED).map(|_| {
        let (one, other): (&String, &String) = (dice.pick(&elements), dice.pick(&elements));
        let cut =
            |text: &str, dice: &mut Dice| text.match_indices(',').nth(dice.below(6)).map_or(text.len(), |it| it.0);
        let (at, from) = (cut(one, &mut dice), cut(other, &mut dice));
        format!("{}{}", &one[..at], &other[from..])
    });
    let splices: Vec<String> = splices.collect();
    for element in elements.iter().chain(&damages).chain(&splices) {
        let read = |element: &str| Wire::OpenaiChat.read_elements(&[element], None).ok();
        let (plain, by_field) = (read(element), read(&odd_one(element)));
        if serde_json::from_str::<Value>(element).is_ok() && !element.contains("\\u") {
            assert_eq!(plain, by_field, "{element}");
            good += usize::from(plain.is_some());
        }
        let reply = |element: &str| {
            let body = format!(r#"{{"id":"x","choices":[{{"index":0,"message":{element},"finish_reason":"stop"}}]}}"#);
            Wire::OpenaiChat.decode_reply(&body).ok()
        };
        if element.starts_with('{') {
            assert_eq!(reply(element), reply(&odd_one(element)), "{element}");
        }
    }
    assert!(good > 1_000, "{good}");
    assert!(Wire::OpenaiChat.read_elements(&[r#"["user","hi"]"#], None).is_err(), "a list is no message");
}
