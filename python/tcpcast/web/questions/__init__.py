"""The questions of the page. Add a new question in a module here and to ``QUESTIONS``."""

from __future__ import annotations

from tcpcast.errors import TcpcastError
from tcpcast.web.questions.competing_stacks import WINNER
from tcpcast.web.questions.link import BUFFERS, USERS
from tcpcast.web.questions.path import PARALLEL, PATH, TRANSFER
from tcpcast.web.questions.question_form import Question

QUESTIONS = {q.name: q for q in (PATH, PARALLEL, TRANSFER, WINNER, USERS, BUFFERS)}
"""Questions in the order of the page."""

__all__ = ["QUESTIONS", "Question", "find_question"]


def find_question(name: object) -> Question:
    """Return a question by its name.

    Raises
    ------
    TcpcastError
        There is no question with that name.
    """
    if not isinstance(name, str) or name not in QUESTIONS:
        raise TcpcastError(f"question: must be one of {', '.join(QUESTIONS)}")
    return QUESTIONS[name]
