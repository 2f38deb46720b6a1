"""The cases of HTTP/3, and what has to be proved."""

from harness.cases import KB, MB, SLOW, Case, at_least, early, last, number

# Requests after which the server of h3-goaway sends GOAWAY, as src/http3/mod.rs has it.
GOAWAY_AFTER = 8
# As src/http3/flow.rs has them: file n has urgency 7 - n % 8; of one of the least urgent a PRIORITY_UPDATE says that it
# is the most urgent.
MANY = 100
UPDATED = 96
REQUEST_CANCELLED = "0x10c"
# Bytes of the response that the client cancels.
CANCELLED = 10 * MB


def one_connection(ours, peer, relay, role):
    found = number(relay, "sessions")
    return None if found == 1 else f"{found} addresses of the client were seen, expected 1"


def by_urgency(ours, peer, relay, role):
    """The more urgent half of the responses is complete before the less urgent half, on average by a quarter of all."""
    client = ours if role == "server" else peer
    order = [int(name.removeprefix("file-")) for name in client.get("finished", [])]
    if sorted(order) != list(range(MANY)):
        return f"the client saw {len(order)} responses end, expected {MANY}"
    place = {file: at for at, file in enumerate(order)}
    urgent, other = (
        sum(half) / len(half)
        for half in (
            [place[file] for file in order if (7 - file % 8 < 4) == is_urgent and file != UPDATED]
            for is_urgent in (True, False)
        )
    )
    if other - urgent < MANY / 4:
        return f"urgent responses were complete at place {urgent:.0f} on average, others at {other:.0f}"
    if client.get("priority_update") and place[UPDATED] > MANY / 2:
        return f"the response whose urgency was updated was complete at place {place[UPDATED]}"
    return None


def dynamic_table(ours, peer, relay, role):
    """Both directions use the dynamic table: our end counts what it inserts, refers to and receives."""
    wanted = (("table_inserted", 8), ("table_references", 8), ("table_received", 8))
    return next((lack for name, least in wanted if (lack := at_least(ours, name, least))), None)


def uploaded(ours, peer, relay, role):
    return at_least(ours, "uploaded", 3 * MB) if role == "client" else at_least(relay, "up.bytes", 3 * MB)


def trailers(ours, peer, relay, role):
    client = ours if role == "server" else peer
    lost = at_least(client, "response_trailers", 1)
    if lost:
        return lost
    if role == "client" and "1" not in ours.get("request_trailers", []):
        return "our server saw no trailers of a request"
    return at_least(client, "request_trailers", 1)


def cancelled(ours, peer, relay, role):
    if role == "client" and ours.get("stopped", []) != [REQUEST_CANCELLED]:
        return f"our server saw cancellations with {ours.get('stopped')}, expected {REQUEST_CANCELLED}"
    if role == "server" and set(peer.get("stopped", [])) - {REQUEST_CANCELLED}:
        return f"the server saw cancellations with {peer['stopped']}, expected {REQUEST_CANCELLED}"
    sent = number(relay, "session.0.down_bytes")
    if sent > CANCELLED / 2:
        return f"the server sent {sent} B though the client cancelled the larger response"
    return one_connection(ours, peer, relay, role)


def went_away(ours, peer, relay, role):
    client = ours if role == "server" else peer
    if last(client, "refused_after_goaway") != "1":
        return "the client sent a request after GOAWAY"
    lost = at_least(client, "in_progress", 1)
    if lost:
        return f"no request was in progress: {lost}"
    if role == "client" and ours.get("requests") != [str(GOAWAY_AFTER), "1"]:
        return f"our server saw {ours.get('requests')} requests by connection, expected {GOAWAY_AFTER}, then 1"
    return None


def early_requests(ours, peer, relay, role):
    if role == "server":
        return early(ours, peer, relay, role)
    # Then 0-RTT was accepted. A connection that ended by its idle timeout tells no more of itself.
    return at_least(ours, "early_requests", 1) or at_least(relay, "up.zero_rtt", 1)


HTTP3 = [
    Case("h3-100", "100 requests at once, with priorities", (20 * KB,) * MANY, "h3-100", proof=one_connection),
    Case("h3-priority", "the more urgent responses come first", (20 * KB,) * MANY, "h3-100", SLOW, by_urgency),
    Case(
        "h3-headers",
        "20 requests with fields of 200 B each, and one of 6 kB, which come back",
        (1 * KB,) * 20,
        "h3-headers",
        proof=one_connection,
    ),
    Case(
        "h3-dynamic-table",
        "the same, and both ends use the dynamic table of QPACK",
        (1 * KB,) * 20,
        "h3-headers",
        proof=dynamic_table,
    ),
    Case("h3-upload", "a request has a body of 3 MB", (3 * MB,), "h3-upload", proof=uploaded),
    Case("h3-trailers", "request and response have trailers", (10 * KB,), "h3-trailers", proof=trailers),
    Case(
        "h3-cancel",
        "the client cancels a request in mid-response, and sends another",
        (CANCELLED, 100 * KB),
        "h3-cancel",
        SLOW,
        cancelled,
        unsaved=(0,),
    ),
    Case(
        "h3-goaway",
        "the server sends GOAWAY while requests are in progress",
        (300 * KB,) * (GOAWAY_AFTER + 1),
        "h3-goaway",
        SLOW,
        went_away,
    ),
    Case(
        "h3-0rtt",
        "the second connection sends its requests in 0-RTT",
        (5 * KB, 10 * KB, 10 * KB),
        "h3-0rtt",
        ("--delay", "20"),
        early_requests,
    ),
]
