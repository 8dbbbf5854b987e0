"""Solvers by descent: least mean squares, the perceptron, and Newton's method for logistic regression."""
