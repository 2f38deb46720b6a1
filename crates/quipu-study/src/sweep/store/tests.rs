use proptest::prelude::*;

use super::*;

const OWN: u128 = 7;

fn record(number: u64) -> Outcome {
    let page_time = quipu_base::Duration::from_nanos(number);
    Ok(vec![RunRecord { page_time, ..RunRecord::default() }])
}

/// A folder that has these runs.
fn folder_of(keys: &[u128]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    for &key in keys {
        store.keep(key, &record(key as u64)).unwrap();
    }
    folder
}

/// What `statement` does to the database behind the store's back.
fn alter(folder: &Path, statement: &str) {
    assert!(open(&folder.join(FILE)).unwrap().execute(statement, []).unwrap() > 0);
}

#[test]
fn what_is_kept_is_there_again() {
    let folder = folder_of(&[1, 2, u128::MAX]);
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    assert_eq!(store.notes(), &[] as &[String]);
    assert_eq!((store.outcome(2), store.outcome(3)), (Some(false), None));
    store.keep(3, &Err("it failed".to_owned())).unwrap();
    store.keep(1, &record(1)).unwrap();
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    assert_eq!(store.outcome(3), Some(true));
    let mut reader = store.reader();
    assert_eq!(reader.read(3).unwrap(), Some(Err("it failed".to_owned())));
    assert_eq!(reader.read(2).unwrap(), Some(record(2)));
    assert_eq!(reader.read(u128::MAX).unwrap(), Some(record(u64::MAX)));
    assert_eq!(reader.read(4).unwrap(), None);
}

#[test]
fn nothing_is_made_before_a_run_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store"), &[], OWN).unwrap();
    store.sync().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn many_may_write_at_once_from_the_first_run_on() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8_u128 {
            // Each as a process of its own has it: with a connection of its own.
            let folder = folder.path();
            scope.spawn(move || {
                let store = Store::open(folder, &[], OWN).unwrap();
                for number in 0..25 {
                    store.keep(writer * 100 + number, &record(number as u64)).unwrap();
                }
                store.sync().unwrap();
            });
        }
    });
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    assert_eq!(store.slots.len(), 8 * 25);
    assert_eq!(store.reader().read(724).unwrap(), Some(record(24)));
    // Nothing lies beside the database when all are done.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A database gets its write-ahead log only while nobody else is in it, and SQLite refuses at once instead of
/// waiting if two want that.
#[expect(
    clippy::disallowed_methods,
    reason = "a writer that waits cannot be asked whether it does"
)]
#[test]
fn a_database_that_another_process_is_just_making_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let other = Connection::open(folder.path().join(FILE)).unwrap();
    other.execute_batch(TABLE).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let store = Store::open(folder.path(), &[], OWN).unwrap();
        let writer = scope.spawn(move || store.keep(1, &record(1)));
        std::thread::sleep(PAUSE * 20);
        assert!(!writer.is_finished());
        other.execute_batch("COMMIT").unwrap();
        writer.join().unwrap().unwrap();
    });
}

#[test]
fn runs_of_other_folders_count_and_can_be_taken_over() {
    let (other, own) = (folder_of(&[7, 8]), folder_of(&[8]));
    let store = Store::open(own.path(), &[other.path().to_owned()], OWN).unwrap();
    assert!(store.is_elsewhere(7) && !store.is_elsewhere(8) && !store.is_elsewhere(9));
    store.take_over(7, &mut store.reader()).unwrap();
    let store = Store::open(own.path(), &[], OWN).unwrap();
    assert_eq!(store.reader().read(7).unwrap(), Some(record(7)));
}

/// What a process that is killed leaves: the log, which the next one reads, whatever is missing at its end.
#[test]
fn a_log_cut_anywhere_loses_the_last_runs_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    for key in 0..6_u128 {
        store.keep(key, &record(key as u64)).unwrap();
    }
    let whole = fs::read(folder.path().join(FILE)).unwrap();
    let log = fs::read(folder.path().join("runs.sqlite-wal")).unwrap();
    let mut most = 0;
    for length in (0..=log.len()).step_by(512).chain([log.len()]) {
        let killed = tempfile::tempdir().unwrap();
        fs::write(killed.path().join(FILE), &whole).unwrap();
        fs::write(killed.path().join("runs.sqlite-wal"), &log[..length]).unwrap();
        let store = Store::open(killed.path(), &[], OWN).unwrap();
        let kept = store.slots.len();
        assert!((0..kept as u128).all(|key| store.outcome(key) == Some(false)));
        assert!(kept >= most, "{length} of {} bytes", log.len());
        most = kept;
        store.keep(9, &record(9)).unwrap();
    }
    assert_eq!(most, 6);
}

