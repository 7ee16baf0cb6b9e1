"""A headless Chromium for tests, driven through chromedriver's HTTP interface (W3C WebDriver) with the standard library alone."""

import base64
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key under which WebDriver hands out elements
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
FLAGS = ("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking")
FLAGS += ("disable-component-update", "disable-sync", "disable-dev-shm-usage", "window-size=1280,900")


def programs() -> tuple[str, str]:
    """Chromium and its driver. Where they are not installed the test is skipped with that reason, in CI it fails."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        message = "chromium and chromedriver are not installed (Debian: apt-get install chromium chromium-driver)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return chromium, driver


class Browser:
    """One session. Use as a context manager: both processes end with it."""

    def __init__(self, profile: Path):
        self.chromium, driver = programs()
        self.profile = profile
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.session = None

    def __enter__(self) -> "Browser":
        try:
            for line in self.process.stdout:
                if port := re.search(r"started successfully on port (\d+)", line):
                    self.server = f"http://127.0.0.1:{port[1]}"
                    break
            options = {"binary": self.chromium, "args": [*(f"--{flag}" for flag in FLAGS), f"--user-data-dir={self.profile}"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
            self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.session:
            self.call("DELETE", f"/session/{self.session}")
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()

    def call(self, method: str, path: str, body: dict | None = None) -> object:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.read().decode()[:500]}") from None

    def ask(self, command: str, body: dict | None = None) -> object:
        return self.call("GET" if body is None else "POST", f"/session/{self.session}/{command}", body)

    def open(self, path: Path) -> None:
        """Open a file; what the browser loaded before it, such as its own start page, is forgotten."""
        self.ask("url", {"url": "about:blank"})
        self.requested(), self.console()
        self.ask("url", {"url": path.resolve().as_uri()})

    def run(self, script: str, *arguments: object) -> object:
        """The value of a JavaScript function body."""
        return self.ask("execute/sync", {"script": script, "args": list(arguments)})

    def reload(self) -> None:
        self.ask("refresh", {})

    def show(self, selector: str) -> None:
        """Scroll to an element and wait until that is done, events included."""
        frames = "const done = arguments[1]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));"
        script = "document.querySelector(arguments[0]).scrollIntoView({block: 'center'});" + frames
        self.ask("execute/async", {"script": script, "args": [selector]})

    def find(self, selector: str) -> dict:
        return self.ask("element", {"using": "css selector", "value": selector})

    def click(self, selector: str) -> None:
        """A real click, in the middle of the window: it fails where something lies over the element."""
        self.show(selector)
        self.ask(f"element/{self.find(selector)[ELEMENT]}/click", {})

    def point_at(self, selector: str) -> None:
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": self.find(selector)}
        self.ask("actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def press(self, *names: str) -> None:
        strokes = [{"type": kind, "value": KEYS[name]} for name in names for kind in ("keyDown", "keyUp")]
        self.ask("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def type(self, selector: str, text: str) -> None:
        """Type into a field, after what is in it."""
        self.ask(f"element/{self.find(selector)[ELEMENT]}/value", {"text": text})

    def resize(self, width: int, height: int) -> None:
        """The inside of the window, narrower than a window may be as well."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": size})

    def prefer(self, scheme: str) -> None:
        """Pretend that the system prefers light or dark colours."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def console(self) -> list[str]:
        """Warnings and errors since the last call."""
        entries = self.ask("se/log", {"type": "browser"})
        return [f"{entry['level']}: {entry['message']}" for entry in entries if entry["level"] in ("WARNING", "SEVERE")]

    def requested(self) -> list[str]:
        """Addresses the page asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.ask("se/log", {"type": "performance"})]
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]

    def screenshot(self) -> bytes:
        return base64.b64decode(self.ask("screenshot"))
