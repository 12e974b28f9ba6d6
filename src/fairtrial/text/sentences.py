"""Sentences, by rule. A library would be finer, but its model would have to be downloaded, and we work offline."""

from __future__ import annotations

import re

# a sign that ends a sentence, closing quotes, a space, then a sentence's beginning
END = re.compile(r"""(?<![.!?…])(?P<sign>[.!?…]+)["'”’)\]]*\s+(?=["'“‘(\[$—-]*(?P<next>[A-Z0-9ÀÖØÞ]\w*))""")
TITLES = re.compile(  # a name or a number follows: never an end
    r"mr|mrs|ms|messrs|dr|prof|rev|hon|sen|rep|gov|gen|lt|col|maj|capt|cpl|sgt|adm|cmdr|pres|st|mt|ft|vs|viz|art|sec|"
    r"dept|inc|co|corp|e\.g|i\.e|cf|jan|feb|mar|apr|aug|sept|oct|nov|dec"
)
MAYBE = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]|[JS]r|Esq|etc|[A-HJ-Z]")  # U.S., p.m., Jr., W.: an end before a BEGINNING
BEGINNING = re.compile(
    r"A|All|Also|An|And|As|At|But|By|Each|Even|Every|First|For|From|He|Her|Here|His|How|However|I|If|In|Instead|Is|It|"
    r"Its|Last|Let|Many|More|Most|My|Neither|Never|No|Nor|Not|Now|On|One|Only|Or|Our|Over|She|Since|So|Some|Such|Tell|"
    r"That|The|Their|Then|There|These|They|This|Those|Though|To|Together|Tonight|Under|Until|We|What|When|Where|While|"
    r"Who|Why|With|Yes|Yet|You|Your"
)
STAGE = re.compile(
    r"laughter|applau|cheer|inaudible|audience|members|silence|disruption|at this point|app note|correction|"
    r"delivered|recorded|read before|presented|pinned|interrupt",
    re.IGNORECASE,
)
WORD = re.compile(r"[^\W_]")


def sentences(text: str) -> list[str]:
    """The sentences of one paragraph."""
    found, start = [], 0
    for end in END.finditer(text):
        if _ends(text[start : end.end("sign")], end["sign"], end["next"]):
            found.append(text[start : end.end()].strip())
            start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def without_stage_directions(text: str) -> str:
    """Drops "[Applause]" and "(Laughter.)"; an editor's "[Iowa]" is part of the sentence and loses only brackets."""

    def bracketed(found: re.Match[str]) -> str:
        inside = found[1].strip()
        return " " if STAGE.search(inside) or inside.endswith((".", "!")) else inside

    def round_(found: re.Match[str]) -> str:
        return " " if re.match(r"laughter|applause|cheers|inaudible", found[1].strip(), re.IGNORECASE) else found[0]

    text = re.sub(r"\[([^\[\]]*)\]", bracketed, text)
    text = re.sub(r"\(([^()]*)\)", round_, text)
    text = re.sub(r"(—|--)\s*\1", r"\1", text)
    return re.sub(r"\s+([.,;:!?](?:\s|$))", r"\1", re.sub(r"\s+", " ", text)).strip()


def count_words(sentence: str) -> int:
    return sum(1 for word in sentence.split() if WORD.search(word))


def _ends(sentence: str, sign: str, following: str) -> bool:
    if sign != ".":
        return True
    last = sentence.rstrip(".").rsplit(maxsplit=1)[-1] if sentence.rstrip(".").split() else ""
    last = last.lstrip("\"'“‘([—-").rsplit("—", 1)[-1]
    if last.lower() in ("no", "nos"):
        return not following[0].isdigit()  # "No. 5" goes on, "The answer is no. We" ends
    if TITLES.fullmatch(last.lower()):
        return last in ("art", "co", "mar", "rep", "sec")  # as plain words: "the state of the art. We"
    return not MAYBE.fullmatch(last) or BEGINNING.fullmatch(following) is not None  # "World War I. We" ends
