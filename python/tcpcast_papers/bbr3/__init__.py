"""Example test cases of BBR's draft, run by engine ``packet``.

``states`` reads phases and quantities from the table ``bbr``, ``cases`` has the scenario of each
test case, ``checks`` the values that its statements are about, and ``description`` the page. The
statements and their ranges are data.
"""
