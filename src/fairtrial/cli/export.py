"""`fairtrial export`: a record for others' tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli.texts import beside


def export(
    record: Annotated[Path, typer.Argument(help="The folder of a finished record.")],
    to: Annotated[str, typer.Option(help="'hf': a folder that `transformers` loads.")] = "hf",
    out: Annotated[Path | None, typer.Option(help="The folder to write. Default: RECORD-hf.", metavar="FOLDER")] = None,
) -> None:
    """Write a trained network as a folder that `transformers`' from_pretrained loads, where it is one of theirs.

    Decoders with learned positions and no output bias become GPT-2; encoders BERT (post-norm) or XLM-RoBERTa-XL
    (pre-norm).
    """
    from fairtrial.pretrained.export import export_record
    from fairtrial.recipe import one_of
    from fairtrial.record import Record

    one_of("--to", to, ("hf",))
    target = out if out is not None else beside(record, "hf")
    done = export_record(Record.open(record), target)
    auto = {
        "GPT2LMHeadModel": "AutoModelForCausalLM",
        "BertForMaskedLM": "AutoModelForMaskedLM",
        "XLMRobertaXLForMaskedLM": "AutoModelForMaskedLM",
        "BertForSequenceClassification": "AutoModelForSequenceClassification",
        "XLMRobertaXLForSequenceClassification": "AutoModelForSequenceClassification",
    }.get(done.architecture, "AutoModel")
    print(
        f"{done.folder}: a {done.architecture}; load it with transformers.{auto}.from_pretrained({str(done.folder)!r})"
    )
    if not done.whole:
        print("only the encoder is in it: this head (its pooling or activation) is in none of their architectures")
