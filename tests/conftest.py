"""A book small enough to run in a test: two short notebooks, one edition, its own folders."""

from pathlib import Path

import nbformat
import pytest

from lib.book.editions import Book

CONFIG = """\
title: Sums
only_build_toc_files: true
execute: {execute_notebooks: 'off'}
sphinx: {config: {html_theme_options: {}}}
"""


class TinyBook(Book):
    """A book in a folder of its own, with a way to add notebooks and editions."""

    def add_notebook(self, name: str, parameters: str, *cells: str) -> Path:
        """Write a notebook with a parameters cell and cells of code."""
        tagged = nbformat.v4.new_code_cell(
            parameters, metadata={"tags": ["parameters"]}, id="parameters"
        )
        code = [nbformat.v4.new_code_cell(cell, id=f"cell{n}") for n, cell in enumerate(cells)]
        # A kernel that nobody has: whoever wrote the notebook may have called theirs anything.
        kernel = {"name": "my-kernel", "display_name": "Mine", "language": "python"}
        notebook = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_markdown_cell(f"# {name}\n{{n}}", id="title"),
                tagged,
                *code,
            ],
            metadata={"kernelspec": kernel},
        )
        path = self.notebooks / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    def add_edition(self, name: str, text: str) -> Path:
        """Write the YAML of an edition."""
        path = self.editions / f"{name}.yml"
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def tiny_book(tmp_path):
    book = TinyBook(tmp_path)
    folders = [book.notebooks, book.editions, book.executed / "default", tmp_path / "lib"]
    for folder in [*folders, book.prose / "assets"]:
        folder.mkdir(parents=True)
    (tmp_path / "lib" / "code.py").write_text("one = 1\n")
    (tmp_path / "references.bib").write_text("")
    (tmp_path / "_config.yml").write_text(CONFIG)
    book.add_notebook(
        "sums", "n: int = 3  # terms\ntitle: str = 'Sum'", "print(title, sum(range(n)))"
    )
    book.add_edition(
        "default",
        "about: A sum.\npages: [{page: small_sum, notebook: sums, parameters: {n: 5}}]\n",
    )
    return book
