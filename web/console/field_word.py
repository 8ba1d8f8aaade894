"""What the core says of a wrong field, as whoever fills in a form reads it: the core speaks to programs."""

from __future__ import annotations

import re

from web.console.language import N_, gettext

_SAID = (
    (r"must be 1 to \d+ printable characters", N_("Write 1 to 100 characters.")),
    (r"must name at least one of .*", N_("Choose one at least.")),
    (r"is required: the day of the orders", N_("Orders need a day.")),
    (r"is for orders only.*", N_("Only orders have a day.")),
    (r"must be a day of the years.*", N_("Write a day, such as 2026-11-11.")),
    (r"must not lie in the future", N_("It must not lie in the future.")),
    (
        r"must have at least 1 character|is required|must be an integer|A template of type .* needs it",
        N_("Fill this in."),
    ),
    (r"An instant is a text.*|An instant needs.*", N_("Fill this in.")),
    (r"must be greater than or equal to .*", N_("This is too small.")),
    (r"must be less than or equal to .*", N_("This is too large.")),
    (r"must have at most \d+ characters", N_("This is too long.")),
    (
        r"must match pattern '\^\[a-z\]\[a-z0-9_-\].*",
        N_("Begin with a small letter; then small letters, digits, dashes and underscores, 32 at most."),
    ),
    (r"A rule has a window_s, .*", N_("Say how far back it looks.")),
    (r"This name is kept for lists and scores", N_("This name is kept for lists and scores.")),
    (r"Two rules have the same name", N_("Two rules have the same name.")),
    (r"A user is one user: .*", N_("A user is one user: count users of a device or an address.")),
    (r"A score is a user's, .*", N_("A score is 1000 at most.")),
    (r"Of distinct_users the threshold .*", N_("Different users are counted up to 10,000.")),
    (r"must match pattern .*", N_("Only letters, digits, dots, dashes and underscores, and not too long.")),
    (r"A currency is a code.*", N_("A currency is a code of three letters, such as CNY.")),
    (r"A time zone is an IANA name.*", N_("A time zone has a name such as Asia/Shanghai.")),
    (r"must come after claim_start: no coupon would ever hold", N_("It must come after the beginning of claiming.")),
    (r"must come after claim_start", N_("It must come after the beginning of claiming.")),
    (r"must come after validity.from", N_("It must come after the beginning of validity.")),
    (r"must not come later than ten years.*", N_("It may last ten years at most.")),
    (r"must not exceed per_user_limit", N_("It must not be above the limit for each user.")),
    (r"must not be below pool.min", N_("It must not be below the smallest amount.")),
    (r"must not be above pool.max", N_("It must not be above the largest amount.")),
    (r"must be one of paid, .*", N_("It must be paid, closed, partly_refunded or refunded.")),
    (r"must be an integer of minor units.*", N_("It must be a whole number of minor units, 0 or more.")),
    (r"must be a code of ISO 4217.*", N_("A currency is a code of three letters, such as CNY.")),
    (r"the order is in line \d+ already", N_("The order stands in an earlier line already.")),
    (r"has \d+ fields, and the header has \d+", N_("The row has more or fewer fields than the header.")),
    (r"is a row of more than \d+ characters", N_("The row is too long.")),
    (r"is empty", N_("Fill this in.")),
    (r"is a number in scientific notation.*", N_("A spreadsheet has spoilt this number: its digits are lost.")),
    (r"has a space in it", N_("It has a space in it.")),
    (r"has a character that cannot be seen", N_("It has a character that cannot be seen.")),
    (r"lies in the future", N_("It must not lie in the future.")),
    (r"must be an identity.*|must be '.*", N_("Choose one.")),
    (r"must not lie after the template's end.*", N_("It must not come after the end of claiming.")),
    (r"must lie in the future", N_("It must lie in the future.")),
    (r"must lie after start", N_("It must come after the start.")),
    (r"must not lie before the time of template .*", N_("It must not come before the claiming of a prize's template.")),
    (r"must not lie after the time of template .*", N_("It must not come after the claiming of a prize's template.")),
    (r"must have at most \d+ items.*", N_("These are too many.")),
    (r"must lie in the future.*", N_("It must lie in the future, after the beginning of claiming.")),
    (r"must lie before the template's end.*", N_("It must come before the end of claiming.")),
    (r"must not lie before the template's beginning.*", N_("It must not come before the beginning of claiming.")),
    (r"A template of type cash has none.*", N_("Cash has no least amount.")),
)
SAID = [(re.compile(pattern), text) for pattern, text in _SAID]


def field_word(message: str) -> str:
    """In the reader's language; what the table does not know as the core says it."""
    text = next((text for pattern, text in SAID if pattern.fullmatch(message)), message)
    return gettext(text)
