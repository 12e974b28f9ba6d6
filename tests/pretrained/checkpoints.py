"""Small random checkpoints of each family, written by `transformers` as its users do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

WORDS = "the a film plot is was good bad dull bright not very , . it and never ##ly ##s great".split()
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = ["The film is not very good .", "dull", "it was bright , greats and badly bad .", "unheard words here"]


def write_checkpoint(folder: Path, kind: str, *, head: bool = True, **changes: Any) -> Any:
    """The model that was saved, in evaluation mode."""
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    if kind == "roberta":
        write_byte_pairs(folder)
        entries = 300
    else:
        write_word_pieces(folder, MARKS + WORDS)
        entries = len(MARKS + WORDS)
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    more = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2} if kind == "roberta" else {}
    name, places = ("Roberta", 62) if kind == "roberta" else ("Bert", 20)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=entries, max_position_embeddings=places, **sizes, **more, **changes
    )
    built = getattr(transformers, f"{name}ForSequenceClassification" if head else f"{name}Model")
    torch.manual_seed(3)
    model = built(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms start at 0 and 1, which would hide a mix-up
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    return model


def write_byte_pairs(folder: Path) -> None:
    """A RoBERTa-style vocabulary of bytes and a few merges, with its special tokens in RoBERTa's places."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "f"), ("g", "o"), ("o", "d")]
    names = ["<s>", "<pad>", "</s>", "<unk>", *letters, *("".join(pair) for pair in merges), "<mask>"]
    inner = Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    inner.save(str(folder / "tokenizer.json"))


def write_word_pieces(folder: Path, entries: list[str]) -> None:
    """BERT's tokenizer: `##` before the pieces inside a word."""
    from tokenizers import BertWordPieceTokenizer

    BertWordPieceTokenizer({name: number for number, name in enumerate(entries)}).save(str(folder / "tokenizer.json"))
