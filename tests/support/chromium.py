"""A headless Chromium that tests look at pages with, over the DevTools protocol and two pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 60
BLOCK = 1 << 16


class Browser:
    """One page. A message is a JSON text, closed by a zero byte."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        read_ours, write_theirs = os.pipe()
        read_theirs, write_ours = os.pipe()
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
            f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        # Chromium reads from descriptor 3 and writes to descriptor 4; the shell puts the pipes there.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{read_theirs} 4>&{write_theirs}', "bash", *command],
            pass_fds=(read_theirs, write_theirs),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_theirs)
        os.close(write_theirs)
        self.input, self.output = os.fdopen(write_ours, "wb", buffering=0), read_ours
        self.left = b""
        self.number = 0
        self.session: str | None = None
        self.requests: list[str] = []
        self.faults: list[str] = []
        """What the page wrote on its console, and exceptions that nobody caught."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    @classmethod
    @contextmanager
    def begun(cls, profile: Path) -> Iterator[Self]:
        """A browser that is gone when its user is."""
        browser = cls(profile)
        try:
            yield browser
        finally:
            browser.end()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.input.close()
        os.close(self.output)

    def send(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        self.input.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def receive(self) -> Any:
        parts = [self.left]
        while b"\0" not in parts[-1]:
            parts.append(os.read(self.output, BLOCK))
            assert parts[-1], "Chromium has ended"
        text, _, self.left = b"".join(parts).partition(b"\0")
        message = json.loads(text)
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            case "Runtime.exceptionThrown":
                self.faults.append(json.dumps(message["params"]["exceptionDetails"]))
            case "Log.entryAdded" if message["params"]["entry"]["level"] == "error":
                self.faults.append(json.dumps(message["params"]["entry"]))
        return message

    def value(self, expression: str) -> Any:
        """Of an expression; of a promise, what it comes to."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def open(self, address: str, ready: str = "true") -> None:
        """Show a page, until this is true of it."""
        self.send("Page.navigate", url=address)
        self.wait(f"document.readyState === 'complete' && ({ready})")

    def wait(self, condition: str) -> None:
        end = time.monotonic() + SECONDS
        while self.value(condition) is not True:
            assert time.monotonic() < end, f"{condition} did not come true: {self.value('document.body.innerText')}"
            time.sleep(0.05)

    def press(self, key: str, text: str | None = None) -> None:
        """A key as a hand presses it; `text`: what it types."""
        typed = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **typed)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def click(self, selector: str) -> None:
        """A click where an element is shown, as a mouse would: what covers it gets the click."""
        place = self.value(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)}); "
            "element.scrollIntoView({ block: 'center', behavior: 'instant' }); "
            "const { x, y, width, height } = element.getBoundingClientRect(); "
            "return [x + width / 2, y + height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", buttons=1, clickCount=1
            )

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def photograph(self, path: Path, *, whole: bool = True) -> None:
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def text(self, name: str) -> str:
        text: str = self.value(f"document.getElementById('{name}').textContent")
        return text
