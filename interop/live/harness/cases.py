"""The cases: what each asks of relay and endpoints, and what has to be proved.

Names are those of the interop runner where it has the case. Those of HTTP/3 are in `http3.py`.
"""

from dataclasses import dataclass, field

KB = 1_000
MB = 1_000_000

V1 = "0x1"
V2 = "0x6b3343cf"
CHACHA20 = "TLS_CHACHA20_POLY1305_SHA256"

# Slow enough for something to happen in mid-transfer, in bits per second.
SLOW = ("--rate", "20000000")


@dataclass
class Case:
    """What a run is made of."""

    name: str
    text: str
    # Bytes of each file.
    files: tuple
    # What the endpoints are asked for, if it is not the name.
    endpoint: str = "transfer"
    relay: tuple = ()
    # Returns why it failed, or None. Gets the facts of our end, of the peer, of the relay, and the peer's role.
    proof: object = None
    limit: float = 30
    # CI runs it.
    core: bool = True
    long_certificate: bool = False
    # Source addresses of the client.
    via: tuple = ()
    # The server is killed and started again when the relay says so.
    restarts: bool = False
    # The files do not have to arrive.
    without_files: object = field(default=lambda ours, peer: False)
    # Files that do not have to arrive, by their place.
    unsaved: tuple = ()

    @property
    def is_http3(self):
        return self.endpoint.startswith("h3-")


def number(facts, name):
    """The last value of a fact, as a number; 0 if it was not told."""
    return int(facts[name][-1]) if facts.get(name) else 0


def last(facts, name):
    """The last value of a fact."""
    return facts[name][-1] if facts.get(name) else None


def expect(**wanted):
    """Our end's facts have these last values."""

    def proof(ours, peer, relay, role):
        for name, value in wanted.items():
            found = last(ours, name)
            if found != value:
                return f"our end saw {name} {found}, expected {value}"
        return None

    return proof


def at_least(facts, name, least):
    """None, or that there is less of it."""
    found = number(facts, name)
    return None if found >= least else f"{name} is {found}, expected at least {least}"


def retry(ours, peer, relay, role):
    if role == "client" and last(ours, "address_proved") != "1":
        return "our server saw no token of its Retry"
    return at_least(relay, "down.retry", 1) or at_least(relay, "up.initial_with_token", 1)


def resumption(ours, peer, relay, role):
    found = ours.get("resumed", [])
    return None if found == ["0", "1"] else f"our end saw resumed {found}, expected 0, then 1"


def early(ours, peer, relay, role):
    if last(ours, "early") != "accepted":
        return f"our end saw 0-RTT {last(ours, 'early')}, expected accepted"
    return at_least(relay, "up.zero_rtt", 1)


def negotiation(ours, peer, relay, role):
    if role == "server" and last(ours, "version") != V1:
        return f"our client went on in version {last(ours, 'version')}, expected {V1}"
    return at_least(relay, "down.version_negotiation", 1)


def version_2(ours, peer, relay, role):
    if last(ours, "version") != V2:
        return f"our end saw version {last(ours, 'version')}, expected {V2}"
    return at_least(relay, f"up.version.{V1}", 1) or at_least(relay, f"up.version.{V2}", 1)


def key_update(ours, peer, relay, role):
    return at_least(ours, "key_updates", 1)


def one_connection(ours, peer, relay, role):
    return None if number(relay, "sessions") == 1 else "more than one address was used"


def reset(ours, peer, relay, role):
    client = ours if role == "server" else peer
    return at_least(client, "reset", 1)


def spoiled(what):
    """The relay did that to datagrams of both ends."""

    def proof(ours, peer, relay, role):
        return at_least(relay, f"down.{what}", 1)

    return proof


def amplification(ours, peer, relay, role):
    found = number(relay, "amplification_percent")
    if found > 300:
        return f"the server sent {found} % of what it got before it knew the client's address"
    return at_least(relay, "up.lost", 1)


def rebinding(ours, peer, relay, role):
    if role == "client" and not ours.get("migrated"):
        return "our server saw no other address"
    return at_least(relay, "rebound", 1) or at_least(relay, "rebound_down_bytes", 100 * KB)


def migration(ours, peer, relay, role):
    if not ours.get("migrated"):
        return "our end saw no migration"
    return at_least(relay, "session.1.down_bytes", 100 * KB)


def ecn(ours, peer, relay, role):
    # The server's packets are marked by the relay; it goes on with ECN only if the client's reports add up.
    total, marked = number(relay, "down.datagrams"), number(relay, "down.ect0")
    if role == "client":
        lost = at_least(ours, "packets_marked", 1)
        if lost:
            return f"our server was told of no marks: {lost}"
    if marked * 2 < total:
        return f"{marked} of the server's {total} datagrams were ECT(0), expected at least half"
    return at_least(relay, "up.ect0", 5)


def two_paths(ours, peer, relay, role):
    for session in (0, 1):
        found = at_least(relay, f"session.{session}.down_bytes", 100 * KB)
        if found:
            return f"a path was not used: {found}"
    ups = ours.get("path_up", [])
    return None if "1" in ups else f"our end saw paths {ups} become usable, expected 1"


