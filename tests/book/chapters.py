"""A process that has imported what chapters import, and executes each in a fork of itself.

A kernel of its own would import all of it anew, which takes longer than most chapters do with few
subjects; and nothing that a chapter changes reaches the next one, as in kernels of their own. It
reads orders from its input, one a line: the folder, and the source of each cell. It answers each
with the outputs of the cells, as a notebook has them, and with what went to the error stream. An
order may ask for the files of figures, too.
"""

import gc

gc.disable()  # until all is imported, nothing is garbage

import base64
import contextlib
import io
import itertools
import json
import os
import sys
import tempfile
import traceback

# In the order of their weight; whatever is missing here is imported by the chapter itself.
import matplotlib.pyplot  # noqa: F401
import traitlets.config
from figures import crowded, noted
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from matplotlib_inline.backend_inline import configure_inline_support

import lib.book.recorded
import lib.ccr
import lib.effects
import lib.income
import lib.plots

#: The outputs of the cell that is at work.
outputs: list[dict] = []


class Shown(DisplayPublisher):
    """What cells display."""

    def publish(self, data, metadata=None, **_):
        _show("display_data", data, metadata)


class Ended(DisplayHook):
    """What cells end in."""

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        _show("execute_result", format_dict, md_dict, execution_count=self.prompt_count)

    def finish_displayhook(self):
        self._is_active = False


def _show(kind, data, metadata, **more):
    sent = {
        form: base64.b64encode(one).decode() if isinstance(one, bytes) else one
        for form, one in data.items()
    }
    outputs.append({"output_type": kind, "data": sent, "metadata": metadata or {}, **more})


class Printed(io.TextIOBase):
    """What cells print, in its place among what they show."""

    def write(self, text):
        if text and outputs and outputs[-1]["output_type"] == "stream":
            outputs[-1]["text"] += text
        elif text:
            outputs.append({"output_type": "stream", "name": "stdout", "text": text})
        return len(text)


#: The figures of the cell that is at work, and what is written in them.
drawn: dict[lib.plots.Drawing, dict] = {}


def _draw(drawing: lib.plots.Drawing) -> None:
    with noted() as drawn[drawing]:
        super(lib.plots.Drawing, drawing).draw_without_rendering()


def execute(cells: list[str], figures: bool) -> dict:
    """Execute the cells of a notebook in this process, whose error stream is taken."""
    lib.plots.Drawing.draw_without_rendering = _draw
    settings = traitlets.config.Config({"HistoryManager": {"enabled": False}})
    kinds = {"display_pub_class": Shown, "displayhook_class": Ended}
    shell = InteractiveShell.instance(config=settings, **kinds)
    if figures:
        configure_inline_support(shell, "inline")  # as a kernel does
    # Otherwise they are laid out where they are made, and what they look like is on the pages.
    shell.display_formatter.formatters["image/svg+xml"].enabled = figures
    found = {"outputs": [], "stderr": [], "error": None, "crowded": []}
    with tempfile.TemporaryFile(buffering=0) as said:
        os.dup2(said.fileno(), 2)  # also what is written there behind Python's back
        for number, source in enumerate(cells, start=1):
            outputs.clear()
            drawn.clear()
            with contextlib.redirect_stdout(Printed()):
                result = shell.run_cell(source, store_history=True)
            if not result.success:
                error = result.error_before_exec or result.error_in_exec
                found["error"] = "".join(traceback.format_exception(error))
                break
            found["outputs"].append([dict(one) for one in outputs])
            found["crowded"] += itertools.chain(*itertools.starmap(crowded, drawn.items()))
            sys.stderr.flush()
            said.seek(0)
            if text := said.read().decode():
                found["stderr"].append({"cell": number, "text": text})
            said.seek(0)
            said.truncate()
    return found


def serve() -> None:
    """Answer orders until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever writes to the output behind Python's back is no answer
    gc.freeze()  # no fork has to look through all that was imported
    gc.enable()
    for order in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            asked = json.loads(order)
            os.chdir(asked["folder"])
            with os.fdopen(write, "w", encoding="utf-8") as answer:
                json.dump(execute(asked["cells"], asked["figures"]), answer)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as answer:
            found = answer.read()
        _, status = os.waitpid(child, 0)
        died = {"error": f"the process ended with {os.waitstatus_to_exitcode(status)}"}
        print(found or json.dumps(died), file=answers, flush=True)


if __name__ == "__main__":
    serve()
