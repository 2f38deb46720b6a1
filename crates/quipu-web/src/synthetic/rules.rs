//! Random pages whose objects wait for one another as browsers have it.
//!
//! Their dependencies, think times and computing are known exactly, which no recording's are: they are what
//! the inference of pages out of recordings is tested on. All laws are our choice, made to look like the
//! recorded pages: a style sheet or script in the head stands early, images stand everywhere, computing takes
//! 20 ms in the median and now and then a quarter of a second.
//!
//! The rules: the scanner finds what a document names as its bytes arrive, whatever blocks its parser. A script
//! that blocks the parser runs when it, those before it and the style sheets before it are there; a deferred one
//! when the document is, and those before it; an asynchronous one when it is there itself. An inline script runs
//! where the parser is, behind what blocks it. Fonts and images of style sheets are asked for once the page can be
//! laid out: when all that blocks rendering is there.

use quipu_base::{Bytes, Duration, Random, Seed};

use super::laws::{exponential, log_normal, uniform};
use crate::page::{
    Blocking, ChromePriority, Discovery, Gap, NotHeld, Object, ObjectId, ObjectKind, Page,
    PageError, RecordedPriority,
};

/// The `index`-th random page of `seed`. The same seed and index give the same page on every machine.
///
/// # Errors
/// None: every drawn page is sound.
pub fn by_rules(seed: Seed, index: u64) -> Result<Page, PageError> {
    let mut drawing = Drawing::new(seed.stream("synthetic.rules", index), index);
    drawing.document();
    drawing.head();
    drawing.body();
    drawing.layout();
    drawing.scripts();
    drawing.inline_scripts();
    drawing.beacons();
    drawing.late();
    drawing.priorities();
    let main = drawing.main;
    Ok(Page::new(format!("rules-{index}"), drawing.objects)?.with_main_document(main))
}

/// How a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    Blocking,
    Async,
    Deferred,
}

struct Script {
    id: ObjectId,
    offset: u64,
    runs: Runs,
}

struct Drawing {
    random: Random,
    index: u64,
    objects: Vec<Object>,
    main: ObjectId,
    sheets: Vec<(ObjectId, u64)>,
    /// In the order of the document.
    scripts: Vec<Script>,
    /// How long each host's server thinks about files, in the mean.
    hosts: Vec<Duration>,
}

impl Drawing {
    fn new(mut random: Random, index: u64) -> Drawing {
        let hosts = (0..4).map(|_| millis(2.0 + 15.0 * exponential(&mut random))).collect();
        Drawing {
            random,
            index,
            objects: Vec::new(),
            main: ObjectId(0),
            sheets: Vec::new(),
            scripts: Vec::new(),
            hosts,
        }
    }

    /// A whole number from `least` to `most`, small ones more often.
    fn count(&mut self, least: u64, most: u64) -> u64 {
        let share = uniform(&mut self.random);
        least + ((most - least + 1) as f64 * share * share) as u64
    }

    fn happens(&mut self, share: f64) -> bool {
        uniform(&mut self.random) < share
    }

    /// Between two numbers, each decade of them as often as the next.
    fn scaled(&mut self, least: f64, most: f64) -> f64 {
        least * libm::pow(most / least, uniform(&mut self.random))
    }

    /// Computing: 20 ms in the median, a third of it between 10 and 40.
    fn computing(&mut self) -> Duration {
        millis(log_normal(&mut self.random, libm::log(20.0), 0.9).min(600.0))
    }

    fn add(&mut self, kind: ObjectKind, bytes: (f64, f64), discovery: Discovery) -> ObjectId {
        let number = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
        let host = (uniform(&mut self.random) * uniform(&mut self.random) * 4.0) as usize;
        let mean = self.hosts.get(host).copied().unwrap_or_default();
        let url = format!("https://h{host}.rules-{}.test/{number}", self.index);
        let bytes = Bytes(self.scaled(bytes.0, bytes.1) as u64);
        let mut object = Object::new(ObjectId(number), url, kind, bytes).discovered(discovery);
        object.think_time = match kind {
            ObjectKind::Document => millis(self.scaled(20.0, 300.0)),
            ObjectKind::Xhr | ObjectKind::Fetch => millis(self.scaled(5.0, 150.0)),
            _ => millis(mean.as_secs_f64() * 1e3 * (0.3 + uniform(&mut self.random))),
        };
        self.objects.push(object);
        ObjectId(number)
    }

    fn at(&mut self, id: ObjectId) -> &mut Object {
        &mut self.objects[id.index()]
    }

    fn document(&mut self) {
        self.main = self.add(ObjectKind::Document, (8e3, 2e5), Discovery::Root);
    }

    /// A place in the main document, as shares of it.
    fn place(&mut self, from: f64, to: f64) -> u64 {
        let body = self.objects[self.main.index()].response_bytes.0;
        let share = from + (to - from) * uniform(&mut self.random);
        (body as f64 * share) as u64
    }

