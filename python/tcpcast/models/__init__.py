"""Pure formulas over numpy arrays, one file a paper, equation numbers in the docstrings."""
