"""What a parameter is about, told from its name, and how a text of that kind is found in a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from . import values
from .words import fold, listed, name_stems, split, stem

_KINDS = {
    "place": """city place location town country region destination origin address area capital airport port station
    departure arrival site state province village""",
    "person": "person people name who author recipient employee customer contact user username player",
    "date": "date day when birthday deadline since until month week weekday",
    "time": "time hour clock alarm",
    "url": "url uri link href website webpage",
    "email": "email mail",
    "path": "path file filename filepath directory folder document",
    "language": "language lang locale target_language source_language",
    "currency": "currency base quote target source",
    "symbol": "symbol ticker stock code isin",
    "expression": "expression formula calculation equation expr math",
    "unit": "unit units scale",
    "text": """query q text message content body prompt question sentence topic title subject term keyword keywords note
    description task command sql input string phrase word reason comment search s html markdown""",
    "id": "id identifier number order ticket issue key",
}
_KIND_OF = {word: kind for kind, text in reversed(_KINDS.items()) for word in text.split()}

LANGUAGES = {
    "arabic": "ar", "chinese": "zh", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "finnish": "fi",
    "french": "fr", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "italian": "it", "japanese": "ja",
    "korean": "ko", "latin": "la", "norwegian": "no", "polish": "pl", "portuguese": "pt", "russian": "ru",
    "spanish": "es", "swedish": "sv", "turkish": "tr", "ukrainian": "uk", "vietnamese": "vi",
}  # fmt: skip
_CURRENCIES = {
    "dollar": "USD", "dollars": "USD", "euro": "EUR", "euros": "EUR", "pound": "GBP", "pounds": "GBP", "yen": "JPY",
    "franc": "CHF", "francs": "CHF", "rupee": "INR", "rupees": "INR", "yuan": "CNY", "$": "USD", "€": "EUR", "£": "GBP",
    "¥": "JPY",
}  # fmt: skip
_CODES = frozenset(
    listed("""USD EUR GBP JPY CHF CNY INR AUD CAD NZD SEK NOK DKK PLN BRL MXN KRW SGD HKD ZAR TRY BTC ETH""")
)
_UNITS = listed(
    """celsius fahrenheit kelvin metric imperial kilometers kilometres kilometer kilometre km miles mile meters
    metres meter metre m feet foot ft inches inch cm mm kilograms kilogram kg grams gram g pounds pound lb
    ounces oz liters litres liter litre l gallons gallon seconds minutes hours days weeks"""
)
_LEAD = re.compile(
    r"(?i)^\s*(?:(?:please|can you|could you|would you|will you|i want you to|i'd like you to|now|then|also)[\s,]+)*"
)
_TEXT_AFTER = (
    r"(?:search|look|google|browse)(?:\s+(?:the\s+)?(?:web|internet|docs|documentation|database))?\s+(?:up\s+|for\s+)+(.+)",
    r"(?:find|look\s*up|google|search)\s+(?:information\s+(?:about|on)\s+|anything\s+(?:about|on)\s+)?(.+)",
    r"(?:saying|says|that says|with the (?:text|message|title|subject)|titled|entitled|called|named)[:,]?\s+(.+)",
    r"(?:remember|note|remind me)(?:\s+(?:down|that|to))?[:,]?\s+(.+)",
    r"(?:about|regarding|concerning)\s+(.+)",
    r"(?:say|write|send|post|print|echo|translate|summari[sz]e|reverse|count the (?:words|letters) (?:in|of))\s+(.+)",
    r":\s*(.+)",
)


def kind_of(name: str, schema: Mapping[str, Any]) -> str:
    """One of the kinds above, or "" when the name tells nothing."""
    form = {"date": "date", "date-time": "date", "time": "time", "email": "email", "uri": "url", "uuid": "id"}
    if schema.get("format") in form:
        return form[schema["format"]]
    words = [fold(word) for word in split(name)]
    for word in reversed(words):
        for spelling in (word, word[:-1] if word.endswith("s") else word):
            if spelling in _KIND_OF and not (spelling == "name" and len(words) > 1):
                return _KIND_OF[spelling]
        if word in ("from", "to"):
            return "place"
    described = str(schema.get("description") or "").lower()
    return next(
        (kind for kind in ("city", "place", "date", "url", "language") if re.search(rf"\b{kind}\b", described)), ""
    )


def side(name: str) -> str:
    """Which end of a from-to pair a parameter is: "from", "to" or ""."""
    words = {fold(word) for word in split(name)}
    if words & {"from", "source", "origin", "src", "departure", "base", "start"}:
        return "from"
    return "to" if words & {"to", "target", "destination", "dest", "dst", "arrival", "into", "quote", "end"} else ""


def pair(prompt: str, name: str) -> str | None:
    """A value written out for this very parameter: ``city=London``, ``city: London``, ``"city": "London"``."""
    spelled = re.escape(name).replace("_", "[_ -]")
    quoted_or_word = r"(?:\"([^\"]*)\"|'([^']*)'|`([^`]*)`|([^\s,;]+(?<![.?!])))"
    found = re.search(rf"(?i)(?<!\w)[\"'`]?{spelled}[\"'`]?\s*(?:=|:)\s*{quoted_or_word}", prompt)
    found = found or re.search(rf"(?i)(?<!\w){spelled}\s+(?:is\s+|of\s+)?(?:\"([^\"]*)\"|“([^”]*)”|`([^`]*)`)", prompt)
    return next((group for group in found.groups() if group is not None), None) if found else None


def texts(prompt: str, name: str, kind: str, ignore: frozenset[str]) -> list[str]:
    """The texts of ``kind`` that ``prompt`` offers for a parameter, the likeliest first, or all of a list."""
    finder = _FINDERS.get(kind)
    if finder:
        return finder(prompt, name, ignore)
    if kind == "text":
        return free_text(prompt)
    if fold(name) in ("to", "recipient", "cc", "receiver") and (found := values.EMAIL.findall(prompt)):
        return _distinct(found)
    if kind in ("place", "person", "city"):
        named = values.names(prompt, ignore)
        wanted = side(name) if kind != "person" else ""
        if wanted and (ends := _ends(named)):
            return [ends[0] if wanted == "from" else ends[1]]
        leads = ("in", "at", "for", "near", "around", "of", "from", "to", "between") if kind != "person" else ()
        led = [entry for entry in named if entry.lead in leads]
        return _distinct([entry.text for entry in led or named]) or values.quoted(prompt)
    quotes = values.quoted(prompt)
    if quotes:
        return quotes
    after = re.search(rf"(?i)(?<!\w){re.escape(name.replace('_', ' '))}\s+(?:of\s+|is\s+|to\s+)?([\w.-]+)", prompt)
    if after and fold(after[1]) not in values.NOT_NAMES:
        return [after[1]]
    return _distinct([entry.text for entry in values.names(prompt, ignore)])


def _ends(found: list[values.Name]) -> tuple[str, str] | None:
    """Origin and destination: "from A to B", "between A and B", "A to B"."""
    start = next((name for name in found if name.lead == "from"), None)
    end = next((name for name in found if name.lead in ("to", "into")), None)
    if start and end:
        return start.text, end.text
    if end and found[0] is not end:
        return found[0].text, end.text
    return (found[0].text, found[1].text) if len(found) > 1 else None


def _distinct(found: list[str]) -> list[str]:
    return list(dict.fromkeys(found))


def free_text(prompt: str) -> list[str]:
    """The material of a request: what is quoted, else what follows "search for", "about", a colon, ..."""
    if quotes := values.quoted(prompt):
        return quotes[:1]
    sentence = _LEAD.sub("", prompt.strip())
    for pattern in _TEXT_AFTER:
        if found := re.search(f"(?is)(?<!\\w){pattern}", sentence):
            return [found[1].strip().rstrip(".?!")]
    return [sentence.rstrip(".?!")] if sentence else []


def _pattern(pattern: re.Pattern[str]) -> Any:
    return lambda prompt, name, ignore: _distinct([found[0] for found in pattern.finditer(prompt)])


def _dates(prompt: str, name: str, ignore: frozenset[str]) -> list[str]:
    return _distinct([values.iso_date(found[0]) for found in values.DATE.finditer(prompt)])


def _expressions(prompt: str, name: str, ignore: frozenset[str]) -> list[str]:
    if found := [match[0].strip() for match in values.EXPRESSION.finditer(prompt)]:
        return found[:1]
    spoken = prompt
    for words, sign in (
        (r"to the power of|raised to", "**"), (r"divided by|over", "/"), (r"multiplied by|times", "*"),
        (r"plus", "+"), (r"minus", "-"), (r"squared", "**2"), (r"cubed", "**3"),
    ):  # fmt: skip
        spoken = re.sub(rf"(?i)\b(?:{words})\b", sign, spoken)
    for word, value in values.NUMBER_WORDS.items():
        spoken = re.sub(rf"(?i)\b{word}\b", str(value), spoken)
    found_spoken = re.search(r"[\d.(][\d\s.+*/()-]*[\d)]", spoken)
    return [found_spoken[0].strip()] if found_spoken and re.search(r"[-+*/]", found_spoken[0]) else []


def _named(table: Mapping[str, str], codes: frozenset[str], as_code: bool) -> Any:
    def find(prompt: str, name: str, ignore: frozenset[str]) -> list[str]:
        found: list[tuple[str, str]] = []
        for word in re.finditer(r"\w+|[$€£¥]", prompt):
            before = re.search(r"(?i)(from|to|into|in)\s+$", prompt[: word.start()])
            lead = before[1].lower() if before else ""
            if word[0] in codes:
                found.append((lead, word[0]))
            elif word[0].lower() in table:
                found.append((lead, table[word[0].lower()] if as_code else word[0]))
        wanted = side(name)
        leads = {"from": ("from", ""), "to": ("to", "into", "in")}.get(wanted)
        fitting = [text for lead, text in found if leads is None or lead in leads]
        if not fitting and found and wanted:
            fitting = [found[0][1] if wanted == "from" else found[-1][1]]
        return _distinct(fitting)[: 1 if wanted else None]

    return find


def _symbols(prompt: str, name: str, ignore: frozenset[str]) -> list[str]:
    found = re.findall(r"(?<![\w.])\$?([A-Z][A-Z0-9]{0,4}(?:[.-][A-Z]{1,2})?)(?!\w)", prompt)
    found = [word for word in found if word not in ("I", "A", "OK", "AND", "OR")]
    return _distinct(found) or _distinct([entry.text for entry in values.names(prompt, ignore)])


def _ids(prompt: str, name: str, ignore: frozenset[str]) -> list[str]:
    found = re.findall(r"(?<!\w)(?:#(\w+)|([A-Z]+-?\d[\w-]*))", prompt)
    return [left or right for left, right in found] or [str(number.value) for number in values.numbers(prompt)][:1]


def _units(prompt: str, name: str, ignore: frozenset[str]) -> list[str]:
    found = [(word.start(), word[0]) for word in re.finditer(rf"(?i)(?<![a-z])(?:{'|'.join(_UNITS)})(?![a-z])", prompt)]
    wanted = side(name)
    units = [unit for _, unit in found]
    return units[:1] if wanted == "from" else units[-1:]


_FINDERS: dict[str, Any] = {
    "url": _pattern(values.URL),
    "email": _pattern(values.EMAIL),
    "path": _pattern(values.PATH),
    "time": _pattern(values.TIME),
    "date": _dates,
    "expression": _expressions,
    "language": _named(LANGUAGES, frozenset(), False),
    "currency": _named(_CURRENCIES, _CODES, True),
    "symbol": _symbols,
    "id": _ids,
    "unit": _units,
}


def about(name: str, schema: Mapping[str, Any]) -> frozenset[str]:
    """The stems that speak of a parameter: those of its name and its description."""
    described = re.findall(r"[^\W\d_]+", str(schema.get("description") or ""))
    return frozenset(name_stems(name)) | frozenset(stem(word) for word in described if len(word) > 3)
