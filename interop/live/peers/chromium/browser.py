"""A Chromium without a window, driven over the pipe of the DevTools protocol, <https://chromedevtools.github.io/>."""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# Seconds of silence after which Chromium and its server forget a connection: the field trial of its QUIC.
IDLE = 2
# Connections are opened for requests, and not in advance.
PREFERENCES = {"net": {"network_prediction_options": 2}}
# It has an icon, so that none is requested.
PAGE = b'<!doctype html><title>Interop</title><link rel="icon" href="data:,">'


def program():
    """The first of the programs that there is."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise FileNotFoundError("there is no Chromium")
    return found


def version():
    """Of that program, such as 156.0."""
    told = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"\d+\.\d+", told)[0]


def public_key_hash(certificate):
    """SHA-256 of the key of a certificate, as Chromium's option wants it."""

    def openssl(*arguments, given):
        return subprocess.run(["openssl", *arguments], input=given, capture_output=True, check=True).stdout

    key = openssl("x509", "-pubkey", "-noout", given=pathlib.Path(certificate).read_bytes())
    octets = openssl("pkey", "-pubin", "-outform", "der", given=key)
    return base64.b64encode(hashlib.sha256(octets).digest()).decode()


class Browser:
    """A browser with one empty page of `origin`, at which it uses HTTP/3 from the first request on."""

    def __init__(self, origin, certificate):
        self.profile = tempfile.TemporaryDirectory(prefix="quipu-interop-chromium-", ignore_cleanup_errors=True)
        default = pathlib.Path(self.profile.name, "Default")
        default.mkdir()
        (default / "Preferences").write_text(json.dumps(PREFERENCES))
        there, self.commands = os.pipe()
        messages, back = os.pipe()
        place = origin.removeprefix("https://")
        arguments = [
            program(),
            "--headless",
            "--no-sandbox",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.profile.name}",
            f"--origin-to-force-quic-on={place}",
            "--host-resolver-rules=MAP localhost 127.0.0.1",
            f"--ignore-certificate-errors-spki-list={public_key_hash(certificate)}",
            # 0-RTT is off by default.
            "--enable-features=EnableTLS13EarlyData",
            "--force-fieldtrials=QUIC/Enabled/",
            f"--force-fieldtrial-params=QUIC.Enabled:idle_connection_timeout_seconds/{IDLE}",
        ]
        # Chromium reads commands at 3, and writes messages at 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{there} 4>&{back}', "sh", *arguments],
            pass_fds=(there, back),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(there)
        os.close(back)
        self.messages = os.fdopen(messages, "rb")
        self.rest = b""
        self.last = 0
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.open_page(origin)

    def open_page(self, origin):
        """The page itself does not come from the server, whose files are no pages."""
        self.call("Page.enable")
        page = f"{origin}/page"
        self.call("Fetch.enable", patterns=[{"urlPattern": page}])
        navigated = self.send("Page.navigate", url=page)
        asked = self.wait(lambda message: message.get("method") == "Fetch.requestPaused")["params"]["requestId"]
        fields = [{"name": "content-type", "value": "text/html"}]
        body = base64.b64encode(PAGE).decode()
        filled = self.send("Fetch.fulfillRequest", requestId=asked, responseCode=200, responseHeaders=fields, body=body)
        waiting = {navigated, filled}
        while waiting:
            waiting.discard(self.wait(lambda message: message.get("id") in waiting)["id"])
        self.call("Fetch.disable")

    def run(self, script):
        """What the promise of an expression becomes."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        failure = done.get("exceptionDetails")
        if failure:
            raise ConnectionError(failure.get("exception", {}).get("description", failure["text"]))
        return done["result"].get("value")

    def call(self, method, **params):
        sent = self.send(method, **params)
        message = self.wait(lambda message: message.get("id") == sent)
        if "error" in message:
            raise ConnectionError(f"{method}: {message['error']['message']}")
        return message["result"]

    def send(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        return self.last

    def wait(self, wanted):
        """The next message that is wanted; those before it are passed over."""
        while True:
            message, end, rest = self.rest.partition(b"\0")
            if end:
                self.rest = rest
                message = json.loads(message)
                if wanted(message):
                    return message
                continue
            octets = self.messages.read1(1 << 20)
            if not octets:
                raise ConnectionError("Chromium ended")
            self.rest += octets

    def end(self):
        """Ends it with all its processes."""
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.profile.cleanup()


if __name__ == "__main__":
    print(version())
