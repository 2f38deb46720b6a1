//! What a process of Linux uses.

use super::Result;

/// At an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Processor time.
    pub(super) seconds: f64,
    /// Resident memory.
    pub(super) resident_kib: u64,
    /// The most that it had until then.
    pub(super) peak_kib: u64,
}

/// Clock ticks per second, which are the same on all Linux systems of today.
const TICKS: f64 = 100.0;

/// See proc(5).
pub(super) fn read(id: u32) -> Result<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name of the program, in parentheses, may have blanks.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |index: usize| -> Result<f64> { Ok(fields.get(index).ok_or("no such field")?.parse()?) };
    let seconds = (ticks(11)? + ticks(12)?) / TICKS;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let memory = |name: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|text| text.split_whitespace().next());
        Ok(number.ok_or_else(|| format!("process {id} has no {name}"))?.parse()?)
    };
    Ok(Usage { seconds, resident_kib: memory("VmRSS:")?, peak_kib: memory("VmHWM:")? })
}
