"""A headless Chromium, driven by the WebDriver protocol: plain HTTP and JSON."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
MISSING = (
    None
    if CHROMIUM and DRIVER
    else "no browser: these tests need chromium and chromedriver (Debian: chromium-driver)"
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
    "--window-size=1200,900",
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name for "an element"
KEYS = {
    "right": "\ue014",
    "left": "\ue012",
    "shift": "\ue008",
    "space": " ",
    "tab": "\ue004",
    "escape": "\ue00c",
}


class Browser:
    """One window of a headless Chromium, with its console and its network on record."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._server = f"http://127.0.0.1:{port}"
        self._driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        options = {
            "goog:chromeOptions": {
                "binary": CHROMIUM,
                "args": [*FLAGS, f"--user-data-dir={folder}"],
            },
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        self._session = ""
        try:
            self._wait_for_driver()
            found = self._call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        except BaseException:
            self._driver.kill()
            raise
        self._session = f"/session/{found['sessionId']}"

    def _wait_for_driver(self):
        for _ in range(200):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError("chromedriver did not start within 10 seconds")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def post(self, path, **body):
        return self._call("POST", self._session + path, body)

    def close(self):
        try:
            self._call("DELETE", self._session)
        finally:
            self._driver.terminate()
            self._driver.wait(timeout=20)

    def open(self, url):
        """Load a page, with fresh logs, in a light window of the usual size."""
        self.look()
        self.resize(1200, 900)
        self.post("/url", url="about:blank")
        self.log("browser")
        self.log("performance")
        self.post("/url", url=url)

    def run(self, script, *arguments):
        return self.post("/execute/sync", script=script, args=arguments)

    def log(self, kind):
        """Return what was logged since the last call: "browser" or "performance"."""
        return self.post("/se/log", type=kind)

    def requests(self):
        """Return the addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    def look(self, *, scheme="light"):
        """Prefer light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", media="", features=features)

    def resize(self, width, height):
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def pointer(self, *steps):
        """Move, press and release a mouse: ("move", x, y), "down", "up"."""
        actions = [
            {"type": "pointerMove", "duration": 30, "x": round(step[1]), "y": round(step[2])}
            if step[0] == "move"
            else {"type": "pointerDown" if step == "down" else "pointerUp", "button": 0}
            for step in steps
        ]
        mouse = {"type": "pointer", "id": "mouse", "actions": actions}
        self.post("/actions", actions=[mouse])

    def wheel(self, x, y, by):
        turn = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": by}
        self.post("/actions", actions=[{"type": "wheel", "id": "wheel", "actions": [turn]}])

    def press(self, *keys):
        """Press keys one after the other."""
        actions = [
            {"type": kind, "value": KEYS.get(key, key)}
            for key in keys
            for kind in ("keyDown", "keyUp")
        ]
        self.post("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def hold(self, key):
        actions = [{"type": "keyDown", "value": KEYS[key]}]
        self.post("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def release(self):
        self._call("DELETE", f"{self._session}/actions")

    def settle(self):
        """Wait until the page has drawn."""
        self.post(
            "/execute/async",
            script="const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => done(1)));",
            args=[],
        )

    def screenshot(self, path):
        """Save a picture of the whole page, however long it is."""
        size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
        size["width"] = max(size["width"], self.run("return innerWidth"))  # no scroll bar is drawn
        shot = self.devtools(
            "Page.captureScreenshot",
            captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
        )
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def print_to(self, path):
        """Save the page as a PDF."""
        Path(path).write_bytes(base64.b64decode(self.post("/print", background=True)))
