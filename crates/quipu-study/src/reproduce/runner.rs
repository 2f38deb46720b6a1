//! Runs ids on all cores, judges each as soon as its runs are there, and keeps what is done.

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::docs;
use super::job::Job;
use super::todo::{Place, Progress, ReproduceError, Todo, lock, read, remove};
use super::workshop::Workshop;
use quipu_record::verdict::Judged;

/// Where folders are before they are whole.
const PARTIAL: &str = ".partial";

/// Runs what is to be run. When `cancelled` is set, runs that have begun are given up and no more begin;
/// ids that are whole by then are kept. Gives what was found, in the order of the jobs.
///
/// # Errors
/// If results cannot be written.
pub fn reproduce(
    mut todo: Todo,
    place: &Place,
    cancelled: &Arc<AtomicBool>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Vec<Judged>, ReproduceError> {
    for unit in todo.jobs.iter_mut().flat_map(|job| &mut job.units) {
        unit.plan.stop = Arc::clone(cancelled);
    }
    let partial = place.out.join(PARTIAL);
    let failed = |file: &Path| {
        let file = file.to_owned();
        move |source| ReproduceError::Io { file, source }
    };
    // What an earlier call that was killed has left.
    remove(&partial)?;
    fs::create_dir_all(&partial).map_err(failed(&partial))?;
    let workshop = Workshop::new(&todo, place, partial.clone());
    let next = AtomicUsize::new(0);
    let problem: Mutex<Option<ReproduceError>> = Mutex::new(None);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = todo.threads(place.jobs.unwrap_or(cores)).clamp(1, todo.tasks.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !cancelled.load(Ordering::Relaxed) && lock(&problem).is_none() {
                    let Some(task) = todo.tasks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    if let Err(error) = workshop.run(task, cancelled, progress) {
                        lock(&problem).get_or_insert(error);
                    }
                }
            });
        }
    });
    drop(workshop);
    remove(&partial)?;
    if let Some(error) = problem.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    // As they are on disk, whether they were run now or before.
    let all: Vec<Judged> = todo.jobs.iter().filter_map(|job| read_same(job, &place.out)).collect();
    docs::write_set(&place.out, &all)
        .map_err(|(file, source)| ReproduceError::Io { file, source })?;
    Ok(all)
}

/// What was found for `job`, runs that failed included.
fn read_same(job: &Job, out: &Path) -> Option<Judged> {
    read(&out.join(&job.case.id)).filter(|judged| judged.fingerprint == job.fingerprint)
}
