"""Rates: documented, measured once, kept, overridden; a kept file is never an error, one that the user named may be."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import fields, replace
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from mercer.errors import Cancelled, InvalidInput
from mercer.events import Cancel, StageDone, emit, observe
from mercer.gram import rates
from mercer.planning import machine as module
from mercer.planning.machine import Machine

RATES = [field.name for field in fields(Machine) if field.name not in ("threads", "source")]


def small(machine: Machine) -> float:
    return 0.5 * rates.WORTH_USING


def middle(machine: Machine) -> float:
    return 0.5 * rates.WORTH_MEASURING


def large(machine: Machine) -> float:
    return 2 * rates.WORTH_MEASURING


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """A user without rates, on a quiet machine; the list grows with each measurement."""
    monkeypatch.delenv("MERCER_MACHINE", raising=False)
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(module, "_measured", {})
    monkeypatch.setattr(rates.processors, "free", rates.processors.allowed)
    made: list[int] = []

    def measure() -> Machine:
        made.append(1)
        threads = rates.backend.engine().threads()
        return replace(Machine.documented(threads), product64=7e10 + len(made), source="measured")

    monkeypatch.setattr(rates, "measure", measure)
    return made


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process."""
    monkeypatch.setattr(module, "_measured", {})


def test_small_work_is_planned_by_documented_rates_before_and_after_a_measurement(asked: list[int]) -> None:
    before = rates.machine(small)
    assert not asked
    assert before.source == "documented"
    assert rates.machine(large).source == "measured"
    assert rates.machine(small) == before


def test_rates_that_are_there_are_used_for_less_work_than_is_worth_a_measurement(asked: list[int]) -> None:
    assert rates.machine(middle).source == "documented"
    assert not asked
    measured = rates.machine(large)
    assert rates.machine(middle) == measured


