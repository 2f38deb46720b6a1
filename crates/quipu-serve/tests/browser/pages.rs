//! The pages that are served.

use quipu_web::page::Page;

pub(crate) fn shipped(name: &str) -> Page {
    quipu_web::pages::find(name).unwrap().read().unwrap().page
}

/// The same page at another port. Browsers use no HTTP/3 at a port from 1024 on for a page below that.
pub(crate) fn with_port(page: &Page, port: u16) -> Page {
    let mut objects = page.objects().to_vec();
    for object in &mut objects {
        object.url = format!("https://{}:{port}{}", object.host(), object.path());
    }
    let main = page.main_document();
    Page::new(page.name(), objects).unwrap().with_main_document(main)
}
