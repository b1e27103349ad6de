"""Quantities with units, as users write and read them."""
