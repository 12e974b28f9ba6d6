"""Each check measures what it says: it can fail, and it fails for its own reason alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from audits import SMALL, UNTRAINED, failed, small_plan, small_subject
from cheats import ZOO
from own_models import CHEATS
from torch import Tensor

from fairtrial.audit.basics import cut_points, orders
from fairtrial.audit.determinism import RAISED, plugin_files, train_as_requested
from fairtrial.audit.run import CHECKS, audit
from fairtrial.audit.subject import VOCABULARY, Subject, as_batch, perturb_weights, sample_rows, subject_of, word_ids
from fairtrial.finding import FAIL, PASS, at_most, more_than
from fairtrial.model.part import AttentionContext, Part, concatenate
from fairtrial.plugins import load_file

Know = Callable[[type[Part]], str]
# what no part can break: the tests below and test_probe.py break networks themselves
CONTROLLED_HERE = {"M2", "M11", "E1", "F3", "L2", "O4", "S2", "V3", "V4", "V5", "V6"}
NEVER_FAIL = {"O1", "O2", "O3"}  # reports
ELSEWHERE = {"G1"}  # on a pretend device: training/test_device.py


def test_every_check_has_a_control_that_proves_that_it_can_fail() -> None:
    caught = set().union(*(case.caught_by for case in ZOO), (case.caught_by for case in CHEATS))
    assert caught | CONTROLLED_HERE | NEVER_FAIL | ELSEWHERE == {check.id for check in CHECKS}


def test_a_mask_after_the_softmax_is_attention_on_what_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = small_subject("lm", "none")
    assert failed(audit(subject, only=["M2"])) == {}
    attention = subject.network.body.blocks[0].attention

    def attend(q: Tensor, k: Tensor, v: Tensor, *others: Any) -> Tensor:
        return attention.maps((q @ k.transpose(-2, -1)).softmax(-1)) @ v

    monkeypatch.setattr(attention, "attend", attend)
    assert failed(audit(subject, only=["M2"])).keys() == {"M2"}


def test_a_map_that_is_not_what_was_computed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = small_subject("lm", "none")
    attention = subject.network.body.blocks[0].attention
    really = attention.attend
    monkeypatch.setattr(attention, "attend", lambda *given: really(*given) * (1 + 1e-6))
    assert failed(audit(subject, only=["E1"])).keys() == {"E1"}


def test_a_block_that_adds_to_its_norm_instead_of_its_input_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = small_subject("lm", "learned")
    block = subject.network.body.blocks[0]

    def forward(x: Tensor, *given: Any) -> Tensor:
        x = block.attention_norm(x)
        return x + block.attention(x, *given)

    monkeypatch.setattr(block, "forward", forward)
    assert failed(audit(subject, only=["M11"])).keys() == {"M11"}


class LateLeak(Part):
    """Leaks only from the last place to the one before it."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        if heads.shape[2] < SMALL.length:
            return concatenate(heads)
        leaked = heads.clone()
        leaked[:, :, -2] += 1e-5 * heads[:, :, -1]
        return concatenate(leaked)


def test_a_faint_leak_at_the_very_end_is_found(known: Know) -> None:
    subject = small_subject("lm", known(LateLeak))
    assert {"M3", "M4", "C1"} <= failed(audit(subject, only=["M3", "M4", "C1"])).keys()


