"""Pages in a headless Chromium: opened from `view --serve` or from a file, watched for errors and requests."""
import contextlib
import json
import subprocess

CHROMIUM = "/usr/bin/chromium"


@contextlib.contextmanager
def served(binary, spec):
    """The address under which `view SPEC --serve` shows it."""
    program = subprocess.Popen([binary, "view", spec, "--serve=0", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        text = ""
        while True:
            line = program.stdout.readline()
            if not line:
                raise AssertionError(f"view --serve ended: {text}")
            text += line
            try:
                yield json.loads(text)["page"]
                return
            except json.JSONDecodeError:
                continue
    finally:
        program.terminate()
        program.wait(20)


class Browser:
    """One Chromium; each page has a context of its own."""

    def __enter__(self):
        from playwright.sync_api import sync_playwright
        self.playwright = sync_playwright().start()
        self.chromium = self.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        return self

    def __exit__(self, *_):
        self.chromium.close()
        self.playwright.stop()

    @contextlib.contextmanager
    def page(self, address, **options):
        """A page that is ready (unless told ready=False), with `errors` (of the console and scripts) and `requests` (those that left the page)."""
        ready = options.pop("ready", True)
        options.setdefault("viewport", {"width": 1280, "height": 800})
        context = self.chromium.new_context(**options)
        page = context.new_page()
        page.errors, page.requests, page.address = [], [], address.split("#")[0]
        page.on("console", lambda m: page.errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: page.errors.append(str(e)))
        own = address.split("#")[0]
        page.on("request", lambda r: None if r.url.startswith((own, "blob:", "data:")) else page.requests.append(r.url))
        page.goto(address)
        if ready:
            page.evaluate("() => hloReplay.ready")
        try:
            yield page
        finally:
            context.close()


def state(page):
    return page.evaluate("() => hloReplay.state()")


def duration(page, name):
    """Milliseconds that the last `name` took."""
    return page.evaluate("n => performance.getEntriesByName(n, 'measure').map(e => e.duration).pop() ?? null", name)


def settled(page, what, value, key, seconds=10):
    """Waits until `key` of the page's state is `value`."""
    for _ in range(seconds * 20):
        found = state(page)[key]
        if found == value:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{what}: {key} is {found!r}, not {value!r}")
