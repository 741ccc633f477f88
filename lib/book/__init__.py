"""The book: parameters, editions, running, building and publishing; nothing of causality."""

import sys

# With nbformat comes a grammar of addresses, of which no notebook needs a check. To read it takes
# longer than to import all else of this room.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
