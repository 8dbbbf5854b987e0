"""Names that modules had in earlier versions: pickles name modules, and so does the fingerprint of a search."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

__all__ = ["NOW", "RENAMED", "deprecated_names", "former_name", "install", "present_fields"]

# The former folder, the present one, and modules as "former" or "former:present", of classes that pickles name.
_MOVED = (
    ("mercer.approx", "mercer.approx", "restricted:nystroem_ridge"),
    ("mercer.approx", "mercer.factorizations", "pivoted_cholesky preconditioner"),
    ("mercer.arrays", "mercer.tables", "columns"),
    ("mercer.estimators", "mercer.ways", "report"),
    ("mercer.estimators", "mercer.estimators", "explain:explanation"),
    ("mercer.estimators", "mercer.estimators.clustering", "kernel_kmeans spectral_clustering"),
    ("mercer.estimators", "mercer.estimators.correlation", "kernel_cca kernel_pls"),
    ("mercer.estimators", "mercer.estimators.descent", "lms perceptron"),
    ("mercer.estimators", "mercer.estimators.discriminant", "discriminant:analysis"),
    ("mercer.estimators", "mercer.estimators.features", "empirical_map feature_maps polynomial_sketch"),
    ("mercer.estimators", "mercer.estimators.online", "online_classifier online_regressor"),
    ("mercer.estimators", "mercer.estimators.pca", "kernel_pca"),
    ("mercer.estimators", "mercer.estimators.ridge", "kernel_ridge kernel_ridge_cv"),
    ("mercer.estimators", "mercer.estimators.search", "search:kernel_search"),
    ("mercer.estimators", "mercer.estimators.svm", "one_class svc svr"),
    ("mercer.events", "mercer.events", "door:dispatch"),
    ("mercer.io", "mercer.tables", "encoder sequences tables:reader"),
    ("mercer.kernels", "mercer.kernels.symbolic", "expression pairing views"),
    ("mercer.kernels", "mercer.kernels.vectors", "formula histograms products stationary"),
    ("mercer.select", "mercer.factorizations", "band inverse spectrum"),
    ("mercer.solvers", "mercer.solvers.clustering", "lloyd seeding"),
    ("mercer.solvers", "mercer.solvers.descent", "gradient logistic mistakes:perceptron"),
    ("mercer.solvers", "mercer.solvers.eigen", "eigen:dense krylov nipals pencil"),
    ("mercer.solvers", "mercer.solvers.linear", "cg cholesky linear:system refinement subsets"),
    ("mercer.solvers", "mercer.solvers.online", "budgeted online:learner projectron recursive"),
    ("mercer.solvers", "mercer.solvers.svm", "dual dual_coordinate smo working_set"),
    ("mercer.validity", "mercer.validity.arithmetic", "ranges"),
    ("mercer.validity", "mercer.validity.proofs", "derivation proof"),
    ("mercer.validity", "mercer.validity.witnesses", "witness"),
)
# Files whose classes are now in several, all of which the folder has.
_SPLIT = {
    "mercer.kernels": "algebra columns special",
    "mercer.operators": "algebra caching dense",
}
# Of classes that came from several files into one.
_FROM = {
    "mercer.kernels.base": {
        **dict.fromkeys(("Normalized", "Power", "Product", "Scaled", "Sum"), "mercer.kernels.algebra"),
        **dict.fromkeys(("OnColumns", "Rescaled"), "mercer.kernels.columns"),
        "Constant": "mercer.kernels.special",
    },
    "mercer.kernels.table_plans": dict.fromkeys(("SeasonPlan", "TextPlan"), "mercer.kernels.table"),
    "mercer.kernels.values": dict.fromkeys(("Function", "Precomputed"), "mercer.kernels.special"),
}

# Classes and functions that had another name.
RENAMED = {
    "DualFamily": "DualBatch",
    "Labelled": "ClassificationProblem",
    "LinearFamily": "LinearDualBatch",
    "Meeting": "ChunkKernel",
    "MistakeState": "PerceptronState",
    "Mistakes": "PerceptronRule",
    "RestrictedSystem": "NystroemRidgeSystem",
    "restricted_factor": "nystroem_ridge_factor",
}

_MODULES = {
    f"{old}.{name.partition(':')[0]}": f"{new}.{name.partition(':')[2] or name}"
    for old, new, names in _MOVED
    for name in names.split()
}
NOW = {"mercer.arrays": "mercer.points"} | _MODULES
"""The present name of each module with a former one."""
NOW |= {f"{folder}.{name}": folder for folder, names in _SPLIT.items() for name in names.split()}
_FORMER = {new: old for old, new in _MODULES.items()}


def former_name(module: str, name: str) -> str:
    """The module that a class or function was in when fingerprints were first taken.

    >>> former_name("mercer.kernels.vectors.stationary", "Gaussian"), former_name("mercer.kernels.base", "Sum")
    ('mercer.kernels.stationary', 'mercer.kernels.algebra')
    """
    return _FROM.get(module, {}).get(name) or _FORMER.get(module, module)


class _Finder(MetaPathFinder, Loader):
    """Finds modules by their former names."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name in NOW else None

    def create_module(self, spec: ModuleSpec) -> None:
        """An empty one, as usual."""

    def exec_module(self, module: ModuleType) -> None:
        present = import_module(NOW[module.__name__])
        for old in RENAMED.keys() - present.__dict__.keys():
            if RENAMED[old] in present.__dict__:
                setattr(present, old, getattr(present, RENAMED[old]))
        sys.modules[module.__name__] = present


def deprecated_names(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__``, by which it answers to former names with a warning."""

    def present(name: str) -> Any:
        if name in RENAMED and hasattr(sys.modules[module], RENAMED[name]):
            warnings.warn(f"{module}.{name} is now {RENAMED[name]}", FutureWarning, stacklevel=2)
            return getattr(sys.modules[module], RENAMED[name])
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return present


def present_fields(state: dict[str, Any], **former: str) -> dict[str, Any]:
    """The attributes in a pickle by their present names.

    >>> present_fields({"kink": 0.1, "A": None}, kink="epsilon")
    {'epsilon': 0.1, 'A': None}
    """
    return {former.get(name, name): value for name, value in state.items()}


def install() -> None:
    """Let modules be imported by their former names. A module that exists comes first."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.append(_Finder())
