//! The objects of pages as files, and the pages that ask for them.

use std::path::Path;
use std::sync::Arc;

use quipu_base::Bytes;
use quipu_web::page::Page;
use quipu_web::pages;

use super::Result;

/// The pages of those names, whose objects have the names of files at `authority`.
pub(super) fn pages(names: &[String], authority: &str) -> Result<Vec<Arc<Page>>> {
    let page = |name: &String| {
        let page = pages::find(name)?.read()?.page;
        let mut objects = page.objects().to_vec();
        for object in &mut objects {
            object.url = format!("https://{authority}/{name}/{}", object.id.0);
            object.request.body = Bytes::ZERO;
        }
        Ok(Arc::new(Page::new(name, objects)?.with_main_document(page.main_document())))
    };
    names.iter().map(page).collect()
}

/// Writes a file for each object, of its size.
pub(super) fn write(names: &[String], folder: &Path) -> Result<()> {
    for (name, page) in names.iter().zip(pages(names, "")?) {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        for object in page.objects() {
            let size = usize::try_from(object.response_bytes.0)?;
            let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            std::fs::write(folder.join(object.id.0.to_string()), content)?;
        }
    }
    Ok(())
}
