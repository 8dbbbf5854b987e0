"""Kernel ridge regression and classification, and the choice of kernel and penalty."""
