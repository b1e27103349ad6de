"""The local web page: forms of the commands, whose answers are reports.

``server`` binds the port and prints the start URL; ``app`` contains the routes, ``guard`` the
access control. :mod:`tcpcast.cli.page` supplies the forms and the answers.
"""
