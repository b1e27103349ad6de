"""Predictions of all models for a single path, which options (values or ranges) describe."""
