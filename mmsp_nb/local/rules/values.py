"""The values a prompt mentions: numbers, quoted text, proper names in lists, dates, addresses, expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .words import STOP, fold, listed, stem

_SMALL = listed(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
)
_TENS = listed("""twenty thirty forty fifty sixty seventy eighty ninety""")
NUMBER_WORDS = {word: value for value, word in enumerate(_SMALL)} | {
    word: 10 * value for value, word in enumerate(_TENS, 2)
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "dozen": 12}

_DIGITS = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\.\d)")
_NUMBER = re.compile(rf"(?i)(?<![a-z])(?:{'|'.join([*NUMBER_WORDS, *_SCALES])})(?![a-z])")
_DICE = re.compile(r"(?i)(?<!\w)(\d+)d(\d+)(?!\w)")
QUOTED = re.compile(r"\"([^\"]*)\"|“([^”]*)”|`([^`]*)`|«([^»]*)»|(?<!\w)'([^'\n]+)'(?!\w)|(?<!\w)‘([^’\n]+)’")
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
URL = re.compile(r"https?://[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]|(?<!\w)www\.[^\s<>\"')\]]*\w")
PATH = re.compile(r"(?<![\w/])(?:~?/|\.{1,2}/)[\w./~-]*\w|(?<![\w/])[\w-]+(?:[\w./-]*\w)?\.[A-Za-z]\w{0,4}(?!\w)")
EXPRESSION = re.compile(
    r"(?<![\w.(-])[-(]{0,8}\d[\d.,]{0,20}(?:\s{0,3}[-+*/^%×÷)(]{1,8}\s{0,3}|\s{1,3}x\s{1,3})[\d.,()\s*/^%×÷+-]{0,200}[\d)]"
    r"|(?<!\w)[a-z]\w{0,20}\([\d.,\s+*/^-]{1,200}\)"
)
_MONTHS = listed("""january february march april may june july august september october november december""")
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH = rf"(?:{'|'.join(month.capitalize() for month in _MONTHS)}|{'|'.join(m[:3].capitalize() for m in _MONTHS)})"
DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}"
    rf"|(?<!\d)\d{{1,2}}(?:st|nd|rd|th)?\.?\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}})?"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,?\s+\d{{4}})?"
    rf"|(?i:(?<!\w)(?:(?:next|this|last)\s+)?(?:{'|'.join(_DAYS)}|week|weekend|month)(?!\w)|day after tomorrow"
    r"|(?<!\w)(?:today|tomorrow|yesterday|tonight)(?!\w))"
)
TIME = re.compile(
    r"(?i)(?<![\d:])(?:[01]?\d|2[0-3]):[0-5]\d(?:\s*[ap]\.?m\.?)?|(?<!\w)\d{1,2}\s*[ap]\.?m\.?(?!\w)|(?<!\w)(?:noon|midnight)(?!\w)"
)
_NAME_WORD = r"[A-ZÀ-ÖØ-Þ][\w'’.-]*[\w'’]|[A-ZÀ-ÖØ-Þ]"
_LINK = r"(?:de|del|della|di|da|do|dos|la|le|les|los|las|of|upon|on|am|an|der|den|van|von|el|al)"
PROPER = re.compile(rf"(?:{_NAME_WORD})(?:\s+(?:{_LINK}\s+){{0,2}}(?:{_NAME_WORD}))*")
_BETWEEN = re.compile(
    r"(?i)^\s*(?:,|;|/|&|\+|and|or|vs\.?|versus|plus|as well as|then)(?:\s*(?:and|or|also|then|,))*"
    r"(?:\s+(?:in|at|for|of|near|from|to|about|the|city|town))*\s*$"
)
_BEFORE = re.compile(r"(?i)(?<!\w)(in|at|for|near|around|of|from|to|into|between|on|by|with|about|than)(?:\s+the)?\s*$")
_LOWER = re.compile(
    r"(?i)(?<!\w)(in|at|for|near|around|of|from|to|about)\s+(?:the\s+(?:city|town)\s+of\s+)?(?=[a-zà-ÿ])"
)
_PREFIXES = frozenset(
    listed("""new san santa los las rio st saint hong kuala tel abu buenos sao são cape mexico addis den la el""")
)
NOT_NAMES = (
    frozenset(
        listed(
            """i i'm i'd i'll i've please hello hi hey thanks thank ok okay compare show tell give find check convert
    translate roll throw compute calculate plot draw search look use call run send write list add multiply
    divide subtract count create make set turn open read summarise summarize explain describe remember book play
    start stop weather celsius fahrenheit kelvin yes no"""
        )
    )
    | frozenset(_DAYS + _MONTHS)
    | STOP
)
COUNTRIES = frozenset(
    listed(
        """uk usa us france germany spain italy japan china india canada australia brazil mexico england scotland
    ireland portugal greece egypt norway sweden finland denmark poland austria switzerland netherlands belgium
    turkey"""
    )
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number with where it stands; ``before`` and ``after`` are the stems of the neighbouring words."""

    value: int | float
    start: int
    end: int
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """A proper name. ``lead`` is the preposition before the list it stands in ("in London and Paris": both "in")."""

    text: str
    start: int
    end: int
    lead: str = ""
    group: int = 0


def blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """``text`` with these stretches replaced by as many asterisks, so that positions stay."""
    for start, end in spans:
        text = text[:start] + "*" * (end - start) + text[end:]
    return text


def quoted(text: str) -> list[str]:
    """What stands in quotation marks or backticks."""
    return [next(filter(None, found.groups()), "") for found in QUOTED.finditer(text)]


def numbers(text: str) -> list[Number]:
    """All numbers, in digits or in words, outside quotations, dates, times and addresses."""
    hidden = [found.span() for pattern in (QUOTED, EMAIL, URL, DATE, TIME) for found in pattern.finditer(text)]
    text = blank(text, hidden)
    found: list[Number] = []
    for dice in _DICE.finditer(text):
        found += [
            Number(int(dice[1]), dice.start(1), dice.end(1), after=(stem("dice"), stem("count"))),
            Number(int(dice[2]), dice.start(2), dice.end(2), after=(stem("sides"),)),
        ]
    text = blank(text, (dice.span() for dice in _DICE.finditer(text)))
    raw: list[tuple[float, int, int]] = []
    for match in _DIGITS.finditer(text):
        value = float(match[0].replace(",", ""))
        # "5-3" is five minus three, and not a negative three
        if value in (float("inf"), float("-inf")):
            continue
        signed = match[0][0] in "+-" and text[: match.start()].rstrip()[-1:].isdigit()
        raw.append((abs(value) if signed else value, match.start(), match.end()))
    for match in _NUMBER.finditer(text):
        word = match[0].lower()
        raw.append((float(NUMBER_WORDS.get(word, _SCALES.get(word, 0))), match.start(), match.end()))
    raw.sort(key=lambda entry: entry[1])
    merged: list[tuple[float, int, int]] = []
    for value, start, end in raw:
        word = text[start:end].lower()
        last = merged[-1] if merged else None
        gap = text[last[2] : start] if last else "?"
        if last and word in _SCALES and gap.strip(" -a") == "":
            merged[-1] = (last[0] * _SCALES[word], last[1], end)
        elif last and word in NUMBER_WORDS and 20 <= last[0] < 100 and value < 10 and gap in (" ", "-"):
            merged[-1] = (last[0] + value, last[1], end)
        elif word == "one" and not re.match(r"\s+\w", text[end:]):
            continue  # "which one?"
        else:
            merged.append((value, start, end))
    for at, (value, start, end) in enumerate(merged):
        if at and re.fullmatch(r"(?i)\s+(?:out )?of\s+", text[merged[at - 1][2] : start]):
            continue  # "4 of 5 stars" are four
        exact = int(value) if value == int(value) and abs(value) < 1e15 and "." not in text[start:end] else value
        before = re.findall(r"[^\W\d_]+", text[max(0, start - 40) : start])[-3:]
        rest = re.sub(r"(?i)^\s+(?:out )?of\s+\d+", "", text[end : end + 40])
        after = re.findall(r"[^\W\d_]+", re.split(r"[,;.?!]\s|\d|\band\b", rest)[0])[:2]
        found.append(Number(exact, start, end, tuple(map(stem, before)), tuple(map(stem, after))))
    return sorted(found, key=lambda number: number.start)


