"""The Content-Security-Policy of a page: it allows exactly the style and the script that the page is made with."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256


def hash_source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def assert_policy(page: str) -> None:
    (told,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    allowed = dict(rule.split(" ", 1) for rule in told.replace("&#39;", "'").split("; "))
    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.S)
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.S) or [""]
    assert allowed.pop("style-src") == hash_source(style)
    assert [allowed.pop("script-src")] == [hash_source(script) for script in scripts]
    assert set(allowed) == {"default-src", "base-uri", "form-action"}
    assert set(allowed.values()) == {"'none'"}
    tags = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.S)
    assert not re.search(r"<[^>]* (style|on\w+)=", tags)  # the policy would ignore it