#[test]
fn damaged_runs_are_told_in_a_line_and_can_be_made_again() {
    let folder = folder_of(&[1, 2, 3]);
    let key = format!("x'{:032x}'", 2_u128.swap_bytes());
    alter(folder.path(), &format!("UPDATE runs SET outcome = zeroblob(9) WHERE key = {key}"));
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    let found = [1, 2, 3].map(|key| store.outcome(key));
    assert_eq!(found, [Some(false), None, Some(false)]);
    assert!(store.notes()[0].ends_with("1 runs are damaged and left out"), "{:?}", store.notes());
    store.keep(2, &record(2)).unwrap();
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    assert_eq!(store.reader().read(2).unwrap(), Some(record(2)));
    assert_eq!(store.notes(), &[] as &[String]);
}

#[test]
fn a_run_that_is_damaged_after_opening_is_an_error() {
    let folder = folder_of(&[1]);
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    alter(folder.path(), "UPDATE runs SET checksum = checksum + 1");
    let error = store.reader().read(1).unwrap_err().to_string();
    assert!(error.ends_with("a run was damaged since the store was opened"), "{error}");
}

#[test]
fn runs_of_another_program_are_counted_and_left_out() {
    let folder = folder_of(&[1, 2, 3]);
    let store = Store::open(folder.path(), &[], OWN + 1).unwrap();
    assert_eq!(store.outcome(1), None);
    assert!(store.notes()[0].ends_with("3 runs of another program are left out"));
    // Both programs have the same run.
    store.keep(1, &record(10)).unwrap();
    assert_eq!(store.slots.len(), 0);
    for (program, number) in [(OWN, 1), (OWN + 1, 10)] {
        let store = Store::open(folder.path(), &[], program).unwrap();
        assert_eq!(store.reader().read(1).unwrap(), Some(record(number)));
    }
}

#[test]
fn a_file_that_is_no_database_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), b"runs ".repeat(1000)).unwrap();
    let error = Store::open(folder.path(), &[], OWN).unwrap_err().to_string();
    assert!(error.contains("runs.sqlite: ") && error.contains("remove the file"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happened to the file: no panic, and what is read is what was kept.
    #[test]
    fn a_damaged_database_gives_an_error_or_what_was_kept(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = folder_of(&[1, 2, 3]);
        let file = folder.path().join(FILE);
        let mut bytes = fs::read(&file).unwrap();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&file, bytes).unwrap();
        if let Ok(store) = Store::open(folder.path(), &[], OWN) {
            let mut reader = store.reader();
            for key in 1..4 {
                if let Ok(Some(found)) = reader.read(key) {
                    // A key may be damaged into another; what is kept under it is whole.
                    prop_assert!((1..4).any(|number| found == record(number)));
                }
            }
        }
    }
}

#[test]
fn wanted_runs_of_another_folder_are_taken_at_once_but_not_damaged_or_foreign_ones() {
    let (other, own) = (folder_of(&[1, 2, 3, 4, 5]), folder_of(&[5]));
    alter(other.path(), "UPDATE runs SET outcome = x'00' WHERE key = (SELECT min(key) FROM runs)");
    let foreign = Store::open(other.path(), &[], OWN + 1).unwrap();
    foreign.keep(6, &record(6)).unwrap();
    drop(foreign);
    let mut store = Store::open(own.path(), &[], OWN).unwrap();
    assert_eq!(store.take_all(other.path(), |key| key != 4).unwrap(), [2, 3, 5]);
    assert_eq!((store.outcome(2), store.outcome(1)), (Some(false), None));
    assert_eq!((store.outcome(4), store.outcome(6)), (None, None));
    assert_eq!(store.reader().read(3).unwrap(), Some(record(3)));
    assert_eq!(store.take_all(&own.path().join("none"), |_| true).unwrap(), []);
    drop(store);
    let store = Store::open(own.path(), &[], OWN).unwrap();
    assert_eq!(store.slots.keys().copied().collect::<Vec<_>>(), [2, 3, 5]);
}
