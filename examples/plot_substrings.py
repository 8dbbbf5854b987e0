r"""
Strings as counts of their substrings
=====================================

"Kernel methods" (feature maps) lets :math:`\phi(x)` count how often each string of k letters occurs in x. There are
:math:`26^k` such strings, 460 000 for k = 4, but :math:`K(x, z) = \phi(x)^T \phi(z)` needs only those that occur.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelPCA
from mercer.kernels import Spectrum
from mercer.plots import GramDisplay


def phi(text, k):
    """The counts of the substrings of k letters."""
    return Counter(text[i : i + k] for i in range(len(text) - k + 1))


x, z = "banana bandana", "cabana"
counts = phi(x, 3), phi(z, 3)
shared = {word: (counts[0][word], counts[1][word]) for word in counts[0] if word in counts[1]}
print(f"shared substrings with their counts: {shared}")
print(f"K(x, z) = {sum(a * b for a, b in shared.values())}, Spectrum(3): {Spectrum(3)([x], [z])[0, 0]:.0f}")

# %%
# Words of four languages
# -----------------------
# The beginning of the Universal Declaration of Human Rights. No feature is chosen: languages have substrings of their
# own.

texts = {
    "English": "all human beings are born free and equal in dignity and rights they are endowed with reason and"
    " conscience and should act towards one another in a spirit of brotherhood everyone has the right to life",
    "German": "alle menschen sind frei und gleich an würde und rechten geboren sie sind mit vernunft und gewissen"
    " begabt und sollen einander im geiste der brüderlichkeit begegnen jeder hat das recht auf leben",
    "French": "tous les êtres humains naissent libres et égaux en dignité et en droits ils sont doués de raison et de"
    " conscience et doivent agir les uns envers les autres dans un esprit de fraternité",
    "Italian": "tutti gli esseri umani nascono liberi ed eguali in dignità e diritti essi sono dotati di ragione e di"
    " coscienza e devono agire gli uni verso gli altri in spirito di fratellanza",
}
pieces, languages = [], []
for language, text in texts.items():
    words = text.split()
    for start in range(0, len(words) - 8, 3):
        pieces.append(" ".join(words[start : start + 9]))
        languages.append(language)
languages = np.array(languages)
kernel = Spectrum(3).normalized()
display = GramDisplay.from_kernel(kernel, pieces, languages)

# %%
# Kernel PCA finds the languages
# ------------------------------

scores = KernelPCA(2, kernel).fit_transform(pieces)
_, ax = plt.subplots(layout="constrained")
for language, marker in zip(texts, "os^D", strict=True):
    ax.scatter(*scores[languages == language].T, marker=marker, label=language)
ax.set(xlabel="score on the first component", ylabel="score on the second component")
ax.legend()