def names(text: str, ignore: frozenset[str] = frozenset()) -> list[Name]:
    """Proper names (places, people, products), with those in one list grouped.

    ``ignore`` are stems that are no names here: the words of the tool itself, the values of its enumerations.
    Without any capitalised name, what follows a preposition is taken ("weather in london and paris").
    """
    hidden = [found.span() for pattern in (QUOTED, EMAIL, URL, DATE) for found in pattern.finditer(text)]
    text = blank(text, hidden)
    spans = [span for found in PROPER.finditer(text) for span in _trim(text, found, ignore)]
    if not spans:
        spans = _lower_case(text, ignore)
    spans = _with_country(text, spans)
    made: list[Name] = []
    for start, end in spans:
        between = text[made[-1].end : start] if made else ""
        before = _BEFORE.search(text[:start])
        if made and _BETWEEN.match(between):
            lead, group = made[-1].lead, made[-1].group
        else:
            lead, group = before[1].lower() if before else "", made[-1].group + 1 if made else 0
        shown = text[start:end].rstrip(".'’")
        shown = re.sub(r"['’]s$", "", shown)
        made.append(Name(shown if shown != shown.lower() else shown.title(), start, end, lead, group))
    return made


def _trim(text: str, found: re.Match[str], ignore: frozenset[str]) -> list[tuple[int, int]]:
    """The part of a capitalised stretch that is a name: without "Compare" in "Compare London"."""
    start, end = found.span()
    at_start = re.search(r"(?:^|[.!?:\n]\s*|[-*]\s+)$", text[:start]) is not None
    words = [(word.start() + start, word.group()) for word in re.finditer(r"\S+", text[start:end])]
    first = True
    while words:
        word = re.split("['’]", words[0][1].strip(".'’"))[0]
        common = (fold(word) in NOT_NAMES and fold(word) not in _PREFIXES) or stem(word) in ignore
        after = text[words[0][0] + len(words[0][1]) :]
        # a lone capital at the start of a sentence is no name, unless something is said of it ("Ada is 36")
        alone = after.startswith(":") or re.match(r"\s+(?!(?:is|has|was)\b)[a-zà-ÿ]", after)
        lone = at_start and first and alone
        in_list = _BETWEEN.match(re.match(r"[^A-ZÀ-Þ]*", after)[0] or "?")  # type: ignore[index]
        if not common and not (lone and not in_list):
            break
        words, first = words[1:], False
    while words and (fold(words[-1][1].strip(".'’")) in NOT_NAMES or stem(words[-1][1]) in ignore):
        words = words[:-1]
    if not words:
        return []
    return [(words[0][0], words[-1][0] + len(words[-1][1]))]


def _lower_case(text: str, ignore: frozenset[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for lead in _LOWER.finditer(text):
        at = lead.end()
        while word := re.match(r"[a-zà-ÿ][\w'-]*", text[at:]):
            start, end = at, at + word.end()
            if fold(word[0]) in _PREFIXES and (second := re.match(r"\s+[a-zà-ÿ][\w'-]*", text[end:])):
                end += second.end()
            elif fold(word[0]) in NOT_NAMES or fold(word[0]) in NUMBER_WORDS or stem(word[0]) in ignore:
                break
            if any(start < other_end and other_start < end for other_start, other_end in spans):
                break
            spans.append((start, end))
            link = re.match(
                r"\s*(?:,|and|or|&|vs\.?|versus)(?:\s*(?:,|and|or))*\s+(?:(?:in|at|for|of|near)\s+)?", text[end:]
            )
            if not link:
                break
            at = end + link.end()
    return sorted(spans)


def _with_country(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join "Paris, France" into one name; "France, Italy and Spain" stay three."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        word = fold(text[start:end].strip("."))
        if joined and word in COUNTRIES and text[joined[-1][1] : start].strip() == ",":
            before = fold(text[joined[-1][0] : joined[-1][1]])
            if before not in COUNTRIES and before.split(", ")[-1] not in COUNTRIES:
                joined[-1] = (joined[-1][0], end)
                continue
        joined.append((start, end))
    return joined


def iso_date(text: str) -> str:
    """A written date as YYYY-MM-DD if it names day, month and year; else as it is."""
    day = re.search(r"(?<!\d)(\d{1,2})(?!\d)", text)
    year = re.search(r"\d{4}", text)
    month = next((at for at, name in enumerate(_MONTHS, 1) if name[:3] in text.lower()), None)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) or not (day and year and month):
        return text.lower() if not re.search(r"\d", text) else text
    return f"{year[0]}-{month:02}-{int(day[1]):02}"
