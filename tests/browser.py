"""The browser that the view tests drive: where it is, how it is started, what it may ask for."""

import os
import shutil
from contextlib import contextmanager
from urllib.parse import urlsplit

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: WebGPU without a GPU, by SwiftShader
WEBGPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"]
#: milliseconds that a page has for what is asked of it: a busy machine is slow, not wrong
PATIENCE = 90_000


def chromium_path():
    """Path of a Chromium: $CHROMIUM, one on the PATH, or Playwright's own; None where none is."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        return own if os.path.exists(own) else None


def is_local(url: str) -> bool:
    """Whether a request stays on this machine."""
    parts = urlsplit(url)
    if parts.scheme in ("file", "data", "blob", "about", "chrome-error"):
        return True
    return parts.hostname in ("127.0.0.1", "localhost", "::1")


@contextmanager
def open_page(browser, *, scheme="light", width=1280, height=900, scale=1.0,
              ours=lambda error: True):
    """A page in a context of its own that fails the test if it looks beyond the machine. `scale`:
    pixels of the screen for one of the page, along a side.

    Yields the page. When the block ends, asserts that no request left the machine and that no
    uncaught error was thrown in the page, of those for which `ours(error)` holds.
    """
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": height},
        device_scale_factor=scale,
        reduced_motion="reduce",
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    outside, errors = [], []

    def note_request(request):
        if not is_local(request.url):
            outside.append(request.url)

    page.on("request", note_request)
    page.on("pageerror", lambda error: errors.append(str(error)) if ours(error) else None)
    try:
        yield page
        assert not outside, f"the page asked for things beyond this machine: {outside}"
        assert not errors, f"uncaught errors in the page: {errors}"
    finally:
        context.close()
