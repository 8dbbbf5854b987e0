"""Estimators by descent: least mean squares and the perceptron."""
