"""Sentences, words, and words back to text, by rule: a sentence splitter with a model would have to be downloaded.

Words are split as NLTK 3.9 does, with rules for the `tokenizers` library, so that a saved tokenizer.json splits them,
too. The rules are those of NLTK's `NLTKWordTokenizer` (nltk/tokenize/destructive.py, by Liling Tan and Tom Aarsen after
Robert MacIntyre's Penn Treebank script; https://www.nltk.org, Apache 2.0). NLTK rewrites matched text by group
references; `Replace` knows only literal text, so most rules here match a position, by lookaround, for a space. One
difference is intended: an initialism that ends the line ("Washington, D.C.") keeps its last period, as elsewhere.

A word table holds texts as numbers of words over their whole vocabulary. Each distinct piece between two blanks is
split only once: looking it up again is twenty times as fast as the rules. No rule looks past a blank but those for the
beginning and the end of a text, which are therefore pieces of another kind."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from tokenizers import Regex, normalizers
from tokenizers.normalizers import Normalizer, Replace
from tokenizers.pre_tokenizers import PreTokenizer, WhitespaceSplit

from fairtrial.data.batches import Rows

# punctuation that ends a sentence, closing quotes, a space, then the start of a sentence
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


# Python's \w; Oniguruma's own counts combining marks and leaves out numbers such as ².
LETTER = r"\p{L}\p{N}_"
NO_LETTER = rf"[^{LETTER}]"
WORD_ENDS = rf"(?![{LETTER}])"

INITIALISM = rf"(?<![{LETTER}.])(?:\p{{L}}\.)+\p{{L}}"  # its last period is still to come
# Atomic: spaces are in both classes, and Oniguruma panics when it tries every way to share out thousands of them.
LINE_ENDS = r"(?>[\])}>\"'»”’ ]*)(?>\s*)\z"

# NLTK's rule eats the character after a comma or colon, so in a run of them only the 1st, 3rd, 5th... are split off.
# Beyond a thousand in a row the rest stays one word: looking back without a bound takes time quadratic in the run.
ODD_IN_RUN = r"(?:\A|[^:,])(?:[:,]{2}){0,500}"

# Where each contraction is split.
CONTRACTIONS = ("can not", "d 'ye", "gim me", "gon na", "got ta", "lem me", "more 'n")


def word_splitter() -> tuple[Normalizer, PreTokenizer]:
    """Puts a space wherever a word ends, then splits at white space."""
    return normalizers.Sequence(
        [
            Replace(Regex(r"[\x1C-\x1F]"), "\t"),  # white space to Python, not to Rust
            # quotes that open
            space_at("(?=[«“‘„])", "(?<=[«“‘„])", "(?<!`)(?=`)", "(?<=`)(?!`)"),
            Replace(Regex(r'\A"|``'), " `` "),
            Replace(Regex(r"(?<=[ (\[{<])(?:\"|'')"), " `` "),
            space_at(f"(?<=')(?![mtdnMTDNsSſ])(?=[{LETTER}]{WORD_ENDS})"),
            # punctuation; NLTK's second rule for the final period never finds one that the first left
            space_at(rf"(?=\.{LINE_ENDS})(?<=[^.])(?<!{INITIALISM})", rf"(?<=[^.]\.)(?={LINE_ENDS})"),
            space_at(rf"(?=[:,]\D)(?<={ODD_IN_RUN})", rf"(?<=[:,])(?=\D)(?<={ODD_IN_RUN}[:,])"),
            space_at(r"(?=[:,]\n?\z)", r"(?<=[:,])(?=\n?\z)"),
            space_at(r"(?<!\.)(?=\.\.)", r"(?<=\.\.)(?!\.)", *around("[;@#$%&?!]")),
            space_at("(?<=[^'])(?=' )"),
            space_at(*around(r"[*\[\](){}<>»”’]")),
            Replace("--", " -- "),
            # quotes that close
            Replace(Regex("''|\""), " '' "),
            Replace(Regex(r"\A\s*|\s+|\z"), " "),  # from here on, every word has a space on either side
            space_at("(?<=[^' ])(?='[sSmMdD]? )"),
            space_at("(?<=[^' ])(?=(?:'ll|'LL|'re|'RE|'ve|'VE|n't|N'T) )"),
            # contractions
            space_at(*(pattern for pair in CONTRACTIONS for pattern in apart(pair, NO_LETTER))),
            space_at(*apart("wan na", NO_LETTER, "(?= )")),
            space_at(*apart("'t is", " ")),
            space_at(*apart("'t was", " ")),
        ]
    ), WhitespaceSplit()


def space_at(*patterns: str) -> Normalizer:
    """Inserts a space wherever one of these zero-width patterns matches."""
    return Replace(Regex("|".join(patterns)), " ")


def around(pattern: str) -> tuple[str, str]:
    return f"(?={pattern})", f"(?<={pattern})"


def apart(pair: str, before: str, ends: str = WORD_ENDS) -> tuple[str, str, str]:
    """Patterns for the positions before, inside and after a contraction; in `pair` a space shows where it is split."""
    first, second = (any_case(half) for half in pair.split())
    return (
        f"(?={first}{second}{ends})(?<={before})",
        f"(?={second}{ends})(?<={before}{first})",
        f"{ends}(?<={before}{first}{second})",
    )


def any_case(word: str) -> str:
    """The word in upper and lower case, with the letters that Python's `re.IGNORECASE` takes for s and i."""
    more = {"s": "ſ", "i": "İı"}
    return "".join(f"[{letter}{letter.upper()}{more.get(letter, '')}]" for letter in word)


