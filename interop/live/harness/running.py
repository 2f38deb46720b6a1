"""One run: a server, the relay, a client, and what they told."""

import os
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from harness import peers

# A server that does not listen by then never will.
START = 20
# Servers tell of connections that clients closed.
REST = 1.5


class Program:
    """A process that tells facts on its standard output."""

    def __init__(self, argv, log, environment=None):
        self.facts = {}
        self.changed = threading.Condition()
        self.errors = open(log, "w+b")
        self.process = subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            words = line.split(maxsplit=2)
            if len(words) == 3 and words[0] == "fact":
                with self.changed:
                    self.facts.setdefault(words[1], []).append(words[2].strip())
                    self.changed.notify_all()

    def wait_for(self, name, seconds):
        """The first value of a fact; None if it was not told in time."""
        with self.changed:
            self.changed.wait_for(lambda: name in self.facts or self.process.poll() is not None, seconds)
            return self.facts.get(name, [None])[0]

    def wait(self, seconds):
        """The exit code; None if it runs longer."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end_input(self):
        """Its standard input ends."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def end(self):
        """Ends it, politely first."""
        if self.process.poll() is None:
            self.process.terminate()
            if self.wait(2) is None:
                self.kill()
        self.reader.join(2)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def last_error(self):
        """The last line of what it complained about."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:160] if lines else "no message"


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def run(peer, role, case, seed, keep):
    """The text of a cell."""
    with tempfile.TemporaryDirectory(prefix="quipu-interop-") as folder:
        folder = pathlib.Path(folder)
        try:
            return run_in(folder, peer, role, case, seed)
        finally:
            if keep:
                kept = keep / f"{peer.name}-{role}-{case.name}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(folder / "logs", kept)


def run_in(folder, peer, role, case, seed):
    www, downloads, logs = (folder / name for name in ("www", "downloads", "logs"))
    for made in (www, downloads, logs):
        made.mkdir()
    chance = random.Random(f"{case.name} {seed}")
    files = {f"file-{at}": chance.randbytes(size) for at, size in enumerate(case.files)}
    for name, content in files.items():
        (www / name).write_bytes(content)
    certs = peers.certificates(case.long_certificate)
    ends = {"server": peer, "client": peers.QUIPU} if role == "server" else {"server": peers.QUIPU, "client": peer}

    port = free_port()
    serve = ["server", "--case", case.endpoint, "--listen", f"127.0.0.1:{port}", "--cert", certs / "cert.pem"]
    serve += ["--key", certs / "priv.key", "--www", www]
    serve = [*ends["server"].program(case), *serve]
    programs = []

    def start(argv, name):
        is_peers = name.startswith(role)
        environment = peer.environment.get((role, case.name)) if is_peers else None
        program = Program(argv, logs / f"{name}.txt", environment)
        programs.append(program)
        return program

    try:
        server = start(serve, "server")
        if server.wait_for("listening", START) is None:
            return unsupported(server, "server") or f"fail: the server did not start: {server.last_error()}"
        relay = start(
            [peers.RELAY, "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{port}", "--seed", seed, *case.relay], "relay"
        )
        address = relay.wait_for("relay", START)
        if address is None:
            return f"fail: the relay did not start: {relay.last_error()}"
        fetch = [*ends["client"].program(case), "client", "--case", case.endpoint, "--ca", certs / "ca.pem"]
        fetch += ["--downloads", downloads, *(part for via in case.via for part in ("--via", via))]
        client = start([*fetch, *(f"https://localhost:{address.split(':')[-1]}/{name}" for name in files)], "client")
        again = None
        if case.restarts:
            relay.wait_for("reached", case.limit)
            server.kill()
            again = start(serve, "server-again")
        code = client.wait(case.limit)
        if code == 127:
            return unsupported(client, "client")
        if code is None:
            return f"fail: not done after {case.limit:.0f} s"
        # The server has yet to tell what it saw.
        if ends["server"] is peers.QUIPU and not again:
            wait_until(lambda: len(server.facts.get("closed", [])) >= 1, REST)
            time.sleep(0.1)
    finally:
        # The relay tells what it saw when its input ends.
        for program in programs:
            program.end_input()
        for program in programs:
            if program.process.args[0] == str(peers.RELAY):
                program.wait(5)
            program.end()
            tell(program, logs)
    if code != 0:
        return f"fail: the client ended with {code}: {client.last_error()}"
    ours, theirs = (client, server) if role == "server" else (server, client)
    if not case.without_files(ours.facts, theirs.facts):
        for at, (name, content) in enumerate(files.items()):
            if at in case.unsaved:
                continue
            arrived = downloads / name
            if not arrived.is_file():
                return f"fail: {name} did not arrive"
            if arrived.read_bytes() != content:
                return f"fail: {name} arrived with other bytes"
    reason = case.proof(ours.facts, theirs.facts, relay.facts, role) if case.proof else None
    return f"fail: {reason}" if reason else "pass"


def unsupported(program, role):
    if program.wait(1) == 127:
        return f"not offered: the {role}'s program has no such case"
    return None


def wait_until(true, seconds):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)


def tell(program, logs):
    """Keeps its facts beside its complaints."""
    with open(logs / (pathlib.Path(program.errors.name).stem + ".facts.txt"), "w") as out:
        for name, values in program.facts.items():
            out.writelines(f"{name} {value}\n" for value in values)