    fn parsed(&self, offset: u64) -> Discovery {
        Discovery::ParserOffset { parent: self.main, offset: Bytes(offset) }
    }

    fn head(&mut self) {
        for _ in 0..self.count(0, 5) {
            let offset = self.place(0.01, 0.1);
            let found = self.parsed(offset);
            let id = self.add(ObjectKind::Stylesheet, (1e3, 1e5), found);
            self.at(id).blocking = Blocking::Render;
            self.sheets.push((id, offset));
        }
        for _ in 0..self.count(0, 12) {
            let offset =
                if self.happens(0.5) { self.place(0.02, 0.12) } else { self.place(0.1, 1.0) };
            let runs = match uniform(&mut self.random) {
                share if share < 0.4 => Runs::Blocking,
                share if share < 0.7 => Runs::Async,
                _ => Runs::Deferred,
            };
            let found = self.parsed(offset);
            let id = self.add(ObjectKind::Script, (1e3, 2.5e5), found);
            if runs == Runs::Blocking {
                self.at(id).blocking = Blocking::Parser;
            }
            self.scripts.push(Script { id, offset, runs });
        }
        self.scripts.sort_by_key(|script| (script.offset, script.id));
    }

    fn body(&mut self) {
        for _ in 0..self.count(2, 60) {
            let offset = self.place(0.12, 1.0);
            let found = self.parsed(offset);
            let id = self.add(ObjectKind::Image, (500.0, 2e5), found);
            // An image that layout has to choose, such as one of several sizes.
            if self.happens(0.05) {
                self.waits_for_layout(id);
            }
        }
        for _ in 0..self.count(0, 1) {
            let offset = self.place(0.3, 0.95);
            let found = self.parsed(offset);
            let frame = self.add(ObjectKind::Document, (2e3, 3e4), found);
            let body = self.objects[frame.index()].response_bytes;
            for _ in 0..self.count(0, 5) {
                let offset = Bytes((body.0 as f64 * uniform(&mut self.random)) as u64);
                let found = Discovery::ParserOffset { parent: frame, offset };
                self.add(ObjectKind::Image, (500.0, 5e4), found);
            }
        }
    }

    /// `id` is asked for once the page can be laid out.
    fn waits_for_layout(&mut self, id: ObjectId) {
        let first_image = self.objects.iter().filter(|object| object.kind == ObjectKind::Image);
        let first_image = first_image.filter_map(|image| match image.discovery {
            Discovery::ParserOffset { offset, .. } => Some(offset.0),
            _ => None,
        });
        let body_begins = first_image.min().unwrap_or(u64::MAX);
        let sheets = self.sheets.iter().map(|(id, _)| *id);
        let scripts = self.scripts.iter();
        let scripts = scripts
            .filter(|script| script.runs == Runs::Blocking && script.offset < body_begins)
            .map(|script| script.id);
        let needs: Vec<ObjectId> = sheets.chain(scripts).collect();
        let computing = self.computing();
        let object = self.at(id);
        object.waits_for.extend(needs);
        object.gap.computing = computing;
    }

    fn layout(&mut self) {
        for (sheet, _) in self.sheets.clone() {
            for _ in 0..self.count(0, 3) {
                let found = Discovery::AfterCompletion { parent: sheet };
                let (kind, bytes) = match self.happens(0.6) {
                    true => (ObjectKind::Font, (8e3, 6e4)),
                    false => (ObjectKind::Image, (500.0, 3e4)),
                };
                let id = self.add(kind, bytes, found);
                self.waits_for_layout(id);
            }
        }
    }

    /// What must be there before the parser is beyond `offset`.
    fn before(&self, offset: u64) -> Vec<ObjectId> {
        let sheets = self.sheets.iter().filter(|(_, at)| *at < offset).map(|(id, _)| *id);
        let scripts = self.scripts.iter();
        let scripts = scripts
            .filter(|script| script.runs == Runs::Blocking && script.offset < offset)
            .map(|script| script.id);
        sheets.chain(scripts).collect()
    }

    fn scripts(&mut self) {
        for at in 0..self.scripts.len() {
            let Script { id, offset, runs } = self.scripts[at];
            let waits = match runs {
                Runs::Async => Vec::new(),
                Runs::Blocking => self.before(offset),
                Runs::Deferred => {
                    let earlier = self.scripts[..at].iter();
                    let earlier = earlier.filter(|script| script.runs == Runs::Deferred);
                    let mut waits: Vec<ObjectId> = earlier.map(|script| script.id).collect();
                    waits.extend(self.before(u64::MAX));
                    waits.push(self.main);
                    waits
                }
            };
            if self.happens(0.45) {
                for _ in 0..self.count(1, 4) {
                    self.asked_by(id, &waits, 0);
                }
            }
        }
    }

