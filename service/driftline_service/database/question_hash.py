"""The address of a question by its content: evaluations of one task share the rows of `questions`."""

from hashlib import sha256


def question_hash(question: str, target: str) -> str:
    """sha256 in hexadecimal. The length comes first, so that no two pairs of texts are the same bytes."""
    return sha256(f"{len(question)} {question}{target}".encode()).hexdigest()
