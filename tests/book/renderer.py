"""A process that has imported what renders a book, and does what `python -c` would in a fork.

To import it takes longer than to render a page, and the tests render some thirty times. Orders come
one a line: a program with its arguments, the environment, and the files of its two streams. What
is answered is how it has ended.
"""

import gc
import importlib
import json
import os
import sys
import traceback

import lib.book  # noqa: F401 - before jupyter_book, as where a book is rendered

# In the order of their weight; whatever is missing here is imported by the program itself.
gc.disable()  # until then, nothing is garbage
for module in (
    "myst_nb.sphinx_ext",
    "sphinxcontrib.bibtex",
    "sphinx_book_theme",
    "sphinx_design",
    "lib.book.extension",
    "jupyter_book.sphinx",
    "jupyter_book.cli.main",
):
    importlib.import_module(module)
gc.freeze()  # no fork has to look through all of that
gc.enable()


def do(order: dict) -> int:
    """Do in this process what `python -c` does, and return its exit status."""
    for stream, path in enumerate(order["streams"], start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    program, *arguments = order["words"]
    sys.argv = ["-c", *arguments]
    try:
        exec(program, {"__name__": "__main__"})
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def serve() -> None:
    """Follow orders until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for order in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(do(json.loads(order)))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


if __name__ == "__main__":
    serve()
