//! Several processes that run the same test of this binary, heard at once.

use crate::child::Running;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything takes that ends at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines of each process, as they come.
type Heard = Arc<(Mutex<Vec<Vec<String>>>, Condvar)>;

/// Processes that run until they are told to stop.
pub(super) struct Crowd {
    running: Vec<Running>,
    ears: Vec<JoinHandle<()>>,
    heard: Heard,
}

impl Crowd {
    /// Starts processes, each of which finds these settings and its own number under a name in its environment.
    pub(super) fn start(test: &str, count: usize, number: &str, settings: &[(&str, String)]) -> Crowd {
        let heard = Heard::default();
        heard.0.lock().unwrap().resize(count, Vec::new());
        let mut crowd = Crowd { running: Vec::new(), ears: Vec::new(), heard };
        for process in 0..count {
            let settings: Vec<_> = settings.iter().cloned().chain([(number, process.to_string())]).collect();
            let mut running = Running::start(test, &settings);
            let heard = crowd.heard.clone();
            crowd.ears.push(running.tells(move |line| {
                heard.0.lock().unwrap()[process].push(line);
                heard.1.notify_all();
            }));
            crowd.running.push(running);
        }
        crowd
    }

    /// Says a line to each.
    pub(super) fn say(&mut self, line: &str) {
        self.running.iter_mut().for_each(|process| process.say(line));
    }

    /// Waits until each has told so many more lines than it has up to now.
    pub(super) fn more(&self, lines: usize) {
        let heard = self.heard.0.lock().unwrap();
        let before: Vec<usize> = heard.iter().map(Vec::len).collect();
        let is_less =
            |heard: &mut Vec<Vec<String>>| heard.iter().zip(&before).any(|(told, before)| told.len() < before + lines);
        let (heard, waited) = self.heard.1.wait_timeout_while(heard, PATIENCE, is_less).unwrap();
        let counts: Vec<usize> = heard.iter().map(Vec::len).collect();
        assert!(!waited.timed_out(), "each was to tell {lines} lines more than {before:?}, and they told {counts:?}");
    }

    /// Waits until what they have told is enough.
    pub(super) fn until(&self, is_enough: impl Fn(&[Vec<String>]) -> bool) {
        let heard = self.heard.0.lock().unwrap();
        let (heard, waited) = self.heard.1.wait_timeout_while(heard, PATIENCE, |heard| !is_enough(heard)).unwrap();
        let counts: Vec<usize> = heard.iter().map(Vec::len).collect();
        assert!(!waited.timed_out(), "they were to tell more than {counts:?} lines");
    }

    /// Waits for the end of all, whose tests must pass, and returns what each has told.
    pub(super) fn end(self) -> Vec<Vec<String>> {
        for ear in self.ears {
            ear.join().unwrap();
        }
        for (number, process) in self.running.into_iter().enumerate() {
            assert!(process.end(), "process {number} failed");
        }
        std::mem::take(&mut *self.heard.0.lock().unwrap())
    }

    /// Ends all at once, whatever they do, and returns what each has told before.
    pub(super) fn kill(self) -> Vec<Vec<String>> {
        drop(self.running);
        for ear in self.ears {
            ear.join().unwrap();
        }
        std::mem::take(&mut *self.heard.0.lock().unwrap())
    }
}
