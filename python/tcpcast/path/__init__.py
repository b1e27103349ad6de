"""A single path given by options or ranges of them, and the predictions of all models for it."""
