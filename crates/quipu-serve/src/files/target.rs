//! Checks of request paths, before the file system is involved.

use percent_encoding::percent_decode_str;

/// The only name with a leading dot that is served, and only as the first segment of a path.
/// <https://www.rfc-editor.org/rfc/rfc8615#section-3>
const WELL_KNOWN: &str = ".well-known";

/// True if the path of a request can name a file. False for paths with empty, `.` or `..` segments, an encoded `/`,
/// `\`, control characters, bytes that are not UTF-8, or hidden names. Our choice: paths are not normalised, so
/// each file has a single path.
pub(super) fn may_name_file(path: &str) -> bool {
    let Some(path) = path.strip_prefix('/') else { return false };
    // The root itself; a slash at the end of others names a folder.
    let names = path.strip_suffix('/').unwrap_or(path);
    path.is_empty() || names.split('/').enumerate().all(|(depth, segment)| is_name(depth, segment))
}

fn is_name(depth: usize, segment: &str) -> bool {
    let Ok(name) = percent_decode_str(segment).decode_utf8() else { return false };
    let is_clean = !name.chars().any(|sign| matches!(sign, '/' | '\\') || sign.is_control());
    !name.is_empty() && is_clean && is_shown(depth, &name)
}

/// True if a name at this depth below the root may be served: it has no leading dot, or it is the folder of
/// well-known resources.
pub(super) fn is_shown(depth: usize, name: &str) -> bool {
    !name.starts_with('.') || (depth == 0 && name == WELL_KNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_may_name_files() {
        for path in [
            "/",
            "/a",
            "/a/",
            "/a/b.html",
            "/a%20b",
            "/%C3%A4",
            "/a..b",
            "/a%252e",
            "/.well-known/security.txt",
        ] {
            assert!(may_name_file(path), "{path}");
        }
    }

    #[test]
    fn paths_that_leave_their_folder_name_none() {
        for path in [
            "/..",
            "/../a",
            "/a/..",
            "/a/../b",
            "/%2e%2e/a",
            "/%2E./a",
            "/.%2e/a",
            "/./a",
            "/%2e/a",
            "/..%2fa",
            "/a%2f..%2fb",
            "/..%5ca",
            "/..\\a",
        ] {
            assert!(!may_name_file(path), "{path}");
        }
    }

    #[test]
    fn paths_that_no_file_has_name_none() {
        for path in
            ["", "*", "a", "//", "//a", "/a//b", "/a%00", "/%00", "/a%0a", "/%ff", "/a%2fb", "/%2f"]
        {
            assert!(!may_name_file(path), "{path}");
        }
    }

    #[test]
    fn names_with_a_dot_are_hidden_but_for_the_well_known_folder() {
        for path in
            ["/.git", "/.git/config", "/a/.b", "/%2egit", "/a/.well-known/b", "/.well-known/.b"]
        {
            assert!(!may_name_file(path), "{path}");
        }
    }
}
