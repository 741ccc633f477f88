"""What a figure of the chapter on coverage says in its title holds for each estimator."""

from lib.book.editions import BOOK

VALUES = {
    "n_samples": 200,
    "n_studies": 6,
    "overlaps": [2.0, 0.0],
    "estimators": ["s-ridge", "t-ridge"],
    "of_effects": ["s-ridge"],
    "n_population": 1_000,
    "n_test": 20,
    "repeats": 20,
}


def test_estimators_that_differ_in_error_and_width_are_not_taken_for_a_rule(executed):
    # One errs upwards and has wide intervals, the other downwards and narrow ones.
    notebook = executed(BOOK.notebook("coverage"), VALUES, figures=True)[1]
    (outputs,) = (cell.outputs for cell in notebook.cells if cell.id == "code-16")
    (title,) = (one.metadata["image/svg+xml"]["title"] for one in outputs)
    assert title == "Errors, and what estimates say of their precision"
