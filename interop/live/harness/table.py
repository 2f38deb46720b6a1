"""The table of the docs, between two marks."""

from datetime import datetime, timezone

from harness import cases

BEGIN = "<!-- written by interop/live/run.py -->"
END = "<!-- end of what is written -->"

# A page says in a word what the list below the table explains.
WORDS = {"pass": "pass", "fail": "fail", "not offered": "no"}
ROLES = {"client": "client", "server": "server"}


def write(page, peers, results):
    """Replaces what stands between the marks."""
    text = page.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    page.write_text(f"{text[:begin]}\n\n{render(peers, results)}\n{text[end:]}")


def render(peers, results):
    notes = []

    def cell(peer, role, case):
        result = results.get((peer.name, role, case), "not offered: not run")
        word, _, reason = result.partition(": ")
        if not reason:
            return WORDS[word]
        if reason not in notes:
            notes.append(reason)
        return f"{WORDS[word]} [{notes.index(reason) + 1}]"

    lines = [
        "World: live, loopback. The columns name the peer, its version and the role that it has; Quipu has the other.",
        "",
        "| case | " + " | ".join(f"{peer.name} {peer.version} {role}" for peer in peers for role in ROLES) + " |",
        "| --- |" + " --- |" * (2 * len(peers)),
    ]
    for case in cases.CASES:
        row = [cell(peer, role, case) for peer in peers for role in ROLES]
        lines.append(f"| {case} | " + " | ".join(row) + " |")
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    passed = sum(result == "pass" for result in results.values())
    failed = sum(result.startswith("fail") for result in results.values())
    lines += [
        "",
        f"{passed} runs passed, {failed} failed, and {len(results) - passed - failed} are not offered by the peer; run on "
        f"{datetime.now(timezone.utc):%d %B %Y}.",
        "",
    ]
    return "\n".join(lines)


def read(page):
    """What a page says of each peer, role and case: the word of its cell."""
    text = page.read_text()
    rows = [line for line in text[text.index(BEGIN) : text.index(END)].splitlines() if line.startswith("| ")]
    heads = [head.split() for head in split(rows[0])[1:]]
    found = {}
    for row in rows[2:]:
        case, *cells = split(row)
        for (name, _, role), cell in zip(heads, cells):
            found[name, role, case] = cell.split()[0]
    return found


def split(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def check(page, results):
    """0 if the page says of each run what came of it now, else 1."""
    stated, wrong = read(page), 0
    for key, result in results.items():
        word = WORDS[result.partition(": ")[0]]
        if stated.get(key) != word:
            print(f"{' '.join(key)}: {page} says {stated.get(key)}, now: {result}")
            wrong += 1
    print(f"{len(results) - wrong} of {len(results)} cells are as {page} says")
    return 1 if wrong else 0
