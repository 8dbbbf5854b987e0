"""The engine's own threads: they divide work, leave nobody waiting, and sleep while there is none."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer import KernelOperator
from mercer.engine import backend
from mercer.kernels import Gaussian

pytestmark = pytest.mark.skipif(not backend.is_native(), reason="the reference has no threads")


@pytest.fixture
def K() -> KernelOperator:
    X = np.random.default_rng(0).standard_normal((1500, 5))
    return KernelOperator(Gaussian(0.3), X)


def test_results_do_not_depend_on_who_else_has_the_team(K: KernelOperator) -> None:
    """A call that finds the team taken does its tasks alone; what is divided is the same, and so are the bits."""
    v = np.random.default_rng(1).standard_normal(K.shape[0])
    with threadpool_limits(3, user_api="openmp"):
        expected = K @ v

    def product(_: int) -> Any:
        with threadpool_limits(3, user_api="openmp"):
            return K @ v

    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(product, range(24)):
            np.testing.assert_array_equal(got, expected)


def test_many_more_threads_than_processors_agree(K: KernelOperator) -> None:
    v = np.ones(K.shape[0])
    with threadpool_limits(1, user_api="openmp"):
        expected = K @ v
    for team in (2, 7, 33, 5, 1):
        with threadpool_limits(team, user_api="openmp"):
            for _ in range(10):
                np.testing.assert_allclose(K @ v, expected, rtol=1e-13)


@pytest.mark.skipif(sys.platform != "linux", reason="the processor time of Linux")
def test_idle_threads_sleep(K: KernelOperator) -> None:
    """Threads that spin while they wait take the processors from other work."""
    with threadpool_limits(4, user_api="openmp"):
        K @ np.ones(K.shape[0])
        time.sleep(0.05)
        before = time.process_time()
        time.sleep(0.3)
        assert time.process_time() - before < 0.05
