//! Programs as subprocesses: real ones, written for the shell.

use crate::folder::TempFolder;
use recto_engine::drive::process::{Command, Ended, find, run, usual_environment};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// Longer than anything here takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A script of the shell as a program that must end by itself.
fn script(folder: &TempFolder, text: &str) -> Command {
    let file = folder.file("script");
    fs::write(&file, text).expect("it can be written");
    Command {
        program: "/bin/sh".into(),
        arguments: vec![file.to_string_lossy().into_owned()],
        environment: BTreeMap::from([("PATH".to_string(), std::env::var("PATH").expect("a PATH"))]),
        folder: folder.path().to_path_buf(),
        input: Vec::new(),
        turn_limit: PATIENCE,
        silence_limit: PATIENCE,
    }
}

/// A script that holds a pipe open and starts another program, which never ends and holds it open, too.
fn with_grandchild(folder: &TempFolder, then: &str) -> (Command, Pipe) {
    let made = std::process::Command::new("mkfifo").arg(folder.file("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let command = script(folder, &format!("exec 3> pipe\nsleep 100000 &\necho started\n{then}\n"));
    (command, Pipe::of(&folder.file("pipe")))
}

/// The reading end of a named pipe.
struct Pipe(tokio::sync::oneshot::Receiver<()>);

impl Pipe {
    fn of(path: &Path) -> Pipe {
        let (path, (closed, receiver)) = (path.to_path_buf(), tokio::sync::oneshot::channel());
        std::thread::spawn(move || {
            // Opening waits for who writes, and reading ends when nobody can write any more.
            let mut file = fs::File::open(path).expect("a pipe");
            file.read_to_end(&mut Vec::new()).expect("readable");
            let _ = closed.send(());
        });
        Pipe(receiver)
    }

    /// Waits until whoever held it has ended.
    async fn closed(self) {
        tokio::time::timeout(PATIENCE, self.0).await.expect("what held the pipe has ended").expect("it was read");
    }
}

async fn ended(command: &Command) -> (Vec<String>, Result<Ended, recto_engine::Error>) {
    let mut lines = Vec::new();
    let ended = run(command, &mut |line| lines.push(line.to_string())).await;
    (lines, ended)
}

#[tokio::test]
async fn a_program_reads_its_input_and_is_heard_line_by_line() {
    let folder = TempFolder::new();
    let input: String = (0..50_000).map(|it| format!("line {it}\n")).collect();
    let command = Command { input: input.clone().into_bytes(), ..script(&folder, "cat; printf 'no end'; echo no >&2") };
    let (lines, ended) = ended(&command).await;
    assert_eq!(ended.expect("it ends"), Ended { code: Some(0), stderr: "no".into() });
    assert_eq!(lines.len(), 50_001);
    assert_eq!((&*lines[49_999], &*lines[50_000]), ("line 49999", "no end"));
}

#[tokio::test]
async fn a_program_that_does_not_read_is_no_error() {
    let folder = TempFolder::new();
    let command = Command { input: vec![b'x'; 10_000_000], ..script(&folder, "exec 0<&-; echo done; exit 3") };
    let (lines, ended) = ended(&command).await;
    assert_eq!((lines, ended.expect("it ends").code), (vec!["done".to_string()], Some(3)));
}

#[tokio::test]
async fn the_environment_and_the_folder_are_exactly_those_given() {
    let folder = TempFolder::new();
    let mut command = script(&folder, "env | grep -v -E '^(PWD|OLDPWD|SHLVL|_)=' | sort; pwd -P");
    command.environment.insert("ONE".into(), "1".into());
    let (lines, _) = ended(&command).await;
    let path = format!("PATH={}", command.environment["PATH"]);
    let real = folder.path().canonicalize().expect("a folder");
    assert_eq!(lines, ["ONE=1", &path, &real.to_string_lossy()]);
}

#[tokio::test]
async fn what_is_no_text_is_heard_all_the_same() {
    let folder = TempFolder::new();
    let (lines, _) = ended(&script(&folder, r"printf 'a\377b\r\nc\n'")).await;
    assert_eq!(lines, ["a\u{fffd}b", "c"]);
}

#[tokio::test]
async fn a_program_that_never_ends_is_killed_with_all_it_started() {
    let folder = TempFolder::new();
    let (command, pipe) = with_grandchild(&folder, "trap '' TERM; while :; do sleep 100000; done");
    let command = Command { silence_limit: Duration::from_millis(300), ..command };
    let (lines, ended) = ended(&command).await;
    assert_eq!(lines, ["started"]);
    let error = ended.expect_err("it never ends");
    assert!(error.is_timed_out() && error.to_string().contains("printed nothing"), "{error}");
    pipe.closed().await;
}

#[tokio::test]
async fn a_program_that_talks_for_ever_is_killed_when_its_time_is_up() {
    let folder = TempFolder::new();
    let (command, pipe) = with_grandchild(&folder, "while :; do echo more; sleep 0.05; done");
    let command = Command { turn_limit: Duration::from_millis(500), ..command };
    let error = ended(&command).await.1.expect_err("it never ends");
    assert!(error.is_timed_out() && error.to_string().contains("took longer"), "{error}");
    assert!(error.hint().is_some());
    pipe.closed().await;
}

#[tokio::test]
async fn a_program_whose_future_is_dropped_is_killed_and_reaped() {
    let folder = TempFolder::new();
    let (mut command, pipe) = with_grandchild(&folder, "wait");
    let text = fs::read_to_string(&command.arguments[0]).expect("a script");
    fs::write(&command.arguments[0], format!("echo $$\n{text}")).expect("it can be written");
    command.input = vec![b'x'; 10_000_000];
    let (mut lines, mut heard) = (Vec::new(), tokio::sync::mpsc::unbounded_channel());
    {
        let sender = heard.0;
        let mut listen = move |line: &str| drop(sender.send(line.to_string()));
        let running = run(&command, &mut listen);
        tokio::pin!(running);
        while lines.len() < 2 {
            tokio::select! {
                _ = &mut running => unreachable!("it never ends"),
                line = heard.1.recv() => lines.extend(line),
            }
        }
    }
    pipe.closed().await;
    let pid = rustix::process::Pid::from_raw(lines[0].parse().expect("a number")).expect("a process");
    let gone = async {
        while rustix::process::test_kill_process(pid).is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it does not stay behind as a zombie");
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let folder = TempFolder::new();
    let (command, pipe) = with_grandchild(&folder, "exit 0");
    let (lines, ended) = ended(&command).await;
    assert_eq!((lines, ended.expect("it ends").code), (vec!["started".to_string()], Some(0)));
    pipe.closed().await;
}

#[tokio::test]
async fn a_flood_is_taken_until_the_bound_and_then_ended() {
    let folder = TempFolder::new();
    let mut seen = 0;
    let many = script(&folder, "yes 'a line of words' | head -n 2000000");
    let ended = run(&many, &mut |_| seen += 1).await.expect("it ends");
    assert_eq!((seen, ended.code), (2_000_000, Some(0)));
    let endless = script(&folder, "exec tr '\\0' x < /dev/zero");
    let error = run(&endless, &mut |_| {}).await.expect_err("a line without an end");
    assert!(error.is_program() && error.to_string().contains("a line of more than 64 MiB"), "{error}");
}

#[tokio::test]
async fn a_flood_on_stderr_stops_nothing_and_its_end_is_kept() {
    let folder = TempFolder::new();
    let (lines, ended) = ended(&script(&folder, "yes 'noise' | head -n 3000000 >&2; echo last >&2")).await;
    let ended = ended.expect("it ends");
    assert!(lines.is_empty() && ended.stderr.ends_with("noise\nlast"), "{lines:?}");
    assert!(ended.stderr.len() <= 16 * 1024);
}

#[tokio::test]
async fn a_program_that_closes_its_output_and_lives_on_is_not_waited_for_for_ever() {
    let folder = TempFolder::new();
    let command = script(&folder, "echo one; exec 1>&- 2>&-; sleep 100000");
    let command = Command { silence_limit: Duration::from_millis(300), ..command };
    let (lines, ended) = ended(&command).await;
    assert!(ended.expect_err("it lives on").is_timed_out());
    assert_eq!(lines, ["one"]);
}

#[tokio::test]
async fn how_a_program_ended_is_told() {
    let folder = TempFolder::new();
    let (_, failed) = ended(&script(&folder, "echo why >&2; exit 7")).await;
    assert_eq!(failed.expect("it ends"), Ended { code: Some(7), stderr: "why".into() });
    let (_, killed) = ended(&script(&folder, "kill -9 $$")).await;
    assert_eq!(killed.expect("it ends"), Ended { code: None, stderr: String::new() });
}

#[tokio::test]
async fn what_can_not_be_run_is_said_with_what_to_do() {
    let folder = TempFolder::new();
    let usual = script(&folder, "true");
    let error_of = async |command: Command| {
        let error = ended(&command).await.1.expect_err("it can't be run");
        assert!(error.is_program(), "{error}");
        format!("{error}; {}", error.hint().expect("a hint"))
    };
    let told = error_of(Command { program: folder.file("absent"), ..usual.clone() }).await;
    assert!(told.contains("there is no program") && told.contains("install it"), "{told}");
    let told = error_of(Command { program: folder.file("script"), ..usual.clone() }).await;
    assert!(told.contains("may not be run") && told.contains("make it executable"), "{told}");
    let told = error_of(Command { folder: folder.file("absent"), ..usual.clone() }).await;
    assert!(told.contains("no such folder"), "{told}");
    let told = error_of(Command { program: folder.path().to_path_buf(), ..usual.clone() }).await;
    assert!(told.contains("is a folder"), "{told}");
    fs::write(folder.file("script"), "#!/absent/interpreter\n").expect("it can be written");
    fs::set_permissions(folder.file("script"), fs::Permissions::from_mode(0o755)).expect("it can be changed");
    let told = error_of(Command { program: folder.file("script"), ..usual }).await;
    assert!(told.contains("can't be run") && told.contains("is missing"), "{told}");
}

#[test]
fn programs_are_found_on_the_path_as_a_shell_finds_them() {
    let folder = TempFolder::new();
    for name in ["a/tool", "b/tool", "c/tool/inner"] {
        let file = folder.file(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("it can be made");
        fs::write(&file, "").expect("it can be written");
    }
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.file("b/tool"), executable).expect("it can be changed");
    let list = ["absent", "c", "a", "b"].map(|name| folder.file(name).to_string_lossy().into_owned());
    let environment = |path: String| BTreeMap::from([("PATH".to_string(), path)]);
    assert_eq!(find("tool", &environment(format!(":{}", list.join(":")))), Some(folder.file("b/tool")));
    assert_eq!(find("tool", &environment(list[..3].join(":"))), None, "not a file, or not executable");
    assert_eq!(find("tool", &BTreeMap::new()), None);
}

#[test]
fn the_usual_environment_is_what_programs_need_and_no_secret_by_chance() {
    let usual = usual_environment(&["CARGO_PKG_"]);
    assert_eq!(usual.get("PATH"), std::env::var("PATH").ok().as_ref());
    let mut asked = std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_"));
    assert!(asked.all(|(name, value)| usual.get(&name) == Some(&value)), "asked for by its beginning");
    assert!(!usual.contains_key("CARGO_MANIFEST_DIR"), "nobody asked for it");
}
