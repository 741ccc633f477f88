"""What is written is there whole or not at all; one process at a time; digests see every byte."""

import errno
import re

import pandas as pd
import pyarrow.parquet as pq
import pytest

from lib.errors import InputError
from lib.files import (
    atomic_write,
    file_lock,
    folder_digest,
    read_yaml,
    writable,
    write_parquet,
    write_text,
)


def test_a_file_is_replaced_when_it_is_complete(tmp_path):
    path = tmp_path / "page.json"
    write_text(path, "old")
    with atomic_write(path) as beside:
        beside.write_text("é", encoding="utf-8")
        assert beside.suffix == ".json"
        assert path.read_text() == "old"
    assert path.read_text(encoding="utf-8") == "é"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path, error):
    path = tmp_path / "page.json"
    write_text(path, "old")
    with pytest.raises(type(error)), atomic_write(path) as beside:
        beside.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_appears_when_all_in_it_is_written(tmp_path):
    path = tmp_path / "set"
    with atomic_write(path, folder=True) as beside:
        write_text(beside / "one.txt", "1")
        assert not path.exists()
    assert [one.name for one in path.iterdir()] == ["one.txt"]
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "other", folder=True) as beside:
        write_text(beside / "one.txt", "1")
        raise KeyboardInterrupt
    left = tmp_path / ".partial.0.0abc.third"  # what a killed process has left
    left.mkdir()
    write_text(left / "one.txt", "1")
    with atomic_write(tmp_path / "third", folder=True):
        pass
    assert sorted(one.name for one in tmp_path.iterdir()) == ["set", "third"]


def test_a_folder_does_not_take_the_place_of_one_with_files(tmp_path):
    write_text(tmp_path / "mine.txt", "mine")
    rule = "cannot be written: Directory not empty"
    with pytest.raises(InputError, match=rule), atomic_write(tmp_path, folder=True) as beside:
        write_text(beside / "one.txt", "1")
    assert [one.name for one in tmp_path.iterdir()] == ["mine.txt"]


def test_two_who_write_one_file_do_not_mix(tmp_path):
    path = tmp_path / "page.json"
    with atomic_write(path) as first:
        first.write_text("fir")
        with atomic_write(path) as second:
            second.write_text("second")
        assert path.read_text() == "second"
        first.write_text("first")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("read", [pd.read_parquet, pd.read_csv, open])
def test_a_missing_input_is_not_taken_for_the_output(tmp_path, read):
    with pytest.raises(FileNotFoundError, match=r"nowhere"), atomic_write(tmp_path / "page.json"):
        read("nowhere.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_of_the_output(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(InputError, match=r"page.json cannot be written: No space left"),
        atomic_write(tmp_path / "page.json"),
    ):
        raise full


def test_what_is_written_may_be_read_by_whom_the_system_says(tmp_path):
    (tmp_path / "usual").touch()
    write_text(tmp_path / "page.json", "all is well")
    assert (tmp_path / "page.json").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_what_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for path in [tmp_path / "none" / "page.json", tmp_path / "file" / "page.json"]:
        with pytest.raises(InputError, match=re.escape(f"{path} cannot be written: N")):
            write_text(path, "new")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder cannot be written: Is a directory"):
        write_text(tmp_path / "folder", "new")
    with pytest.raises(InputError, match="file cannot be written: File exists"):
        writable(tmp_path / "file")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_folder_is_made_and_nothing_stays_in_it(tmp_path):
    folder = tmp_path / "a" / "b"
    writable(folder)
    assert folder.is_dir()
    assert list(folder.iterdir()) == []


def test_frames_become_one_table_and_are_drawn_one_at_a_time(tmp_path):
    alive = []

    def frames():
        for t in range(3):
            alive.append(t)
            yield pd.DataFrame({"t": [t, t], "level": pd.Categorical(["a", "b"])})

    write_parquet(tmp_path / "table.parquet", frames(), compression="zstd")
    assert alive == [0, 1, 2]
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "table.parquet"), pd.concat(frames(), ignore_index=True)
    )
    metadata = pq.read_metadata(tmp_path / "table.parquet")
    assert metadata.num_row_groups == 3
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_lock_is_held_by_one(tmp_path):
    lock = tmp_path / "lock"
    with file_lock(lock), pytest.raises(BlockingIOError), file_lock(lock, wait=False):
        pass
    with file_lock(lock, wait=False):
        pass


def test_folder_digest_sees_names_and_bytes_but_not_what_is_hidden(tmp_path):
    def digest_after(name: str, content: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        return folder_digest(tmp_path)

    first = digest_after("fit.py", "a")
    assert digest_after("__pycache__/fit.pyc", "x") == first
    assert digest_after(".hidden", "x") == first
    assert digest_after("fit.py", "b") != first
    assert digest_after("fit.py", "a") == first
    (tmp_path / "fit.py").rename(tmp_path / "refit.py")
    assert folder_digest(tmp_path) != first
    assert folder_digest(tmp_path / "missing") == folder_digest(tmp_path / "absent")


def test_what_a_merge_brings_does_not_stand_twice(tmp_path):
    text = "a: &a {x: 1, y: 1}\nb: {<<: *a, x: 2}\nc: {<<: *a, x: 3}\n<<: {d: 4}\n"
    (tmp_path / "merged.yml").write_text(text)
    content = read_yaml(tmp_path / "merged.yml")
    assert content == {"d": 4, "a": {"x": 1, "y": 1}, "b": {"x": 2, "y": 1}, "c": {"x": 3, "y": 1}}


def test_a_key_that_stands_twice_is_warned_of_in_its_own_section_alone(tmp_path):
    text = "figures:\n  - {size: 1, size: 2}\nvariables: {age: {}, age: {}}\n"
    (tmp_path / "model.yml").write_text(text)
    with (
        pytest.warns(UserWarning, match="line 2: the key 'size' stands twice, in a section"),
        pytest.raises(InputError, match="line 3: the key 'age' stands twice"),
    ):
        read_yaml(tmp_path / "model.yml", ignored=["figures"])
