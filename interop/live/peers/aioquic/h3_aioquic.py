"""HTTP/3 by aioquic: what src/http3 says of each case."""

import asyncio
import pathlib
import urllib.parse

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import ErrorCode, FrameType, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events

ALPN = ["h3"]
# As src/http3 has them.
GOAWAY_AFTER = 8
CANCEL_AFTER = 200_000
LARGE_FIELDS, LARGE_VALUE, LARGEST_VALUE = 8, 200, 6_000

CASES = {
    "both": {"h3-100", "h3-headers", "h3-upload", "h3-trailers", "h3-cancel", "h3-0rtt"},
    "server": {"h3-goaway"},
}


def fact(name, value):
    print("fact", name, value, flush=True)


class Message:
    """What came on a stream."""

    def __init__(self):
        self.fields, self.body, self.trailers, self.is_over = None, bytearray(), None, False

    def take(self, event):
        if isinstance(event, DataReceived):
            self.body.extend(event.data)
        elif self.fields is None:
            self.fields = event.headers
        else:
            self.trailers = event.headers
        self.is_over = event.stream_ended

    def field(self, name):
        return next((value for key, value in self.fields if key == name), None)


class Server(QuicConnectionProtocol):
    """Answers requests."""

    www = pathlib.Path("/www")
    case = ""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = None
        self.requests = {}
        self.answered = 0

    def quic_event_received(self, event):
        if isinstance(event, events.ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        elif isinstance(event, events.ConnectionTerminated):
            fact("requests", self.answered)
            fact("closed", event.reason_phrase or event.error_code)
        elif isinstance(event, events.StopSendingReceived):
            fact("stopped", hex(event.error_code))
        if self.http is None:
            return
        for got in self.http.handle_event(event):
            if isinstance(got, (DataReceived, HeadersReceived)):
                request = self.requests.setdefault(got.stream_id, Message())
                request.take(got)
                if request.is_over:
                    self.answer(got.stream_id, self.requests.pop(got.stream_id))

    def answer(self, stream, request):
        self.answered += 1
        if self.case == "h3-goaway" and self.answered == GOAWAY_AFTER:
            self.go_away()
        status, body = b"200", bytes(request.body)
        if request.field(b":method") != b"POST":
            path = request.field(b":path").decode()
            file = (self.www / path.removeprefix("/")).resolve()
            found = file.is_relative_to(self.www.resolve()) and file.is_file()
            status, body = (b"200", file.read_bytes()) if found else (b"404", b"")
        fields = [(b":status", status), (b"content-length", str(len(body)).encode())]
        fields += [(name, value) for name, value in request.fields if name.startswith(b"x-")]
        fact("request_trailers", int(request.trailers is not None))
        self.http.send_headers(stream, fields)
        has_trailers = self.case == "h3-trailers"
        self.http.send_data(stream, body, end_stream=not has_trailers)
        if has_trailers:
            last = [*(request.trailers or []), (b"x-octets", str(len(body)).encode())]
            self.http.send_headers(stream, last, end_stream=True)
        self.transmit()

    def go_away(self):
        """aioquic has no call for it."""
        frame = encode_frame(FrameType.GOAWAY, encode_uint_var(4 * GOAWAY_AFTER))
        self._quic.send_stream_data(self.http._local_control_stream_id, frame)
        fact("goaway_sent", 1)


class Client(QuicConnectionProtocol):
    """Sends requests."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        # By stream: what came, the future of all of it, and bytes of the body after which the request is cancelled.
        self.requests = {}

    def ask(self, url, method="GET", fields=(), body=b"", trailers=(), stop_after=None):
        """Sends a request at once; what is returned waits for the response."""
        stream = self._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        self.requests[stream] = (Message(), done, stop_after)
        parts = urllib.parse.urlsplit(url)
        head = [(":method", method), (":scheme", "https"), (":authority", parts.netloc), (":path", parts.path), *fields]
        head = [(name.encode(), value.encode()) for name, value in head]
        has_body = bool(body or trailers)
        self.http.send_headers(stream, head, end_stream=not has_body)
        if has_body:
            self.http.send_data(stream, body, end_stream=not trailers)
        if trailers:
            self.http.send_headers(stream, list(trailers), end_stream=True)
        self.transmit()
        return done

    def quic_event_received(self, event):
        if isinstance(event, events.StreamReset) and event.stream_id in self.requests:
            self.fail(event.stream_id, f"the server reset the stream with {event.error_code:#x}")
        elif isinstance(event, events.ConnectionTerminated):
            for stream in self.requests:
                self.fail(stream, f"closed with {event.error_code:#x}: {event.reason_phrase}")
        for got in self.http.handle_event(event):
            if isinstance(got, (DataReceived, HeadersReceived)):
                response, done, stop_after = self.requests[got.stream_id]
                response.take(got)
                if stop_after is not None and len(response.body) >= stop_after and not done.done():
                    self._quic.stop_stream(got.stream_id, ErrorCode.H3_REQUEST_CANCELLED)
                    done.set_result(response)
                elif response.is_over and not done.done():
                    self.check(response, done)

    def check(self, response, done):
        status = response.field(b":status")
        if status == b"200":
            done.set_result(response)
        else:
            done.set_exception(ConnectionError(f"status {status}"))

    def fail(self, stream, why):
        _, done, _ = self.requests[stream]
        if not done.done():
            done.set_exception(ConnectionError(why))


async def fetch(options, client, urls):
    """Does what the case is about, and saves the files."""
    case = {"h3-headers": headers, "h3-upload": echo, "h3-trailers": echo, "h3-cancel": cancel}
    await case.get(options.case, together)(options, client, urls)


def save(options, url, response):
    (options.downloads / url.rsplit("/", 1)[-1]).write_bytes(response.body)


async def together(options, client, urls):
    async def one(at, url):
        response = await client.ask(url, fields=[("priority", f"u={7 - at % 8}")])
        save(options, url, response)
        fact("finished", url.rsplit("/", 1)[-1])

    await asyncio.gather(*(one(at, url) for at, url in enumerate(urls)))


async def headers(options, client, urls):
    for at, url in enumerate(urls):
        sent = [(f"x-large-{number}", large(number, LARGE_VALUE)) for number in range(LARGE_FIELDS)]
        if at + 1 == len(urls):
            sent.append(("x-largest", large(LARGE_FIELDS, LARGEST_VALUE)))
        response = await client.ask(url, fields=sent)
        for name, value in sent:
            if response.field(name.encode()) != value.encode():
                raise ConnectionError(f"{name} came back with another value")
        save(options, url, response)


def large(number, size):
    return "".join(chr(ord("a") + (at * 7 + number) % 26) for at in range(size))


async def echo(options, client, urls):
    body = bytes((await client.ask(urls[0])).body)
    has_trailers = options.case == "h3-trailers"
    sent = [(b"x-last", b"sent behind the body")] if has_trailers else []
    length = [("content-length", str(len(body)))]
    response = await client.ask(urls[0], method="POST", fields=length, body=body, trailers=sent)
    if has_trailers:
        got = dict(response.trailers or [])
        if got.get(b"x-octets") != str(len(body)).encode():
            raise ConnectionError(f"the response has the trailers {got}")
        fact("response_trailers", 1)
        fact("request_trailers", int(got.get(b"x-last") == sent[0][1]))
    save(options, urls[0], response)


async def cancel(options, client, urls):
    response = await client.ask(urls[0], stop_after=CANCEL_AFTER)
    if response.is_over:
        raise ConnectionError("the response ended before it was cancelled")
    fact("cancelled", len(response.body))
    for url in urls[1:]:
        save(options, url, await client.ask(url))
