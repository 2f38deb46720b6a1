"""The peers: how each is built and started, its version, and what it does not offer."""

import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAMS = TARGET / "release"
RELAY = PROGRAMS / "relay"

ROLES = ("client", "server")

# Light to build: CI has them.
CORE = ["quinn", "noq", "h3"]

# Our programs.
OURS = ["hq-quipu", "h3-quipu", "relay"]

ONE_PATH = "it has one path"
STATIC_TABLE = "no dynamic table: it announces no capacity, and encodes by the static table"
NO_URGENCY = "its server does not read priorities"
# Without AES in the processor, as BoringSSL reads it, its server prefers ChaCha20-Poly1305; nothing else can choose.
NO_AES = {"OPENSSL_ia32cap": "~0x200000000000000"}
NOT_AGAIN = (
    "its server does not send again what was under way to the old address and is lost (it passes if that is nothing)"
)
# Reasons by the role of the peer, or for both.
PATHS = ("multipath", "multipath-abandon", "multipath-rebind")


@dataclass
class Peer:
    """An implementation with a program of the common command line."""

    name: str
    argv: list
    version: str = ""
    # Why a case is not run, by role (or None for both) and case.
    reasons: dict = field(default_factory=dict)
    # Why a case fails that is run all the same, by role and case, where that is known.
    failures: dict = field(default_factory=dict)
    # Features of the Rust package that its program needs; the crate with its version is the first, or that one.
    features: tuple = ()
    crate: str = ""
    # What its program needs in its environment, by role and case.
    environment: dict = field(default_factory=dict)

    # It brings cryptography in C or C++, for which a machine may lack the tools.
    is_heavy: bool = False

    # Builds it and returns its version, if Cargo does not.
    build: object = None

    # Its program for HTTP/3, if that is another; none if it has no HTTP/3.
    http3: list = field(default_factory=list)
    # It has hq-interop, too.
    has_hq: bool = True
    roles: tuple = ROLES

    def program(self, case):
        return self.http3 if case.is_http3 else self.argv

    def has(self, case):
        return bool(self.http3) if case.is_http3 else self.has_hq

    def programs(self):
        return [argv for argv in (self.argv if self.has_hq else [], self.http3) if argv]

    def not_offered(self, role, case):
        return self.reasons.get((role, case)) or self.reasons.get((None, case))


def one_path(**reasons):
    """Reasons of a peer with one path; names of cases with `_` for `-`, with the role before them or not."""
    found = {(None, case): ONE_PATH for case in PATHS}
    for name, reason in reasons.items():
        role, _, case = name.partition("_") if name.split("_")[0] in ("server", "client") else (None, "", name)
        found[role, case.replace("_", "-")] = reason
    return found


def build_aioquic():
    """Its packages into a virtual environment, in the versions that are pinned."""
    folder, wanted = TARGET / "aioquic", ROOT / "peers" / "aioquic" / "requirements.txt"
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", wanted], check=True)
    return re.search(r"aioquic==(\S+)", wanted.read_text())[1]


def build_quic_go():
    go = shutil.which("go")
    if go is None:
        raise FileNotFoundError("there is no command go")
    folder = ROOT / "peers" / "quic-go"
    subprocess.run([go, "build", "-mod=readonly", "-o", TARGET / "hq-quic-go", "."], cwd=folder, check=True)
    return re.search(r"quic-go/quic-go v(\S+)", (folder / "go.mod").read_text())[1]


def version_of_chromium():
    """Of the browser that is installed."""
    program = [sys.executable, ROOT / "peers" / "chromium" / "browser.py"]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip()


QUIPU = Peer("quipu", [PROGRAMS / "hq-quipu"], http3=[PROGRAMS / "h3-quipu"])

