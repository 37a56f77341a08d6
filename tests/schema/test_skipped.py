"""A report is complete only if nothing was skipped, and says which paths a checkout has to leave alone."""

from __future__ import annotations

import pytest

from freehold.schema.skipped import HELD, Reason, Report, Skipped


def test_a_report_without_skipped_paths_is_complete_whatever_was_ignored() -> None:
    report = Report(ignored=[("build",)])

    assert report.complete
    assert report.left_out() == {("build",)}


@pytest.mark.parametrize("reason", Reason)
def test_any_skipped_path_makes_a_report_incomplete_and_only_one_that_is_not_held_is_left_out(reason: Reason) -> None:
    report = Report([Skipped(("a", "b"), reason)])

    assert not report.complete
    assert report.skipped[0].held == (reason in HELD)
    assert report.left_out() == (set() if reason in HELD else {("a", "b")})


def test_a_path_that_is_not_text_can_be_shown() -> None:
    skipped = Skipped(("ä", b"\xff!".decode("utf-8", "surrogateescape")), Reason.NOT_UTF8)

    assert skipped.path == "ä/\\xff!"
