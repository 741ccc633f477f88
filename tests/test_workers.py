"""Workers are counted, return results in order, and compute in one thread."""

import sys
import types

import joblib
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from lib import workers


def threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def test_libraries_with_threads_are_held_to_one_and_then_as_before():
    with threadpool_limits(2):
        before = threads()
        with workers.one_thread():
            assert {*threads()} == {1}
        assert threads() == before
        assert 2 in before


def test_libraries_with_threads_are_looked_for_again_only_after_an_import(monkeypatch):
    real, looked = workers.ThreadpoolController, []
    monkeypatch.setattr(workers, "ThreadpoolController", lambda: looked.append(1) or real())
    workers._libraries.cache_clear()
    for _ in range(3):
        with workers.one_thread():
            pass
    assert len(looked) == 1
    monkeypatch.setitem(sys.modules, "a_module_with_threads", types.ModuleType("it"))
    with workers.one_thread():
        pass
    assert len(looked) == 2


def test_an_error_of_the_work_itself_is_passed_on():
    def work():
        yield joblib.delayed(abs)(-1)
        raise ValueError("the second is missing")

    with pytest.raises(ValueError, match="the second is missing"):
        list(workers.in_order(work()))
