"""Predictions as ONNX graphs, which runtimes without Python compute: ``pip install "mercer[onnx]"``."""

from mercer.io.onnx.export import to_onnx

__all__ = ["to_onnx"]
