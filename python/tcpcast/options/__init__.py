"""Options of commands and of the page, and the scenarios that they describe."""
