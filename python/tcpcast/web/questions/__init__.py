"""What the page can be asked. A new question is a row here and a file beside it."""

from __future__ import annotations

from tcpcast.errors import TcpcastError
from tcpcast.web.questions.link import BUFFERS, USERS
from tcpcast.web.questions.path import PARALLEL, PATH, TRANSFER
from tcpcast.web.questions.question_form import Question
from tcpcast.web.questions.winner import WINNER

QUESTIONS = {q.name: q for q in (PATH, PARALLEL, TRANSFER, WINNER, USERS, BUFFERS)}
"""In the order in which the page offers them."""

__all__ = ["QUESTIONS", "Question", "question"]


def question(name: object) -> Question:
    """Return a question by its name.

    Raises
    ------
    TcpcastError
        There is none of that name; the message lists those that there are.
    """
    if not isinstance(name, str) or name not in QUESTIONS:
        raise TcpcastError(f"question: write one of {', '.join(QUESTIONS)}")
    return QUESTIONS[name]
