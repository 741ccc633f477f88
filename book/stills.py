"""Draw the figures of `book/explorables.md` for their first values, for readers without scripts.

`python book/stills.py`, after a change of `book/assets/explore.js`; it needs a Chromium.
"""

import shutil

from playwright.sync_api import sync_playwright

from lib import ROOT
from lib.files import write_text

ASSETS = ROOT / "book" / "assets"

with sync_playwright() as play:
    found = filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"]))
    browser = play.chromium.launch(executable_path=next(found), chromium_sandbox=False)
    page = browser.new_page()
    page.add_script_tag(path=ASSETS / "explore.js")
    for name in page.evaluate("Object.keys(EXPLORABLES)"):
        drawn = page.evaluate("name => EXPLORABLES[name].draw(first(name)).drawn", name)
        write_text(ASSETS / "explorables" / f"{name}.svg", drawn + "\n")
    browser.close()
