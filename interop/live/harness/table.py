"""The table of the docs, between two marks."""

import re
from datetime import datetime, timezone

from harness import cases, peers

BEGIN = "<!-- written by interop/live/run.py -->"
END = "<!-- end of what is written -->"

# A page says in a word what the list below the table explains.
WORDS = {"pass": "pass", "fail": "fail", "not offered": "no"}
ROLES = {"client": "client", "server": "server"}


def write(page, ran, results):
    """Replaces what stands between the marks. Cells that were not run stay as they are, unless the peer has another
    version now."""
    text = page.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    versions, kept = read(page)
    now = {peer.name: peer.version for peer in ran}
    known = {peer.name for peer in peers.PEERS}
    for key in list(kept):
        name, _, case = key
        if now.get(name, versions[name]) != versions[name] or name not in known or case not in cases.CASES:
            del kept[key]
    table = render({**versions, **now}, {**kept, **results})
    page.write_text(f"{text[:begin]}\n\n{table}\n{text[end:]}")


def render(versions, results):
    """The table of the peers that have a version, in their order, and what is below it."""
    names = [peer.name for peer in peers.PEERS if peer.name in versions]
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
        "| case | " + " | ".join(f"{name} {versions[name]} {role}" for name in names for role in ROLES) + " |",
        "| --- |" + " --- |" * (2 * len(names)),
    ]
    for case in cases.CASES:
        row = [cell(name, role, case) for name in names for role in ROLES]
        lines.append(f"| {case} | " + " | ".join(row) + " |")
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
    """What a page has: the version of each peer, and the result of each peer, role and case."""
    text = page.read_text()
    lines = text[text.index(BEGIN) : text.index(END)].splitlines()
    rows = [line for line in lines if line.startswith("| ")]
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
    (_, stated), wrong = read(page), 0

    def word(result):
        return WORDS[result.partition(": ")[0]]

    for key, result in results.items():
        if key not in stated or word(stated[key]) != word(result):
            print(f"{' '.join(key)}: {page} says {stated.get(key)}, now: {result}")
            wrong += 1
    print(f"{len(results) - wrong} of {len(results)} cells are as {page} says")
    return 1 if wrong else 0
