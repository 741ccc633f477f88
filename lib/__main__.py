"""The command line, `python -m lib`: see :mod:`lib.book.commands`."""

import signal
import sys

from lib.book.commands import main

if __name__ == "__main__":
    # To be asked to end is like Ctrl-C: stop the kernels first, leave nothing half-written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
