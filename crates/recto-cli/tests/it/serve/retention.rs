use super::*;
use crate::run::{SMALL, TODAY, mentions};
use std::process::Stdio;

/// A word that only old conversations have said.
const WORD: &str = "OLDWORD";
const RETENTION: &str = "[retention]\ndays = 90\nkeep = ['audit-*']\n";

impl Place {
    fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    fn import(&self, name: &str, text: &str) {
        let file = self.folder.file(&format!("{name}.json"), text);
        assert_eq!(self.run(&["import", &file, "--as", name]).code, Some(0));
    }

    /// Has conversations look as if nothing was written to them for so many days; no command can do that.
    fn age(&self, days: u32, names: &[&str]) {
        let script = "import datetime, sqlite3, sys\n\
                      today = datetime.datetime.fromisoformat(sys.argv[2] + 'T00:00:00+00:00').timestamp()\n\
                      db = sqlite3.connect(sys.argv[1])\n\
                      for name in sys.argv[4:]:\n    \
                          sql = 'UPDATE head SET updated = ? WHERE n = (SELECT n FROM conversation WHERE id = ?)'\n    \
                          at = int((today - int(sys.argv[3]) * 86400) * 1000)\n    \
                          assert db.execute(sql, (at, name)).rowcount == 1, name\n\
                      db.commit()\n";
        let (store, days) = (self.folder.at("kept.db"), days.to_string());
        let mut command = Command::new("python3");
        command.args(["-c", script, &store, TODAY, &days]).args(names).stderr(Stdio::piped());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn names(&self) -> Vec<String> {
        let list = self.json(&["list"]);
        let names = list["conversations"].as_array().unwrap().iter();
        let mut names: Vec<String> = names.map(|it| it["conversation"].as_str().unwrap().into()).collect();
        names.sort();
        names
    }

    /// Whether the store's files hold a word.
    fn holds(&self, word: &str) -> bool {
        let files = self.folder.names().into_iter().filter(|name| name.starts_with("kept.db"));
        files.into_iter().any(|name| {
            let bytes = std::fs::read(self.folder.at(&name)).unwrap();
            bytes.windows(word.len()).any(|window| window == word.as_bytes())
        })
    }
}

/// A store with conversations that are old, kept by name, gone on from, and new.
fn place() -> Place {
    let place = Place::with(RETENTION);
    let old = SMALL.replace("It is empty.", WORD);
    for name in ["old-1", "old-2", "audit-1"] {
        place.import(name, if name == "audit-1" { SMALL } else { &old });
    }
    for name in ["new", "parent", "grandparent"] {
        place.import(name, SMALL);
    }
    assert_eq!(place.run(&["fork", "parent", "young-fork"]).code, Some(0));
    assert_eq!(place.run(&["fork", "grandparent", "old-fork"]).code, Some(0));
    place.age(91, &["old-1", "old-2", "audit-1", "parent", "grandparent", "old-fork"]);
    place.age(89, &["new"]);
    place
}

const LEFT: [&str; 4] = ["audit-1", "new", "parent", "young-fork"];

#[test]
fn what_is_too_old_is_told_first_and_erased_for_good_when_confirmed() {
    let place = place();
    let before = place.names();
    let told = place.json(&["erase", "--older-than", "90d", "--dry-run"]);
    let names = |told: &Value| -> Vec<String> {
        let all = told["conversations"].as_array().unwrap().iter();
        let mut all: Vec<String> = all.map(|it| it["conversation"].as_str().unwrap().into()).collect();
        all.sort();
        all
    };
    assert_eq!(names(&told), ["grandparent", "old-1", "old-2", "old-fork"]);
    let sums = &told["sums"];
    assert_eq!((&sums["conversations"], &sums["held"], &sums["kept"]), (&4.into(), &1.into(), &1.into()), "{told}");
    assert_eq!(place.names(), before, "nothing went");
    assert!(place.holds(WORD));

    let refused = place.run(&["erase", "--older-than", "90d"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    mentions(&refused.stderr, &["nothing was erased", "--yes"]);
    assert_eq!(place.names(), before);

    let told = place.json(&["erase", "--older-than", "90d", "--yes"]);
    assert_eq!(told["sums"]["conversations"], 4, "{told}");
    assert_eq!(place.names(), LEFT);
    assert!(!place.holds(WORD), "no trace of their words is left");
    // It is the erase that there is: their names stay taken.
    let again = place.run(&["show", "old-1"]);
    mentions(&again.stderr, &["erased"]);
    assert_eq!(place.json(&["erase", "--older-than", "90d", "--yes"])["sums"]["conversations"], 0);
    assert_eq!(place.json(&["doctor"])["findings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_server_erases_what_is_too_old_for_every_tenant_and_says_so() {
    let place = place();
    let key = place.key("acme", "acme");
    let own = place.key("own", "local");
    let header = format!("x-recto-key: {key}");
    let served = place.serve(&[]);
    let make = request(
        "POST",
        "/api/v1/conversations",
        &["Host: localhost", &header, "Content-Type: application/json"],
        "{\"conversation\":\"of-acme\"}",
    );
    let made = served.sends(make);
    assert_eq!(made.status, 201, "{made:?}");
    let numbers = |served: &Served| served.asks("GET", "/metrics", &[&format!("x-recto-key: {own}")]).body;
    let until = |served: &Served, line: &str| {
        let start = Instant::now();
        while !numbers(served).contains(line) {
            assert!(start.elapsed() < PATIENCE, "no {line:?} in {}", numbers(served));
        }
    };
    until(&served, "\nrecto_retention_runs_total{result=\"ok\"} 1\n");
    let ran = served.ends();
    mentions(&ran.stderr, &["retention: erasing \"old-1\" of \"local\"", "retention: 4 conversations erased"]);
    assert_eq!(place.names(), LEFT);
    assert!(!place.holds(WORD));

    place.age(91, &["of-acme"]);
    let served = place.serve(&[]);
    until(&served, "\nrecto_retention_erased_total 1\n");
    // Reading the configuration again looks again; without the table nothing goes any more.
    place.folder.file("recto.toml", CONFIG);
    served.signal("HUP");
    until(&served, "\nrecto_config_reloads_total{result=\"ok\"} 1\n");
    mentions(&served.ends().stderr, &["retention: erasing \"of-acme\" of \"acme\""]);
    assert_eq!(place.names(), LEFT);
}
