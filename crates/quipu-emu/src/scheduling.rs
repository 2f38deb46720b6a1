//! How the kernel schedules a thread.

use std::fs;
use std::process::{Command, Stdio};

use nix::unistd::gettid;
use quipu_base::Duration;

/// Class and priority of a thread, and how often others took its processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduling {
    /// As in `other`, or `fifo 10`; empty if the kernel does not tell.
    pub(crate) class: String,
    pub(crate) involuntary_switches: u64,
    /// How long it was ready and had no processor.
    pub(crate) waited: Duration,
}

impl Scheduling {
    pub(crate) fn of_this_thread() -> Self {
        let read = |file| fs::read_to_string(format!("/proc/thread-self/{file}")).ok();
        Scheduling {
            class: read("stat").and_then(|text| class(&text)).unwrap_or_default(),
            involuntary_switches: read("status").and_then(|text| switches(&text)).unwrap_or(0),
            waited: read("schedstat").and_then(|text| waited(&text)).unwrap_or(Duration::ZERO),
        }
    }

    /// The same, as counted from `before` on.
    pub(crate) fn since(self, before: &Scheduling) -> Self {
        let switches = self.involuntary_switches.saturating_sub(before.involuntary_switches);
        let waited = self.waited.saturating_sub(before.waited);
        Scheduling { involuntary_switches: switches, waited, ..self }
    }
}

/// Gives the calling thread a real-time priority, 1 to 99, if the system lets it.
pub(crate) fn prefer_this_thread(priority: u8) {
    // Which class the thread is in afterwards is in the report.
    let _ = Command::new("chrt")
        .args(["--fifo", "--pid", &priority.to_string(), &gettid().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Fields 40 and 41 of proc_pid_stat(5): priority among real-time threads, and policy. The second field is a name in
/// parentheses, in which anything may be.
fn class(stat: &str) -> Option<String> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(37);
    let priority = fields.next()?;
    // sched(7).
    Some(match fields.next()? {
        "0" => "other".to_owned(),
        "1" => format!("fifo {priority}"),
        "2" => format!("rr {priority}"),
        "3" => "batch".to_owned(),
        "5" => "idle".to_owned(),
        "6" => "deadline".to_owned(),
        other => format!("policy {other}"),
    })
}

fn switches(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// The second of three numbers, in nanoseconds: <https://docs.kernel.org/scheduler/sched-stats.html>
fn waited(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let fields = |priority: &str, policy: &str| {
            let mut fields = vec!["0"; 52];
            (fields[39], fields[40]) = (priority, policy);
            format!("7 (a) b (c) {}", fields[2..].join(" "))
        };
        assert_eq!(class(&fields("0", "0")).as_deref(), Some("other"));
        assert_eq!(class(&fields("10", "1")).as_deref(), Some("fifo 10"));
        assert_eq!(class("7 (a) R 1"), None);
    }

    #[test]
    fn a_thread_that_is_preferred_has_that_priority_or_stays_as_it_was() {
        let class = std::thread::spawn(|| {
            prefer_this_thread(7);
            Scheduling::of_this_thread().class
        });
        let class = class.join().unwrap();
        let before = Scheduling::of_this_thread().class;
        assert!(class == "fifo 7" || class == before, "{class}");
    }

    #[test]
    fn what_was_before_a_run_does_not_count() {
        let at = |involuntary_switches, nanos| Scheduling {
            class: "other".to_owned(),
            involuntary_switches,
            waited: Duration::from_nanos(nanos),
        };
        assert_eq!(at(5, 70).since(&at(2, 30)), at(3, 40));
    }

    #[test]
    fn this_thread_has_a_class() {
        assert!(!Scheduling::of_this_thread().class.is_empty());
        assert_eq!(waited("10 20 3\n"), Some(Duration::from_nanos(20)));
        assert_eq!(switches("a:\t1\nnonvoluntary_ctxt_switches:\t12\n"), Some(12));
    }
}
