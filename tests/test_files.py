"""What is written is there whole or not at all; one process at a time; digests see every byte."""

import errno
import gzip
import itertools
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from filelock import Timeout

from lib import ROOT
from lib.errors import InputError
from lib.files import (
    atomic_write,
    digest,
    file_lock,
    read_table,
    read_yaml,
    remove_left,
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


def test_what_a_killed_process_left_goes_and_what_another_is_writing_stays(tmp_path):
    left = tmp_path / f".partial.{2**31 - 1}.12345678.page.json"
    at_work = tmp_path / f".partial.{os.getpid()}.12345678.page.json"
    for path in (left, at_work):
        path.write_text("half")
    write_text(tmp_path / "page.json", "all is well")
    assert sorted(path.name for path in tmp_path.iterdir()) == [at_work.name, "page.json"]


def test_a_folder_that_had_made_room_when_its_writer_was_killed_is_put_back(tmp_path):
    left = f".partial.{2**31 - 1}.12345678."
    for name, text in (("before.set", "old"), ("set", "new, and not yet there")):
        (tmp_path / f"{left}{name}").mkdir()
        (tmp_path / f"{left}{name}" / "table").write_text(text)
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "set", ["table"]):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert (tmp_path / "set" / "table").read_text() == "old"
    (tmp_path / f"{left}before.set").mkdir()
    remove_left(tmp_path / "set")
    assert [path.name for path in tmp_path.iterdir()] == ["set"], "what is there stays"
    assert (tmp_path / "set" / "table").read_text() == "old"


def test_an_old_folder_that_cannot_be_put_back_is_not_removed(tmp_path, monkeypatch):
    left = tmp_path / f".partial.{2**31 - 1}.12345678.before.set"
    left.mkdir()
    monkeypatch.setattr(os, "rename", lambda *_: os.stat(tmp_path / "nowhere"))
    remove_left(tmp_path / "set")
    assert left.is_dir()


def test_a_device_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(InputError, match="cannot be written: it exists and is not a file"):
            write_text(path, "new")
    assert not Path(os.devnull).is_file()


def write_folder(folder: Path, *texts: str) -> None:
    with atomic_write(folder, files=["a.txt", "b.txt", "card.txt"]) as beside:
        for name, text in zip(["a.txt", "b.txt", "card.txt"], texts, strict=False):
            (beside / name).write_text(text)


def texts(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.iterdir())]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    write_folder(tmp_path / "new" / "set", "1", "1", "1")
    write_folder(tmp_path / "new" / "set", "2", "2")
    assert texts(tmp_path / "new" / "set") == ["2", "2"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["set"]
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "new" / "set")
    write_folder(link, "3", "3")
    assert link.is_symlink() and texts(tmp_path / "new" / "set") == ["3", "3"]


@pytest.mark.parametrize("step", [1, 2])
def test_a_folder_that_cannot_take_its_place_leaves_the_old_one(tmp_path, monkeypatch, step):
    write_folder(tmp_path / "set", "1", "1", "1")
    steps, replace = itertools.count(1), os.replace

    def interrupted(*paths):
        if next(steps) == step:
            raise KeyboardInterrupt
        replace(*paths)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "set", "2", "2")
    assert texts(tmp_path / "set") == ["1", "1", "1"]
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_whoever_is_killed_leaves_one_set_or_the_other_or_none(tmp_path):
    program = """if True:
        import itertools, os, sys
        from lib.files import atomic_write
        steps, replace = itertools.count(1), os.replace
        def killed(*paths):
            replace(*paths)
            if next(steps) == int(sys.argv[2]):
                os.kill(os.getpid(), 9)
        os.replace = killed
        with atomic_write(sys.argv[1], files=["a.txt", "b.txt", "card.txt"]) as beside:
            (beside / "a.txt").write_text("2"), (beside / "b.txt").write_text("2")
    """
    for step, left in ((1, None), (2, ["2", "2"])):
        folder = tmp_path / str(step) / "set"
        write_folder(folder, "1", "1", "1")
        command = [sys.executable, "-c", program, str(folder), str(step)]
        assert subprocess.run(command, cwd=ROOT).returncode == -9
        assert (texts(folder) if folder.exists() else None) == left
        write_folder(folder, "3", "3")
        assert texts(folder) == ["3", "3"]
        assert [path.name for path in folder.parent.iterdir()] == ["set"]


def test_a_folder_with_anything_else_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match=r"must not hold anything else: found \['thesis.txt'"):
        write_folder(tmp_path, "1", "1")
    assert texts(tmp_path) == ["all of it"]


