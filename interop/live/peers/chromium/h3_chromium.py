#!/usr/bin/env python3
"""Chromium as a client of HTTP/3, with the command line that all peers have: see src/args.rs. Scripts of a page send
the requests; connections are Chromium's own affair."""

import argparse
import base64
import json
import pathlib
import sys
import time
import urllib.parse

from browser import IDLE, Browser

UNSUPPORTED = 127
# As src/http3 has them.
CANCEL_AFTER = 200_000
GOAWAY_AFTER = 8
LARGE_FIELDS, LARGE_VALUE, LARGEST_VALUE = 8, 200, 6_000

# What the scripts of all cases have. Bodies come back in base64.
COMMON = """
const text = async body => {
    const reader = new FileReader();
    const read = new Promise(done => reader.onload = done);
    reader.readAsDataURL(new Blob([body]));
    await read;
    return reader.result.slice(reader.result.indexOf(",") + 1);
};
const ask = async (url, options = {}) => {
    const response = await fetch(url, {cache: "no-store", ...options});
    if (!response.ok) throw new Error(`${url}: status ${response.status}`);
    return response;
};
const get = async (url, options) => (await ask(url, options)).arrayBuffer();
"""

TOGETHER = """
const finished = [], bodies = [];
await Promise.all(urls.map(async (url, at) => {
    bodies[at] = await get(url, {priority: at % 8 > 3 ? "high" : "low"});
    finished.push(at);
}));
return {finished, bodies: await Promise.all(bodies.map(text))};
"""

HEADERS = """
const bodies = [];
for (const [at, url] of urls.entries()) {
    const sent = at + 1 == urls.length ? fields : fields.slice(0, -1);
    const response = await ask(url, {headers: sent});
    for (const [name, value] of sent) {
        if (response.headers.get(name) != value) throw new Error(`${name} came back with another value`);
    }
    bodies.push(await response.arrayBuffer());
}
return {bodies: await Promise.all(bodies.map(text))};
"""

ECHO = """
const body = await get(urls[0]);
return {bodies: [await text(await get(urls[0], {method: "POST", body}))]};
"""

CANCEL = """
const cancelling = new AbortController();
const reader = (await ask(urls[0], {signal: cancelling.signal})).body.getReader();
let received = 0;
while (received < least) {
    const {done, value} = await reader.read();
    if (done) throw new Error("the response ended before it was cancelled");
    received += value.length;
}
cancelling.abort();
const others = await Promise.all(urls.slice(1).map(url => get(url)));
return {received, bodies: [null, ...await Promise.all(others.map(text))]};
"""

# The ninth request is sent when the first of eight is answered.
GOAWAY = """
let open = before;
const all = urls.slice(0, before).map(url => get(url).finally(() => open -= 1));
await Promise.any(all);
const in_progress = open;
all.push(get(urls[before]));
return {in_progress, bodies: await Promise.all((await Promise.all(all)).map(text))};
"""

SCRIPTS = {
    "h3-100": TOGETHER,
    "h3-headers": HEADERS,
    "h3-upload": ECHO,
    "h3-cancel": CANCEL,
    "h3-goaway": GOAWAY,
    "h3-0rtt": TOGETHER,
}


def fact(name, value):
    print("fact", name, value, flush=True)


def large(number, size):
    return "".join(chr(ord("a") + (at * 7 + number) % 26) for at in range(size))


def run(browser, case, urls, downloads):
    """Does what the case is about with these URLs, and saves the files."""
    fields = [(f"x-large-{number}", large(number, LARGE_VALUE)) for number in range(LARGE_FIELDS)]
    fields.append(("x-largest", large(LARGE_FIELDS, LARGEST_VALUE)))
    given = {"urls": urls, "fields": fields, "least": CANCEL_AFTER, "before": GOAWAY_AFTER}
    names = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    told = browser.run(f"(async () => {{\n{names}{COMMON}{SCRIPTS[case]}}})()")
    for url, body in zip(urls, told["bodies"], strict=True):
        if body is not None:
            (downloads / url.rsplit("/", 1)[-1]).write_bytes(base64.b64decode(body))
    for at in told.get("finished", []):
        fact("finished", urls[at].rsplit("/", 1)[-1])
    if "received" in told:
        fact("cancelled", told["received"])
    if "in_progress" in told:
        fact("in_progress", told["in_progress"])
        # All were answered; our server tells that the ninth came on a second connection.
        fact("refused_after_goaway", 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["client", "server"])
    parser.add_argument("--case", required=True)
    parser.add_argument("--ca", type=pathlib.Path)
    parser.add_argument("--downloads", type=pathlib.Path)
    parser.add_argument("urls", nargs="*")
    options, _ = parser.parse_known_intermixed_args()
    if options.role == "server" or options.case not in SCRIPTS:
        sys.exit(UNSUPPORTED)
    place = urllib.parse.urlsplit(options.urls[0])
    # Chromium is told the server's certificate by its key; it stands beside that of the authority.
    browser = Browser(f"https://{place.netloc}", options.ca.parent / "cert.pem")
    try:
        twice = options.case == "h3-0rtt"
        for urls in [options.urls[:1], options.urls[1:]] if twice else [options.urls]:
            run(browser, options.case, urls, options.downloads)
            # It closes no connection, but forgets one that is silent, and the server with it.
            time.sleep(IDLE + 1)
    finally:
        browser.end()


if __name__ == "__main__":
    try:
        main()
    except ConnectionError as error:
        sys.exit(str(error))
