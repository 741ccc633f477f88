"""Results come back only from the code, versions and arguments that made them."""

import ast
import inspect
import os
import shutil
import subprocess
import sys
import tracemalloc
import zlib
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib import ROOT, cache
from lib.cache import cached, versions
from lib.errors import InputError
from lib.scm.mechanisms import GaussianRandomForestSampler, Mechanism, Parents

CALLS = []


@cached
def doubled(table: pd.DataFrame, factor: int = 2) -> pd.DataFrame:
    """Multiply."""
    CALLS.append(factor)
    return table * factor


@cached
def draws(n: int) -> np.ndarray:
    """Draw."""
    CALLS.append(n)
    return np.random.default_rng(0).random(n)


@cached
def count(what) -> int:
    """Count the calls."""
    CALLS.append(0)
    return len(CALLS)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path / "results"))
    CALLS.clear()
    return tmp_path / "results"


@pytest.fixture
def table():
    return pd.DataFrame({"hours": [1.5, 2.0]})


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.pkl"))


def test_second_call_loads_the_same_values(table):
    first, second = doubled(table), doubled(table)
    pd.testing.assert_frame_equal(first, second)
    assert CALLS == [2]


def test_arguments_count_by_value_however_they_are_passed(table):
    doubled(table, 3)
    doubled(table.copy(), factor=3)
    assert CALLS == [3]
    doubled(table + 1, 3)
    doubled(table)
    doubled(table, 2)
    assert CALLS == [3, 3, 2], "a default that is given is no other value"


def test_the_order_of_parents_counts_since_fits_depend_on_it():
    x, y = np.random.default_rng(0).normal(size=(2, 100))
    fits = []
    for parents in ({"x": x, "y": y}, {"y": y, "x": x}):
        forest = GaussianRandomForestSampler("sum", options={"n_estimators": 3})
        fits.append(cached(Mechanism.fit)(forest, Parents(parents), x + 2 * y**2, 0).error_)
    assert fits[0] != fits[1]
    assert count({"x": 1, "y": 2}) != count({"y": 2, "x": 1})


def test_unless_another_folder_is_named_results_are_below_the_root(tmp_path, monkeypatch):
    monkeypatch.delenv("CAUSAL_BENCHMARK_BOOK_CACHE")
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    draws(3)
    assert len(entries(tmp_path / ".cache" / "results" / cache._GENERATION)) == 1


def test_signature_and_documentation_stay():
    assert list(inspect.signature(doubled).parameters) == ["table", "factor"]
    assert doubled.__doc__ == "Multiply."
    assert doubled.__module__ == __name__


def test_results_of_other_code_or_versions_never_come_back(monkeypatch):
    draws(3)
    for generation in ["a" * 16, "b" * 16]:
        monkeypatch.setattr(cache, "_GENERATION", generation)
        draws(3)
    assert CALLS == [3, 3, 3]


def test_generation_depends_on_code_and_on_versions(monkeypatch):
    now = cache._generation()
    monkeypatch.setattr(cache, "digest", lambda folder, without: f"other {folder}")
    other_code = cache._generation()
    monkeypatch.undo()
    monkeypatch.setattr(cache, "versions", lambda: {"numpy": "0"})
    assert len({now, other_code, cache._generation()}) == 3


