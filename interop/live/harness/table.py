"""The tables of the docs, one for hq-interop and one for HTTP/3, each between two marks."""

import re
from datetime import datetime, timezone

from harness import peers, suite

# Before a table, by whether it is that of HTTP/3.
BEGIN = {False: "<!-- written by interop/live/run.py -->", True: "<!-- written by interop/live/run.py: HTTP/3 -->"}
END = "<!-- end of what is written -->"

# A page says in a word what the list below the table explains.
WORDS = {"pass": "pass", "fail": "fail", "not offered": "no"}


def write(page, ran, results):
    """Replaces what stands between the marks. Cells that were not run stay as they are, unless the peer has another
    version now."""
    for is_http3 in BEGIN:
        write_one(page, ran, results, is_http3)


def write_one(page, ran, results, is_http3):
    of_table = {key: result for key, result in results.items() if suite.CASES[key[2]].is_http3 == is_http3}
    if not of_table:
        return
    text = page.read_text()
    begin, end = place(text, is_http3)
    versions, kept = read_one(text[begin:end])
    now = {peer.name: peer.version for peer in ran}
    known = {peer.name for peer in peers.PEERS}
    for key in list(kept):
        name, _, case = key
        if now.get(name, versions[name]) != versions[name] or name not in known or case not in suite.CASES:
            del kept[key]
    versions |= {name: now[name] for name, _, _ in of_table}
    table = render(versions, {**kept, **of_table}, is_http3)
    page.write_text(f"{text[:begin]}\n\n{table}\n{text[end:]}")


def place(text, is_http3):
    """Where a table begins and ends."""
    begin = text.index(BEGIN[is_http3]) + len(BEGIN[is_http3])
    return begin, text.index(END, begin)


def render(versions, results, is_http3):
    """The table of the peers that have a version, in their order, and what is below it."""
    columns = [(peer.name, role) for peer in peers.PEERS if peer.name in versions for role in peer.roles]
    notes = []

    def cell(name, role, case):
        result = results.get((name, role, case), "not offered: not run")
        word, _, reason = result.partition(": ")
        if not reason:
            return WORDS[word]
        if reason not in notes:
            notes.append(reason)
        return f"{WORDS[word]} [{notes.index(reason) + 1}]"

    lines = [
        "World: live, loopback. The columns name the peer, its version and the role that it has; Quipu has the other.",
        "",
        "| case | " + " | ".join(f"{name} {versions[name]} {role}" for name, role in columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    for case in (case for case in suite.CASES.values() if case.is_http3 == is_http3):
        row = [cell(name, role, case.name) for name, role in columns]
        lines.append(f"| {case.name} | " + " | ".join(row) + " |")
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    passed = sum(result == "pass" for result in results.values())
    failed = sum(result.startswith("fail") for result in results.values())
    lines += [
        "",
        f"{passed} runs passed, {failed} failed, and {len(results) - passed - failed} are not offered by the peer; last run "
        f"on {datetime.now(timezone.utc):%d %B %Y}.",
        "",
    ]
    return "\n".join(lines)


def read(page):
    """What the tables of a page have together: the result of each peer, role and case."""
    text = page.read_text()
    found = {}
    for is_http3 in BEGIN:
        begin, end = place(text, is_http3)
        found |= read_one(text[begin:end])[1]
    return found


def read_one(text):
    """What a table has: the version of each peer, and the result of each peer, role and case."""
    lines = text.splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    if not rows:
        return {}, {}
    notes = dict(line.split(". ", 1) for line in lines if re.match(r"\d+\. ", line))
    results = {word: result for result, word in WORDS.items()}
    heads = [head.split() for head in split(rows[0])[1:]]
    versions = {name: version for name, version, _ in heads}
    found = {}
    for row in rows[2:]:
        case, *cells = split(row)
        for (name, _, role), cell in zip(heads, cells):
            word, _, note = cell.partition(" ")
            found[name, role, case] = results[word] + (f": {notes[note.strip('[]')]}" if note else "")
    return versions, found


def split(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def check(page, results):
    """0 if the page says of each run what came of it now, else 1."""
    stated, wrong = read(page), 0

    def word(result):
        return WORDS[result.partition(": ")[0]]

    for key, result in results.items():
        if key not in stated or word(stated[key]) != word(result):
            print(f"{' '.join(key)}: {page} says {stated.get(key)}, now: {result}")
            wrong += 1
    print(f"{len(results) - wrong} of {len(results)} cells are as {page} says")
    return 1 if wrong else 0
