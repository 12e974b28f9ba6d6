"""Which column holds the text, the label, the split and the group: those that the recipe names, else those whose names
leave no doubt. A table's header, the keys of JSON lines and the columns of a data frame are all names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairtrial.data.lines import SPLIT_NAMES
from fairtrial.errors import BadInput
from fairtrial.recipe import FOLDER_NAME, Data
from fairtrial.registry import did_you_mean

KINDS = ("text", "label", "split", "group")  # each is also the name that needs no guess
# other usual names; a group is the speech, thread or book that a text comes from
SYNONYMS = {
    "text": "sentence content document review comment tweet message body phrase utterance".split(),
    "label": "class target category sentiment topic speaker author rating stars emotion intent polarity".split(),
    "split": ["partition", "subset", "fold", "set"],
    "group": [],
}
ROW_NAMES = ("id", "idx", "index", "uid", "guid", "")
NOT_THE_THING = {*ROW_NAMES, "count", "number", "length", "date", "time", "url", "link", "language", "title", "hash"}
NONE = "none"  # for the split and the group: do not use such a column
MOST_TESTS = 50


@dataclass(frozen=True)
class Columns:
    """The place of each column among the names; None: there is none. A table without a header has no names."""

    names: tuple[str, ...]
    text: int
    label: int | None = None
    split: int | None = None
    group: int | None = None
    name: int | None = None  # what people call the label

    def places(self) -> dict[str, int]:
        found = {kind: getattr(self, kind) for kind in (*KINDS, "name")}
        return {kind: place for kind, place in found.items() if place is not None}

    def note(self) -> str:
        """What is read as what, and every column that is not used; empty where there is nothing to say."""
        used = self.places()
        unused = [name or "(no name)" for place, name in enumerate(self.names) if place not in used.values()]
        other = any(self.names[place].strip().lower() != kind for kind, place in used.items()) if self.names else False
        if not (unused or other or "split" in used):
            return ""
        read = [kind if self.names[at] == kind else f"{kind} from {self.names[at]!r}" for kind, at in used.items()]
        read = [text.replace("name from", "names of classes from") for text in read]
        return f"columns: {', '.join(read)}" + (f"; not used: {', '.join(unused)}" if unused else "")


def names_columns(data: Data) -> bool:
    """Whether the recipe names a column that must then be there."""
    return any(wanted_column(data, kind) not in ("", NONE) for kind in KINDS)


def wanted_column(data: Data, kind: str) -> str:
    return str(getattr(data, f"{kind}_column"))


def candidates(kind: str, names: Sequence[str]) -> list[int]:
    """Places of the columns that could be meant: by the very name, else by a synonym, else by a word of the name, as
    in `review_body`."""
    plain = [name.strip().lower() for name in names]
    others = {word for other in KINDS if other != kind for word in (other, *SYNONYMS[other])}
    usual = {kind, *SYNONYMS[kind]}

    def by_a_word(name: str) -> bool:
        words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
        return len(words) <= 3 and bool(words & usual) and not words & (others | NOT_THE_THING)

    own, known = ([place for place, name in enumerate(plain) if name in among] for among in ({kind}, usual))
    if own or known or not SYNONYMS[kind]:  # an `age_group` is not what texts come from
        return own or known
    return [place for place, name in enumerate(names) if by_a_word(name)]


def choose_columns(
    names: Sequence[str],
    data: Data,
    task: str,
    says_train: Callable[[int], bool] = lambda place: True,
    where: str = "",
) -> Columns:
    """`says_train`: whether a row of the column at a place calls itself training, as a split must."""
    found: dict[str, int] = {}
    for kind in sorted(KINDS, key=lambda kind: not wanted_column(data, kind)):  # what the recipe names is taken first
        if kind == "label" and task != "classify":
            continue
        if wanted := wanted_column(data, kind):
            places = [] if wanted == NONE else _called(wanted, names)
            if not places and wanted != NONE:
                raise BadInput(f"no column is called {wanted!r}{did_you_mean(wanted, list(names))}", path=where or None)
        else:
            places = [place for place in candidates(kind, names) if place not in found.values()]
            if kind == "split" and [names[place].strip().lower() for place in places] != [kind]:
                places = [place for place in places if says_train(place)]
        if len(places) > 1:
            raise BadInput(*_doubt(kind, [names[place] for place in places]), path=where or None)
        if places:
            found[kind] = places[0]
        elif kind in ("text", "label"):
            hint = f"name it with --{kind}-column, or data.{kind}_column in a recipe"
            raise BadInput(f"no column is the {kind}; there is: {', '.join(names)}", hint, path=where or None)
    if "label" in found:
        usual = {f"{names[found['label']].strip().lower()}_{word}" for word in ("text", "name", "names")}
        known = [place for place, name in enumerate(names) if name.strip().lower() in usual]
        found |= {"name": known[0]} if len(known) == 1 and known[0] not in found.values() else {}
    return Columns(tuple(names), **found)


def _called(wanted: str, names: Sequence[str]) -> list[int]:
    """Places of the columns of this very name; else whatever the case."""
    same = [place for place, name in enumerate(names) if name == wanted]
    return same or [place for place, name in enumerate(names) if name.strip().lower() == wanted.strip().lower()]


def _doubt(kind: str, names: list[str]) -> tuple[str, str]:
    if len({name.strip().lower() for name in names}) == 1:
        return f"{len(names)} columns are called {names[0].strip().lower()!r}", "rename those that are not to be read"
    none = f" (or {NONE})" if kind in ("split", "group") else ""
    several = f"columns {', '.join(names)} could all be the {kind}"
    return several, f"choose one with --{kind}-column NAME{none}, or data.{kind}_column in a recipe"


def split_of(value: str, file_split: str, location: str) -> str:
    """The split of a row: train, validation, test, or the name of a further test set. `file_split`: that of its file;
    a training file may hold all splits, any other only its own."""
    if not FOLDER_NAME.fullmatch(value):
        what = f"{value!r} cannot be the name of a split" if value else "the split is missing"
        raise BadInput(what, "write train, validation, test, or the name of a test set", path=location)
    split = SPLIT_NAMES.get(value.lower(), value)
    if file_split != "train" and part_of(split) != part_of(file_split):
        what = f"this row is of the split {value!r}, and its file is of {file_split!r}"
        raise BadInput(what, "move it, or ignore the column with --split-column none", path=location)
    return split


def part_of(split: str) -> str:
    """train, validation or test."""
    return split if split in ("train", "validation") else "test"
