"""Kernels forked from a process that has imported what chapters import.

A kernel that starts from nothing imports all of this anew, which takes longer than many chapters.
What a chapter changes in its fork does not reach other forks. Each fork imports `lib` itself,
because a page states which `lib` made it, and files may be edited while other pages run.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import psutil
from jupyter_client.manager import AsyncKernelManager

#: Modules that most chapters need, and that import others that chapters need. A chapter imports any
#: that are missing or broken here.
IMPORTED = (
    *("ipykernel.kernelapp", "ipykernel.debugger", "IPython.core.completer", "myst_nb"),
    *("matplotlib.pyplot", "pandas", "pyarrow.parquet", "scipy.stats", "sklearn.ensemble"),
    *("xgboost", "networkx", "pydantic.dataclasses", "jinja2", "numba"),
)

#: Other systems have no forks, or have libraries that do not survive a fork.
CAN_FORK = sys.platform == "linux"


# --- The process that forks -----------------------------------------------------------------------


def serve() -> None:
    """Fork a kernel for each line of the input, and answer with its process id.

    The server ends with its input and so, whatever happens, with the process that started it. Its
    kernels then see that their parent is gone, and end themselves.
    """
    gc.disable()  # until all is imported, nothing is garbage
    del sys.path[0]  # the folder of this file
    answers, server = os.fdopen(os.dup(1), "w"), os.getpid()
    os.dup2(2, 1)  # other output is no answer
    # What is registered first is done last. Without it, a fork would copy all of this to take it
    # apart, which lasts as long as many a page.
    for end in (lambda: os._exit(0), sys.stdout.flush, gc.collect):
        atexit.register(end)
    for name in sys.argv[1:]:
        with contextlib.suppress(Exception):  # a library may be broken or missing
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        sys.modules["numba"].njit(lambda: None)()  # its compiler takes time to start
    # From here on, each fork decides where it imports from.
    here = [*map(os.path.abspath, _import_folders(os.environ))]
    sys.path[:] = [folder for folder in sys.path if folder not in here]
    gc.freeze()  # else garbage collection in a fork would copy all of this
    gc.enable()
    signal.signal(signal.SIGCHLD, _waited_for)
    for line in sys.stdin:
        if not (kernel := os.fork()):
            answers.close()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _work(server, *json.loads(line))
            return
        print(kernel, file=answers, flush=True)


def _waited_for(*_: Any) -> None:
    """Wait for ended kernels, so that the system adds their time to that of other children."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _work(server: int, arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    sys.path[:0] = _import_folders(environment)
    import pandas
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # so that it is killed together with the processes it starts
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # On import, pandas looks where it is, and then it was not yet in a notebook.
    pandas.set_option("display.max_columns", 20)
    sys.argv = [*arguments, f"--IPKernelApp.parent_handle={server}"]
    IPKernelApp.launch_instance()
    # The exit closes a socket by which the control thread may still be saying that all is done.
    control = IPKernelApp.instance().control_thread
    control.stop()
    control.join()


def _import_folders(environment: Mapping[str, str]) -> list[str]:
    return [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]


# --- The process that asks for kernels ------------------------------------------------------------

_asking = threading.Lock()
_server: Any = None


def _forked(order: str) -> int:
    """Return the id of a kernel that is forked for an order; the first order starts the server."""
    global _server
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with _asking:
        if _server is None or _server.poll() is not None:
            # From Python 3.12 on, a fork of a process with threads gives a warning. The thread here
            # manages pyarrow's memory and copes with forks. The debugger warns of frozen modules.
            quiet = ["-Wignore:This process:DeprecationWarning", "-Xfrozen_modules=off"]
            command = [sys.executable, *quiet, __file__, *IMPORTED]
            _server = subprocess.Popen(command, start_new_session=True, **pipes)
            atexit.register(_server.communicate)  # ends the server, and waits for its end
        with contextlib.suppress(BrokenPipeError, ValueError):
            print(order, file=_server.stdin, flush=True)
            return int(_server.stdout.readline())
        raise ChildProcessError("the process that forks kernels gave no answer")


class Kernel(psutil.Process):
    """The process of a kernel, with all members of :class:`subprocess.Popen` that Jupyter uses."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        """Return None as long as the process runs, and then 0."""
        with contextlib.suppress(psutil.NoSuchProcess):
            # If the process that forked it is gone, it may stay a zombie.
            if self.is_running() and self.status() != psutil.STATUS_ZOMBIE:
                return None
        return 0

    wait = poll  # Jupyter waits only for processes that have ended

    def send_signal(self, sig: int) -> None:
        """Send a signal; as for a child process, nothing happens if the process has ended."""
        with contextlib.suppress(psutil.NoSuchProcess):
            super().send_signal(sig)


class ForkedKernel(AsyncKernelManager):
    """The manager of one forked kernel."""

    async def _async_launch_kernel(self, kernel_cmd: list[str], **options: Any) -> None:
        """Launch the kernel as a fork; Jupyter provides this method to be overridden."""
        # The part of the command that follows `python -m`.
        order = kernel_cmd[2:], os.fspath(options["cwd"]), dict(options["env"])
        local: Any = self.provisioner  # starts local processes
        local.process = Kernel(_forked(json.dumps(order)))
        local.pid = local.pgid = local.process.pid


if __name__ == "__main__":
    serve()
