# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, by the DevTools protocol over a pipe: what a page shows, how soon, and how it looks."""
import base64
import glob
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile

from lib import ROOT, Skip, check

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = ("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--force-color-profile=srgb", "--no-first-run", "--disable-extensions")
# Of axe-core: WCAG 2.2, A and AA, of which it runs the size of targets only where asked to, and its own.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Browser:
    """One page at a time; `with Browser() as browser:`."""

    def __init__(self, prefix=()):
        program = next((p for p in map(shutil.which, PROGRAMS) if p), None)
        if program is None:
            raise Skip("there is no Chromium: deploy/setup.sh test")
        self.home = tempfile.mkdtemp(prefix="wpk-browser-")
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4.
        code = "import fcntl, os, sys; a, b = (fcntl.fcntl(f, fcntl.F_DUPFD, 10) for f in (%d, %d)); os.dup2(a, 3);" \
               " os.dup2(b, 4); os.execv(sys.argv[1], sys.argv[1:])" % (read_commands, write_answers)
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", code, program, *SWITCHES, "--user-data-dir=" + self.home, "about:blank"],
            pass_fds=(read_commands, write_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.home})
        os.close(read_commands)
        os.close(write_answers)
        self.rest, self.number, self.events = b"", 0, []
        target = next(t for t in self.ask("Target.getTargets", session=None)["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", session=None, targetId=target["targetId"],
                                flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Runtime.enable")
        self.ask("Log.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.home, ignore_errors=True)

    def receive(self, seconds):
        while b"\0" not in self.rest:
            if not select.select([self.answers], [], [], seconds)[0]:
                raise TimeoutError("Chromium does not answer")
            got = os.read(self.answers, 1 << 20)
            if not got:
                raise RuntimeError("Chromium has died")
            self.rest += got
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, session="", **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(60)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        """Load a page. Returns the complaints of Chromium, such as breaches of its policy."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive(60))
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
        return [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"] + \
            [str(e["params"]["exceptionDetails"]) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]

    def evaluate(self, expression):
        found = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def look(self, width, height, dark=False, forced=False, scale=1, touch=False):
        """The window's size in CSS pixels, and the colours that the user prefers, or forces on every page."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                 mobile=touch)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "forced-colors", "value": "active" if forced else "none"}])

    def first_paint_ms(self):
        return self.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")

    def picture(self, path, whole=False):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def faults(self, rules=RULES):
        """The faults that axe-core finds in the open page."""
        paths = [os.environ.get("WPK_AXE", "")] + glob.glob(os.path.join(
            ROOT, ".deps/test-venv/lib/python3*/site-packages/axe_playwright_python/axe.min.js"))
        path = next((p for p in paths if os.path.exists(p)), None)
        if path is None:
            raise Skip("there is no axe-core: deploy/setup.sh test")
        with open(path, encoding="utf-8") as file:
            self.evaluate(file.read() + "; 0")
        return self.evaluate("axe.run({runOnly: %s}).then(found => found.violations.map(v => v.id + ': ' + v.help + ' ' +"
                             " v.nodes.map(n => n.html.slice(0, 200)).join(' | ')))" % json.dumps(rules))


LOOKS = (("light", (1200, 900)), ("dark", (1200, 900)), ("forced", (1200, 900)), ("phone", (390, 844)))


def check_looks(browser, url, name):
    """The page breaks no policy, is accessible, and is no wider than the window: light, dark, forced colours, phone."""
    for look, size in LOOKS:
        browser.look(*size, dark=look == "dark", forced=look == "forced", touch=look == "phone")
        complaints = browser.open(url)
        check(not complaints, "%s, %s: Chromium complains" % (name, look), complaints)
        if look != "phone":
            faults = browser.faults(["color-contrast"] if look in ("dark", "forced") else RULES)
            check(not faults, "%s, %s: axe-core" % (name, look), faults)
        wide = browser.evaluate("document.documentElement.scrollWidth - innerWidth")
        check(wide <= 0, "%s, %s: wider than the window" % (name, look), wide)
