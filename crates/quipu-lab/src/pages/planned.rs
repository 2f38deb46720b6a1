//! The pages of a plan: the same in every run, or drawn for each.

use std::sync::Arc;

use quipu_base::{Bytes, Duration, Seed};
use quipu_web::page::{Object, ObjectId, ObjectKind, Page, PageReport};
use quipu_web::synthetic::{self, Quantity, Sample};

use super::body::file_hash;
use super::{LoadedPage, PageLoadError, Reading, check_size, note};
use quipu_record::{DrawnNote, PageNote};
use quipu_scenario::{Origins, PRIES, PageName, Raw, Scenario};

/// A page of a plan.
#[derive(Clone, Debug)]
pub struct PlannedPage {
    /// What results say about it.
    pub note: PageNote,
    source: Source,
    /// The hash of the content of the file that it is from, if it is from one.
    pub(crate) file: Option<u64>,
    /// What is to be known of its recording, a line each.
    pub(crate) notices: Vec<String>,
}

/// What one visit loads: a page. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunPage {
    /// The page.
    pub page: Arc<Page>,
}

#[derive(Clone, Debug)]
enum Source {
    /// The same page each time; readers differ.
    Same { page: RunPage, seed: Seed },
    /// Pages of the model: of the run's number, or always of `index`.
    Drawn { seed: Seed, index: Option<u64> },
}

/// How many loads there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    /// Runs.
    pub(crate) runs: u32,
    /// Pages of a session.
    pub(crate) session: u32,
    /// Clients of a run.
    pub(crate) clients: u32,
}

impl Extent {
    /// Those of `scenario`.
    pub(crate) fn of(scenario: &Scenario) -> Extent {
        let (runs, session) = (scenario.runs, scenario.session);
        Extent { runs, session, clients: scenario.clients.count }
    }
}

impl RunPage {
    /// The load of `page`.
    pub(crate) fn new(page: Arc<Page>) -> RunPage {
        RunPage { page }
    }

    /// URL of object `id`, or nothing.
    pub fn url(&self, id: u32) -> &str {
        self.page.object(ObjectId(id)).map_or("", |object| &object.url)
    }
}

impl PlannedPage {
    /// Whether both load the same objects in the same way.
    pub fn is_same(&self, other: &PlannedPage) -> bool {
        match (&self.source, &other.source) {
            (Source::Same { page: one, .. }, Source::Same { page: other, .. }) => {
                one.page == other.page
            }
            (Source::Drawn { seed, index }, Source::Drawn { seed: other, index: of_other }) => {
                (seed, index) == (other, of_other)
            }
            _ => false,
        }
    }

    /// The page called `name`, drawn from `seed` if it is drawn, for so many loads.
    ///
    /// # Errors
    /// If there is no such page, it is unreadable or too large.
    pub(crate) fn new(
        name: &str,
        seed: Seed,
        extent: Extent,
        reading: Reading,
    ) -> Result<PlannedPage, PageLoadError> {
        let index = match PageName::parse(name)? {
            PageName::Recorded(name) => {
                return Ok(PlannedPage::same(LoadedPage::load(name, reading)?, seed));
            }
            PageName::DrawnAt(index) if extent.session == 1 => {
                return Ok(PlannedPage::same(LoadedPage::drawn(seed, index)?, seed));
            }
            PageName::DrawnAt(index) => Some(index),
            PageName::Drawn => None,
        };
        let source = Source::Drawn { seed, index };
        let note = note(name, seed, index, extent)?;
        Ok(PlannedPage::made(note, source))
    }

    /// The objects that `raw` names one by one, as a page.
    ///
    /// # Errors
    /// If they are too large.
    pub(crate) fn of_objects(raw: &Raw, seed: Seed) -> Result<PlannedPage, PageLoadError> {
        const NAME: &str = "objects";
        let lists = raw.objects.iter().enumerate();
        let each = lists.flat_map(|(stream, list)| list.0.iter().map(move |size| (stream, *size)));
        let object = |(id, (stream, size)): (u32, (usize, Bytes))| {
            let url = format!("https://raw.test/{stream}/{id}");
            Object::new(ObjectId(id), url, ObjectKind::Other, size)
        };
        let page = Page::new(NAME, (0..).zip(each).map(object).collect());
        let page = page.map_err(|source| PageLoadError::Page { page: NAME.to_owned(), source })?;
        check_size(NAME, &page)?;
        let note = note::of_page(&page, NAME.to_owned(), file_hash(sizes(&page).as_bytes()));
        Ok(PlannedPage::made(note, Source::Same { page: RunPage::new(page.shared()), seed }))
    }

    /// A page made in code, the same in every run; `seed` decides how long it is read.
    ///
    /// # Errors
    /// If it is too large.
    pub fn of_page(page: Page, seed: Seed) -> Result<PlannedPage, PageLoadError> {
        check_size(page.name(), &page)?;
        let note = note::of_page(&page, page.name().to_owned(), file_hash(sizes(&page).as_bytes()));
        Ok(PlannedPage::made(note, Source::Same { page: RunPage::new(page.shared()), seed }))
    }

