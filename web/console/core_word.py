"""Sentences that the core makes for programs and people alike, in the reader's language: when a job is due, what a
finding is of."""

from __future__ import annotations

import re

from web.console.language import N_, gettext

_EVERY = re.compile(r"every (?:(?P<count>\d+) )?(?P<unit>day|hour|minute|second)s?(?P<each>, each missed one too)?")
_DAILY = re.compile(r"every day at (?P<at>\d\d:\d\d) (?P<zone>\S+)(?P<each>, each missed one too)?")
_SUBJECT = re.compile(
    r"(?P<what>code batch|template|order|coupon|batch|day) (?P<name>\S+)"
    r"(?: (?P<link>of|user|template|claim) (?P<other>\S+))?(?P<rest>.*)"
)

_ONE = {
    "day": N_("every day"),
    "hour": N_("every hour"),
    "minute": N_("every minute"),
    "second": N_("every second"),
}
_MANY = {
    "day": N_("every %s days"),
    "hour": N_("every %s hours"),
    "minute": N_("every %s minutes"),
    "second": N_("every %s seconds"),
}
_AT = N_("every day at %(at)s %(zone)s")
_EACH = N_("%s, each missed one too")

_THINGS = {
    "code batch": N_("code batch"),
    "template": N_("template"),
    "order": N_("order"),
    "coupon": N_("coupon"),
    "batch": N_("batch"),
    "day": N_("day"),
    "of": N_("of user"),
    "user": N_("user"),
    "claim": N_("claim"),
}


def trigger_words(words: str) -> str:
    """``every 2 seconds`` and its like; what is not known as it is."""
    if daily := _DAILY.fullmatch(words):
        told = gettext(_AT) % {"at": daily["at"], "zone": daily["zone"]}
        return gettext(_EACH) % told if daily["each"] else told
    every = _EVERY.fullmatch(words)
    if every is None:
        return words
    told = gettext(_MANY[every["unit"]]) % every["count"] if every["count"] else gettext(_ONE[every["unit"]])
    return gettext(_EACH) % told if every["each"] else told


def subject_words(subject: str) -> str:
    """``order O-1 of u-1`` and its like; what is not known as it is."""
    found = _SUBJECT.fullmatch(subject)
    if found is None:
        return subject
    words = [gettext(_THINGS[found["what"]]), found["name"]]
    if found["link"]:
        words += [gettext(_THINGS[found["link"]]), found["other"]]
    return " ".join(words) + found["rest"]
