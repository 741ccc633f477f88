"""A real browser, for the tests of rendered pages."""

import shutil

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), ""
)


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine: install it from the system's packages")
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra `test` is missing")
    quiet = ["background-networking", "component-update", "gpu", "sync", "dev-shm-usage"]
    arguments = ["--no-first-run", *(f"--disable-{feature}" for feature in quiet)]
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=arguments, chromium_sandbox=False
        )
        yield browser
        browser.close()