    /// The page that visit `visit` of client `client` in run `run` loads,
    /// and whether it is the same in every run.
    pub(crate) fn page_of(
        &self,
        run: u32,
        client: u32,
        visit: u32,
    ) -> Result<(Arc<Page>, bool), PageLoadError> {
        match &self.source {
            Source::Same { page, .. } => Ok((Arc::clone(&page.page), true)),
            Source::Drawn { seed, index } => {
                let (seed, index) = draw(*seed, *index, run, client);
                let drawn = synthetic::visit(seed, index, visit).map_err(failed)?;
                Ok((drawn.page.shared(), false))
            }
        }
    }

    /// A page of no file.
    fn made(note: PageNote, source: Source) -> PlannedPage {
        PlannedPage { note, source, file: None, notices: Vec::new() }
    }

    fn same(loaded: LoadedPage, seed: Seed) -> PlannedPage {
        let source = Source::Same { page: loaded.page, seed };
        let notices = match loaded.file {
            Some(_) => note::notices(&loaded.report),
            // What comes with the program is known.
            None => Vec::new(),
        };
        PlannedPage { file: loaded.file, notices, ..PlannedPage::made(loaded.note, source) }
    }

    /// What visit `visit` of run `run` loads; of the first client if there are several.
    ///
    /// # Errors
    /// None: every drawn page is sound.
    pub fn visit(&self, run: u32, visit: u32) -> Result<RunPage, PageLoadError> {
        self.visit_of(run, 0, visit)
    }

    /// What visit `visit` of client `client` in run `run` loads: of pages drawn for each run each client
    /// has its own.
    ///
    /// # Errors
    /// None: every drawn page is sound.
    pub fn visit_of(&self, run: u32, client: u32, visit: u32) -> Result<RunPage, PageLoadError> {
        match &self.source {
            Source::Same { page, .. } => Ok(page.clone()),
            Source::Drawn { seed, index } => {
                let (seed, index) = draw(*seed, *index, run, client);
                let drawn = synthetic::visit(seed, index, visit).map_err(failed)?;
                Ok(RunPage::new(drawn.page.shared()))
            }
        }
    }

    /// How long the page of visit `visit` of run `run` is read before the next is asked for; by the
    /// first client if there are several.
    pub fn reading_time(&self, run: u32, visit: u32) -> Duration {
        self.reading_time_of(run, 0, visit)
    }

    /// How long client `client` reads the page of visit `visit` of run `run`.
    pub fn reading_time_of(&self, run: u32, client: u32, visit: u32) -> Duration {
        let (seed, index) = match &self.source {
            Source::Same { seed, .. } => (seed, None),
            Source::Drawn { seed, index } => (seed, *index),
        };
        let (seed, index) = draw(*seed, index, run, client);
        synthetic::reading_time(seed, index, visit)
    }

    /// How many servers one client of `scenario` needs for it.
    pub(crate) fn origins(&self, scenario: &Scenario) -> Result<usize, PageLoadError> {
        match scenario.origins {
            Origins::One => Ok(1),
            // All pages of the model come from one host.
            Origins::Recorded => Ok(self.visit(0, 0)?.page.origins().names().len()),
        }
    }
}

impl LoadedPage {
    /// Page `index` of the model.
    pub(super) fn drawn(seed: Seed, index: u64) -> Result<LoadedPage, PageLoadError> {
        let page = synthetic::pries(seed, index).map_err(failed)?;
        let report = PageReport::made_up(&page, "the model of Pries et al.");
        let hash = file_hash(sizes(&page).as_bytes());
        let note = note::of_page(&page, format!("{PRIES}:{index}"), hash);
        Ok(LoadedPage { page: RunPage::new(page.shared()), note, report, file: None })
    }
}

fn failed(source: quipu_web::page::PageError) -> PageLoadError {
    PageLoadError::Page { page: PRIES.to_owned(), source }
}

/// What the draws of a client in a run derive from: those of the first client from `seed` itself, and
/// all from `index` if it is always the same page.
fn draw(seed: Seed, index: Option<u64>, run: u32, client: u32) -> (Seed, u64) {
    match (index, client) {
        (Some(index), _) => (seed, index),
        (None, 0) => (seed, u64::from(run)),
        (None, client) => (seed.child("client", u64::from(client)), u64::from(run)),
    }
}

/// What makes two drawn pages the same, as text.
fn sizes(page: &Page) -> String {
    let size = |object: &Object| format!("{} {}\n", object.kind, object.response_bytes.0);
    page.objects().iter().map(size).collect()
}