NO_SPACE_BEFORE = re.compile(r"[,.;:!?%)\]}»”’]+|\.\.+|''|'|'(?:[sSmMdD]|ll|LL|re|RE|ve|VE)|n't|N'T")
NO_SPACE_AFTER = re.compile(r"[(\[{«“‘#$]|``")
ENDINGS = re.compile(r"(?:s|t|m|d|ll|re|ve)", re.IGNORECASE)  # of don’t, it’s, we’ll with a curved apostrophe
HALVES = {("gim", "me"), ("gon", "na"), ("got", "ta"), ("lem", "me"), ("wan", "na"), ("d", "'ye"), ("'t", "is")}
ASCII_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())
HALVES |= {("'t", "was"), ("can", "not")}  # of a contraction


@lru_cache(maxsize=1 << 18)
def gap(before: str, word: str) -> str:
    """What separates two words: a space, or nothing."""
    halves = (before.lower(), word.lower()) in HALVES or (before == "’" and ENDINGS.fullmatch(word))
    return "" if halves or NO_SPACE_BEFORE.fullmatch(word) or NO_SPACE_AFTER.fullmatch(before) else " "


def spelled(word: str) -> str:
    """A word as it is written: the splitter distinguishes opening and closing quotes."""
    return '"' if word in ("``", "''") else word


def normalised(text: str) -> str:
    """Equal for duplicates: NFKC, lower case, letters and digits only."""
    if text.isascii():
        return text.lower().encode().translate(None, ASCII_SIGNS).decode()
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).lower())


@lru_cache(maxsize=1 << 18)
def text_key(text: str) -> str:
    """Equal for duplicates. A text without letters and digits is compared as it is: '?' does not duplicate '!'."""
    return normalised(text) or text


Split = Callable[[str], list[str]]  # the rules: a text -> its words

CLOSING = re.compile(r"[\s\])}>\"'»”’]*")  # what may follow the period that ends a text
BLOCK = 1 << 20  # pieces that are held as Python's integers before they become an array