def test_generation_leaves_out_only_what_no_other_module_imports(monkeypatch, tmp_path):
    """An edited figure refits no simulator; an edited mechanism does."""
    shutil.copytree(ROOT / "lib", tmp_path / "lib")
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    monkeypatch.setattr(cache, "versions", dict)
    before = cache._generation()
    for path in (tmp_path / "lib").rglob("*.py"):
        name = path.relative_to(tmp_path / "lib").as_posix()
        source = path.read_bytes()
        path.write_bytes(source + b"\n")
        apart = name.startswith("book/") or name == "__main__.py" or name.endswith("plots.py")
        assert (cache._generation() == before) == apart, name
        path.write_bytes(source)

        imported = {
            f"{'lib.' * getattr(node, 'level', 0)}{getattr(node, 'module', '')}.{alias.name}"
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        parts = {part for each in imported if "lib" in each.split(".") for part in each.split(".")}
        assert apart or not parts & {"plots", "book", "__main__"}, f"{name} needs what is apart"


def test_old_generations_are_deleted_and_nothing_else(folder, monkeypatch):
    for age, name in enumerate(["1" * 16, "2" * 16, "3" * 16, "not ours"]):
        (folder / name).mkdir(parents=True)
        os.utime(folder / name, (1000 - age, 1000 - age))
    (folder / cache._GENERATION).mkdir()
    os.utime(folder / cache._GENERATION, (1, 1))  # older than all, and in use from now on
    draws(3)
    left = {path.name for path in folder.iterdir()}
    assert left == {cache._GENERATION, "1" * 16, "not ours"}


def test_a_run_outlives_the_deletion_of_its_generation(folder):
    draws(3)
    shutil.rmtree(folder / cache._GENERATION)
    before = os.umask(0)  # as where a group shares what its members make
    try:
        assert len(draws(3)) == 3
    finally:
        os.umask(before)
    draws(3)
    assert CALLS == [3, 3], "kept again"
    assert (folder / cache._GENERATION).stat().st_mode & 0o777 == 0o700


def test_a_result_outlives_the_deletion_of_its_generation_meanwhile(folder):
    @cache.cached
    def slow(n: int) -> int:
        CALLS.append(n)
        shutil.rmtree(folder / cache._GENERATION)
        return n

    assert [slow(8), slow(8)] == [8, 8]
    assert CALLS == [8], "kept"


@pytest.mark.parametrize("n", [3, 100_000])
def test_a_truncated_entry_is_computed_again_without_a_word(folder, n, capfd):
    whole = draws(n)
    (entry,) = entries(folder)
    entry.write_bytes(entry.read_bytes()[: entry.stat().st_size // 2])
    np.testing.assert_array_equal(draws(n), whole)
    assert [n, n] == CALLS
    draws(n)
    assert [n, n] == CALLS, "the repaired entry is used"
    assert capfd.readouterr() == ("", "")


def test_a_changed_byte_is_noticed(folder):
    whole = draws(1000)
    (entry,) = entries(folder)
    damaged = bytearray(entry.read_bytes())
    damaged[-2000] ^= 1
    entry.write_bytes(damaged)
    np.testing.assert_array_equal(draws(1000), whole)
    assert CALLS == [1000, 1000]


@pytest.mark.parametrize("spoil", [lambda b: b + b"x", lambda b: b + b, lambda b: b + bytes(10**6)])
def test_bytes_after_the_end_take_neither_time_nor_memory(folder, spoil):
    whole = draws(1000)
    (entry,) = entries(folder)
    entry.write_bytes(spoil(entry.read_bytes()))
    tracemalloc.start()
    np.testing.assert_array_equal(draws(1000), whole)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 10**6


@pytest.mark.parametrize("content", [b"", b"no result", zlib.compress(b"no pickle"), b"\x80\x05."])
def test_what_is_no_result_is_computed_again(folder, content):
    whole = draws(3)
    (entry,) = entries(folder)
    entry.write_bytes(content)
    np.testing.assert_array_equal(draws(3), whole)
    assert CALLS == [3, 3]


@pytest.mark.skipif(os.name != "posix", reason="Windows has its own rules for folders")
@pytest.mark.parametrize("other", [0o720, 0o702, "owner"])
def test_results_that_another_user_may_have_written_are_refused(folder, other, monkeypatch):
    draws(3)
    assert (folder / cache._GENERATION).stat().st_mode & 0o777 == 0o700
    if other == "owner":
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
    else:
        (folder / cache._GENERATION).chmod(other)
    with pytest.raises(
        InputError, match="must belong to you, and be writable by you alone; set CAUSAL"
    ):
        draws(3)
    assert CALLS == [3]


def test_an_unwritable_folder_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path / "file" / "results"))
    with pytest.raises(
        InputError, match=r"file/results/\w+ cannot be written: Not a directory; set CAUSAL"
    ):
        draws(3)


#: Of this module, which imports more than they need, other processes import nothing.
SHARED = """
import pandas as pd
from lib.cache import cached

calls = []

@cached
def doubled(table, factor):
    calls.append(factor)
    return table * factor
"""


def test_processes_share_results_and_one_of_them_computes(folder, tmp_path):
    """Four processes with different string hashing ask at once; one does the work."""
    (tmp_path / "shared.py").write_text(SHARED)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import shared, pandas as pd\n"
        "frame = pd.DataFrame({'level': ['No studies', 'Evening course'], 'age': [17, 90]})\n"
        "shared.doubled(frame, 5); print(len(shared.calls))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(1, 5)
    ]
    assert sorted(process.communicate()[0].strip() for process in processes) == ["0", "0", "0", "1"]


class Own:
    """Somebody's own code, which may change from one day to the next."""


class Fitted:
    """What has other bytes after each load, but says what made it."""

    def __init__(self, recipe):
        self.recipe, self.noise = recipe, os.urandom(8)

    def made_by(self):
        """Return the recipe."""
        return self.recipe


def test_what_somebodys_own_code_is_a_part_of_is_not_kept(folder):
    for _ in range(2):
        count({"within": [Own()]})
        count(Own)
    assert (len(CALLS), entries(folder)) == (4, [])


def test_what_made_an_argument_may_stand_for_it(folder):
    assert [count(Fitted(recipe)) for recipe in "aab"] == [1, 1, 2]
    assert len(entries(folder)) == 2


def test_nothing_is_kept_where_nothing_shall_be(folder, table):
    before = cache.KEEPING.set(False)
    pd.testing.assert_frame_equal(doubled(table), table * 2)
    cache.KEEPING.reset(before)
    assert entries(folder) == []


def test_versions_list_what_is_installed():
    assert versions()["python"] == ".".join(map(str, sys.version_info[:3]))
    assert versions()["numpy"] == np.__version__
    assert versions()["pandas"] == pd.__version__
    assert "scikit-learn" in versions()


def test_versions_name_what_is_not_installed_so_that_installing_it_is_a_change(monkeypatch):
    def nothing(name):
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(cache.metadata, "version", nothing)
    without = versions.__wrapped__()
    assert without["numpy"] == "absent"
    assert list(without) == list(versions())
