//! Tests of what something costs.

/// Checks that `run(times)` takes about `times` as much CPU time as `run(1)`, which should take a few
/// milliseconds: a quadratic cost fails. Passes without a check where the kernel does not tell the
/// time of a thread.
#[track_caller]
pub(crate) fn grows_in_proportion(times: usize, mut run: impl FnMut(usize)) {
    let mut cost = |times| {
        let before = thread_nanos()?;
        run(times);
        Some(thread_nanos()? - before)
    };
    // The first run pays for memory.
    cost(1);
    let Some((one, many)) = cost(1).zip(cost(times)) else { return };
    let most = one.max(1_000_000) * 3 * times as u64;
    assert!(many <= most, "1: {one} ns, {times}: {many} ns");
}

/// CPU time of this thread so far.
fn thread_nanos() -> Option<u64> {
    // The kernel brings the count up to date when it chooses what runs next.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