@pytest.mark.parametrize("read", [pd.read_parquet, pd.read_csv, open])
def test_a_missing_input_is_not_taken_for_the_output(tmp_path, read):
    with pytest.raises(FileNotFoundError, match=r"nowhere"), atomic_write(tmp_path / "page.json"):
        read("nowhere.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_bad_disk_of_an_input_is_not_that_of_the_output(tmp_path):
    with pytest.raises(OSError, match="other"), atomic_write(tmp_path / "page.json"):
        raise OSError(errno.EIO, "Input/output error", "other.csv")
    rule = "set cannot be written: No space left on device"
    with pytest.raises(InputError, match=rule), atomic_write(tmp_path / "set", ["a"]) as beside:
        raise OSError(errno.ENOSPC, "No space left on device", str(beside / "a"))


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
    with pytest.raises(InputError, match="folder cannot be written: it exists and is not a file"):
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

    write_parquet(((tmp_path / "table.parquet", one) for one in frames()), compression="zstd")
    assert alive == [0, 1, 2]
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "table.parquet"), pd.concat(frames(), ignore_index=True)
    )
    metadata = pq.read_metadata(tmp_path / "table.parquet")
    assert metadata.num_row_groups == 3
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_each_frame_is_added_to_its_own_file_and_text_may_come_late(tmp_path):
    text, none = pd.DataFrame({"text": ["a", "b"]}), pd.DataFrame({"text": []}, dtype=object)
    one, other, empty = (tmp_path / f"{name}.parquet" for name in ("one", "other", "empty"))
    write_parquet([(one, none), (other, text), (empty, none), (one, text), (other, text[:1])])
    found = {path: pd.read_parquet(path)["text"].tolist() for path in (one, other, empty)}
    assert found == {one: ["a", "b"], other: ["a", "b", "a"], empty: []}


def test_a_lock_is_held_by_one(tmp_path):
    lock = tmp_path / "lock"
    with file_lock(lock), pytest.raises(Timeout), file_lock(lock, wait=False):
        pass
    with file_lock(lock, wait=False):
        pass


def test_a_folder_in_which_no_lock_can_be_is_named(tmp_path):
    (tmp_path / "runs").touch()
    with pytest.raises(InputError, match="runs cannot be written: File exists"):
        file_lock(tmp_path / "runs" / ".lock")


def test_digest_sees_names_and_bytes_but_not_what_is_hidden(tmp_path):
    def digest_after(name: str, content: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        return digest(tmp_path)

    first = digest_after("fit.py", "a")
    assert digest_after("__pycache__/fit.pyc", "x") == first
    assert digest_after(".hidden", "x") == first
    assert digest_after("fit.py", "b") != first
    assert digest_after("fit.py", "a") == first
    (tmp_path / "fit.py").rename(tmp_path / "refit.py")
    assert digest(tmp_path) != first
    assert digest(tmp_path / "missing") == digest(tmp_path / "absent")


def test_digest_sees_what_is_in_linked_folders_and_ends_where_one_holds_itself(tmp_path):
    (mine := tmp_path / "mine").mkdir()
    (disk := tmp_path / "disk").mkdir()
    (disk / "table.csv").write_text("age")
    (mine / "linked").symlink_to(disk)
    (mine / "round").symlink_to(mine)
    first = digest(mine)
    (disk / "table.csv").write_text("age\n17")
    assert digest(mine) != first


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "disk").mkdir()
    (link := tmp_path / "table.csv").symlink_to(tmp_path / "disk" / "table.csv")
    for text in ("first", "second"):
        write_text(link, text)
        assert link.is_symlink() and (tmp_path / "disk" / "table.csv").read_text() == text


def test_numbers_are_those_of_python(tmp_path):
    path = tmp_path / "numbers.yml"
    path.write_text("[010, -7, 1_000, 1e-3, -2E+4, 1.5, .5, .inf, -.Inf, '010', e5, 1e5x]")
    numbers = [10, -7, 1000, 1e-3, -2e4, 1.5, 0.5, np.inf, -np.inf]
    assert read_yaml(path) == [*numbers, "010", "e5", "1e5x"]
    path.write_text("seed: 1:30")
    with pytest.raises(InputError, match=r"numbers.yml is not YAML: invalid literal .* '1:30'"):
        read_yaml(path)


def test_what_a_merge_brings_does_not_stand_twice(tmp_path):
    text = "a: &a {x: 1, y: 1}\nb: {<<: *a, x: 2}\nc: {<<: *a, <<: {z: 5}, x: 3}\n<<: {d: 4}\n"
    (tmp_path / "merged.yml").write_text(text)
    content = read_yaml(tmp_path / "merged.yml")
    c = {"x": 3, "y": 1, "z": 5}
    assert content == {"d": 4, "a": {"x": 1, "y": 1}, "b": {"x": 2, "y": 1}, "c": c}
    (tmp_path / "merged.yml").write_text("# nothing yet\n")
    assert read_yaml(tmp_path / "merged.yml") is None


