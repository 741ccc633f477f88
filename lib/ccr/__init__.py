"""Compositional causal reasoning: worlds, word problems about them, and their true answers."""
