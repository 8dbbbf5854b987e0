"""SIGTERM, by which schedulers end a command, leaves as little behind as Ctrl-C."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("typer")

WRITES = """
import sys, time
from pathlib import Path
from mercer.cli.guard import guarded, heed_termination
from mercer.files import appearing
import typer

@guarded
def command():
    with appearing(Path(sys.argv[1]), "--out") as beside:
        beside.write_text("half")
        print("ready", flush=True)
        time.sleep(60)

heed_termination()
try:
    command()
except typer.Exit as end:
    sys.exit(end.exit_code)
"""


@pytest.mark.skipif(os.name == "nt", reason="NOT TESTED: signals, which this system does not have")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_file_that_is_not_whole_is_deleted(number, status, tmp_path):
    (tmp_path / "out.csv").write_text("before")
    command = [sys.executable, "-c", WRITES, str(tmp_path / "out.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            assert len(list(tmp_path.iterdir())) == 2
            process.send_signal(number)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, said) == (status, "mercer: stopped.\n")
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]


IGNORES = """
import os, signal
from mercer.cli.guard import heed_termination
signal.signal(signal.SIGTERM, signal.SIG_IGN)
heed_termination()
os.kill(os.getpid(), signal.SIGTERM)
print("goes on")
"""


@pytest.mark.skipif(os.name == "nt", reason="NOT TESTED: signals, which this system does not have")
def test_who_ignores_it_goes_on():
    assert subprocess.run([sys.executable, "-c", IGNORES], capture_output=True, text=True).stdout == "goes on\n"
