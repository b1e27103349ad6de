"""Answers of several engines or scenarios beside each other, and the verdict on them."""
