"""What the command line prints to be typed again."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("safetensors")
testing = pytest.importorskip("typer.testing")

from mercer.cli import app as commands  # noqa: E402
from mercer.cli.output.show import as_option  # noqa: E402
from mercer.kernels import Formula, Function, Gaussian, Laplace, Linear, Mismatch, as_kernel  # noqa: E402

KERNELS = [
    Formula("exp(-0.01*sqdist)"),
    Formula("chi2"),  # as text of its own, the name of a kernel
    2.0 * Formula("1 / (1 + sqdist)") + Linear(),
    Gaussian(gamma="median"),
    (Gaussian(gamma="median").on(["the size", 'a "b"', "it's"]) + 2 * Linear()) ** 2,
    Laplace(gamma=0.1, norm=1).on([0, 2]),
    Gaussian(gamma=1.0).with_length_scales([0.1, 1e-7, 3.25]),
    Mismatch(k=3, m=1, alphabet="ACGT").normalized(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_shell_and_the_parser_read_the_printed_kernel_as_the_same(kernel):
    name, text = shlex.split(as_option(kernel))
    assert name == "--kernel"
    assert as_kernel(text) == kernel


def test_a_kernel_that_no_text_describes_is_not_printed():
    assert as_option(Function(np.dot)) == ""
    assert as_option(Gaussian(gamma=0.5) + Function(np.dot)) == ""


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_the_next_line_can_be_pasted(tmp_path, command):
    x = np.linspace(0, 6, 60)
    pd.DataFrame({"x": x, "y": np.sin(x)}).to_csv(tmp_path / "a.csv", index=False)

    def run(name, *options):
        done = testing.CliRunner().invoke(commands.app, [name, str(tmp_path / "a.csv"), "--target", "y", *options])
        assert done.exit_code == 0, done.output
        return done.output

    line = next(one for one in run(command, "--kernel", "exp(-0.5*sqdist)").splitlines() if "without the search" in one)
    options = shlex.split(line[line.index("--kernel") :])
    assert options[:3] == ["--kernel", "exp(-0.5*sqdist)", "--alpha"]
    assert ": as given" in run("fit", *options)
