"""Rows of several places together, and rows out into files and text."""
