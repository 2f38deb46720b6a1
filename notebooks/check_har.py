"""Reads a HAR file that the program wrote with haralyzer, a reader of others.

    check_har.py FILE

What it makes of the file must be what the file says.
"""

import json
import sys
from pathlib import Path

from haralyzer import HarParser

log = json.loads(Path(sys.argv[1]).read_text())
parser = HarParser(log)
entries = log["log"]["entries"]
if len(parser.pages) != 1:
    sys.exit(f"{len(parser.pages)} pages; expected 1")
page = parser.pages[0]
found = {
    "entries": (len(page.entries), len(entries)),
    "address": (page.url, entries[0]["request"]["url"]),
    "status": (page.actual_page.response.status, 200),
    "load event": (page.pageTimings["onLoad"], log["log"]["pages"][0]["pageTimings"]["onLoad"]),
    "load time": (page.get_load_time(request_type="GET", content_type="image.*") > 0, True),
    "images": (
        len(page.image_files),
        sum(entry["response"]["content"]["mimeType"].startswith("image/") for entry in entries),
    ),
    "size": (
        page.get_total_size(page.entries),
        sum(entry["response"]["bodySize"] for entry in entries),
    ),
}
for what, (read, written) in found.items():
    if read != written:
        sys.exit(f"{what}: haralyzer reads {read}, the file says {written}")
print(f"haralyzer reads {len(entries)} entries as they are")
