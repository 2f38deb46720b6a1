//! Field lists for tests of both formats.

use super::FieldList;

/// Fields as a browser sends them for the `index`-th of many objects of a page.
pub(crate) fn browser_request(index: usize) -> FieldList {
    let host = ["www.example.org", "static.example.net", "img.example.com"][index % 3];
    let kind = index % 4;
    let file = ["css", "js", "webp", "woff2"][kind];
    let accept = [
        "text/css,*/*;q=0.1",
        "*/*",
        "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        "*/*",
    ][kind];
    let path = format!("/assets/{:08x}/bundle-{index}.{file}?v=20240517", index * 2_654_435_761);
    [
        (":method", "GET"),
        (":authority", host),
        (":scheme", "https"),
        (":path", &path),
        (
            "sec-ch-ua",
            "\"Chromium\";v=\"124\", \"Google Chrome\";v=\"124\", \"Not-A.Brand\";v=\"99\"",
        ),
        ("sec-ch-ua-mobile", "?0"),
        (
            "user-agent",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
             Chrome/124.0.0.0 Safari/537.36",
        ),
        ("sec-ch-ua-platform", "\"Linux\""),
        ("accept", accept),
        ("sec-fetch-site", ["same-origin", "cross-site", "cross-site"][index % 3]),
        ("sec-fetch-mode", ["no-cors", "no-cors", "no-cors", "cors"][kind]),
        ("sec-fetch-dest", ["style", "script", "image", "font"][kind]),
        ("referer", "https://www.example.org/some/article/2024/05/17/title-of-it.html"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("accept-language", "en-US,en;q=0.9,de;q=0.8"),
        ("cookie", "session=0123456789abcdef0123456789abcdef; consent=1; group=b"),
        ("priority", ["u=0", "u=1", "u=2, i", "u=0"][kind]),
    ]
    .into_iter()
    .collect()
}
