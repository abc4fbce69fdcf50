import contextvars
import json
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from skyward.errors import UsageError
from skyward.model.instances.instance import InstanceInfo
from skyward.model.instances.lazy_peers import Peers
from skyward.node.task import runtime, task_context
from skyward.node.worker.peer_lookup import peer


@contextmanager
def task(call=1, facts=None, membership=None, **more):
    context = task_context.TaskContext(
        call_id=call, function="f", facts=facts or {}, membership=membership or {}, **more
    )
    token = task_context.set_context(context)
    try:
        yield context
    finally:
        task_context.reset_context(token)


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_outside_a_task_there_is_one_node_of_one():
    """
    `.local()` sees a pool of one rank, which is the head.
    """
    assert runtime.instance_info() == InstanceInfo()
    assert runtime.is_head()
    assert not task_context.in_task()
    assert task_context.current_call_id() == 0


def test_info_joins_facts_and_membership():
    """
    What the node is and who takes part are given together, and unknown keys are passed over.
    """
    facts = {"node": 1, "worker": 1, "workers_per_node": 2, "hostname": "n1", "news": 1}
    members = {"version": 3, "total_nodes": 2, "peers": [{"node": 0, "private_ip": "10.0.0.1"}]}
    with task(facts=facts, membership=members):
        info = runtime.instance_info()
        assert (info.global_worker_index, info.total_workers, info.hostname) == (3, 4, "n1")
        assert info.peers[0].private_ip == "10.0.0.1"
        assert runtime.instance_info() is info
        assert not runtime.is_head()
        assert runtime.is_head(InstanceInfo())


def test_calls_among_the_same_members_share_what_they_are_told():
    """Its peers may be many; a broadcast hears its own number, and of other members at once."""

    def told(total, broadcast):
        peers = [{"node": node, "private_ip": "127.0.0.1"} for node in range(total)]
        with task(membership={"total_nodes": total, "peers": peers, "broadcast": broadcast}):
            return runtime.instance_info()

    first, again, together, later, fewer = told(3, 0), told(3, 0), told(3, 7), told(3, 8), told(2, 8)
    assert first is again
    assert [0, 7, 8, 8] == [info.broadcast for info in (first, together, later, fewer)]
    assert first.peers is together.peers is later.peers
    assert [3, 3, 3, 2] == [len(info.peers) for info in (first, together, later, fewer)]
    assert told(3, 7) == together


def test_peers_that_no_call_looks_at_are_not_looked_up():
    """Whatever the versions are that calls see."""

    def fail():
        raise AssertionError("they were looked up")

    facts = InstanceInfo(node=1).to_dict()
    versions = [{"version": version, "total_nodes": 3, "peers": Peers(3, fail, peer)} for version in range(3)]
    for version, broadcast in ((1, 0), (2, 0), (2, 7), (1, 0)):
        with task(facts=facts, membership={**versions[version], "broadcast": broadcast}):
            info = runtime.instance_info()
            assert (1, 3, 3) == (info.node, info.total_nodes, len(info.peers))


def test_accelerator_is_named_by_its_type():
    """
    The type of the rank's accelerators is given, and None where there are none.
    """
    with task(facts={"accelerator": {"type": "H100", "count": 2}}):
        assert runtime.current_accelerator() == "H100"
    with task():
        assert runtime.current_accelerator() is None


def test_accelerator_outside_a_task_is_an_error():
    """
    What is not known is not answered with None.
    """
    with pytest.raises(UsageError, match=r"current_accelerator\(\) was called outside a task"):
        runtime.current_accelerator()


def test_events_go_through_the_call():
    """
    An event is sent by the call that emits it, from its threads too.
    """
    sent = []
    with task(emit=sent.append):
        task_context.emit_from_task("a")
        in_thread(lambda: task_context.emit_from_task("b"))
    assert sent == ["a", "b"]


def test_event_outside_a_task_is_an_error():
    """
    Without a task, and in a task without a client, an event has nowhere to go.
    """
    with pytest.raises(UsageError, match="no task that could send 'a'"):
        task_context.emit_from_task("a")
    with task(), pytest.raises(UsageError, match="no way to a client"):
        task_context.emit_from_task("a")


def test_plain_thread_belongs_to_the_only_call():
    """
    A thread without a context is part of the one call that runs.
    """
    with task(call=7, facts={"node": 3}):
        assert in_thread(task_context.current_call_id) == 7
        assert in_thread(lambda: runtime.instance_info().node) == 3
    assert in_thread(task_context.in_task) is False


def test_plain_thread_among_several_calls_prints_for_nobody():
    """
    Where several calls run, a thread without a context hears of the place and not of a call.
    """
    with task(call=1, facts={"node": 3}), task(call=2, facts={"node": 3}):
        assert in_thread(task_context.current_call_id) == 0
        assert in_thread(lambda: runtime.instance_info().node) == 3


def test_copied_context_stays_with_its_call():
    """
    A thread that runs in a copy of the call's context belongs to that call, whatever else runs.
    """
    with task(call=1):
        context = contextvars.copy_context()
        with task(call=2):
            assert in_thread(lambda: context.run(task_context.current_call_id)) == 1
            assert task_context.current_call_id() == 2
        assert task_context.current_call_id() == 1


def test_end_runs_what_is_to_run_at_the_end():
    """
    At its end a call tells those who asked, and a stream that no client reads does not hold it up.
    """
    ended = []

    def broken(call):
        raise BrokenPipeError

    with task(call=4) as context:
        context.at_end.update({broken, ended.append})
    assert ended == [4]


def test_import_is_light():
    """
    What every worker imports brings neither attrs nor inspect nor asyncio.
    """
    code = (
        "import sys, json; import skyward.node.task.runtime, skyward.node.task.output; "
        "print(json.dumps(sorted({'attr', 'attrs', 'inspect', 'asyncio', 'numpy', 'skyward.model.instances.instance'}"
        " & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_ranks_of_nodes_that_work_by_themselves_cannot_meet():
    """The error says by what they were told apart; where nothing is said of it, as outside a task, there is none."""
    assert runtime.rendezvous_secret() == ""
    with task(membership={"secret": "s"}):
        assert runtime.rendezvous_secret() == "s"
    with task(membership={}):
        assert runtime.rendezvous_secret() == ""
    with task(membership={"secret": ""}), pytest.raises(UsageError, match="opened with cluster=False"):
        runtime.rendezvous_secret()
