//! What a call does, told from its name and arguments: of common agents, by a policy's own rules, and on real calls.

use expect_test::{Expect, expect};
use recto::entry::Call;
use recto::tool_use::{Deed, Rule, ToolUse, recognise, uses};
use recto::transcript;
use recto_testkit::mixed::{Dice, text};
use recto_testkit::shared;
use std::collections::BTreeMap;

/// What each call does, line by line: `TOOL ARGUMENTS`.
#[track_caller]
fn check(calls: &str, expected: Expect) {
    let lines = calls.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
        let (name, arguments) = line.split_once(' ').unwrap();
        let told: Vec<String> = uses(&Call::new("c", name, arguments), &[]).iter().map(told).collect();
        format!("{name}: {}\n", if told.is_empty() { "unknown".into() } else { told.join(", ") })
    });
    expected.assert_eq(&lines.collect::<String>());
}

fn told(it: &ToolUse) -> String {
    let target = it.target.as_deref().unwrap_or("?");
    let part = match it.range {
        Some((first, last)) => format!(" {first}–{last}"),
        None if it.is_whole => String::new(),
        None => " (in part)".into(),
    };
    format!("{:?} {target}{part}", it.deed)
}

#[test]
fn the_tools_of_common_agents_are_known() {
    check(
        r#"
        Read {"file_path":"/w/a.rs"}
        Read {"file_path":"/w/a.rs","offset":100,"limit":50}
        Read {"file_path":"/w/a.rs","limit":50}
        Read {"file_path":"/w/a.rs","offset":"7"}
        Read {"file_path":"/w/a.rs","offset":null}
        Write {"file_path":"/w/a.rs","content":"x"}
        Edit {"file_path":"/w/a.rs","old_string":"x","new_string":"y"}
        MultiEdit {"file_path":"/w/a.rs","edits":[]}
        NotebookEdit {"notebook_path":"/w/a.ipynb","new_source":""}
        Grep {"pattern":"x","path":"src"}
        Glob {"pattern":"**/*.rs"}
        LS {"path":"/w"}
        shell {"command":["bash","-lc","cat src/a.rs"],"workdir":"/w"}
        shell {"command":["sed","-n","1,20p","a b.rs"]}
        apply_patch {"input":"*** Begin Patch\n*** Update File: a.rs\n@@\n*** Add File: b.rs\n+x\n*** End Patch"}
        str_replace_editor {"command":"view","path":"/w/a.rs","view_range":[5,-1]}
        str_replace_editor {"command":"create","path":"/w/a.rs","file_text":""}
        str_replace_editor {"command":"str_replace","path":"/w/a.rs"}
        execute_bash {"command":"cargo test"}
        read_file {"absolute_path":"/w/a.rs"}
        read_file {"path":"a.rs","start_line":3,"end_line":9}
        write_to_file {"path":"a.rs","content":""}
        write_file {"path":"a.rs","content":"","mode":"append"}
        replace_in_file {"path":"a.rs","diff":""}
        run_shell_command {"command":"ls -la src"}
        execute_command {"command":"git status"}
        open {"path":"src/a.rs","line_number":1474}
        functions.exec_command {"cmd":"rg -n \"a|b\" src","workdir":"/w"}
        mcp__fs__read_text_file {"path":"a.rs"}
        execute-tool {"server_name":"s","tool_name":"write_file","params":{"path":"a","content":""}}
        get_user_details {"user_id":"u"}
        "#,
        expect![[r#"
            Read: Read /w/a.rs
            Read: Read /w/a.rs 100–149
            Read: Read /w/a.rs 1–50
            Read: Read /w/a.rs 7–2006
            Read: Read /w/a.rs
            Write: Write /w/a.rs
            Edit: Edit /w/a.rs (in part)
            MultiEdit: Edit /w/a.rs (in part)
            NotebookEdit: Edit /w/a.ipynb (in part)
            Grep: Search src
            Glob: Search ?
            LS: Search /w
            shell: Read /w/src/a.rs
            shell: Read a b.rs 1–20
            apply_patch: Edit a.rs (in part), Write b.rs
            str_replace_editor: Read /w/a.rs 5–4294967295
            str_replace_editor: Write /w/a.rs
            str_replace_editor: Edit /w/a.rs (in part)
            execute_bash: Run cargo test
            read_file: Read /w/a.rs
            read_file: Read a.rs 3–9
            write_to_file: Write a.rs
            write_file: Write a.rs (in part)
            replace_in_file: Edit a.rs (in part)
            run_shell_command: Search src
            execute_command: Run git status
            open: Read src/a.rs (in part)
            functions.exec_command: Search /w/src
            mcp__fs__read_text_file: Read a.rs
            execute-tool: Write a
            get_user_details: Search ?
        "#]],
    );
}

#[test]
fn commands_that_plainly_look_are_looked_into_and_no_others() {
    let commands = [
        "cat a.rs",
        "cat -n ./src//a.rs 2>/dev/null",
        "cat a.rs b.rs",
        "cat a.rs && rm a.rs",
        "cat $FILE",
        "cat *.rs",
        "cat a.rs | grep x",
        "cat a.rs | head -n 5",
        "nl -ba 'a b.rs' | sed -n '10,20p'",
        "cd /w && cd src && sed -n '1,$p' a.rs",
        "sed -n '5p' a.rs",
        "sed -i 's/a/b/' a.rs",
        "head -40 a.rs",
        "head a.rs",
        "tail -n 5 a.rs",
        "grep -rn \"a\\|b\" --include=*.rs src | head -20",
        "find . -name '*.rs'",
        "git status --short",
        "cat > a.rs <<'EOF'\nx\nEOF",
        "cat <<EOF > a.rs\nx\nEOF",
        "cat > a.rs <<'EOF'\nx\nEOF\ncargo test",
        "cat >> a.rs <<'EOF'\nx\nEOF",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a.rs\n*** End Patch\nEOF",
        "echo 'cat a.rs'",
        "",
        "'",
    ];
    let lines = commands.map(|command| {
        let arguments = serde_json::json!({ "command": command }).to_string();
        let told: Vec<String> = uses(&Call::new("c", "Bash", arguments), &[]).iter().map(told).collect();
        format!("{}\n", told.join(", ").replace('\n', "⏎"))
    });
    expect![[r#"
        Read a.rs
        Read src/a.rs
        Run cat a.rs b.rs
        Run cat a.rs && rm a.rs
        Run cat $FILE
        Run cat *.rs
        Run cat a.rs | grep x
        Read a.rs 1–5
        Read a b.rs 10–20
        Run cd /w && cd src && sed -n '1,$p' a.rs
        Read a.rs 5–5
        Run sed -i 's/a/b/' a.rs
        Read a.rs 1–40
        Read a.rs 1–10
        Read a.rs (in part)
        Search src (in part)
        Search .
        Run git status --short
        Write a.rs
        Write a.rs
        Run cat > a.rs <<'EOF'⏎x⏎EOF⏎cargo test
        Run cat >> a.rs <<'EOF'⏎x⏎EOF
        Edit a.rs (in part)
        Run echo 'cat a.rs'

        Run '
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn the_same_wish_is_the_same_however_it_is_made() {
    let same = |name: &str, arguments: &str| recognise(&Call::new("c", name, arguments), &[]).unwrap().same;
    let status = same("Bash", r#"{"command":"git status","description":"Look"}"#);
    assert_eq!(status, same("shell", r#"{"timeout":5,"command":["bash","-lc","git status"]}"#));
    assert_eq!(status, same("bash", r#"{"command":"git status\n"}"#));
    assert_ne!(status, same("Bash", r#"{"command":"git status","workdir":"/w"}"#));
    assert_ne!(status, same("Bash", r#"{"command":"git status --short"}"#));
    let found = same("Grep", r#"{"pattern":"x","path":"src","-n":true}"#);
    assert_eq!(found, same("Grep", r#"{"-n":true,"path":"src","pattern":"x"}"#));
    assert_ne!(found, same("Grep", r#"{"pattern":"x","path":"src"}"#));
}

#[test]
fn a_rule_makes_an_unknown_tool_known_and_a_known_one_something_else() {
    let rule = |tool: &str, does, target: &str| Rule {
        tool: tool.into(),
        does,
        target: Some(target.into()),
        whole_unless: vec!["page".into()],
        with: BTreeMap::new(),
    };
    let call = Call::new("c", "acme__show_v2", r#"{"doc":"a.txt"}"#);
    assert_eq!(recognise(&call, &[]), None);
    let rules = [rule("acme__*", Deed::Read, "file|doc"), rule("Read", Deed::Other, "file_path")];
    assert_eq!(told(&recognise(&call, &rules).unwrap()), "Read a.txt");
    let page = Call::new("c", "acme__show_v2", r#"{"doc":"a.txt","page":2}"#);
    assert_eq!(told(&recognise(&page, &rules).unwrap()), "Read a.txt (in part)");
    let read = Call::new("c", "Read", r#"{"file_path":"a"}"#);
    assert_eq!(recognise(&read, &rules).unwrap().deed, Deed::Other);
    assert_eq!(recognise(&Call::new("c", "acme__show_v2", r#"{"page":2}"#), &rules), None);
}

#[test]
fn odd_arguments_are_no_use_and_no_panic() {
    for arguments in ["", "not JSON", "[1,2]", "{\"file_path\":", "{}", "{\"file_path\":7}", "{\"command\":[]}"] {
        for name in ["Read", "Bash", "shell", "apply_patch", "execute-tool", "str_replace_editor"] {
            assert_eq!(recognise(&Call::new("c", name, arguments), &[]), None, "{name} {arguments}");
        }
    }
    let mut dice = Dice::new(7);
    for _ in 0..5_000 {
        let word = text(&mut dice);
        let odd = serde_json::json!({ "command": *word, "file_path": *word, "view_range": [*word, -7], "limit": -1 });
        for name in ["Read", "Bash", "apply_patch", "str_replace_editor", "", "__", "mcp__"] {
            drop(uses(&Call::new("c", name, odd.to_string()), &[]));
        }
    }
}

/// Nine of ten calls of coding agents are recognised, and the rest are calls that nothing follows from.
#[test]
fn real_calls_are_known() {
    let Some(folder) = shared::folder("data/conversations", "tool calls of real conversations") else { return };
    let (mut known, mut unknown) = (0, BTreeMap::<String, usize>::new());
    for file in shared::jsonl(&folder) {
        for conversation in transcript::read(&std::fs::read_to_string(&file).unwrap()).unwrap() {
            for call in conversation.entries.iter().flat_map(|entry| entry.calls()) {
                match recognise(call, &[]) {
                    Some(_) => known += 1,
                    None => *unknown.entry(call.name.to_string()).or_default() += 1,
                }
            }
        }
    }
    let missed: usize = unknown.values().sum();
    assert!(known > 9 * missed / 2, "{known} known, {unknown:?} not");
    for name in ["Read", "Bash", "bash", "read", "exec_command", "shell", "Edit", "Write", "Grep", "apply_patch"] {
        let missed = unknown.get(name).copied().unwrap_or_default();
        assert!(missed <= 1, "{missed} calls of {name} are not known");
    }
}
