//! Which objects a server pushes with the main document.
//!
//! What is pushed comes unasked (RFC 9113, section 8.4): promised when the request for the main document has
//! come, before anything is answered. So a browser knows of every promise before it comes to the objects,
//! and requests none of them.

use crate::page::{Discovery, Object, ObjectId, ObjectKind, Page};

/// Which objects of a page are pushed: of those that are found from the main document, and whose requests have no
/// body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Push {
    /// None.
    #[default]
    None,
    /// Those that the recorded server pushed.
    Recorded,
    /// Style sheets, scripts and fonts that rendering or parsing waits for.
    Critical,
    /// Images.
    Images,
    /// Style sheets, scripts, fonts, images, audio and video.
    Assets,
}

impl Push {
    /// The objects of `page` that are pushed, in the order in which the main document refers to them, then in that
    /// of the page. A server pushes what it has authority over: all objects if `one_server` has all
    /// origins, else those of the main document's origin.
    pub fn objects(self, page: &Page, one_server: bool) -> Vec<ObjectId> {
        if self == Push::None {
            return Vec::new();
        }
        let main = page.main_document();
        let origins = page.origins();
        let origin = origins.number_of(main);
        let found = found_from_main(page);
        let is_pushed = |object: &&Object| {
            object.id != main
                && found.get(object.id.index()).copied().unwrap_or_default()
                && object.request.body.is_zero()
                && (one_server || origins.number_of(object.id) == origin)
                && self.chooses(object)
        };
        let mut pushed: Vec<&Object> = page.objects().iter().filter(is_pushed).collect();
        pushed.sort_by_key(|object| match object.discovery {
            Discovery::ParserOffset { parent, offset } if parent == main => (0, offset.0),
            _ => (1, 0),
        });
        pushed.into_iter().map(|object| object.id).collect()
    }

    fn chooses(self, object: &Object) -> bool {
        use ObjectKind::{Font, Image, Media, Script, Stylesheet};
        match self {
            Push::None => false,
            Push::Recorded => object.pushed,
            Push::Critical => {
                object.blocking.is_critical() && matches!(object.kind, Stylesheet | Script | Font)
            }
            Push::Images => object.kind == Image,
            Push::Assets => matches!(object.kind, Stylesheet | Script | Font | Image | Media),
        }
    }
}

/// By object, whether the browser learns of it from the main document, at once or by way of others: it
/// does so after every promise.
fn found_from_main(page: &Page) -> Vec<bool> {
    let main = page.main_document();
    let mut found: Vec<Option<bool>> = vec![None; page.objects().len()];
    let mut chain = Vec::new();
    for object in page.objects() {
        let mut at = object.id;
        let answer = loop {
            if at == main {
                break true;
            }
            if let Some(known) = found.get(at.index()).copied().flatten() {
                break known;
            }
            chain.push(at);
            match page.object(at).and_then(|object| object.discovery.parent()) {
                Some(parent) => at = parent,
                None => break false,
            }
        };
        for id in chain.drain(..) {
            found[id.index()] = Some(answer);
        }
    }
    found.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use quipu_base::Bytes;

    use super::*;
    use crate::page::Blocking;

    fn page() -> Page {
        let object = |id: u32, host: &str, kind| {
            Object::new(ObjectId(id), format!("https://{host}/{id}"), kind, Bytes(1_000))
        };
        let at = |offset| Discovery::ParserOffset { parent: ObjectId(1), offset: Bytes(offset) };
        let after = |parent| Discovery::AfterCompletion { parent: ObjectId(parent) };
        let mut objects = vec![
            object(0, "a.test", ObjectKind::Document),
            object(1, "a.test", ObjectKind::Document).discovered(after(0)),
            object(2, "a.test", ObjectKind::Image).discovered(at(500)),
            object(3, "a.test", ObjectKind::Stylesheet).discovered(at(100)),
            object(4, "b.test", ObjectKind::Image).discovered(at(50)),
            object(5, "a.test", ObjectKind::Font).discovered(after(3)),
            object(6, "a.test", ObjectKind::Script).discovered(at(90)),
            object(7, "a.test", ObjectKind::Image),
            object(8, "a.test", ObjectKind::Xhr).discovered(after(6)),
        ];
        objects[3].blocking = Blocking::Render;
        objects[4].pushed = true;
        objects[8].pushed = true;
        Page::new("p", objects).unwrap().with_main_document(ObjectId(1))
    }

    fn pushed(push: Push, one_server: bool) -> Vec<u32> {
        push.objects(&page(), one_server).into_iter().map(|object| object.0).collect()
    }

    #[test]
    fn what_is_pushed_comes_in_the_order_of_the_document() {
        assert_eq!(pushed(Push::None, true), [0_u32; 0]);
        assert_eq!(pushed(Push::Recorded, true), [4, 8]);
        assert_eq!(pushed(Push::Critical, true), [3]);
        // Object 7 is asked for at the start, whatever the document says.
        assert_eq!(pushed(Push::Images, true), [4, 2]);
        assert_eq!(pushed(Push::Assets, true), [4, 6, 3, 2, 5]);
    }

    #[test]
    fn a_server_pushes_nothing_of_other_origins() {
        assert_eq!(pushed(Push::Images, false), [2]);
        assert_eq!(pushed(Push::Recorded, false), [8]);
    }

    #[test]
    fn a_request_with_a_body_is_not_pushed() {
        let mut objects = page().objects().to_vec();
        objects[2].request.body = Bytes(1);
        let page = Page::new("p", objects).unwrap().with_main_document(ObjectId(1));
        assert_eq!(Push::Images.objects(&page, true), [ObjectId(4)]);
    }

    #[test]
    fn pages_that_ship_have_something_to_push() {
        for (name, push, count) in [
            ("framework-youtube", Push::Critical, 7),
            ("framework-youtube", Push::Images, 39),
            ("framework-youtube", Push::Assets, 46),
            ("ilmessaggero", Push::Recorded, 3),
        ] {
            let page = crate::pages::find(name).unwrap().read().unwrap().page;
            assert_eq!(push.objects(&page, true).len(), count, "{name}");
        }
    }
}
