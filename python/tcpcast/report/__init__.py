"""Reports: answers as text tables, JSON, figures and data frames."""
