"""The taskset within the real verifiers: found by name, read, scored, and played to the end."""

import asyncio
import itertools
import json
import sys
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import importing
import pytest
from pydantic import ValidationError

from lib.ccr import read
from lib.ccr.items import item
from lib.errors import InputError

ID = "causal-benchmark-book"


@pytest.fixture(scope="module", autouse=True)
def verifiers():
    """Import it where it is used: all workers collect all tests, and this takes five seconds."""
    global vf
    with importing.much():
        import verifiers.v1 as vf


def taskset(**config):
    return vf.load_taskset(vf.taskset_config_type(ID)(id=ID, **config))


def first(n, **config):
    return list(taskset(**config).take(n))


def reply(task, text):
    """A trace in which a model was asked and said something, as a rollout leaves it."""
    from verifiers.v1.graph import MessageNode

    asked, said = vf.UserMessage(content=task.data.prompt), vf.AssistantMessage(content=text)
    return vf.Trace(
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        task=vf.TraceTask(type="CcrTask", data=task.data),
        nodes=[
            MessageNode(parent=None, message=asked, sampled=False),
            MessageNode(parent=0, message=said, sampled=True),
        ],
    )


def reward(task, text):
    trace = reply(task, text)
    asyncio.run(task.score(trace))
    return trace.reward


def test_tasks_are_the_items_by_their_index():
    harder = {"components": 4, "nodes": 2, "withheld": 0.2, "theme": "flu_vaccine"}
    for index, task in enumerate(first(5, seed=3, **harder)):
        one = item(index, seed=3, **harder)
        assert (task.data.idx, task.data.prompt) == (index, one["prompt"])
        assert task.data.answer == one["answer"]


def test_any_of_them_can_be_named_alone_and_the_same_seed_gives_the_same():
    (alone,) = taskset(seed=5).include(idx=["7"])
    assert alone.key == first(8, seed=5)[7].key
    keys = [task.key for task in first(30, seed=5)]
    assert len(set(keys)) == 30
    assert {task.key for task in first(30, seed=6)}.isdisjoint(keys)


def test_the_reward_is_one_for_the_true_answer_alone():
    for task in first(6):
        other = "No" if task.data.answer == "Yes" else "Yes"
        assert reward(task, f"**{task.data.answer}**, it follows.") == 1
        for wrong in (other, "Yes or No.", "Yes.\nAnswer: No", ""):
            assert reward(task, wrong) == 0


def test_every_answer_is_found_a_second_time_and_a_wrong_one_is_caught():
    for task in first(10, seed=1) + first(10, seed=1, withheld=0.3):
        assert asyncio.run(task.validate(None))
        wrong = task.with_data(answer="No" if task.data.answer == "Yes" else "Yes")
        assert not asyncio.run(wrong.validate(None))


@pytest.mark.parametrize("config", [{"components": 0}, {"theme": "candy"}, {"seed": -1}])
def test_what_is_out_of_range_is_refused(config):
    with pytest.raises(InputError):
        first(1, **config)


def test_what_is_unknown_is_refused():
    with pytest.raises(ValidationError, match="depth"):
        taskset(depth=3)


class Reader(BaseHTTPRequestHandler):
    """A server that speaks as those of language models do, and reads the prompt."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        context, _, question = asked["messages"][-1]["content"].rpartition("\n\n")
        said = {"role": "assistant", "content": "Yes." if read(context, question) else "No."}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "reader"}
        body = json.dumps({**answer, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Reader)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def one_question(monkeypatch):
    """A module with the least that plays a task; those of verifiers install a program first."""

    class OneQuestion(vf.Harness[vf.HarnessConfig]):
        EXECUTES_CODE = NEEDS_CONTAINER = False

        async def launch(
            self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, *more, **others
        ):
            body = {"model": ctx.model, "messages": [{"role": "user", "content": data.prompt}]}
            async with httpx.AsyncClient() as client:
                headers = {"Authorization": f"Bearer {secret}"}
                found = await client.post(
                    f"{endpoint}/chat/completions", json=body, headers=headers
                )
            return vf.ProgramResult(exit_code=int(found.is_error), stdout="", stderr=found.text)

    module = types.ModuleType("one_question")
    module.OneQuestion, module.__all__ = OneQuestion, ["OneQuestion"]
    monkeypatch.setitem(sys.modules, "one_question", module)


def test_a_model_that_reads_plays_an_evaluation_perfectly(
    server, one_question, tmp_path, monkeypatch
):
    from verifiers.v1.cli.eval.runner import run_eval
    from verifiers.v1.configs.cli.eval import EvalConfig

    monkeypatch.setenv("NO_KEY", "none")
    config = EvalConfig(
        env={
            "taskset": {"id": ID, "components": 2},
            "agent": {"harness": {"id": "one-question"}, "runtime": {"type": "subprocess"}},
        },
        select={"limit": 3},
        model="reader",
        client={"type": "eval", "base_url": server, "api_key_var": "NO_KEY"},
        output_dir=tmp_path,
        rich=None,
        push=False,
    )
    episodes = asyncio.run(run_eval(config))
    traces = list(itertools.chain.from_iterable(episode.traces for episode in episodes))
    assert [trace.last_error for trace in traces] == [None] * 3
    assert [trace.task.data.idx for trace in traces] == [0, 1, 2]
    assert [(trace.num_turns, trace.reward) for trace in traces] == [(1, 1.0)] * 3
