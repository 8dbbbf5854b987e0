"""Fits within a checkpoint are killed by SIGKILL at random moments, and run again until they end.

``python tests/robustness/kills.py --kills 200``: each of the fits in `CASES` in turn is killed some times in a row, and
must then end with the bits of a fit that nobody killed. One kill in `ANYWHERE` comes at any moment, the others after
the first checkpoint of the run. After each kill a whole checkpoint must be there, or none. The fits run in forks of one
process that has computed nothing, so that a kill costs no import.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from itertools import cycle
from pathlib import Path

import numpy as np

import mercer
from mercer import (
    SVC,
    SVR,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelDiscriminantAnalysis,
    KernelKMeans,
    KernelLMS,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelPLS,
    KernelRidge,
    KernelRidgeCV,
    KernelSearchCV,
    KernelSpectralClustering,
    OneClassSVM,
)
from mercer.io.checkpoint_file import latest
from mercer.points import fingerprint
from mercer.points.disk import read_points

IN_A_ROW = 4
"""Most kills of a fit before it may end."""
ANYWHERE = 5
"""Of so many kills, one comes at any moment."""


def rows(n=300):
    X = np.random.default_rng(0).standard_normal((n, 4))
    return X, X[:, 0] + np.sin(X[:, 1]), np.arange(n) % 3


X, y, labels = rows()
CASES = {
    "conjugate gradients": lambda _: KernelRidge(solver="cg", alpha=0.1).fit(X, np.c_[y, y**2]),
    "conjugate gradients, rows on disk": lambda folder: KernelRidge("gaussian(gamma=0.3)", solver="cg", alpha=0.1).fit(
        on_disk(folder), y
    ),
    "Cholesky": lambda _: KernelRidge(solver="cholesky").fit(X, y),
    "landmarks": lambda _: KernelRidge(solver="nystroem", n_landmarks=40).fit(X, y),
    "conjugate gradients, on Dask": lambda _: on_workers(lambda rows: KernelRidge(solver="cg", alpha=0.1).fit(rows, y)),
    "Krylov, on Dask": lambda _: on_workers(lambda rows: KernelPCA(4, solver="krylov").fit(rows)),
    "landmarks, rows on disk": lambda folder: KernelRidge("gaussian(gamma=0.3)", solver="nystroem", n_landmarks=40).fit(
        on_disk(folder), y
    ),
    "validated ridge": lambda _: KernelRidgeCV(["linear", "gaussian"], [0.1, 1.0], cv=3).fit(X, y),
    "pairs": lambda _: SVC(C=10.0).fit(X, labels),
    "pairs, a tube": lambda _: SVR().fit(X, y),
    "one class": lambda _: OneClassSVM().fit(X),
    "dual coordinates": lambda _: SVC(solver="nystroem", n_landmarks=40).fit(X, labels),
    "Newton": lambda _: KernelLogisticRegression().fit(X, labels),
    "likelihood": lambda _: GaussianProcessRegressor("gaussian", restarts=2).fit(X, y),
    "Laplace": lambda _: GaussianProcessClassifier().fit(X[:80], labels[:80] % 2),
    "Krylov": lambda _: KernelPCA(4, solver="krylov").fit(X),
    "eigenvectors": lambda _: KernelPCA(4).fit(X),
    "discriminant": lambda _: KernelDiscriminantAnalysis().fit(X, labels),
    "NIPALS": lambda _: KernelPLS(3).fit(X, y),
    "Lloyd": lambda _: KernelKMeans(4, keep_history=True).fit(X),
    "spectral clusters": lambda _: KernelSpectralClustering(4).fit(X),
    "gradients": lambda _: KernelLMS(max_iter=20, keep_history=3, tol=None).fit(X, y),
    "stochastic gradients": lambda _: KernelLMS(mode="stochastic", max_iter=9, tol=None).fit(X, y),
    "mistakes": lambda _: KernelPerceptron(method="voted", max_iter=10).fit(X, labels),
    "search": lambda _: KernelSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}, cv=2).fit(X, labels).best_estimator_,
}


def on_workers(fit):
    """A fit to Dask's arrays, whose products two workers in this process compute."""
    import dask.array
    from distributed import Client, LocalCluster

    from mercer.gram.sharded import operator as sharded

    sharded.HERE = 0  # these products are small, and would be computed here
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options, processes=False) as cluster, Client(cluster):
        return fit(dask.array.from_array(X, chunks=(100, -1)))


