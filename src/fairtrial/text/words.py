"""Words as NLTK 3.9 splits them, told to the `tokenizers` library, so that a saved tokenizer.json splits them too.

The rules are those of NLTK's `NLTKWordTokenizer` (nltk/tokenize/destructive.py, by Liling Tan and Tom Aarsen after
Robert MacIntyre's Penn Treebank script; https://www.nltk.org, Apache 2.0). NLTK rewrites matched text by group
references; `Replace` knows only literal text, so most rules here are places, found by looking around, for a space.

One difference is meant: an initialism that ends the line ("in Washington, D.C.") keeps its last period, as it does
everywhere else in a line. NLTK gives "D.C" and ".", a word of its own for the same city.
"""

from __future__ import annotations

from tokenizers import Regex
from tokenizers.normalizers import Normalizer, Replace, Sequence
from tokenizers.pre_tokenizers import PreTokenizer, WhitespaceSplit

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

# Where each contraction falls apart.
CONTRACTIONS = ("can not", "d 'ye", "gim me", "gon na", "got ta", "lem me", "more 'n")


def splitting() -> tuple[Normalizer, PreTokenizer]:
    """Put a space wherever a word ends, then split at white space."""
    return Sequence(
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
            space_at(*(place for pair in CONTRACTIONS for place in apart(pair, NO_LETTER))),
            space_at(*apart("wan na", NO_LETTER, "(?= )")),
            space_at(*apart("'t is", " ")),
            space_at(*apart("'t was", " ")),
        ]
    ), WhitespaceSplit()


def space_at(*places: str) -> Normalizer:
    """A space at each of these places, which are patterns without width."""
    return Replace(Regex("|".join(places)), " ")


def around(what: str) -> tuple[str, str]:
    return f"(?={what})", f"(?<={what})"


def apart(pair: str, before: str, ends: str = WORD_ENDS) -> tuple[str, str, str]:
    """The places before, inside and after a contraction that is written with a space where it falls apart."""
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
