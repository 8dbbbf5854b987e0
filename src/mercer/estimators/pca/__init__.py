"""Kernel principal components, on landmarks too, with pre-images and process monitoring."""
