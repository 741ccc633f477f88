"""The book: parameters, editions, running, building and publishing; nothing of causality."""
