"""Draw `book/assets/terminal.svg`: what a run shows in a terminal, from a real run.

Run it from the project's folder, in the activated environment with the extra `test`::

    python book/terminal.py
"""

import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.text import Text

from lib import ROOT
from lib.book.editions import BOOK, Run
from lib.files import write_text

COMMAND = "python -m lib run error_test -p theme flower_garden -p n_worlds 50"

#: An SVG without the fonts that rich would fetch from a public server.
SVG = """\
<svg viewBox="0 0 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg" \
font-family="monospace" font-size="{char_height}px">
<style>.{unique_id}-matrix {{white-space: pre; dominant-baseline: hanging}} {styles}</style>
<rect width="100%" height="100%" rx="8" fill="#1b2528"/>
<g transform="translate(12, 0)" class="{unique_id}-matrix">{matrix}</g>
</svg>
"""

words = shlex.split(COMMAND)
values = dict(zip(words[6::3], words[7::3], strict=True))
asked = Run(BOOK.notebook(words[4]), values=values, as_text=True)
with tempfile.TemporaryDirectory() as cache:
    # As on a fresh machine, where nothing is kept, neither results nor this run.
    shutil.rmtree(asked.output.parent, ignore_errors=True)
    finished = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=ROOT,
        env=os.environ | {"CAUSAL_BENCHMARK_BOOK_CACHE": cache},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
# All of which the picture's text in the README names.
for told in ("started", "done in", "rendering", "the page is"):
    assert told in finished.stdout, finished.stdout
console = Console(record=True, width=100, file=io.StringIO())
said = finished.stdout.replace(str(ROOT), "~/causal-benchmark-book")
console.print(Text(f"$ {COMMAND}\n{said}"))
write_text(ROOT / "book/assets/terminal.svg", console.export_svg(code_format=SVG))