def on_disk(folder):
    """The rows in a file, of which a chunk is in memory."""
    if not (folder / "rows.npy").exists():
        np.save(folder / "rows.npy", X)
    return read_points(folder / "rows.npy")


def forked(work):
    """The process of a fork that does this work, and where its answer will be read."""
    receive, send = os.pipe()
    if child := os.fork():
        os.close(send)
        return child, receive
    with contextlib.suppress(BaseException):
        try:
            answer = work()
        except BaseException:
            answer = traceback.format_exc()
        os.write(send, answer.encode()[-4000:])
    os._exit(0)


def answer_of(receive):
    with os.fdopen(receive, "rb") as pipe:
        return pipe.read().decode()


def kept_fit(case, folder, every):
    """A fit within a checkpoint, as the fingerprint of what it found."""
    warnings.simplefilter("error", mercer.errors.CheckpointWarning)
    with mercer.checkpoint(folder / "run.checkpoint", every=every):
        return fingerprint(case(folder))


def ended(work):
    child, receive = forked(work)
    found = answer_of(receive)
    os.waitpid(child, 0)
    return found


def await_write(path, child):
    """Wait until a checkpoint, or a part of one, was written since now, or the child has ended."""
    before = written_at(path)
    while written_at(path) == before and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(1e-4)


def written_at(path):
    with contextlib.suppress(OSError):
        return path.stat().st_mtime_ns
    return (path.parent / f"{path.name}.part").exists()


def timed(case, folder):
    """What a fit within a checkpoint ends with, its seconds, and those from its first write on."""
    start = time.monotonic()
    child, receive = forked(lambda: kept_fit(case, folder, 0))
    await_write(folder / "run.checkpoint", child)
    first = time.monotonic()
    found = answer_of(receive)
    os.waitpid(child, 0)
    return found, time.monotonic() - start, time.monotonic() - first


def trial(name, case, folder, chance, told):
    """Kill a fit some times in a row, at random moments; then it must end with the bits that it should."""
    path = folder / "run.checkpoint"
    expected = ended(lambda: fingerprint(case(folder)))
    found, takes, after = timed(case, folder)
    if found != expected:
        return f"within a checkpoint: {found}, without {expected}"
    for _ in range(chance.randint(1, IN_A_ROW)):
        child, receive = forked(lambda: kept_fit(case, folder, 0))
        if chance.randrange(ANYWHERE):
            await_write(path, child)
            time.sleep(chance.uniform(0, 0.9 * after))
        else:
            time.sleep(chance.uniform(0, takes))
        os.kill(child, signal.SIGKILL)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        found = answer_of(receive)
        if not killed and found != expected:
            return f"an end: {found}, should be {expected}"
        told["kills"] += killed
        told["fits"][name] = told["fits"].get(name, 0) + killed
        told["while writing"] += killed and (folder / "run.checkpoint.part").exists()
        try:
            contents, reason = latest(path)
        except mercer.errors.InvalidInput as error:
            return f"an unreadable checkpoint: {error}"
        told["checkpoints found"] += killed and contents is not None
        if reason is not None:
            return f"an unreadable checkpoint: {reason}"
    found = ended(lambda: kept_fit(case, folder, 0))
    left = sorted(one.name for one in folder.iterdir() if one.name != "rows.npy")
    if found != expected:
        return f"after kills: {found}, should be {expected}"
    return f"left behind: {left}" if left else None


def main(kills, seed):
    chance, failures = random.Random(seed), []
    told = {"kills": 0, "while writing": 0, "checkpoints found": 0, "fits": {}}
    for turn, (name, case) in enumerate(cycle(CASES.items())):
        if told["kills"] >= kills and turn >= min(kills, len(CASES)):
            break
        with tempfile.TemporaryDirectory() as folder:
            failure = trial(name, case, Path(folder), chance, told)
        if failure:
            failures.append(f"{name}: {failure}")
    return {**told, "failures": failures}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.stdout.write(json.dumps(main(given.kills, given.seed), indent=1) + "\n")
