"""Tests that share fixtures are done by one worker; otherwise these are made by each, unnoticed."""

from types import SimpleNamespace

import pytest

TESTS = [
    "lib/noise.py::lib.noise.uniforms",
    "tests/book/test_a.py::test_table",
    "tests/book/test_a.py::test_figure[page worlds]",
    "tests/book/test_a.py::test_width[page worlds-390]",
    "tests/book/test_a.py::test_figure[page theory]",
    "tests/book/test_a.py::test_figure[runs/index]",
    "tests/test_b.py::test_sum[a page of text]",
    "tests/test_b.py::test_sum[2]",
    "tests/ccr/test_inspect_task.py::test_one",
    "tests/ccr/test_items.py::test_other",
    "tests/test_causal_benchmark_book.py::test_two",
]


class Worker:
    """What a scheduler sees of a worker, which has done nothing yet."""

    gateway, shutting_down = SimpleNamespace(id="worker"), False

    def __init__(self):
        self.asked = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.asked.append(places)

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize("dist", ["load", "loadgroup"])
def test_a_worker_is_given_whole_modules_or_pages_in_their_order(request, dist):
    pytest.importorskip("xdist", reason="the extra `test` is missing")
    workers = [Worker() for _ in range(7)]
    given, option = {"dist": dist, "tx": ["7*popen"]}, SimpleNamespace(loadscopereorder=True)
    make = request.config.hook.pytest_xdist_make_scheduler
    log = SimpleNamespace(loadscopesched=print)
    scheduler = make(config=SimpleNamespace(getvalue=given.get, option=option), log=log)
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, TESTS)
    scheduler.schedule()
    asked = [[[0]], [[1, 5]], [[2, 3]], [[4]], [[6, 7]], [[8, 10]], [[9]]]
    assert [worker.asked for worker in workers] == asked
