"""scikit-learn's base classes. The types in `mixins.pyi` are for checkers, which know none of their methods."""

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    OutlierMixin,
    RegressorMixin,
    TransformerMixin,
)

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "ClusterMixin",
    "OutlierMixin",
    "RegressorMixin",
    "TransformerMixin",
]
