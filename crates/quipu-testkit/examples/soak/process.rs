//! What this process holds and spends, as Linux tells.

use std::time::Duration;

/// Ticks of a second in `/proc`. <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>
const TICKS: u64 = 100;

/// Memory that is resident, in bytes; `None` where the host does not tell.
pub(crate) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Time on processors so far, of user and system; `None` where the host does not tell.
pub(crate) fn cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before may hold spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(Duration::from_millis((user + system) * 1_000 / TICKS))
}

/// Open files, sockets among them; `None` where the host does not tell.
pub(crate) fn descriptors() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}
