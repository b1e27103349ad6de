"""Formulas over numpy arrays, one module per paper, with equation numbers in the docstrings."""