PEERS = [
    Peer("quinn", [PROGRAMS / "hq-quinn"], features=("quinn",), reasons=one_path(v2="it speaks version 1 alone")),
    Peer(
        "noq",
        [PROGRAMS / "hq-noq"],
        features=("noq",),
        reasons={(None, "v2"): "it speaks version 1 alone"},
    ),
    Peer(
        "h3",
        [],
        has_hq=False,
        http3=[PROGRAMS / "h3-quinn"],
        features=("h3-quinn",),
        crate="h3",
        reasons={
            (None, "h3-dynamic-table"): STATIC_TABLE,
            ("server", "h3-priority"): NO_URGENCY,
        },
        failures={
            ("server", "h3-goaway"): "its GOAWAY names the last request that it accepted, which by RFC 9114, section 5.2, "
            "it does not process; it answers it, and Quipu's client counts it as refused",
        },
    ),
    Peer(
        "aioquic",
        [TARGET / "aioquic" / "bin" / "python", ROOT / "peers" / "aioquic" / "hq_aioquic.py"],
        build=build_aioquic,
        http3=[TARGET / "aioquic" / "bin" / "python", ROOT / "peers" / "aioquic" / "hq_aioquic.py"],
        reasons=one_path(
            statelessreset="it makes random reset tokens, and knows none that it was given",
            ecn="it has no access to ECN marks",
            client_h3_goaway="its client ignores GOAWAY",
            server_h3_priority=NO_URGENCY,
        ),
    ),
    Peer(
        "quic-go",
        [TARGET / "hq-quic-go"],
        build=build_quic_go,
        http3=[TARGET / "hq-quic-go"],
        reasons=one_path(
            v2="it does not change the version of a connection (RFC 9368)",
            client_chacha20="Go's crypto/tls chooses the suites of a client",
            h3_dynamic_table=STATIC_TABLE,
        ),
    ),
    Peer(
        "quiche",
        [PROGRAMS / "hq-quiche"],
        http3=[PROGRAMS / "h3-quiche"],
        features=("quiche",),
        is_heavy=True,
        environment={("server", "chacha20"): NO_AES},
        reasons=one_path(
            v2="it speaks version 1 alone",
            client_keyupdate="it begins no key update, and follows one",
            h3_dynamic_table=STATIC_TABLE,
            ecn="it neither sends ECN marks nor reports them",
        ),
        failures={("server", "rebind-port"): NOT_AGAIN, ("server", "rebind-addr"): NOT_AGAIN},
    ),
    Peer(
        "s2n-quic",
        [PROGRAMS / "hq-s2n-quic"],
        features=("s2n-quic",),
        is_heavy=True,
        reasons=one_path(
            v2="it speaks version 1 alone",
            resumption="its sessions over rustls end with the handshake, so that no ticket is sent or read",
            zerortt="it has no 0-RTT, and drops such packets",
            client_versionnegotiation="its client begins in no version but 1",
            client_keyupdate="it begins a key update only where the limit of the AEAD is near",
            client_connectionmigration="its client does not move",
        ),
        failures={
            ("server", "versionnegotiation"): "it takes the Initial packets of version 2, with which Quipu begins, for "
            "0-RTT packets by the type bits of version 1, and does not answer",
        },
    ),
    Peer(
        "chromium",
        [],
        has_hq=False,
        roles=("client",),
        build=version_of_chromium,
        http3=[sys.executable, ROOT / "peers" / "chromium" / "h3_chromium.py"],
        reasons={("client", "h3-trailers"): "scripts neither send nor see trailers"},
    ),
]


def build(wanted):
    """Builds our programs and those of the peers wanted; without a wish, of all that can be built here."""
    known = {peer.name: peer for peer in PEERS}
    for name in wanted or []:
        if name not in known:
            sys.exit(f"there is no peer {name}; there are: {', '.join(known)}")
    chosen = [known[name] for name in wanted or known]
    rust = [peer for peer in chosen if peer.features]
    heavy = [peer for peer in rust if peer.is_heavy]
    try:
        # At once, so that what they share is compiled once.
        cargo(OURS, rust)
        heavy = []
    except subprocess.CalledProcessError:
        if not heavy:
            raise
        # Which of them it is comes out below.
        cargo(OURS, [peer for peer in rust if not peer.is_heavy])
    built = []
    for peer in chosen:
        try:
            if peer in heavy:
                cargo([], [peer])
            peer.version = peer.build() if peer.build else locked_version(peer.crate or peer.features[0])
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            if wanted:
                sys.exit(f"{peer.name} cannot be built: {error}")
            print(f"{peer.name} cannot be built here and is left out: {error}")
            continue
        built.append(peer)
    return built


def cargo(programs, rust):
    """Builds programs of ours, and those of the peers `rust`."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", ROOT / "Cargo.toml"]
    command += ["--no-default-features", "--features", ",".join(name for peer in rust for name in peer.features)]
    programs = [*programs, *(argv[0].name for peer in rust for argv in peer.programs())]
    subprocess.run([*command, *(part for program in programs for part in ("--bin", program))], check=True)


def locked_version(crate):
    """The version that the lock file names."""
    text = (ROOT / "Cargo.lock").read_text()
    return re.search(rf'name = "{crate}"\nversion = "([^"]+)"', text)[1]


_certificates = {}


def certificates(is_long):
    """A folder with the server's certificate, its key, and what clients trust."""
    if is_long not in _certificates:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="quipu-interop-certificates-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        subprocess.run([QUIPU.argv[0], "certificate", folder, *(["long"] if is_long else [])], check=True)
        _certificates[is_long] = folder
    return _certificates[is_long]
