"""Each page of the gallery runs, draws, and shows what its text says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SAYS = {
    "cover": r"degree 1, 2 dimensions: 0\.[01]\d separable(.|\n)*degree 3, 9 dimensions: (0\.9|1\.0)\d separable",
    "cubic": r"two descents over 300 steps: \d\.\de-1[3-6](.|\n)*stochastic \(5\.4\): mean squared error 0\.01",
    "degree_and_width": r"σ = 0\.5: .* of new rows 0\.9[0-4]\d\nσ = 0\.05: training accuracy 1\.0+, of new rows 0\.7",
    "denoising": r"noisy 0\.06\d+, denoised 0\.0[1-4]",
    "digits": r"Gaussian, σ = 2: 0\.98\d+ of 899",
    "discriminant": r"training accuracy 0\.9[5-9](.|\n)*J\(a\) = (0\.\d+), by the eigenproblem \2\n",
    "dual_form": r"x₁ − x₂ = \[-2\.  1\.\]\nlinear: [2-3]\d of 200(.|\n)*gaussian: [0-5] of 200",
    "four_steps": r"variances \[(.*)\] and \[\1\]\nlargest difference of the scores: \de-1[3-6]",
    "gaussian_features": r"σ = 0\.25: 136 features of degree ≤ 15 give the kernel to \de-1[3-6]",
    "helix": r"increases with t: True",
    "kernel_trick": r"585 features (.|\n)* and the kernel: \de-1[3-6]\n.*: 53130 features",
    "kmeans": r"k-means: adjusted Rand index -?0\.0\d+\n.*Gaussian: adjusted Rand index 1\.000",
    "mapping": r"Φ\(z\): \de-1[4-6]\na line in the plane: 0\.[4-6](.|\n)*feature space: 1\.00\n.*kernel: 1\.00",
    "mercer_condition": r"a Mercer kernel: proved(.|\n)*refuted by a witness(.|\n)*2 points with zᵀKz < 0",
    "perceptron_film": r"201 frames",
    "rings": r"",
    "similarity": r"width: 0\.6065, e\^\(−½\) = 0\.6065",
    "string_kernel": r"by the table 0\.0625, by the kernel 0\.0625, (.|\n)*q = 3 is (\d\.\d+), the kernel \2",
    "substrings": r"K\(x, z\) = 5, Spectrum\(3\): 5",
    "support_vectors": r"C = 0\.1: 1\d\d support vectors(.|\n)*C = 100: [3-5]\d support vectors",
    "tuned_kernel_pca": r"\AGaussian.* with 2: 0\.0[2-6]",
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
