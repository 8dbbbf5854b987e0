"""Each page of the gallery runs, draws, and shows what its text says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SAYS = {
    "cubic": r"two descents over 300 steps: \d\.\de-1[3-6]",
    "denoising": r"noisy 0\.06\d+, denoised 0\.0[1-4]",
    "digits": r"Gaussian, σ = 2: 0\.98\d+ of 899",
    "discriminant": r"training accuracy 0\.9[5-9]",
    "helix": r"increases with t: True",
    "kmeans": r"k-means: adjusted Rand index -?0\.0\d+\n.*Gaussian: adjusted Rand index 1\.000",
    "mercer_condition": r"a Mercer kernel: proved(.|\n)*refuted by a witness(.|\n)*2 points with zᵀKz < 0",
    "perceptron_film": r"201 frames",
    "rings": r"",
    "string_kernel": r"by the table 0\.0625, by the kernel 0\.0625, (.|\n)*q = 3 is (\d\.\d+), the kernel \2",
    "support_vectors": r"C = 0\.1: 1\d\d support vectors(.|\n)*C = 100: [3-5]\d support vectors",
}
PAGES = {path.stem.removeprefix("plot_"): path for path in sorted(EXAMPLES.glob("plot_*.py"))}


def test_each_page_is_in_the_table():
    assert set(PAGES) == set(SAYS)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SAYS)
def test_page(name, capsys):
    plt.close("all")
    runpy.run_path(str(PAGES[name]))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(axes.has_data() for figure in figures for axes in figure.axes if axes.get_label() != "<colorbar>")
    assert re.search(SAYS[name], capsys.readouterr().out)
    plt.close("all")