class Single(Part):
    """Refuses float64."""

    def rotate(self, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
        if q.dtype == torch.float64:
            raise RuntimeError("not implemented for Double: float32 only")
        return q, k


def test_a_part_that_refuses_float64_is_audited_in_float32_with_a_wider_limit(known: Know) -> None:
    subject = small_subject("lm", known(Single))
    assert subject.network.out.weight.dtype == torch.float32
    assert 1e-5 < subject.tolerance < 1e-3
    assert failed(audit(subject, only=["M1", "M3", "M7", "E1", "C1", "M14"])) == {}


def test_the_audit_restores_the_global_random_generator() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    audit(small_subject("classify", "learned"), only=["M1", "S1", "R2"])
    assert torch.equal(torch.rand(1), expected)


def test_a_trained_network_is_audited_as_it_is() -> None:
    plan = small_plan("lm", "learned")
    weights = {name: weight.detach() for name, weight in plan.build().named_parameters()}
    subject = subject_of(plan, weights=weights)
    for name, weight in subject.network.named_parameters():
        assert torch.equal(weight, weights[name].double())


def test_perturbing_moves_every_weight() -> None:
    network = small_plan("classify", "learned").build()
    before = [weight.clone() for weight in network.parameters()]
    perturb_weights(network, 0)
    assert not any(torch.equal(old, new) for old, new in zip(before, network.parameters(), strict=True))


def test_rows_are_real_and_random_full_and_short_and_never_too_long() -> None:
    for length in (1, 2, 3, 12, 64, 1000):
        rows = sample_rows(word_ids(), VOCABULARY, length, 0)
        assert len(rows) == 16
        assert max(map(len, rows)) == min(length, 64)
        assert min(map(len, rows)) == 1
        assert all(int(row.min()) >= 0 and int(row.max()) < VOCABULARY for row in rows)


def test_short_texts_have_nothing_to_cut_or_shuffle() -> None:
    assert cut_points(1) == []
    assert cut_points(2) == [0]
    assert cut_points(12)[0] == 0
    assert cut_points(12)[-1] == 10
    assert all(sorted(order.tolist()) == list(range(7)) for order in orders(7, 0))


def test_padding_has_the_given_filler() -> None:
    ids, lengths = as_batch([torch.tensor([5, 6]), torch.tensor([7])], 4, 9)
    assert ids.tolist() == [[5, 6, 9, 9], [7, 9, 9, 9]]
    assert lengths.tolist() == [2, 1]


def test_nan_never_passes() -> None:
    assert at_most(math.nan, 1.0, "", "").passed is False
    assert more_than(math.nan, 1.0, "", "").passed is False
    assert at_most(1.0, 1.0, "good", "bad").meaning == "good"
    assert at_most(1.1, 1.0, "good", "bad").meaning == "bad"


def test_weights_that_are_not_finite_fail() -> None:
    subject = small_subject("lm", "learned")
    with torch.no_grad():
        subject.network.out.bias[3] = math.nan
    found = {finding.id: finding.verdict for finding in audit(subject, only=["M3", "M7", "M14g"])}
    assert found["M3"] == found["M7"] == found["M14g"] == FAIL


def test_a_decoder_and_an_encoder_get_the_checks_that_apply_to_them() -> None:
    def ids(subject: Subject) -> set[str]:
        return {finding.id for finding in audit(subject, only=UNTRAINED)}

    assert {"M3", "M4", "C1", "C1p", "C2", "V6"} == ids(small_subject("lm", "rope")) - ids(
        small_subject("classify", "rope")
    )
    assert "M9r" not in ids(small_subject("lm", "rope"))
    assert {"M9r"} <= ids(small_subject("lm", "window"))
    assert "M9" not in ids(small_subject("lm", "learned"))


def test_the_shape_may_be_a_single_head_of_a_single_token() -> None:
    shape = replace(SMALL, layers=1, heads=1, length=1)
    for task in ("classify", "lm"):
        findings = audit(subject_of(small_plan(task, "alibi", shape)))
        assert failed(findings) == {}
        assert any(finding.verdict == PASS for finding in findings)


def test_the_page_about_the_leak_audit_names_every_check() -> None:
    page = (Path(__file__).parents[2] / "docs" / "leak-audit.md").read_text()
    for check in CHECKS:
        assert f"| {check.id} | {check.name} | {check.level} |" in page


def test_a_fresh_process_builds_what_a_plugin_file_brings(tmp_path: Path, plugins_leave: Callable[[], None]) -> None:
    (tmp_path / "mods.py").write_text(
        "from fairtrial.model.part import Part, parts\n\n"
        "@parts.add('halved')\nclass Halved(Part):\n    def embed(self, x, positions):\n        return x / 2\n\n"
        "@parts.add('doubled')\nclass Doubled(Part):\n    def embed(self, x, positions):\n        return 2 * x\n"
    )
    load_file(tmp_path / "mods.py")
    plans = [small_plan("lm", name) for name in ("halved", "doubled")]
    written = plugin_files(plans, tmp_path)
    plugins_leave()
    states = train_as_requested([asdict(plan) for plan in plans], 0, written)
    assert not [state for state in states if state.startswith(RAISED)]
    assert len(set(states)) == 2