def test_documented_rates_are_of_as_many_threads_of_blas_as_there_are(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = rates.backend.engine().threads()
    with rates.backend.fixed_threads(threads):
        blas = rates.backend.blas_threads()  # OpenBLAS takes no more threads than there are cores, the engine does
        assert 1 <= blas <= threads
        assert rates.machine(small).product64 == blas * rates.machine(small).product64_alone
        with rates.backend.one_blas_thread():  # a section is not what the user set
            assert rates.machine(small).product64 == blas * rates.machine(small).product64_alone
    with threadpool_limits(1, user_api="blas"):
        one = rates.machine(small)
    assert (one.product32, one.product64) == (one.product32_alone, one.product64_alone)
    assert one.bandwidth == one.bandwidth_alone
    assert one.narrow64 == threads * Machine.documented(1, rates.backend.instruction_set()).narrow64


def test_rates_are_measured_once_and_kept(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    found = rates.machine(large)
    assert rates.machine(large) == found
    forget(monkeypatch)
    assert rates.machine(large) == found
    assert len(asked) == 1


@pytest.mark.parametrize("looks", [1, 2])
def test_a_busy_machine_has_documented_rates(looks: int, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is busy before the measurement or after it."""
    quiet = iter([True] * (looks - 1))
    monkeypatch.setattr(rates, "_quiet", lambda: next(quiet, False))
    assert rates.machine(large).source == "documented"
    assert len(asked) == looks - 1
    assert not module.cache_folder().exists()
    monkeypatch.setattr(rates, "_quiet", lambda: True)
    assert rates.machine(large).source == "measured"


@pytest.mark.parametrize("change", ["threads", "instruction_set", "version", "processor"])
def test_rates_of_something_else_are_not_taken(change: str, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    module.keep(Machine.documented(3), "x86-64-v3")
    forget(monkeypatch)
    assert module.kept(3, "x86-64-v3") is not None
    forget(monkeypatch)
    if change == "version":
        monkeypatch.setattr(module, "__version__", "another")
    if change == "processor":
        monkeypatch.setattr(module, "_processor", lambda: "another")
    assert module.kept(2 if change == "threads" else 3, "" if change == "instruction_set" else "x86-64-v3") is None


CONTENTS = {
    "nothing": b"",
    "no text": bytes(range(256)),
    "no JSON": b"{",
    "a list": b"[1, 2]",
    "deep": b"[" * 100_000,
    "a number": b"3",
}


CHANGES = {"negative": -1.0, "not finite": float("inf"), "text": "fast", "huge": 10**400, "tiny": 1e-300}


@pytest.mark.parametrize("name", [*CONTENTS, *CHANGES, "a rate is missing", "format", "moved"])
def test_a_file_that_holds_something_else_is_as_good_as_none(
    name: str, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates.machine(large)
    (file,) = module.cache_folder().iterdir()
    content = json.loads(file.read_text())
    if name in CHANGES:
        content["rates"]["touch"] = CHANGES[name]
    if name == "a rate is missing":
        del content["rates"]["touch"]
    if name == "format":
        content["format"] = 0
    if name == "moved":
        content["key"]["processor"] = "of another machine"
    file.write_bytes(CONTENTS[name] if name in CONTENTS else json.dumps(content).encode())
    forget(monkeypatch)
    assert rates.machine(large).source == "measured"
    assert len(asked) == 2
    forget(monkeypatch)
    rates.machine(large)
    assert len(asked) == 2  # and it was written anew


def test_a_folder_that_cannot_be_written_is_no_error(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    module.cache_folder().write_text("a file where the folder would be")
    assert rates.machine(large).source == "measured"
    assert rates.machine(large).source == "measured"
    assert len(asked) == 1


def test_a_file_is_written_as_a_whole_or_not_at_all(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    found = rates.machine(large)
    (file,) = module.cache_folder().iterdir()
    before = file.read_bytes()

    def full(*given: object, **options: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    module.keep(replace(found, touch=1.0), rates.backend.instruction_set())
    assert [one.read_bytes() for one in module.cache_folder().iterdir()] == [before]


def test_the_variable_names_a_file_or_turns_measuring_off(
    asked: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MERCER_MACHINE", "off")
    assert rates.machine(large) == module.known(5, "") == Machine.documented()
    other = replace(Machine.documented(), touch=123.0)
    other.save(tmp_path / "rates.json")
    monkeypatch.setenv("MERCER_MACHINE", str(tmp_path / "rates.json"))
    found = rates.machine(small)
    assert found == module.known(1, "") == replace(other, source=str(tmp_path / "rates.json"))
    monkeypatch.setenv("MERCER_MACHINE", str(tmp_path / "absent.json"))
    with pytest.raises(InvalidInput, match=r"MERCER_MACHINE.*absent\.json' cannot be read.*Machine\.save"):
        rates.machine(small)
    assert not asked


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the XDG folders are Linux's")
def test_a_relative_cache_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("relative", "", None):
        monkeypatch.setenv("XDG_CACHE_HOME", given) if given is not None else monkeypatch.delenv("XDG_CACHE_HOME")
        assert module.cache_folder() == tmp_path / ".cache" / "mercer"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert module.cache_folder() == tmp_path / "other" / "mercer"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_beside_a_measurement_measures_for_itself(asked: list[int]) -> None:
    """The thread that measures, and holds the lock, is not there in the child."""
    with rates._lock:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                signal.alarm(20)
                os._exit(0 if rates.machine(large).source == "measured" else 1)
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_nothing_is_measured_at_import(tmp_path: Path) -> None:
    script = (
        "import mercer, mercer.estimators\n"
        "from mercer.gram import rates\n"
        "from mercer.planning import machine\n"
        "rates.measure = None\n"
        "import numpy as np\n"
        "mercer.KernelRidge('gaussian').fit(np.arange(20.0)[:, None], np.arange(20.0))\n"
        "print(machine.cache_folder(), list(machine._measured))"
    )
    kept = {key: value for key, value in os.environ.items() if key != "MERCER_MACHINE"}
    source = Path(module.__file__).parents[2]
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-c", script], check=True, env={**kept, **home})
    assert not (tmp_path / "cache").exists()


def test_measured_rates_are_rates() -> None:
    found = rates.measure()
    assert found.source == "measured"
    assert all(0 < getattr(found, name) < 1e16 for name in RATES)
    assert found.threads == rates.backend.engine().threads()


def test_memory_that_the_host_had_taken_back_does_not_set_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first touches are slow; with their rate, plans would avoid memory for ever."""
    seconds = iter([1.0, 0.5])
    monkeypatch.setattr(rates, "_seconds", lambda call: next(seconds, 0.01))
    assert rates._memory()["touch"] == rates.READ / 0.01


@pytest.mark.parametrize("isa", ["", "x86-64-v2", "x86-64-v3", "x86-64-v4", "baseline"])
def test_documented_rates_grow_with_threads(isa: str) -> None:
    one, four = Machine.documented(1, isa), Machine.documented(4, isa)
    assert all(getattr(one, name) <= getattr(four, name) for name in RATES)
    assert four.product64 == 4 * four.product64_alone
    assert four.narrow64 == 4 * one.narrow64


def test_wider_instructions_make_more_entries() -> None:
    sets = [Machine.documented(1, isa) for isa in ("", "x86-64-v2", "x86-64-v3", "x86-64-v4")]
    for d, itemsize in ((2, 4), (50, 8), (800, 4)):
        seconds = [machine.pair(d, itemsize) for machine in sets]
        assert seconds == sorted(seconds, reverse=True)


def test_a_measurement_is_nobodys_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sweeps reach no observer, and none can cancel it; a fit that is cancelled keeps the rates."""
    monkeypatch.delenv("MERCER_MACHINE", raising=False)
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(module, "_measured", {})
    monkeypatch.setattr(rates.processors, "free", rates.processors.allowed)
    with observe(Cancel(after_seconds=0)):
        assert rates.machine(large).source == "measured"
        with pytest.raises(Cancelled):
            emit(StageDone("after", 0.0))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_measurement_that_is_interrupted_leaves_nothing(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    measure = rates.measure

    def interrupted() -> Machine:
        with rates.backend.one_blas_thread():
            raise KeyboardInterrupt

    monkeypatch.setattr(rates, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rates.machine(large)
    assert not module.cache_folder().exists()
    monkeypatch.setattr(rates, "measure", measure)
    assert rates.machine(large).source == "measured"


def test_two_that_measure_at_once_are_busy_for_each_other(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find the machine quiet before, and neither after: neither keeps what it measured."""
    monkeypatch.setattr(rates.processors, "allowed", lambda: 2)
    for _ in range(2):
        looks = iter([2, 1])
        monkeypatch.setattr(rates.processors, "free", lambda looks=looks: next(looks))
        assert rates.machine(large).source == "documented"
    assert len(asked) == 2
    assert not module.cache_folder().exists()


def test_many_that_keep_rates_at_once_leave_those_of_one(tmp_path: Path) -> None:
    """A reader finds whole files only, at any time."""
    place, machines = tmp_path / "rates.json", [replace(Machine.documented(), product64=1e10 + i) for i in range(4)]
    module._write(machines[0], None, place)

    def keep(one: Machine) -> None:
        for _ in range(50):
            module._write(one, None, place)

    keeping = [threading.Thread(target=keep, args=(one,)) for one in machines]
    for thread in keeping:
        thread.start()
    while any(thread.is_alive() for thread in keeping):
        assert module._read(place)[0] in machines
    assert list(tmp_path.iterdir()) == [place]