/// What there is to say about the pages that all runs load.
fn note(
    name: &str,
    seed: Seed,
    index: Option<u64>,
    extent: Extent,
) -> Result<PageNote, PageLoadError> {
    let mut sample = Sample::default();
    let mut content = String::new();
    let (mut pages, mut total_objects, mut total_bytes) = (0_u64, 0_u64, 0_u64);
    let (mut objects, mut bytes) = ((u64::MAX, 0_u64), (u64::MAX, 0_u64));
    let widen =
        |range: &mut (u64, u64), value: u64| *range = (range.0.min(value), range.1.max(value));
    let session = extent.session;
    let (runs, clients) = match index {
        None => (extent.runs, extent.clients),
        Some(_) => (1, 1),
    };
    for (run, client) in (0..runs).flat_map(|run| (0..clients).map(move |client| (run, client))) {
        let (seed, index) = draw(seed, index, run, client);
        for visit in 0..session {
            let drawn = synthetic::visit(seed, index, visit).map_err(failed)?;
            check_size(name, &drawn.page)?;
            sample.add_page(&drawn.page);
            // The last page of a session is left when it is loaded.
            if visit + 1 < session {
                sample.add_reading(drawn.reading);
            }
            content.push_str(&sizes(&drawn.page));
            let Bytes(body) = drawn.page.body_bytes();
            let count = drawn.page.objects().len() as u64;
            widen(&mut objects, count);
            widen(&mut bytes, body);
            pages += 1;
            total_objects += count;
            total_bytes = total_bytes.saturating_add(body);
        }
    }
    let quantities = Quantity::ALL.map(|quantity| note::of_quantity(quantity, sample.of(quantity)));
    Ok(PageNote {
        held: None,
        name: name.to_owned(),
        // Both are means, of at least one page.
        objects: usize::try_from(total_objects / pages.max(1)).unwrap_or(usize::MAX),
        bytes: total_bytes / pages.max(1),
        hosts: 1,
        hash: file_hash(content.as_bytes()),
        drawn: Some(DrawnNote { pages, objects, bytes, quantities: quantities.to_vec() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_scenario::Clients;

    fn planned(name: &str, session: u32) -> PlannedPage {
        let scenario = Scenario { runs: 5, session, ..Scenario::default() };
        PlannedPage::new(name, Seed::new(1), Extent::of(&scenario), Reading::of(&scenario)).unwrap()
    }

    #[test]
    fn a_drawn_page_is_another_in_each_run_and_one_of_an_index_is_the_same() {
        let drawn = planned("pries", 1);
        let page = |page: &PlannedPage, run| page.visit(run, 0).unwrap().page;
        assert_ne!(page(&drawn, 0).body_bytes(), page(&drawn, 1).body_bytes());
        let third = planned("pries:3", 1);
        assert_eq!(page(&third, 0), page(&drawn, 3));
        assert_eq!(page(&third, 1), page(&drawn, 3));
        assert_eq!((third.note.name.as_str(), third.note.drawn), ("pries:3", None));
    }

    #[test]
    fn each_client_draws_a_page_of_its_own_and_the_first_that_of_a_run_without_others() {
        let drawn = planned("pries", 1);
        let page = |page: &PlannedPage, client| page.visit_of(2, client, 0).unwrap().page;
        assert_eq!(page(&drawn, 0), drawn.visit(2, 0).unwrap().page);
        assert_ne!(page(&drawn, 1).body_bytes(), page(&drawn, 0).body_bytes());
        assert_ne!(page(&drawn, 1).body_bytes(), page(&drawn, 2).body_bytes());
        let third = planned("pries:3", 1);
        assert_eq!(page(&third, 4), page(&third, 0));
        let scenario = Scenario { runs: 5, clients: Clients::of(3), ..Scenario::default() };
        let reading = Reading::of(&scenario);
        let note =
            PlannedPage::new("pries", Seed::new(1), Extent::of(&scenario), reading).unwrap().note;
        assert_eq!(note.drawn.unwrap().pages, 15);
        let recorded = planned("sitespeed", 2);
        assert_ne!(recorded.reading_time_of(0, 1, 0), recorded.reading_time(0, 0));
    }

    #[test]
    fn the_note_tells_what_all_runs_load() {
        let note = planned("pries", 2).note;
        let drawn = note.drawn.unwrap();
        assert_eq!((drawn.pages, note.hosts), (10, 1));
        let pages = (0..5).flat_map(|run| (0..2).map(move |visit| (run, visit)));
        let all = planned("pries", 2);
        let bytes = pages.map(|(run, visit)| all.visit(run, visit).unwrap().page.body_bytes().0);
        let bytes: Vec<u64> = bytes.collect();
        assert_eq!(drawn.bytes, (*bytes.iter().min().unwrap(), *bytes.iter().max().unwrap()));
        assert_eq!(note.bytes, bytes.iter().sum::<u64>() / 10);
        let counts: Vec<u64> = drawn.quantities.iter().map(|quantity| quantity.count).collect();
        assert_eq!((counts[1], counts[3], counts[4]), (10, 10, 5));
    }

    #[test]
    fn a_recording_is_read_for_another_time_in_each_run_but_the_same_page() {
        let page = planned("sitespeed", 3);
        assert_eq!(page.visit(0, 0).unwrap().page, page.visit(4, 2).unwrap().page);
        assert_ne!(page.reading_time(0, 0), page.reading_time(1, 0));
        assert_ne!(page.reading_time(0, 0), page.reading_time(0, 1));
    }
}