    /// An object that a script asks for, or the answer to another request of it.
    fn asked_by(&mut self, script: ObjectId, waits: &[ObjectId], depth: u32) {
        let found = Discovery::AfterCompletion { parent: script };
        let (kind, bytes) = match uniform(&mut self.random) {
            share if share < 0.4 => (ObjectKind::Xhr, (200.0, 3e4)),
            share if share < 0.7 => (ObjectKind::Image, (500.0, 1e5)),
            _ => (ObjectKind::Script, (1e3, 1e5)),
        };
        let id = self.add(kind, bytes, found);
        let computing = self.computing();
        let timer = match self.happens(0.04) {
            true => {
                millis([100.0, 250.0, 500.0, 1_000.0][(uniform(&mut self.random) * 4.0) as usize])
            }
            false => Duration::ZERO,
        };
        let object = self.at(id);
        object.gap = Gap { computing, timer };
        object.waits_for = waits.to_vec();
        if depth < 2 && kind != ObjectKind::Image && self.happens(0.5) {
            for _ in 0..self.count(1, 4) {
                self.asked_by(id, &[], depth + 1);
            }
        }
    }

    fn inline_scripts(&mut self) {
        for _ in 0..self.count(0, 3) {
            let offset = self.place(0.1, 1.0);
            let found = self.parsed(offset);
            let kind = if self.happens(0.5) { ObjectKind::Image } else { ObjectKind::Xhr };
            let id = self.add(kind, (300.0, 3e4), found);
            let waits = self.before(offset);
            let computing = self.computing();
            let object = self.at(id);
            object.waits_for = waits;
            object.gap.computing = computing;
        }
    }

    fn beacons(&mut self) {
        let Some(script) = self.scripts.last().map(|script| script.id) else { return };
        for _ in 0..self.count(0, 2) {
            let found = Discovery::AfterCompletion { parent: script };
            let id = self.add(ObjectKind::Ping, (50.0, 300.0), found);
            let computing = self.computing();
            let object = self.at(id);
            object.gap.computing = computing;
            object.not_held = Some(NotHeld::Beacon);
        }
    }
}

impl Drawing {
    /// What stands after the first image of the main document is late to browsers; an image in front of all style
    /// sheets and scripts is an icon.
    fn late(&mut self) {
        let main = self.main;
        let place = |object: &Object| match object.discovery {
            Discovery::ParserOffset { parent, offset } if parent == main => Some(offset),
            _ => None,
        };
        let places = |fits: fn(ObjectKind) -> bool| {
            self.objects.iter().filter(move |object| fits(object.kind)).filter_map(place)
        };
        use ObjectKind::{Image, Script, Stylesheet};
        let head = places(|kind| matches!(kind, Script | Stylesheet)).min();
        let first =
            places(|kind| kind == Image).filter(|at| Some(*at) > head && head.is_some()).min();
        let Some(first) = first else { return };
        for object in &mut self.objects {
            object.late = place(object).is_some_and(|offset| offset > first);
        }
    }

    /// As Chrome gives them, before layout knows what is in view.
    fn priorities(&mut self) {
        for object in &mut self.objects {
            let blocks = object.blocking.is_critical();
            let priority = match object.kind {
                ObjectKind::Document | ObjectKind::Stylesheet | ObjectKind::Font => {
                    ChromePriority::VeryHigh
                }
                ObjectKind::Script if blocks && !object.late => ChromePriority::High,
                ObjectKind::Script if blocks => ChromePriority::Medium,
                ObjectKind::Xhr => ChromePriority::High,
                ObjectKind::Ping => ChromePriority::VeryLow,
                _ => ChromePriority::Low,
            };
            object.priority = Some(RecordedPriority { initial: priority, last: priority });
        }
    }
}

fn millis(millis: f64) -> Duration {
    Duration::from_secs_f64(millis / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_repeat_and_differ_by_index() {
        let page = |index| by_rules(Seed::new(3), index).unwrap();
        assert_eq!(page(5), page(5));
        assert_ne!(page(5), page(6));
    }

    #[test]
    fn there_is_something_of_everything_in_a_hundred_pages() {
        let pages: Vec<Page> =
            (0..100).map(|index| by_rules(Seed::new(1), index).unwrap()).collect();
        let objects = || pages.iter().flat_map(Page::objects);
        use ObjectKind::{Document, Font, Image, Ping, Script, Stylesheet, Xhr};
        for kind in [Document, Font, Image, Ping, Script, Stylesheet, Xhr] {
            assert!(objects().any(|object| object.kind == kind), "{kind}");
        }
        let count = objects().count();
        assert!((2_000..8_000).contains(&count), "{count}");
        assert!(objects().any(|object| !object.gap.timer.is_zero()));
        assert!(objects().any(|object| object.waits_for.len() > 3));
    }
}
