"""Solvers by descent: gradients, mistakes, and Newton steps of logistic regression."""
