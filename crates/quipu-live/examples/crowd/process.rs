//! What a process of Linux uses.

use super::Result;

/// At an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Processor time.
    pub(super) seconds: f64,
    /// Resident memory.
    pub(super) resident_kib: u64,
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
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|text| text.split_whitespace().next()).ok_or("no memory")?;
    Ok(Usage { seconds, resident_kib: resident.parse()? })
}
