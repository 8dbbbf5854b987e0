"""Checkpoints: the same bits after a kill, refusals, damaged files, and disks that fail."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import SVC, GaussianProcessRegressor, KernelLMS, KernelPCA, KernelRidge, KernelSearchCV
from mercer.errors import Cancelled, CheckpointWarning, InvalidInput
from mercer.events import SolverStep, observe
from mercer.io import checkpoint_file, checkpoints, identity
from mercer.io.checkpoint_file import Contents, Damaged, former, latest, remove, write
from mercer.keeping import keeper, kept_by
from mercer.points import fingerprint
from mercer.select.marginal import ExactLikelihood

X = np.random.default_rng(0).standard_normal((40, 3))
y = X[:, 0] + np.sin(X[:, 1])


class Stop:
    """Raises at the n-th step of a solver."""

    def __init__(self, at=None, error=Cancelled):
        self.at, self.error, self.steps = at, error, 0

    def on_event(self, event):
        if isinstance(event, SolverStep):
            self.steps += 1
            if self.steps == self.at:
                raise self.error("stopped here")


def ridge(**options):
    return KernelRidge("gaussian", **{"solver": "cg", "alpha": 0.1, "tol": 1e-4} | options)


def fit(model=None, data=X, target=y, **options):
    return (ridge() if model is None else model).fit(data, target, **options)


def killed(path, at=5, run=fit, error=Cancelled, every=0):
    """The error of a run that is stopped at a step."""
    with pytest.raises(error) as stopped, observe(Stop(at, error)), mercer.checkpoint(path, every=every):
        run()
    return stopped.value


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


@pytest.fixture(scope="module")
def whole():
    steps = Stop()
    with observe(steps):
        return fingerprint(fit()), steps.steps


def resumed(path, run=fit, every=0):
    """The fingerprint of a run that goes on, and the steps that it took."""
    steps = Stop()
    with observe(steps), mercer.checkpoint(path, every=every):
        found = run()
    return fingerprint(found), steps.steps


def test_a_run_stopped_at_each_step_goes_on_from_there(path, whole):
    digest, steps = whole
    assert steps >= 10
    for at in range(1, steps + 1):
        killed(path, at)
        assert path.exists() == (at > 1)
        assert resumed(path) == (digest, steps - at + 1)
        assert not list(path.parent.iterdir())


def test_a_run_is_stopped_again_and_again(path, whole):
    for _ in range(whole[1] - 1):
        killed(path, 2)
    assert resumed(path) == (whole[0], 1)


def test_ctrl_c_writes_the_last_state_and_says_how_to_go_on(path, whole):
    error = killed(path, 9, error=KeyboardInterrupt, every="1h")
    (note,) = error.__notes__
    assert str(path) in note
    assert "step 8 of RefinedConjugateGradients" in note
    assert "run the same again to go on from there" in note
    assert resumed(path) == (whole[0], whole[1] - 8)


def test_finished_fits_of_the_block_are_not_solved_again(path):
    def both():
        return fit(), fit(SVC(), X, X[:, 0] > 0)

    seen = Stop()
    with observe(seen):
        expected = fingerprint(both())
    killed(path, seen.steps, run=both)
    assert resumed(path, both) == (expected, 1)


def test_a_search_for_parameters_asks_only_for_what_it_has_not_computed(path, monkeypatch):
    X, asked = np.random.default_rng(0).standard_normal((30, 2)), []
    computed = ExactLikelihood.__call__

    def told(self, theta, gradient=True):
        asked.append(tuple(theta))
        if len(asked) == stop:
            raise Cancelled("stopped here")
        return computed(self, theta, gradient)

    def fit():
        return fingerprint(GaussianProcessRegressor("gaussian", restarts=1).fit(X, np.sin(X[:, 0])))

    monkeypatch.setattr(ExactLikelihood, "__call__", told)
    stop = None
    expected, whole = fit(), len(asked)
    asked.clear()
    stop = whole // 2
    with pytest.raises(Cancelled), mercer.checkpoint(path, every=0):
        fit()
    with mercer.checkpoint(path, every=0):
        assert fit() == expected
    assert len(asked) == whole + 1  # all of them, and the one that was stopped


def test_short_solves_are_computed_again(path, whole):
    def twice():
        fit()
        return fit()

    killed(path, whole[1] + 3, run=twice, every="1h")
    contents, _ = latest(path)
    assert [one["place"] for one in contents.document["runs"]] == ["1.0"]
    assert resumed(path, twice) == (whole[0], 2 * whole[1] - 2)


def test_the_states_recorded_before_a_kill_are_in_the_history(path):
    def run():
        return KernelLMS("gaussian", max_iter=12, tol=None, keep_history=2).fit(X, y)

    expected = run()
    for at in range(1, 13):
        killed(path, at, run=run)
        with mercer.checkpoint(path, every=0):
            found = run()
        np.testing.assert_array_equal(found.history_, expected.history_)


def test_two_whole_checkpoints_are_kept(path):
    killed(path, 7)
    steps = [contents.document["runs"][-1]["steps"] for contents in (latest(one)[0] for one in (path, former(path)))]
    assert steps == [6, 5]


def test_a_fit_that_is_cancelled_within_the_block_can_be_followed_by_another(path, whole):
    with mercer.checkpoint(path, every=0):
        with pytest.raises(Cancelled), observe(Stop(4)):
            fit()
        assert fingerprint(fit()) == whole[0]


def test_it_is_told_of_its_own_thread_and_process_only(monkeypatch):
    class Anybody:
        pass

    with kept_by(Anybody()):
        assert keeper() is not None
        monkeypatch.setattr("mercer.keeping.os.getpid", lambda: -1)
        assert keeper() is None


def test_a_second_ctrl_c_while_the_first_is_obeyed_leaves_what_was_there(path, whole, monkeypatch):
    def impatient(*args, **options):
        raise KeyboardInterrupt

    killed(path, 5)
    monkeypatch.setattr(checkpoint_file, "write", impatient)
    error = killed(path, 3, error=KeyboardInterrupt, every="1h")
    assert "has an earlier state" in error.__notes__[0]
    monkeypatch.undo()
    assert resumed(path) == (whole[0], whole[1] - 4)


def test_a_link_and_another_working_folder_lead_to_the_same_file(tmp_path, whole, monkeypatch):
    for name in ("here", "there", "kept"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("run.checkpoint").symlink_to(tmp_path / "kept" / "own.checkpoint")

    def elsewhere():
        monkeypatch.chdir(tmp_path / "there")
        return fit()

    killed("run.checkpoint", 5, run=elsewhere)
    monkeypatch.chdir(tmp_path / "here")
    assert Path("run.checkpoint").is_symlink()
    assert {one.name for one in tmp_path.rglob("*.checkpoint*")} == {"run.checkpoint", *two_of("own.checkpoint")}
    assert resumed("run.checkpoint", elsewhere) == (whole[0], whole[1] - 4)
    assert not list((tmp_path / "kept").iterdir())


def two_of(name):
    return name, former(Path(name)).name


@pytest.mark.parametrize("plant", [lambda part, other: part.symlink_to(other), lambda part, _: os.mkfifo(part)])
def test_nothing_is_written_through_what_lies_where_it_is_written_first(path, tmp_path, plant, whole):
    (tmp_path / "notes").write_text("mine")
    plant(path.with_name("run.checkpoint.part"), tmp_path / "notes")
    killed(path, 5)
    assert (tmp_path / "notes").read_text() == "mine"
    assert resumed(path) == (whole[0], whole[1] - 4)


# ---- refused ---------------------------------------------------------------------------------------------------------

OTHERS = {
    "X of fit is another": lambda: fit(data=X + 1e-9),
    "y of fit is another": lambda: fit(target=y[::-1]),
    "alpha was 0.1 and is 0.2": lambda: fit(ridge(alpha=0.2)),
    "kernel was 'gaussian' and is 'laplace'": lambda: fit(ridge().set_params(kernel="laplace")),
    "tol was": lambda: fit(ridge(tol=1e-3)),
    "sample_weight of fit is new": lambda: fit(sample_weight=np.ones(40)),
    "fit was KernelRidge.fit and is KernelPCA.fit": lambda: KernelPCA(2).fit(X),
}


@pytest.mark.parametrize("told", OTHERS)
def test_a_checkpoint_of_another_fit_is_refused(path, told, whole):
    killed(path)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="holds another") as refused, mercer.checkpoint(path):
        OTHERS[told]()
    assert told in str(refused.value)
    assert "delete run.checkpoint and run.checkpoint.before to begin anew" in str(refused.value)
    assert path.read_bytes() == before
    assert resumed(path)[0] == whole[0]


def test_a_refusal_names_the_file_that_was_read_and_what_to_delete(path):
    other = OTHERS["alpha was 0.1 and is 0.2"]
    killed(path)
    path.unlink()  # as a kill between two renames leaves it, which must not lose the state
    with pytest.raises(InvalidInput) as refused, mercer.checkpoint(path):
        other()
    said = str(refused.value)
    assert said.startswith("checkpoint: run.checkpoint.before holds another")
    assert said.endswith("; name another file, or delete run.checkpoint.before to begin anew.")
    former(path).write_bytes(b"damaged")
    with pytest.raises(InvalidInput, match=r"before is not .* or delete run\.checkpoint\.before to begin"):
        latest(path)
    former(path).unlink()
    with mercer.checkpoint(path):
        other()
    assert not list(path.parent.iterdir())


def test_a_refusal_after_a_damaged_file_names_the_one_before(path):
    killed(path, 9)
    path.write_bytes(path.read_bytes()[:-1])
    with (
        pytest.warns(CheckpointWarning, match=r"checkpoint\.before is used"),
        pytest.raises(InvalidInput, match=r"before holds another .* delete run\.checkpoint and run\.checkpoint\.bef"),
        mercer.checkpoint(path),
    ):
        fit(data=X + 1e-9)


@pytest.mark.parametrize("name", ["mercer", "NumPy", "threads", "engine"])
def test_a_checkpoint_of_other_versions_is_refused(path, name, monkeypatch):
    killed(path)
    now = identity.environment()
    monkeypatch.setattr("mercer.io.checkpoints.environment", lambda: now | {name: "another one"})
    with pytest.raises(InvalidInput, match=f"{name} was .* and is another one"), mercer.checkpoint(path):
        fit()


def test_a_run_that_went_another_way_is_refused(path):
    killed(path)
    contents, _ = latest(path)
    contents.document["runs"][0]["mark"] = "0" * 32
    write(path, contents)
    with pytest.raises(InvalidInput, match="random_state, memory or the rates"), mercer.checkpoint(path):
        fit()


def test_a_search_that_takes_a_refusal_for_a_failed_candidate_deletes_nothing(path):
    from sklearn.model_selection import GridSearchCV

    def run(alphas):
        return GridSearchCV(ridge(), {"alpha": alphas}, cv=2, error_score=0.0).fit(X, y)

    killed(path, run=lambda: run([0.1, 1.0]))
    with pytest.raises(InvalidInput, match="alpha was"), pytest.warns(), mercer.checkpoint(path):
        run([0.2, 0.1, 1.0])
    assert path.exists()


def test_two_runs_at_once_have_two_files(path, whole):
    pytest.importorskip("fcntl")
    with mercer.checkpoint(path, every=0):
        with pytest.raises(Cancelled), observe(Stop(5)):
            fit()
        with pytest.raises(InvalidInput, match="another run"), mercer.checkpoint(path):
            pytest.fail("the block began")
        kept = path.read_bytes()
    path.write_bytes(kept)
    Path(f"{path}.lock").write_bytes(b"")  # a kill leaves it, and the system has given the place back
    assert resumed(path)[0] == whole[0]
    assert not list(path.parent.iterdir())


def test_other_threads_are_refused_with_how_to_go_on(path, monkeypatch):
    killed(path)
    now = identity.environment()
    monkeypatch.setattr("mercer.io.checkpoints.environment", lambda: now | {"threads": "64"})
    with (
        pytest.raises(InvalidInput, match=f"set OMP_NUM_THREADS={now['threads']} without --threads"),
        mercer.checkpoint(path),
    ):
        fit()


def test_a_search_keeps_its_scores_or_its_states(path, tmp_path):
    search = KernelSearchCV(ridge(), {"alpha": [0.1, 1.0]}, cv=2, resume=tmp_path / "scores.json")
    with pytest.raises(InvalidInput, match="within a checkpoint"), mercer.checkpoint(path):
        search.fit(X, y)


def test_what_is_no_checkpoint_is_refused_and_left_alone(path, tmp_path):
    path.write_text("my notes")
    with pytest.raises(InvalidInput, match="is not a checkpoint"), mercer.checkpoint(path):
        pytest.fail("the block began")
    assert path.read_text() == "my notes"
    for wrong in (tmp_path, tmp_path / "none" / "run.checkpoint"):
        with pytest.raises(InvalidInput, match="folder"), mercer.checkpoint(wrong):
            pytest.fail("the block began")


@pytest.mark.parametrize(
    "every",
    ["soon", "", "5 days of rain", -1, float("nan"), float("inf"), pytest.param(10**400, id="huge"), True, None],
)
def test_an_interval_that_is_none_is_refused(path, every):
    with pytest.raises(InvalidInput, match="is not a duration"), mercer.checkpoint(path, every=every):
        pytest.fail("the block began")


def test_what_cannot_be_compared_is_refused_before_the_fit(path):
    with pytest.raises(InvalidInput, match="cannot be compared"), mercer.checkpoint(path):
        fit(ridge(memory=(one for one in "ab")))


# ---- damaged files ---------------------------------------------------------------------------------------------------


def damaged(data):
    """The bytes cut at some places, or with one bit turned at some places; every byte of the first 200."""
    n = len(data)
    for place in {*range(0, n, max(n // 60, 1)), *range(min(n, 200)), n - 1}:
        yield data[:place]
        yield data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
    yield data + b"\0"


def test_a_damaged_checkpoint_is_never_read(path):
    killed(path)
    data = path.read_bytes()
    for wrong in damaged(data):
        path.write_bytes(wrong)
        with pytest.raises(Damaged):
            checkpoint_file._read(path)


def test_the_one_before_is_used_with_a_warning_and_not_lost(path, whole):
    killed(path, 9)
    good, before = path.read_bytes(), former(path).read_bytes()
    for wrong in (good[:100], good[: len(good) // 2], b"", bytes(len(good))):
        path.write_bytes(wrong)
        former(path).write_bytes(before)
        with pytest.warns(CheckpointWarning, match=r"run\.checkpoint\.before is used"):
            error = killed(path, 1, error=KeyboardInterrupt)
        assert "an earlier state" in error.__notes__[0]
        assert former(path).read_bytes() == before
        with pytest.warns(CheckpointWarning):
            killed(path, 2)
        assert former(path).read_bytes() == before  # and the damaged one did not take its place
        assert resumed(path) == (whole[0], whole[1] - 8)


def test_if_both_are_damaged_the_run_does_not_begin(path):
    killed(path)
    for one in (path, former(path)):
        one.write_bytes(one.read_bytes()[:-1])
    with pytest.raises(InvalidInput, match="cut short"), mercer.checkpoint(path):
        pytest.fail("the block began")


def test_a_document_that_is_none_of_ours_is_refused(path):
    run = {"place": "", "solver": "", "mark": "", "steps": 1, "seconds": 1.0, "arrays": {}, "trail": []}
    whole = {"fits": [], "environment": {}, "runs": [run]}
    others = [{"fits": [[["a", 1], ["b", 2, 3]]]}, {"environment": []}, {"runs": [run | {"arrays": []}]}]
    others += [{"runs": [run | {name: float("inf")}]} for name in ("steps", "trail")]
    for document in ({}, {"fits": 3}, {"runs": [{"arrays": {"x": "y"}}]}, *(whole | other for other in others)):
        write(path, Contents(document, {}), keeps=False)
        with pytest.raises(InvalidInput, match="is damaged"), mercer.checkpoint(path):
            pytest.fail("the block began")


def test_a_pipe_in_place_of_the_one_before_is_not_read(path):
    os.mkfifo(former(path))
    with pytest.raises(InvalidInput, match="is not a file"), mercer.checkpoint(path):
        pytest.fail("the block began")


def test_a_dtype_that_is_no_dtype_is_damage(path):
    write(path, Contents({}, {"a": np.zeros(2)}))
    data = path.read_bytes()[: -checkpoint_file.DIGEST].replace(b'"<f8"', b'"(f,"')
    path.write_bytes(data + hashlib.blake2b(data, digest_size=checkpoint_file.DIGEST).digest())
    with pytest.raises(InvalidInput, match="damaged"):
        latest(path)


@pytest.mark.parametrize("array", [
    np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros((0, 3)), np.array(3),
    np.array("float32"), np.array([True, False]), np.arange(24)[::3], np.float32([1.5]), np.array([], np.int64),
])  # fmt: skip
def test_arrays_come_back_with_their_dtype_and_order(path, array):
    write(path, Contents({"a": [1, None, 0.1]}, {"one": array}))
    contents, _ = latest(path)
    found = contents.arrays["one"]
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.f_contiguous or not array.flags.f_contiguous
    assert contents.document == {"a": [1, None, 0.1]}
    assert found.flags.writeable


# ---- disks that fail -------------------------------------------------------------------------------------------------


class Failing:
    """The module os, whose n-th operation on files fails, or all from the n-th on; a failing write writes half."""

    NAMES = ("open", "write", "fsync", "close", "replace", "unlink")

    def __init__(self, at=None, for_good=False, code=errno.ENOSPC):
        self.at, self.for_good, self.code, self.count = at, for_good, code, 0

    def __getattr__(self, name):
        real = getattr(os, name)
        return self._failing(name, real) if name in self.NAMES else real

    def _failing(self, name, real):
        def operation(*args, **kwargs):
            self.count += 1
            if self.at is not None and (self.count >= self.at if self.for_good else self.count == self.at):
                if name == "write":
                    real(args[0], args[1][: len(args[1]) // 2])
                if name == "close":
                    real(*args)
                raise OSError(self.code, os.strerror(self.code))
            return real(*args, **kwargs)

        return operation


@pytest.mark.parametrize(
    ("for_good", "code"), [(True, errno.ENOSPC), (False, errno.EIO)], ids=["full from then on", "one failure"]
)
def test_each_operation_on_files_fails_and_nothing_is_lost(path, monkeypatch, recwarn, whole, for_good, code):
    disk = Failing()
    monkeypatch.setattr(checkpoint_file, "os", disk)
    killed(path, 4)
    total = disk.count
    assert total > 20
    for n in range(1, total + 1):
        monkeypatch.setattr(checkpoint_file, "os", os)
        remove(path)
        recwarn.clear()
        monkeypatch.setattr(checkpoint_file, "os", Failing(n, for_good, code))
        error = killed(path, 4)
        monkeypatch.setattr(checkpoint_file, "os", os)
        told = [one for one in recwarn if issubclass(one.category, CheckpointWarning)]
        assert len(told) <= 1
        assert all("cannot be written" in str(one.message) and "the run goes on" in str(one.message) for one in told)
        contents, reason = latest(path)
        assert reason is None
        assert (contents is None) == ("could not be written" in error.__notes__[0])
        digest, steps = resumed(path, every="1h")
        assert digest == whole[0]
        at = whole[1] - steps
        assert at == 3 if not for_good else at <= 3


def test_a_full_disk_is_a_warning_and_the_fit_is_complete(path, monkeypatch, whole):
    monkeypatch.setattr(checkpoint_file, "os", Failing(1, for_good=True))
    with pytest.warns(CheckpointWarning, match="No space left on device") as told:
        assert resumed(path) == whole
    assert len(told) == 1


def test_a_run_that_has_no_memory_for_its_checkpoint_goes_on(path, monkeypatch, whole):
    def full(*args, **options):
        raise MemoryError

    monkeypatch.setattr(checkpoint_file, "write", full)
    with pytest.warns(CheckpointWarning, match=r"not enough memory.*the run goes on") as told:
        assert resumed(path) == whole
    assert len(told) == 1


# ---- time ------------------------------------------------------------------------------------------------------------


def test_nothing_is_written_before_the_interval_has_passed(path, monkeypatch):
    written = []
    monkeypatch.setattr(checkpoint_file, "write", lambda *args, **options: written.append(args))
    resumed(path, every="5min")
    assert not written


def test_the_next_checkpoint_waits_until_writing_takes_at_most_a_fiftieth_of_the_time(path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    written = []

    def slow(*args, **options):
        written.append(now[0])
        now[0] += 1.0

    class Tick:
        def on_event(self, event):
            now[0] += 11.0

    monkeypatch.setattr(checkpoint_file, "write", slow)
    with observe(Tick()), mercer.checkpoint(path, every="20s"):
        fit()
    assert len(written) >= 3
    assert all(b - a >= 1.0 / 0.02 for a, b in pairwise(written))


def test_a_clock_that_jumps_changes_nothing(path, monkeypatch, whole):
    monkeypatch.setattr(time, "time", lambda: np.random.default_rng().uniform(-1e9, 1e9))
    killed(path, 5)
    assert resumed(path)[0] == whole[0]


@pytest.mark.parametrize("end", ["part", "before", "lock"])
def test_a_file_of_another_kind_beside_it_is_not_lost(path, end):
    other = path.with_name(f"{path.name}.{end}")
    other.write_bytes(b"merchandise")
    with (
        pytest.raises(InvalidInput, match=rf"{end} exists and is not of a checkpoint: it would be lost"),
        mercer.checkpoint(path),
    ):
        pytest.fail("the block began")
    assert other.read_bytes() == b"merchandise"


def test_a_part_that_a_kill_left_is_replaced(path):
    path.with_name(f"{path.name}.part").write_bytes(b"mercer-ch")
    with mercer.checkpoint(path, every=0):
        fit()
    assert not list(path.parent.iterdir())
