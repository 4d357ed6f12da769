"""Shared by all tests: how many random cases, and where the development data are."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code. By default one commit is judged by the same cases everywhere;
# HYPOTHESIS_PROFILE=fresh draws new ones, nightly a hundred times as many.
settings.register_profile("fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("default", parent=settings.get_profile("fresh"), derandomize=True)
settings.register_profile("nightly", parent=settings.get_profile("fresh"), max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data sets kept beside the repository, not in it; tests that need them skip without."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no development data beside the repository")
    return folder


@pytest.fixture
def hearing_ctrl_c() -> Iterator[None]:
    """Under nohup, cron and some CI systems Ctrl-C is ignored, and tests inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
