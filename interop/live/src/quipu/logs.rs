//! Folders for qlog.

use std::path::Path;

use quipu_interop_live::{Failure, Role};
use quipu_qlog::{Form, QlogFolder};

/// The folder that `QLOGDIR` names, if it names one.
pub(crate) fn qlog_folder(role: Role) -> Result<Option<QlogFolder>, Failure> {
    let Some(folder) = std::env::var_os("QLOGDIR").filter(|folder| !folder.is_empty()) else {
        return Ok(None);
    };
    let title = match role {
        Role::Client => "interop client",
        Role::Server => "interop server",
    };
    Ok(Some(QlogFolder::create(Path::new(&folder), Form::Version03, title)?))
}
