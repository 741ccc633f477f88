"""The themes, one per module; :func:`lib.ccr.theme.themes` finds them here."""
