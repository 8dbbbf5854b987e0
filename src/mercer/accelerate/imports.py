"""Imports of user code are answered by ours; those of scikit-learn itself are not, and nothing is replaced for good."""

from __future__ import annotations

import dis
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from mercer.accelerate import ledger
from mercer.accelerate.proxies import original, proxy

__all__ = ["install", "uninstall"]

_KERNELS = ("rbf_kernel", "laplacian_kernel", "polynomial_kernel", "chi2_kernel", "pairwise_kernels")
ANSWERED = {
    "sklearn.svm": ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"),
    "sklearn.decomposition": ("KernelPCA",),
    "sklearn.kernel_ridge": ("KernelRidge",),
    "sklearn.kernel_approximation": ("Nystroem",),
    "sklearn.gaussian_process": ("GaussianProcessRegressor", "GaussianProcessClassifier"),
    "sklearn.metrics.pairwise": _KERNELS,
    "sklearn.metrics": ("pairwise_kernels",),
}
"""The names of scikit-learn's modules that have a counterpart of ours."""
_originals: dict[tuple[str, str], Any] = {}
"""What scikit-learn itself has under these names."""


class Answering(ModuleType):
    """A module of scikit-learn, which gives user code our classes for those in `ANSWERED`."""

    def __getattribute__(self, name: str) -> Any:
        found = ModuleType.__getattribute__(self, name)
        home = ModuleType.__getattribute__(self, "__name__")
        if name in ANSWERED.get(home, ()) and found is _originals.get((home, name)) and _is_users(sys._getframe(1)):
            return proxy(home, name, found)
        return found  # if not the original, it is what the user or a test has put there

    def __setattr__(self, name: str, value: Any) -> None:
        ModuleType.__setattr__(self, name, original(value))  # who puts back what was found here has found ours


def _answer(module: ModuleType) -> None:
    """Make a module that has been imported answer."""
    home = module.__name__
    for name in ANSWERED[home]:
        found = vars(module).get(name)
        if str(getattr(found, "__module__", "")).startswith("sklearn."):
            _originals.setdefault((home, name), found)  # the first: later ones may pass for it, by `wraps`
    module.__class__ = Answering


def _is_users(frame: FrameType) -> bool:
    """Whether user code imports a name or reads an attribute. When pickle looks up a class, it does neither."""
    module = frame.f_globals.get("__name__", "")
    if module == "pkgutil":  # `resolve_name`, by which `pickles` has our classes looked up
        return True
    if module.startswith(("sklearn.", "mercer.")) and not module.startswith("mercer.accelerate."):
        return False
    operation = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return operation.startswith(("IMPORT_", "LOAD_", "CALL_INTRINSIC"))


class Finder(MetaPathFinder):
    """Makes modules in `ANSWERED` answer as soon as they are imported."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in ANSWERED:
            return None
        others = (one.find_spec(name, path, target) for one in sys.meta_path if one is not self)
        spec = next((one for one in others if one is not None), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                for one in ANSWERED[name]:  # reloading makes others
                    _originals.pop((name, one), None)
                _answer(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_finder = Finder()


def install(*, strict: bool = False) -> None:
    """Answer imports from scikit-learn by `mercer.sklearn`, in this process and from here on, and count the calls.

    Names that were imported before stay scikit-learn's. `uninstall` ends it.

    Parameters
    ----------
    strict : bool, default False
        Whether mercer does everything: small work, too, and what it does not cover is an error. Otherwise scikit-learn
        does what is too small to be faster, and what mercer refuses.

    Examples
    --------
    >>> import mercer.accelerate
    >>> mercer.accelerate.install(strict=True)
    >>> from sklearn.svm import SVC
    >>> SVC().fit([[0.0], [1.0]], [0, 1]).predict([[0.2]])
    array([0])
    >>> print(mercer.accelerate.summary())  # doctest: +ELLIPSIS
    mercer.accelerate:
      SVC.fit  ...  1 × in mercer ...
    >>> mercer.accelerate.uninstall()
    """
    ledger.begin(strict)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    for module in _loaded(ModuleType):
        _answer(module)


def uninstall() -> None:
    """Let scikit-learn answer again; what was imported stays as it is.

    Examples
    --------
    >>> import mercer.accelerate
    >>> mercer.accelerate.uninstall()
    """
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for module in _loaded(Answering):
        module.__class__ = ModuleType


def _loaded(kind: type) -> list[ModuleType]:
    return [sys.modules[name] for name in ANSWERED if type(sys.modules.get(name)) is kind]
