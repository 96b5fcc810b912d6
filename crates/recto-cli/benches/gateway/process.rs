//! A server that runs beside this process, and what the system knows about it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The unit of processor time in `/proc`, the same on all machines that this runs on.
const TICKS_PER_SECOND: u64 = 100;
/// How many lines a server may say before its address.
const LINES_MAX: usize = 20;
/// More than the streams that are open at once.
const REQUESTS_MAX: usize = 4_000;
/// How long LiteLLM may take to start, and how often it is asked whether it has.
const LITELLM_START_MAX: Duration = Duration::from_secs(120);
const LITELLM_ASKED_EVERY: Duration = Duration::from_millis(200);

/// A server that ends with this value.
pub(crate) struct Serving {
    pub(crate) url: String,
    child: Child,
    _stdout: Option<BufReader<ChildStdout>>, // whoever writes to a closed pipe fails
}

impl Serving {
    /// Starts this program in a role.
    pub(crate) fn role(name: &str, arguments: &[&str]) -> Serving {
        let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
        command.arg(name).args(arguments);
        Serving::start(command)
    }

    /// Starts Recto between a client and the provider, with a store of its own.
    pub(crate) fn recto(command: &Path, folder: &Path, policy: &str, provider: &str) -> Serving {
        let config = folder.join("recto.toml");
        let text = format!(
            "[upstream.bench]\nurl = '{provider}/v1'\nwire = 'openai_chat'\nmodels = ['*']\n\
             [server]\nrequests_per_tenant = {REQUESTS_MAX}\n"
        );
        fs::write(&config, text).expect("the folder can be written to");
        let store = unused(folder, policy);
        let mut command = Command::new(command);
        command.arg("--config").arg(config).args(["serve", "--listen", "127.0.0.1:0", "--policy", policy, "--store"]);
        command.arg(store);
        Serving::start(command)
    }

    fn start(mut command: Command) -> Serving {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let lines = stdout.by_ref().lines().take(LINES_MAX).map_while(Result::ok);
        let url = lines.into_iter().find_map(|line| address(&line));
        if url.is_none() {
            drop(child.kill());
            drop(child.wait());
        }
        Serving { url: url.expect("the server tells its address"), child, _stdout: Some(stdout) }
    }

    /// Starts LiteLLM's proxy between a client and the provider, where `RECTO_LITELLM` names its command.
    pub(crate) fn litellm(folder: &Path, provider: &str) -> Option<Serving> {
        let command = std::env::var_os("RECTO_LITELLM")?;
        let config = folder.join("litellm.yaml");
        let text = format!(
            "model_list:\n- model_name: gpt-4o\n  litellm_params:\n    model: openai/gpt-4o\n    \
             api_base: {provider}/v1\n    api_key: none\n"
        );
        fs::write(&config, text).expect("the folder can be written to");
        // It takes no port that is free; nobody else takes this one so soon.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port();
        let mut command = Command::new(command);
        command.arg("--config").arg(config).args(["--host", "127.0.0.1", "--port"]).arg(port.to_string());
        command.env("LITELLM_LOG", "ERROR").env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let serving = Serving { url: format!("http://127.0.0.1:{port}"), child, _stdout: None };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if start.elapsed() > LITELLM_START_MAX {
                return None;
            }
            std::thread::park_timeout(LITELLM_ASKED_EVERY);
        }
        Some(serving)
    }

    /// Returns the processor time of all threads so far.
    pub(crate) fn processor_time(&self) -> Duration {
        let text = self.told_by_system("stat");
        // The name of the program may hold anything, and ends with the last parenthesis.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|it| it.parse::<u64>().expect("a number of ticks")).sum();
        Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
    }

    /// Returns the resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let text = self.told_by_system("status");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    fn told_by_system(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("the server runs")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the path of a store that no other server has.
fn unused(folder: &Path, policy: &str) -> PathBuf {
    let count = fs::read_dir(folder).map_or(0, |entries| entries.count());
    folder.join(format!("{policy}-{count}.db"))
}

fn address(line: &str) -> Option<String> {
    let start = line.find("http://127.0.0.1:")?;
    let end = line[start..].find(char::is_whitespace).map_or(line.len(), |end| start + end);
    Some(line[start..end].trim_end_matches('/').to_string())
}
