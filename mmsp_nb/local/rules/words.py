"""Words of a sentence: stems, stop words, families of meaning."""

from __future__ import annotations

import functools
import re
import unicodedata


def listed(text: str) -> list[str]:
    """The words of ``text``: a list that is easier to read and to change than one with quotation marks."""
    return text.split()


STOP = frozenset(
    listed(
        """a an and any are as at be been but by can could did do does doing done for from get gets getting give given
    gives had has have he her here hers him his how i if in into is it its just know let like make makes may me
    might mine more most much my need new no not now of off on one only or other our out over please return
    returns right same say she should show so some such take tell than that the their them then there these they
    this those to today tomorrow too up us use used uses using very want was we well were what when where which
    while who whom whose why will with would yes you your current currently e g s t re ll ve d m"""
    )
)
"""Words that say nothing about what is meant."""

WEAK = frozenset(
    listed(
        """city place location town country name number value text string list item thing data file id user date day
    time input output result information info query question answer message word example default unit key type"""
    )
)
"""Words so common in descriptions of parameters that sharing one says little."""

_FAMILIES = [
    """weather forecast temperature rain raining rainy umbrella snow snowing sunny sunshine cloudy cloud wind windy
    hot cold warm degree climate storm humid humidity raincoat jacket""",
    "roll throw dice die",
    "add sum plus total",
    "subtract minus difference",
    "multiply times product",
    "divide quotient",
    "compute calculate calculator evaluate calculation math arithmetic",
    "search find lookup look seek google",
    "mail email send",
    "convert conversion exchange translate",
    "price cost stock quote share worth",
    "book reserve reservation booking order",
    "delete remove erase drop",
    "create make add new insert",
    "list enumerate",
    "plot chart graph draw diagram figure visualize visualise",
    "clock hour time o'clock",
    "picture image photo",
    "route direction distance travel trip",
    "flight fly plane airport",
    "read open load",
    "write save store",
    "translate translation",
    "table dataframe column row",
    "random dice",
    "square squared",
]
"""Words that ask for the same thing: "umbrella" is about the weather."""


def fold(word: str) -> str:
    """``word`` in lower case and without accents."""
    decomposed = unicodedata.normalize("NFKD", word.lower())
    return "".join(mark for mark in decomposed if not unicodedata.combining(mark))


@functools.lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A crude stem: "cities" and "city", "converted" and "convert" come out alike."""
    word = fold(word)
    for ending, instead, least in (
        ("ies", "y", 5),
        ("ches", "ch", 6),
        ("shes", "sh", 6),
        ("sses", "ss", 6),
        ("ing", "", 6),
        ("edly", "", 7),
        ("ied", "y", 5),
        ("ed", "", 5),
        ("er", "", 6),
        ("ly", "", 6),
        ("ation", "", 8),
        ("ion", "", 7),
        ("s", "", 4),
    ):
        if word.endswith(ending) and len(word) >= least and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def split(name: str) -> list[str]:
    """The words of an identifier: ``getWeather_byCity2`` is get, Weather, by, City."""
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-zà-öø-ÿ]+", name.replace("_", " "))


def stems(text: str) -> list[str]:
    """The stems of the words that mean something, in order."""
    found = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text)
    return [stem(word) for word in found if fold(word) not in STOP and len(word) > 1]


def name_stems(name: str) -> list[str]:
    """The stems of an identifier's words that mean something."""
    return [stem(word) for word in split(name) if fold(word) not in STOP and len(word) > 1]


_KIN: dict[str, frozenset[str]] = {}
for _family in _FAMILIES:
    _members = frozenset(stem(word) for word in _family.split())
    for _member in _members:
        _KIN[_member] = _KIN.get(_member, frozenset()) | _members


def kin(stemmed: str) -> frozenset[str]:
    """The stems that mean about the same as ``stemmed``, itself included."""
    return _KIN.get(stemmed, frozenset()) | {stemmed}


WEAK_STEMS = frozenset(stem(word) for word in WEAK)
