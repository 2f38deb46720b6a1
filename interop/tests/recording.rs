//! A load that is written as a HAR file, read by a foreign reader.

use har::Spec;
use quipu_base::{Bytes, Duration};
use quipu_web::page::{Discovery, Object, ObjectId, ObjectKind, Page};
use quipu_web::recording::{Recorded, Recording, write};

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

#[test]
fn a_written_load_is_one_of_the_har_crate_too() {
    let parent = ObjectId(0);
    let image =
        Object::new(ObjectId(1), "https://a.test/b.webp?x=1", ObjectKind::Image, Bytes(9_000))
            .discovered(Discovery::ParserOffset { parent, offset: Bytes(100) });
    let document = Object::new(parent, "https://a.test/", ObjectKind::Document, Bytes(8_000));
    let page = Page::new("made up", vec![document, image]).unwrap();
    let recorded = |object, requested, first_byte, completed| Recorded {
        object: ObjectId(object),
        connection: 0,
        connected: Some(ms(20)),
        requested: ms(requested),
        first_byte: ms(first_byte),
        completed: ms(completed),
        pushed: false,
        carried: vec![("wifi".to_owned(), Bytes(100))],
        segments: Vec::new(),
    };
    let load = Recording {
        page: &page,
        title: "made up over wifi".to_owned(),
        began: Duration::ZERO,
        on_load: ms(95),
        objects: vec![recorded(0, 0, 50, 70), recorded(1, 55, 80, 95)],
        initiators: true,
    };
    let text = write(&[load], "1.0");
    let read = har::from_reader(text.as_bytes()).unwrap();
    let Spec::V1_2(log) = read.log else { panic!("another version") };
    assert_eq!(log.pages.as_deref().map(<[_]>::len), Some(1));
    let urls: Vec<&str> = log.entries.iter().map(|entry| entry.request.url.as_str()).collect();
    assert_eq!(urls, ["https://a.test/", "https://a.test/b.webp?x=1"]);
    let times: Vec<f64> = log.entries.iter().map(|entry| entry.time).collect();
    assert_eq!(times, [70.0, 40.0]);
    assert_eq!(log.entries[0].timings.connect, Some(20.0));
    assert_eq!(log.entries[1].request.query_string[0].name, "x");
    assert_eq!(log.entries[1].response.content.size, 9_000);
}
