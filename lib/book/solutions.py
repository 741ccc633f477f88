"""Solutions are folded whole: the program of one goes into the dropdown that tells of it.

A Sphinx extension. In a notebook, a code cell with the tag *solution* stands after the dropdown,
where it is executed as all others are; in Markdown, a directive cannot hold it.
"""

from sphinx.application import Sphinx


def _fold(app: Sphinx, page) -> None:
    parts = [node for node in page.findall() if hasattr(node, "attributes")]  # and no text
    for cell in (node for node in parts if "tag_solution" in node["classes"]):
        place = cell.parent.index(cell)
        above = cell.parent[place - 1]
        if above.get("design_component") == "dropdown":
            above += cell.parent.pop(place)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension with Sphinx."""
    app.connect("doctree-read", _fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
