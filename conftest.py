"""What every test, doctest and code block of the documentation runs under."""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent
DEVICES = "--xla_force_host_platform_device_count"

# Read by JAX when it is imported and when its backend starts, and inherited by tests that start another process.
# Eight virtual devices cost nothing measurable; the cache makes a repeated run of the tests about three times faster
# (memory_analysis of a cached program is that of the compiled one). JAX_ENABLE_COMPILATION_CACHE=false turns it off.
if DEVICES not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {DEVICES}=8".strip()
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / "build" / "jax-cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

import hypothesis  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402
from sybil import Sybil  # noqa: E402
from sybil.parsers.markdown import PythonCodeBlockParser  # noqa: E402

import t3k  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Each new shape is a compilation, so there are few examples, the same in every run; for a search at length:
# make test ARGS="property_tests --hypothesis-profile=thorough".
hypothesis.settings.register_profile("t3k", derandomize=True, deadline=None, max_examples=20)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500)
hypothesis.settings.load_profile("t3k")

# Sphinx's configuration, not a module with doctests.
collect_ignore = ["docs/conf.py"]

# Every ```python block of the README and of docs/ is a test; the blocks of a page share their names.
pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).pytest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets the pages wait for the surface they show; remove this once `t3k.newton_cg` is there."""
    if not hasattr(t3k, "newton_cg"):
        for item in items:
            if item.path.suffix == ".md":
                item.add_marker(pytest.mark.skip(reason="t3k.newton_cg is not written yet"))


@pytest.fixture(autouse=True)
def _peers_promote_freely(request: pytest.FixtureRequest) -> Iterator[None]:
    """Peers rely on JAX's default promotion; t3k's own tests hold the strict one."""
    if request.node.get_closest_marker("peers") is None:
        yield
    else:
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            yield
