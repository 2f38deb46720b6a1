use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_har_file_is_read_as_it_is_and_out_of_gzip() {
    for file in [b"{}".to_vec(), gzip(b"{}")] {
        let unpacked = read(&file, None).unwrap();
        assert_eq!((unpacked.har.as_slice(), unpacked.trace), (b"{}".as_slice(), None));
    }
}

#[test]
fn runs_of_an_archive_are_chosen_by_number() {
    let (one, two) = (gzip(b"trace 1"), gzip(b"trace 2"));
    let file = zip(&[
        ("testinfo.json", b"x"),
        ("2_trace.json.gz", &two),
        ("1_trace.json.gz", &one),
        ("1_Cached_trace.json.gz", &one),
        ("1.har", b"har 1"),
        ("2.har", b"har 2"),
        ("1_Cached.har", b"warm"),
    ]);
    let run = |number| {
        let unpacked = read(&file, number).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (unpacked.run, text(unpacked.har), unpacked.trace.map(text))
    };
    let told = |run: &str, har: &str, trace: &str| (run.into(), har.into(), Some(trace.into()));
    assert_eq!(run(None), told("1", "har 1", "trace 1"));
    assert_eq!(run(Some(2)), told("1 (repeat view)", "warm", "trace 1"));
    assert_eq!(run(Some(3)), told("2", "har 2", "trace 2"));
    assert_eq!(
        read(&file, Some(4)).unwrap_err().to_string(),
        "no run 4 in the archive; it has: 1, 1 (repeat view), 2"
    );
    assert!(read(&file, Some(0)).is_err());
}

#[test]
fn one_har_file_may_be_that_of_all_runs() {
    let file = zip(&[
        ("data/browsertime.har", b"all"),
        ("data/trace-1.json", b"first"),
        ("data/trace-2.json", b"second"),
    ]);
    let second = read(&file, Some(2)).unwrap();
    assert_eq!((second.har, second.trace), (b"all".to_vec(), Some(b"second".to_vec())));
    let alone = read(&zip(&[("a.har", b"h"), ("Trace.json", b"t")]), None).unwrap();
    assert_eq!((alone.trace, alone.runs), (Some(b"t".to_vec()), vec![]));
}

#[test]
fn each_fault_has_its_own_line() {
    let fault = |file: &[u8]| read(file, None).unwrap_err().to_string();
    assert_eq!(
        fault(&zip(&[("trace.json", b"x")])),
        "no HAR file in the archive; expected a name that ends in .har or .har.gz; it has 1 traces alone"
    );
    assert!(fault(&gzip(b"{}")[..9]).starts_with("the file is damaged: "));
    assert!(fault(b"PK\x03\x04 and more").starts_with("the archive is damaged: "));
    assert_eq!(
        inflate(&gzip(&[0; 1_000]), 999).unwrap_err().to_string(),
        "the file unpacks to more than 999 bytes, which are the most that are read"
    );
    assert_eq!(inflate(&gzip(&[0; 1_000]), 1_000).unwrap().len(), 1_000);
}

proptest! {
    #[test]
    fn any_bytes_never_panic(file in prop::collection::vec(any::<u8>(), 0..200), form in 0..3_usize) {
        let start: &[u8] = [b"".as_slice(), b"PK\x03\x04", b"\x1f\x8b\x08"][form];
        let _ = read(&[start, &file].concat(), None);
    }

    #[test]
    fn a_damaged_archive_never_panics(at in 0..300_usize, byte in any::<u8>()) {
        let mut file = zip(&[("1.har", b"some har, some har"), ("1_trace.json", b"a trace")]);
        let at = at % file.len();
        file[at] = byte;
        let _ = read(&file, Some(1));
    }
}