def test_a_key_that_stands_twice_is_warned_of_in_its_own_section_alone(tmp_path):
    text = "figures:\n  - {size: 1, size: 2}\nvariables: {age: {}, age: {a: 1}}\n"
    (tmp_path / "model.yml").write_text(text)
    with (
        pytest.warns(UserWarning, match="line 2: the key 'size' occurs twice, in a section"),
        pytest.raises(InputError, match="line 3: the key 'age' occurs twice"),
    ):
        read_yaml(tmp_path / "model.yml", known=["variables"])
    (tmp_path / "model.yml").write_text("variables: {}\nfigures: {}\nvariables: {a: 1}\n")
    with pytest.raises(InputError, match="line 3: the key 'variables' occurs twice"):
        read_yaml(tmp_path / "model.yml", known=["variables"])


@pytest.mark.parametrize("second", ["{C: [1, 2]}", "{C: [1, 2], weighted: True}", "{C: [2, 1]}"])
def test_a_key_that_says_the_same_twice_is_only_warned_of(tmp_path, second):
    first = "{C: [1, 2]}"
    (tmp_path / "grid.yml").write_text(f"estimators:\n  lr: {first}\n  lr: {second}\n")
    found = "grid.yml, line 3: the key 'lr' occurs twice"
    if second == first:
        with pytest.warns(UserWarning, match=f"{found}, with the same content"):
            assert read_yaml(tmp_path / "grid.yml") == {"estimators": {"lr": {"C": [1, 2]}}}
    else:
        with pytest.raises(InputError, match=f"{found}, and says two things"):
            read_yaml(tmp_path / "grid.yml")


def test_a_table_that_cannot_be_read_is_refused_in_one_line(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as two:
        two.writestr("a.csv", "a\n1\n")
        two.writestr("b.csv", "a\n1\n")
    whole = tmp_path / "whole.parquet"
    pd.DataFrame({"a": range(1000)}).to_parquet(whole)
    packed = gzip.compress(b"a,b\n" + os.urandom(1000))
    damaged = bytearray(packed)
    damaged[30] ^= 255
    for name, content in {
        "latin.csv": b"a\n\xff\n",
        "empty.csv": b"",
        "long.csv": b"a,b\n1,2\n1,2,3\n",
        "longer.csv": b"a,b\n1,2,3\n1,2,3\n",
        "counted.csv": b"a,b\n1,2,3\n2,2,3\n",
        "comma.csv": b"a,b\n1,2,\n2,3,\n",
        "quote.csv": b'a,b\n"1,2\n',
        "doubled.csv": b"a,b,a\n1,2,3\n",
        "text.zip": b"PK, more or less",
        "two.zip": (tmp_path / "two.zip").read_bytes(),
        "cut.gz": packed[:40],
        "damaged.gz": bytes(damaged),
        "text.gz": b"plain",
        "empty.parquet": b"",
        "cut.parquet": whole.read_bytes()[:-20],
        "text.parquet": b"PAR1 and PAR1",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"^file .*{name} cannot be read: ") as refused:
            read_table(tmp_path / name)
        assert "\n" not in str(refused.value)


def test_a_level_may_be_called_none_and_a_number_be_missing(tmp_path):
    insured = ["None", "NA", None, "null", "private"]
    table = pd.DataFrame({"insured": insured, "age": [1.5, np.nan, 3.0, 4.0, 5.0], "old": True})
    for name, write in (("t.csv", table.to_csv), ("t.parquet", table.to_parquet)):
        write(tmp_path / name, index=False)
        read = read_table(tmp_path / name)
        assert (
            read["insured"].astype(object).where(read["insured"].notna(), None).tolist() == insured
        )
        pd.testing.assert_frame_equal(read[["age", "old"]], table[["age", "old"]])
    (tmp_path / "r.csv").write_text("age,sex\n1,F\nNA,M\n")
    assert read_table(tmp_path / "r.csv")["age"].isna().tolist() == [False, True]


def test_of_a_doubled_column_the_name_is_told(tmp_path):
    (tmp_path / "doubled.csv").write_text("age,pay,age\n1,2,3\n")
    with pytest.raises(InputError, match=r"each column may be given only once: found 'age'"):
        read_table(tmp_path / "doubled.csv")
    with pytest.raises(InputError, match=r"file a.xls: ending '.xls' is unknown: expected one of"):
        read_table("a.xls")
