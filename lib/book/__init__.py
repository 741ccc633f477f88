"""The book: parameters, editions, running, building and publishing; nothing causal."""

import sys

# nbformat brings a grammar of addresses, which no check of a notebook needs. Reading it takes
# longer than all other imports of this package.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
