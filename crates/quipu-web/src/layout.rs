//! What layout shows: which images are in view.
//!
//! A recording of Chrome tells: an image whose priority was High at the end was in view. Other
//! recordings know nothing of it, nor of the size of images on the screen, and the choice is ours: the
//! first images of the main document that are not small count as visible. It is the guess that Chrome
//! itself makes before layout, of the first five images above 10,000 px²; at two bits a pixel that is
//! 2,500 bytes.

use quipu_base::Bytes;

use crate::page::{Discovery, Object, ObjectId, ObjectKind, Page};
use crate::scheme::RequestFacts;

/// Images that Chrome takes for visible before layout.
pub const PROMINENT_IMAGES: usize = 5;
/// Body of an image that is not small.
pub const NOT_SMALL: Bytes = Bytes(2_500);

/// The images of a page that are in view, or likely to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Viewport {
    /// By object.
    visible: Vec<bool>,
    prominent: Vec<bool>,
}

impl Viewport {
    /// The viewport of `page`. Where the recording does not say what is in view, the first `images`
    /// images are that are not small.
    pub fn of(page: &Page, images: usize) -> Viewport {
        let order = images_in_order(page);
        let first = |count: usize| {
            let mut first = vec![false; page.objects().len()];
            order.iter().take(count).for_each(|image| first[image.index()] = true);
            first
        };
        let image = |object: &Object| object.kind == ObjectKind::Image;
        let recorded =
            page.objects().iter().any(|object| image(object) && object.priority.is_some());
        let visible = if recorded {
            page.objects().iter().map(|object| image(object) && object.visible).collect()
        } else {
            first(images)
        };
        Viewport { visible, prominent: first(PROMINENT_IMAGES) }
    }

    /// Whether layout shows the image in view.
    pub fn is_visible(&self, object: ObjectId) -> bool {
        self.visible.get(object.index()).copied().unwrap_or_default()
    }

    /// Facts of the request for an object of the page, before or after layout; `None` if the page has
    /// no such object. After layout, an image in view has the priority that it had in the end.
    pub fn facts(&self, page: &Page, object: ObjectId, laid_out: bool) -> Option<RequestFacts> {
        let facts = RequestFacts::of(page, object)?;
        let visible = laid_out && self.is_visible(object);
        let last = page.object(object)?.priority.map(|priority| priority.last);
        Some(RequestFacts {
            visible,
            prominent: self.prominent.get(object.index()).copied().unwrap_or_default(),
            recorded: if visible { last } else { facts.recorded },
            ..facts
        })
    }
}

/// Images that are not small, in the order in which the parser of the main document comes to them.
fn images_in_order(page: &Page) -> Vec<ObjectId> {
    let place = |object: &Object| match object.discovery {
        Discovery::ParserOffset { parent, offset } if parent == page.main_document() => {
            Some((offset, object.id))
        }
        _ => None,
    };
    let images = page
        .objects()
        .iter()
        .filter(|object| object.kind == ObjectKind::Image && object.response_bytes >= NOT_SMALL);
    let mut places: Vec<(Bytes, ObjectId)> = images.filter_map(place).collect();
    places.sort_unstable();
    places.into_iter().map(|(_, image)| image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{ChromePriority, RecordedPriority};

    fn page(images: &[(u64, u64)]) -> Vec<Object> {
        let object = |id, kind, bytes| {
            Object::new(ObjectId(id), format!("https://a.test/{id}"), kind, Bytes(bytes))
        };
        let mut objects = vec![object(0, ObjectKind::Document, 9_000)];
        for (id, &(offset, bytes)) in (1..).zip(images) {
            let discovery = Discovery::ParserOffset { parent: ObjectId(0), offset: Bytes(offset) };
            objects.push(object(id, ObjectKind::Image, bytes).discovered(discovery));
        }
        objects
    }

    fn visible(viewport: &Viewport) -> Vec<u32> {
        (0..20).filter(|&id| viewport.is_visible(ObjectId(id))).collect()
    }

    #[test]
    fn the_first_images_that_are_not_small_count_as_visible() {
        let images = [(500, 2_500), (100, 2_499), (200, 9_000), (300, 3_000), (400, 3_000)];
        let page = Page::new("p", page(&images)).unwrap();
        assert_eq!(visible(&Viewport::of(&page, 2)), [3, 4]);
        assert_eq!(visible(&Viewport::of(&page, 0)), [0_u32; 0]);
        assert_eq!(visible(&Viewport::of(&page, 99)), [1, 3, 4, 5]);
        let before = Viewport::of(&page, 2).facts(&page, ObjectId(3), false).unwrap();
        let after = Viewport::of(&page, 2).facts(&page, ObjectId(3), true).unwrap();
        assert_eq!((before.visible, before.prominent), (false, true));
        assert_eq!((after.visible, after.prominent), (true, true));
    }

    #[test]
    fn a_recording_knows_better() {
        let mut objects = page(&[(100, 9_000), (200, 100)]);
        let (low, high) = (ChromePriority::Low, ChromePriority::High);
        objects[1].priority = Some(RecordedPriority { initial: low, last: low });
        objects[2].priority = Some(RecordedPriority { initial: low, last: high });
        objects[2].visible = true;
        let page = Page::new("p", objects).unwrap();
        let viewport = Viewport::of(&page, 5);
        assert_eq!(visible(&viewport), [2]);
        let recorded =
            |laid_out| viewport.facts(&page, ObjectId(2), laid_out).unwrap().recorded.unwrap();
        assert_eq!((recorded(false), recorded(true)), (low, high));
    }

    #[test]
    fn shipped_pages_have_something_in_view() {
        for (name, count) in [("framework-youtube", 2), ("framework-amazon", 4)] {
            let page = crate::pages::find(name).unwrap().read().unwrap().page;
            assert_eq!(visible(&Viewport::of(&page, 5)).len(), count, "{name}");
        }
    }
}