@dataclass(frozen=True)
class WordTable:
    """The words of text t are vocabulary[ids[offsets[t] : offsets[t + 1]]]."""

    vocabulary: Sequence[str]
    ids: np.ndarray  # [word]
    offsets: np.ndarray  # [text + 1]

    @property
    def rows(self) -> Rows:
        return Rows(self.ids, self.offsets[:-1], np.diff(self.offsets))

    def counts(self) -> dict[str, int]:
        """How often each word occurs."""
        found = np.bincount(self.ids, minlength=len(self.vocabulary)).tolist()
        return {word: count for word, count in zip(self.vocabulary, found, strict=True) if count}


def make_table(texts: Iterable[str], kind: str, split: Split) -> WordTable:
    """`split`: the rules of a tokenizer of this kind (word, whitespace or character)."""
    if kind == "character":
        return _characters(list(texts), split)
    pieces = (Pieces if kind == "word" else BlankPieces)(split)
    blocks: list[np.ndarray] = []
    block: list[int] = []
    sizes: list[int] = []  # pieces of each text
    for text in texts:
        before = len(block)
        pieces.number(text, block)
        sizes.append(len(block) - before)
        if len(block) > BLOCK:
            blocks.append(np.array(block, np.uint32))
            block = []
    blocks.append(np.array(block, np.uint32))
    return _spell_out(pieces.words, blocks, np.array(sizes, np.int64))


class Numbers(dict[str, int]):
    """The number of each piece; a new one is split into words."""

    def __init__(self, words: list[list[str]], split: Split) -> None:
        self.words, self.split = words, split

    def __missing__(self, piece: str) -> int:
        number = self[piece] = len(self.words)
        self.words.append(self.split(piece))
        return number


class BlankPieces:
    """Of texts that are split at white space only."""

    def __init__(self, split: Split) -> None:
        self.words: list[list[str]] = []  # of each piece, by its number
        self.inner = Numbers(self.words, split)

    def number(self, text: str, into: list[int]) -> None:
        into.extend(map(self.inner.__getitem__, text.split(" ")))


class Pieces(BlankPieces):
    """Of texts that are split by the rules for words. The last piece includes signs that close, as a period before them
    may end the text, too."""

    def __init__(self, split: Split) -> None:
        super().__init__(split)
        self.inner.split = lambda piece: split(f" {piece} x")[:-1]
        self.first = Numbers(self.words, lambda piece: split(f"{piece} x")[:-1])
        self.last = Numbers(self.words, lambda piece: split(f" {piece}"))
        self.whole = Numbers(self.words, split)

    def number(self, text: str, into: list[int]) -> None:
        pieces = text.split(" ")
        begin, end = 0, len(pieces) - 1
        while end and CLOSING.fullmatch(pieces[end]):
            end -= 1
        if not end:
            into.append(self.whole[text])
            return
        if not text[0].isalnum():
            into.append(self.first[pieces[0]])
            begin = 1
        into.extend(map(self.inner.__getitem__, pieces[begin:end]))
        into.append(self.last[" ".join(pieces[end:])])


def _characters(texts: list[str], split: Split) -> WordTable:
    """Every character is a piece."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    distinct, numbers = np.unique(codes, return_inverse=True)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    return _spell_out([split(chr(code)) for code in distinct.tolist()], [numbers], sizes)


def _spell_out(words: list[list[str]], pieces: list[np.ndarray], sizes: np.ndarray) -> WordTable:
    """From the words of every piece, the pieces of all texts, and how many each text has."""
    numbers: dict[str, int] = {}
    flat = np.array([numbers.setdefault(word, len(numbers)) for piece in words for word in piece], np.uint32)
    counts = np.fromiter(map(len, words), np.int64, len(words))
    spelled = Rows(flat, np.cumsum(counts) - counts, counts)
    ids = np.concatenate([spelled.take(block).joined() for block in pieces])
    ends = np.append(0, np.concatenate([counts[block] for block in pieces]).cumsum())  # of each piece
    return WordTable(list(numbers), ids, ends[np.append(0, np.cumsum(sizes))])
