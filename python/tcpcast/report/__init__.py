"""Reports: answers as a text table, as JSON, as figures and as a table for notebooks."""