def abandoned(ours, peer, relay, role):
    if "0" not in ours.get("path_gone", []):
        return "our end did not see path 0 go"
    return two_paths(ours, peer, relay, role)


def path_rebound(ours, peer, relay, role):
    # The server follows, and the path is used on: what went over it before is not counted.
    if role == "client" and not ours.get("migrated"):
        return "our server saw no other address"
    lost = at_least(relay, "rebound", 1) or at_least(relay, "rebound_down_bytes", 100 * KB)
    return lost or two_paths(ours, peer, relay, role)


BOTH = ("127.0.0.1", "127.0.0.2")

CASES = {
    case.name: case
    for case in [
        Case("handshake", "one connection, 1 kB", (1 * KB,), "handshake"),
        Case("transfer", "2, 3 and 5 MB at once", (2 * MB, 3 * MB, 5 * MB)),
        Case(
            "multiplexing",
            "300 files of 32 B on one connection that allows 100 streams at once",
            (32,) * 300,
            "multiplexing",
            proof=one_connection,
        ),
        Case("retry", "the server asks for a proof of the address", (10 * KB,), "retry", proof=retry),
        Case("resumption", "the second connection resumes a session", (5 * KB, 10 * KB), "resumption", proof=resumption),
        Case("zerortt", "the second connection asks in 0-RTT", (5 * KB, 10 * KB, 10 * KB), "zerortt", ("--delay", "20"), early),
        Case(
            "versionnegotiation",
            "the client begins in a version that the server does not speak",
            (10 * KB,),
            "versionnegotiation",
            proof=negotiation,
            without_files=lambda ours, peer: last(peer, "version_mismatch") == "1",
        ),
        Case("v2", "from version 1 on to version 2", (10 * KB,), "v2", proof=version_2),
        Case("keyupdate", "the client begins the next key phase", (3 * MB,), "keyupdate", SLOW, key_update),
        Case("chacha20", "ChaCha20-Poly1305 is agreed on", (1 * MB,), "chacha20", proof=expect(suite=CHACHA20)),
        Case(
            "statelessreset",
            "the server is killed and started again",
            (10 * MB,),
            "statelessreset",
            (*SLOW, "--delay", "300", "--after", "500000"),
            reset,
            restarts=True,
            without_files=lambda ours, peer: True,
        ),
        Case("loss", "2 % of datagrams are lost", (2 * MB,), relay=("--loss", "0.02"), proof=spoiled("lost")),
        Case(
            "corruption",
            "a bit of 2 % of datagrams is changed",
            (2 * MB,),
            relay=("--corrupt", "0.02"),
            proof=spoiled("changed"),
        ),
        Case(
            "reordering",
            "5 % of datagrams come 10 ms late",
            (2 * MB,),
            relay=(*SLOW, "--delay", "10", "--reorder", "0.05"),
            proof=spoiled("overtaken"),
        ),
        Case("longrtt", "a round trip takes 1 s", (100 * KB,), relay=("--delay", "500"), limit=60, core=False),
        Case(
            "amplificationlimit",
            "a long certificate, and the client's datagrams 2 to 7 are lost",
            (5 * KB,),
            relay=("--drop-client", "2..7"),
            proof=amplification,
            long_certificate=True,
            limit=60,
        ),
        Case(
            "blackhole",
            "nothing passes for 2 s in mid-transfer",
            (5 * MB,),
            relay=(*SLOW, "--after", "500000", "--silent", "2000"),
            proof=spoiled("lost"),
            limit=60,
            core=False,
        ),
        Case(
            "rebind-port",
            "the client's port changes in mid-transfer",
            (5 * MB,),
            relay=(*SLOW, "--after", "500000", "--rebind", "port"),
            proof=rebinding,
        ),
        Case(
            "rebind-addr",
            "the client's address changes in mid-transfer",
            (5 * MB,),
            relay=(*SLOW, "--after", "500000", "--rebind", "address"),
            proof=rebinding,
        ),
        Case(
            "connectionmigration",
            "the client moves to another address in mid-transfer",
            (5 * MB,),
            "connectionmigration",
            SLOW,
            migration,
            via=("127.0.0.2",),
        ),
        Case(
            "ecn",
            "both ends mark, the relay marks 2 % CE, and the client reports it",
            (2 * MB,),
            "ecn",
            ("--mark", "0.02"),
            ecn,
        ),
        Case(
            "multipath",
            "two paths of 20 Mbit/s, both validated and used",
            (5 * MB,),
            "multipath",
            (*SLOW, "--delay", "5"),
            two_paths,
            via=BOTH,
        ),
        Case(
            "multipath-abandon",
            "the client abandons the first of two paths in mid-transfer",
            (5 * MB,),
            "multipathabandon",
            (*SLOW, "--delay", "5"),
            abandoned,
            via=BOTH,
        ),
        Case(
            "multipath-rebind",
            "the client's port changes on the second of two paths in mid-transfer",
            (8 * MB,),
            "multipath",
            (*SLOW, "--delay", "5", "--after", "300000", "--rebind", "port", "--session", "1"),
            path_rebound,
            via=BOTH,
        ),
    ]
}
