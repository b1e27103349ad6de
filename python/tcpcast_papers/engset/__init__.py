"""Reproduction of *The TCP-modified Engset Model Revisited*: Tables 1 to 10, Figures 3 and 8 to 16.

``published`` holds the paper's values as data, ``settings`` parses its names of settings, and
``runs`` simulates them. Each other module covers a part of the paper: it requests simulations of
settings, and computes sections of the report from their results.
"""
