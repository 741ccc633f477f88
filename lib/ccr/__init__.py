"""Compositional causal reasoning: worlds, word problems about them, and their true answers."""

from lib.ccr.reader import read
from lib.ccr.tasks import generate

__all__ = ["generate", "read"]
