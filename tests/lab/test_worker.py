"""The worker: the last request wins, what it replaced is cancelled, and nothing of that is shown."""

from __future__ import annotations

import threading

import pytest

from mercer.events import StageDone, emit
from mercer.lab.worker import Worker

WAIT = 20


class Delivered:
    """What was delivered, and when a number of them is there."""

    def __init__(self):
        self.all, self._change = [], threading.Condition()

    def __call__(self, asked, found):
        with self._change:
            self.all.append((asked, found))
            self._change.notify_all()

    def wait_for(self, count):
        with self._change:
            assert self._change.wait_for(lambda: len(self.all) >= count, WAIT), self.all
        return self.all


@pytest.fixture
def delivered():
    return Delivered()


def test_results_arrive_in_order(delivered):
    worker = Worker(lambda n: iter(range(n)), delivered)
    worker.submit(3)
    assert delivered.wait_for(3) == [(3, 0), (3, 1), (3, 2)]
    worker.close()


def test_a_request_that_is_replaced_is_cancelled_within_a_computation(delivered):
    began, ended = threading.Event(), threading.Event()

    def compute(asked):
        if asked == "slow":
            began.set()
            try:
                while True:
                    emit(StageDone("step", 0.0))
            finally:
                ended.set()
        yield asked

    worker = Worker(compute, delivered)
    worker.submit("slow")
    assert began.wait(WAIT)
    worker.submit("quick")
    assert delivered.wait_for(1) == [("quick", "quick")]
    assert ended.is_set()
    worker.close()


def test_of_requests_that_wait_only_the_last_is_computed(delivered):
    began, go, computed = threading.Event(), threading.Event(), []

    def compute(asked):
        computed.append(asked)
        began.set()
        go.wait(WAIT)
        yield asked

    worker = Worker(compute, delivered)
    worker.submit(0)
    assert began.wait(WAIT)
    for number in range(1, 50):
        worker.submit(number)
    go.set()
    assert delivered.wait_for(1) == [(49, 49)]
    assert computed == [0, 49]
    worker.close()


def test_between_results_a_replaced_request_ends(delivered):
    first, go = threading.Event(), threading.Event()

    def compute(asked):
        yield asked, 1
        if asked == "a":
            first.set()
            go.wait(WAIT)
        yield asked, 2

    worker = Worker(compute, delivered)
    worker.submit("a")
    assert first.wait(WAIT)
    worker.submit("b")
    go.set()
    assert delivered.wait_for(3) == [("a", ("a", 1)), ("b", ("b", 1)), ("b", ("b", 2))]
    worker.close()


def test_an_error_is_delivered_and_the_worker_goes_on(delivered):
    def compute(asked):
        yield 1 / asked

    worker = Worker(compute, delivered)
    worker.submit(0)
    (_, error), *_ = delivered.wait_for(1)
    assert isinstance(error, ZeroDivisionError)
    worker.submit(2)
    assert delivered.wait_for(2)[1] == (2, 0.5)
    worker.close()


def test_workers_take_turns(delivered):
    inside, most, lock = [], [], threading.Lock()

    def compute(asked):
        inside.append(asked)
        most.append(len(inside))
        emit(StageDone("step", 0.0))
        inside.remove(asked)
        yield asked

    workers = [Worker(compute, delivered, lock) for _ in range(4)]
    for number, worker in enumerate(workers):
        worker.submit(number)
    delivered.wait_for(4)
    assert max(most) == 1
    for worker in workers:
        worker.close()


def test_a_closed_worker_ends():
    worker = Worker(lambda asked: iter([asked]), print)
    worker.close(wait=WAIT)
    assert not worker._thread.is_alive()
