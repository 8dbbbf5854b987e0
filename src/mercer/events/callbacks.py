"""scikit-learn's callbacks (from 1.9 on) on fits here: each stage of a fit is a task of theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any

from mercer.events.dispatch import observe
from mercer.events.event import Event, StageDone, StageStarted

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: there is no `set_callbacks`."""

    with_callbacks = None

__all__ = ["CalledBack"]

METHODS = ("fit", "fit_transform", "fit_predict")


class CalledBack(CallbackSupportMixin):  # type: ignore[misc]
    """An estimator with scikit-learn's `set_callbacks`: a fit is a task, and its stages are tasks within it.

    What a callback asks for at the end of a task is not followed, since a model without its last stages is none;
    `mercer.events.Cancel` ends a fit. The methods of a subclass, and those that it inherits from other classes, are
    wrapped when the subclass is defined.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in METHODS if with_callbacks else ():
            owner = next((base for base in cls.__mro__ if name in vars(base)), CalledBack)
            if isfunction(vars(owner).get(name)) and (owner is cls or not issubclass(owner, CalledBack)):
                setattr(cls, name, _called_back(vars(owner)[name]))


def _called_back(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, which tells the callbacks of the estimator, and those of one around it, of its stages."""

    @with_callbacks
    def told(self: Any, method: Callable[..., Any], X: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        task = self._init_callback_context(max_subtasks=None)
        given = {"estimator": self, "X": X, "y": args[0] if args else kwargs.get("y")}
        task.call_on_fit_task_begin(**given)
        with observe(_Tasks(self, task)):
            result = method(self, X, *args, **kwargs)
        task.call_on_fit_task_end(**given, reconstruction_attributes=dict)
        return result

    @wraps(method)
    def called_back(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        within = hasattr(self, "_callback_fit_ctx")  # of fit_transform, or of a subclass's fit
        if within or not (getattr(self, "_skl_callbacks", None) or hasattr(self, "_parent_callback_ctx")):
            return method(self, X, *args, **kwargs)
        return told(self, method, X, args, kwargs)

    return called_back


class _Tasks:
    """The stages of a fit as tasks within its own."""

    def __init__(self, estimator: Any, task: Any) -> None:
        self.estimator, self.task, self.running = estimator, task, {}  # type: ignore[var-annotated]

    def on_event(self, event: Event) -> None:
        if isinstance(event, StageStarted):
            own = self.running[event.name] = self.task.subcontext(task_name=event.name)
            own.call_on_fit_task_begin(estimator=self.estimator)
        elif isinstance(event, StageDone) and event.name in self.running:
            self.running.pop(event.name).call_on_fit_task_end(estimator=self.estimator)
