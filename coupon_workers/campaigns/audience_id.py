"""User ids as they stand in the cells of a file: trimmed, and otherwise the text that they are (API.md, Conventions).

Equal to ``claiming/claim_request.py``, save that a number in scientific notation is refused: it is what a spreadsheet
leaves of a long id, and the user whom it meant is lost. ``1e5`` alone may be an id, and passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from coupon_workers.campaigns.audience_batch import AudienceBatch, AudienceRow, InvalidRow, shown
from coupon_workers.claiming.claim_request import USER_ID_LENGTH, user_id_problem

MARGIN = " \t\u00a0\u3000"
"""What is trimmed off: the blanks that people leave, and nothing that a program would."""

EMPTY = "is empty"
SCIENTIFIC = "is a number in scientific notation: the digits of the id are lost"
TOO_LONG = f"has more than {USER_ID_LENGTH} characters"
INNER_SPACE = "has a space in it"
INVISIBLE = "has a character that cannot be seen"

# With the sign of a spreadsheet (4.68769E+17), or the point of a program (4.68769E17).
_SCIENTIFIC = re.compile(r"[+-]?(?:[0-9.,]*[0-9][.,]?[eE][+-][0-9]+|(?:[0-9]+[.,][0-9]*|[.,][0-9]+)[eE][0-9]+)")

# Most files have ids of these characters only: a batch of them is looked at in one go. "." and "+" are left out, so
# that one thing alone is left that may be a number: digits, e, minus, digits.
_PLAIN = rf"[0-9A-Za-z_:-]{{1,{USER_ID_LENGTH}}}"
_PLAIN_IDS = re.compile(rf"{_PLAIN}(?:\n{_PLAIN})*+")
_PLAIN_NUMBER = re.compile(r"^-?[0-9]+[eE]-[0-9]+$", re.MULTILINE)


def trimmed(cell: str) -> str:
    """The cell without the blanks around it."""
    return cell.strip(MARGIN)


def id_problem(user_id: str) -> str | None:
    """What is wrong with a trimmed id, or None."""
    if not user_id:
        return EMPTY
    if _SCIENTIFIC.fullmatch(user_id):
        return SCIENTIFIC
    if user_id_problem(user_id) is None:
        return None
    if len(user_id) > USER_ID_LENGTH:
        return TOO_LONG
    return INNER_SPACE if user_id.replace(" ", "").isprintable() else INVISIBLE


def read_cells(cells: Sequence[str], first_row: int, is_blank: Callable[[int], bool]) -> AudienceBatch:
    """Sort the cells of successive rows into good and bad ones.

    ``is_blank(index)`` tells of a row whose cell is empty whether the rest of it is, too.
    """
    if all_plain(cells):
        return AudienceBatch(list(map(AudienceRow._make, enumerate(cells, first_row))), [])
    return read_carefully(cells, first_row, is_blank)


def all_plain(cells: Sequence[str]) -> bool:
    """Whether all of them are ids beyond doubt."""
    text = "\n".join(cells)
    return (
        _PLAIN_IDS.fullmatch(text) is not None
        and _PLAIN_NUMBER.search(text) is None
        and text.count("\n") == len(cells) - 1  # no cell has lines of its own
    )


def read_carefully(cells: Sequence[str], first_row: int, is_blank: Callable[[int], bool]) -> AudienceBatch:
    """What ``read_cells`` answers, cell by cell."""
    valid, invalid, blank = [], [], 0
    for row_no, cell in enumerate(cells, first_row):
        user_id = trimmed(cell)
        problem = id_problem(user_id)
        if problem is None:
            valid.append(AudienceRow(row_no, user_id))
        elif not user_id and is_blank(row_no - first_row):
            blank += 1
        else:
            invalid.append(InvalidRow(row_no, shown(cell), problem))
    return AudienceBatch(valid, invalid, blank)
