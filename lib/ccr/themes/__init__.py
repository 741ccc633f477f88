"""The themes, one a module; :func:`lib.ccr.theme.themes` finds them here."""
