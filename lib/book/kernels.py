"""Kernels forked from a process that has imported what chapters import.

A kernel of its own imports all of that anew, which takes longer than many a chapter; and nothing
that a chapter changes in its fork reaches another one. `lib` is imported by the forks, because a
page says with which `lib` it was made, and files may be edited while others run.
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

#: What most chapters need; what is missing here or broken, a chapter imports itself.
IMPORTED = (
    *("ipykernel.kernelapp", "ipykernel.debugger", "IPython.core.completer", "myst_nb"),
    *("matplotlib.pyplot", "pandas", "pyarrow.parquet", "scipy.stats", "sklearn.ensemble"),
    *("sklearn.model_selection", "xgboost", "networkx", "joblib", "pydantic.dataclasses"),
    *("jinja2", "yaml", "threadpoolctl", "numba"),
)

#: Elsewhere there are no forks, or libraries of the system that do not survive them.
CAN_FORK = sys.platform == "linux"


# --- The process that forks -----------------------------------------------------------------------


def serve() -> None:
    """Fork a kernel for each line of the input, and answer with its process id.

    It ends with its input and so, whatever happens to it, with the process that started it. Then
    its kernels see that their parent is gone, and end themselves.
    """
    del sys.path[0]  # the folder of this file
    answers, server = os.fdopen(os.dup(1), "w"), os.getpid()
    os.dup2(2, 1)  # whatever else is written there is no answer
    for name in sys.argv[1:]:
        with contextlib.suppress(Exception):  # of libraries that others lack, too
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        sys.modules["numba"].njit(lambda: None)()  # its compiler takes time to start
    # From here on, where to import from is a matter of each fork.
    here = [*map(os.path.abspath, _import_folders(os.environ))]
    sys.path[:] = [folder for folder in sys.path if folder not in here]
    gc.freeze()  # a fork that looked through all of that would have it copied
    signal.signal(signal.SIGCHLD, _waited_for)
    for line in sys.stdin:
        if not (kernel := os.fork()):
            answers.close()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _work(server, *json.loads(line))
            return
        print(kernel, file=answers, flush=True)


def _waited_for(*_: Any) -> None:
    """Wait for those that have ended, so that the system counts their time with that of others."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _work(server: int, arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be a kernel."""
    sys.path[:0] = _import_folders(environment)
    import pandas
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # so that it is killed together with what it starts
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # It looks where it is when it is imported, and was not in a notebook.
    pandas.set_option("display.max_columns", 20)
    sys.argv = [*arguments, f"--IPKernelApp.parent_handle={server}"]
    IPKernelApp.launch_instance()
    # What is left closes the socket by which this thread may still be saying that all is done.
    control = IPKernelApp.instance().control_thread
    control.stop()
    control.join()


def _import_folders(environment: Mapping[str, str]) -> list[str]:
    return [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]


# --- The process that has chapters executed -------------------------------------------------------

_asking = threading.Lock()
_server: Any = None


def _forked(order: str) -> int:
    """Return the id of the kernel that is forked for an order; the first one starts the server."""
    global _server
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with _asking:
        if _server is None or _server.poll() is not None:
            # From Python 3.12, a fork beside a thread is warned of. The one here is of pyarrow's
            # memory, and is made for it. The debugger warns of modules that are frozen.
            quiet = ["-Wignore:This process:DeprecationWarning", "-Xfrozen_modules=off"]
            command = [sys.executable, *quiet, __file__, *IMPORTED]
            _server = subprocess.Popen(command, start_new_session=True, **pipes)
            atexit.register(_server.communicate)  # which ends it, and waits for its end
        with contextlib.suppress(BrokenPipeError, ValueError):
            print(order, file=_server.stdin, flush=True)
            return int(_server.stdout.readline())
        raise ChildProcessError("the process that forks kernels gave no answer")


class Kernel(psutil.Process):
    """A process that is a kernel, with all of :class:`subprocess.Popen` that Jupyter asks for."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        """Return None as long as it runs."""
        with contextlib.suppress(psutil.NoSuchProcess):
            # Without the process that has forked it, it may stay a zombie.
            if self.is_running() and self.status() != psutil.STATUS_ZOMBIE:
                return None
        return 0

    wait = poll  # for Jupyter asks how it ended when it has

    def send_signal(self, sig: int) -> None:
        """Send a signal, which, as for a child, is none to a process that has ended since."""
        with contextlib.suppress(psutil.NoSuchProcess):
            super().send_signal(sig)


class ForkedKernel(AsyncKernelManager):
    """A manager of one kernel that is a fork."""

    async def _async_launch_kernel(self, kernel_cmd: list[str], **options: Any) -> None:
        """Launch the kernel differently, as Jupyter has it done: by overriding this."""
        # Of the command, what stands behind `python -m`.
        order = kernel_cmd[2:], os.fspath(options["cwd"]), dict(options["env"])
        local: Any = self.provisioner  # of processes of this machine
        local.process = Kernel(_forked(json.dumps(order)))
        local.pid = local.pgid = local.process.pid


if __name__ == "__main__":
    serve()
