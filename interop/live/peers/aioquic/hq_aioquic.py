#!/usr/bin/env python3
"""aioquic as a peer, with the command line that all peers have: see src/args.rs. HTTP/3 is in h3_aioquic.py."""

import argparse
import asyncio
import pathlib
import socket
import sys
import urllib.parse

import h3_aioquic
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

ALPN = ["hq-interop"]
UNSUPPORTED = 127
# Nobody speaks it.
RESERVED = 0x1A2A3A4A
V1, V2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2
# Bytes that have come when a client does what its case is about.
SOME = 200_000

CASES = {
    "handshake", "transfer", "multiplexing", "multiconnect", "retry", "resumption", "zerortt", "versionnegotiation",
    "v2", "keyupdate", "chacha20", "connectionmigration",
}  # fmt: skip

# The second connection resumes the session of the first.
TWICE = ("resumption", "zerortt", "h3-0rtt")


def fact(name, value):
    print("fact", name, value, flush=True)


def is_http3(options):
    return options.case.startswith("h3-")


def configuration(options, is_client):
    alpn = h3_aioquic.ALPN if is_http3(options) else ALPN
    made = QuicConfiguration(alpn_protocols=alpn, is_client=is_client, max_data=1 << 24, max_stream_data=1 << 23)
    made.supported_versions = [V1]
    if options.case == "v2":
        made.supported_versions = [V2, V1]
        if is_client:
            made.original_version = V1
    if options.case == "versionnegotiation" and is_client:
        made.supported_versions = [RESERVED, V1]
    if options.case == "chacha20":
        made.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    return made


class Server(QuicConnectionProtocol):
    """Answers requests with files."""

    www = pathlib.Path("/www")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.requests = {}

    def quic_event_received(self, event):
        if isinstance(event, events.ConnectionTerminated):
            fact("closed", event.reason_phrase or event.error_code)
        if not isinstance(event, events.StreamDataReceived):
            return
        request = self.requests.setdefault(event.stream_id, bytearray())
        request.extend(event.data)
        if event.end_stream:
            self.answer(event.stream_id, bytes(self.requests.pop(event.stream_id)))

    def answer(self, stream, request):
        name = request.decode(errors="replace").strip().removeprefix("GET /")
        file = (self.www / name).resolve()
        if not request.startswith(b"GET /") or not file.is_relative_to(self.www.resolve()) or not file.is_file():
            self._quic.reset_stream(stream, 1)
        else:
            self._quic.send_stream_data(stream, file.read_bytes(), end_stream=True)
        self.transmit()


class Client(QuicConnectionProtocol):
    """Fetches files."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.answers = {}
        self.received = 0
        self.some = asyncio.Event()
        self.ended = None

    def fetch(self, path):
        """Asks at once; what is returned waits for the answer."""
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = (bytearray(), asyncio.get_running_loop().create_future())
        self._quic.send_stream_data(stream, f"GET {path}\r\n".encode(), end_stream=True)
        return self.answers[stream][1]

    def quic_event_received(self, event):
        if isinstance(event, events.StreamDataReceived):
            content, done = self.answers[event.stream_id]
            content.extend(event.data)
            self.received += len(event.data)
            if self.received >= SOME:
                self.some.set()
            if event.end_stream:
                done.set_result(bytes(content))
        elif isinstance(event, events.StreamReset):
            self.answers[event.stream_id][1].set_exception(ConnectionError("the server reset the stream"))
        elif isinstance(event, events.ConnectionTerminated):
            self.some.set()
            for _, done in self.answers.values():
                if not done.done():
                    done.set_exception(ConnectionError(f"closed with {event.error_code}: {event.reason_phrase}"))


async def run_server(options):
    made = configuration(options, False)
    made.load_cert_chain(options.cert, options.key)
    protocol = h3_aioquic.Server if is_http3(options) else Server
    protocol.www, protocol.case = options.www, options.case
    tickets = {}
    host, _, port = options.listen.rpartition(":")
    await serve(
        host.strip("[]"),
        int(port),
        configuration=made,
        create_protocol=protocol,
        retry=options.case == "retry",
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
    )
    fact("listening", options.listen)
    await asyncio.Event().wait()


async def run_client(options):
    tickets = []
    paths = [options.urls]
    if options.case in TWICE:
        paths = [options.urls[:1], options.urls[1:]]
    elif options.case == "multiconnect":
        paths = [[url] for url in options.urls]
    for urls in paths:
        await fetch_all(options, urls, tickets)


async def fetch_all(options, urls, tickets):
    made = configuration(options, True)
    made.load_verify_locations(options.ca)
    first = urllib.parse.urlsplit(urls[0])
    made.server_name = first.hostname
    made.session_ticket = tickets.pop() if tickets else None
    remote = (socket.gethostbyname(first.hostname), first.port or 443)
    is_early = options.case in ("zerortt", "h3-0rtt") and made.session_ticket is not None
    quic = QuicConnection(configuration=made, session_ticket_handler=tickets.append)
    loop = asyncio.get_running_loop()
    protocol = h3_aioquic.Client if is_http3(options) else Client
    _, client = await loop.create_datagram_endpoint(lambda: protocol(quic), local_addr=("0.0.0.0", 0))
    client.connect(remote, transmit=not is_early)
    if not is_early:
        await client.wait_connected()
    if is_http3(options):
        await h3_aioquic.fetch(options, client, urls)
    else:
        await fetch_files(options, client, urls)
    if options.case in TWICE and not tickets and urls == options.urls[:1]:
        await asyncio.sleep(1)
    client.close()
    await client.wait_closed()


async def fetch_files(options, client, urls):
    parts = [urllib.parse.urlsplit(url).path for url in urls]
    waiting = [client.fetch(path) for path in parts]
    client.transmit()
    if options.case == "keyupdate":
        await client.some.wait()
        client.request_key_update()
    elif options.case == "connectionmigration":
        await client.some.wait()
        # The protocol sends by the transport that was made last.
        address = options.via[0] if options.via else "0.0.0.0"
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: client, local_addr=(address, 0))
        client.change_connection_id()
    for path, content in zip(parts, await asyncio.gather(*waiting)):
        (options.downloads / path.rsplit("/", 1)[-1]).write_bytes(content)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["client", "server"])
    parser.add_argument("--case", default="transfer")
    parser.add_argument("--listen", default="[::]:443")
    parser.add_argument("--cert", default="/certs/cert.pem")
    parser.add_argument("--key", default="/certs/priv.key")
    parser.add_argument("--www", type=pathlib.Path, default="/www")
    parser.add_argument("--ca", default="/certs/ca.pem")
    parser.add_argument("--downloads", type=pathlib.Path, default="/downloads")
    parser.add_argument("--via", action="append", default=[])
    parser.add_argument("urls", nargs="*")
    options = parser.parse_intermixed_args()
    if options.case not in CASES | h3_aioquic.CASES["both"] | h3_aioquic.CASES.get(options.role, set()):
        print(f"test case {options.case!r} is not supported", file=sys.stderr)
        sys.exit(UNSUPPORTED)
    asyncio.run(run_client(options) if options.role == "client" else run_server(options))


if __name__ == "__main__":
    main()
