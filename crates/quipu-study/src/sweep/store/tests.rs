use proptest::prelude::*;

use super::*;

const OWN: u128 = 7;
const OWN_HEADER: Header = Header { program: OWN.to_le_bytes() };

fn record(number: u64) -> Outcome {
    let page_time = quipu_base::Duration::from_nanos(number);
    Ok(vec![RunRecord { page_time, ..RunRecord::default() }])
}

/// The one segment of a store with these runs.
fn segment(keys: &[u128]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    for &key in keys {
        store.keep(key, &record(key as u64)).unwrap();
    }
    let file = folder.path().join("000000.runs");
    (folder, file)
}

#[test]
fn what_is_kept_is_there_again() {
    let (folder, _) = segment(&[1, 2, u128::MAX]);
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    assert_eq!(store.notes(), &[] as &[String]);
    assert_eq!((store.outcome(2), store.outcome(3)), (Some(false), None));
    // A second process has a segment of its own, and may keep the same.
    store.keep(3, &Err("it failed".to_owned())).unwrap();
    store.keep(1, &record(1)).unwrap();
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    assert_eq!(store.segments.len(), 2);
    assert_eq!(store.outcome(3), Some(true));
    let mut reader = store.reader();
    assert_eq!(reader.read(3).unwrap(), Some(Err("it failed".to_owned())));
    assert_eq!(reader.read(2).unwrap(), Some(record(2)));
    assert_eq!(reader.read(4).unwrap(), None);
}

#[test]
fn runs_of_other_folders_count_and_can_be_taken_over() {
    let (other, _) = segment(&[7, 8]);
    let (own, _) = segment(&[8]);
    let store = Store::open(own.path(), &[other.path().to_owned()], OWN).unwrap();
    assert!(store.is_elsewhere(7) && !store.is_elsewhere(8) && !store.is_elsewhere(9));
    store.take_over(7, &mut store.reader()).unwrap();
    let store = Store::open(own.path(), &[], OWN).unwrap();
    assert_eq!(store.reader().read(7).unwrap(), Some(record(7)));
}

#[test]
fn a_segment_cut_anywhere_loses_the_last_run_alone() {
    let (folder, file) = segment(&[1, 2, 3]);
    let whole = fs::read(&file).unwrap();
    let ends: Vec<u64> = scan(&whole, &OWN_HEADER)
        .runs
        .iter()
        .map(|(_, at, length, _)| at + u64::from(*length))
        .collect();
    for length in 0..whole.len() {
        let found = scan(&whole[..length], &OWN_HEADER);
        let kept = ends.iter().filter(|end| **end <= length as u64).count();
        assert_eq!(found.runs.len(), kept, "{length} of {} bytes", whole.len());
        assert_eq!((found.damaged, found.foreign), (0, 0), "{length}");
    }
    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    assert_eq!(store.notes().len(), 1, "{:?}", store.notes());
    assert!(
        store.notes()[0].ends_with("the last run was not written to its end and is made again")
    );
}

#[test]
fn damage_is_told_in_a_line_and_the_rest_is_used() {
    let (folder, file) = segment(&[1, 2, 3]);
    let mut bytes = fs::read(&file).unwrap();
    let (_, at, ..) = scan(&bytes, &OWN_HEADER).runs[1];
    bytes[at as usize] ^= 0xff;
    fs::write(&file, bytes).unwrap();
    let store = Store::open(folder.path(), &[], OWN).unwrap();
    assert_eq!(
        (store.outcome(1), store.outcome(2), store.outcome(3)),
        (Some(false), None, Some(false))
    );
    assert_eq!(store.notes().len(), 1);
    assert!(store.notes()[0].ends_with("are damaged; 2 runs are read"), "{:?}", store.notes());
}

/// Each of 100,000 marks states a body of a megabyte: all of them would be 100 GB to sum.
#[test]
fn a_file_of_marks_is_given_up_on() {
    let head = [MARK.as_slice(), &1_000_000_u32.to_le_bytes(), &[0; 8]].concat();
    let bytes = head.repeat(100_000);
    let found = scan(&bytes, &OWN_HEADER);
    assert_eq!(found.damaged, bytes.len() as u64);
    assert_eq!(found.runs, []);
}

#[test]
fn runs_of_another_program_are_counted_and_left_out() {
    let (folder, _) = segment(&[1, 2, 3]);
    let store = Store::open(folder.path(), &[], OWN + 1).unwrap();
    assert_eq!(store.outcome(1), None);
    assert_eq!(store.notes().len(), 1);
    assert!(store.notes()[0].contains("3 runs of another program in 1 files are left out"));
}

proptest! {
    /// Whatever is in a file: no panic, and what is found lies within.
    #[test]
    fn any_bytes_can_be_scanned(
        parts in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                Just(MARK.to_vec()),
                (0..3_u128).prop_map(|key| {
                    let mut body = key.to_le_bytes().to_vec();
                    body.push(0);
                    frame(&body).unwrap()
                }),
                Just(frame(&postcard::to_stdvec(&OWN_HEADER).unwrap()).unwrap()),
            ],
            0..12,
        ),
    ) {
        let bytes = parts.concat();
        let found = scan(&bytes, &OWN_HEADER);
        for (_, offset, length, _) in found.runs {
            prop_assert!(offset + u64::from(length) <= bytes.len() as u64);
        }
        prop_assert!(found.damaged <= bytes.len() as u64);
        let _ = postcard::from_bytes::<Outcome>(&bytes);
    }
}
