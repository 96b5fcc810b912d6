//! What the system says of this process, under the names that all clients of Prometheus use. Where the system says nothing,
//! there is nothing.

use super::text::{Kind, Text};

/// The process.
#[derive(Debug)]
pub(super) struct Process {
    started_at: u64,
}

impl Process {
    pub(super) fn begun(at: u64) -> Process {
        Process { started_at: at }
    }

    pub(super) fn text(&self, text: &mut Text) {
        let help = "When the server started, in seconds since 1970.";
        text.single("process_start_time_seconds", Kind::Gauge, help, self.started_at);
        let found = system::found().unwrap_or_default();
        for (name, kind, help, value) in [
            ("process_cpu_seconds_total", Kind::Counter, "Time on processors, in seconds.", found.cpu_seconds),
            ("process_resident_memory_bytes", Kind::Gauge, "Memory that is held, in bytes.", found.resident_bytes),
            ("process_threads", Kind::Gauge, "Threads.", found.threads),
            ("process_open_fds", Kind::Gauge, "Files and connections that are open.", found.open_files),
            ("process_max_fds", Kind::Gauge, "The most that may be open.", found.files_max),
        ] {
            text.family(name, kind, help);
            if let Some(value) = value {
                text.line(name, &[], value);
            }
        }
    }
}

/// What the system says.
#[derive(Debug, Default)]
struct Found {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<f64>,
    threads: Option<f64>,
    open_files: Option<f64>,
    files_max: Option<f64>,
}

#[cfg(target_os = "linux")]
mod system {
    use super::Found;
    use rustix::param::{clock_ticks_per_second, page_size};
    use rustix::process::{Resource, getrlimit};
    use std::fs;

    /// Where these stand behind the name of the program, as proc(5) counts them.
    const USER_TIME: usize = 11;
    const SYSTEM_TIME: usize = 12;
    const THREADS: usize = 17;
    const RESIDENT_PAGES: usize = 21;

    pub(super) fn found() -> Option<Found> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program may have spaces and brackets.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<f64> = rest.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect();
        let field = |at: usize| fields.get(at).copied();
        let ticks = clock_ticks_per_second() as f64;
        let files = fs::read_dir("/proc/self/fd").ok()?.count();
        Some(Found {
            cpu_seconds: field(USER_TIME).zip(field(SYSTEM_TIME)).map(|(user, system)| (user + system) / ticks),
            resident_bytes: field(RESIDENT_PAGES).map(|pages| pages * page_size() as f64),
            threads: field(THREADS),
            // One of them is the folder that is being read.
            open_files: Some(files.saturating_sub(1) as f64),
            files_max: getrlimit(Resource::Nofile).current.map(|most| most as f64),
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn found() -> Option<super::Found> {
        None
    }
}
