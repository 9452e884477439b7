"""What every test, doctest and code block of the documentation runs under."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent
DEVICES = "--xla_force_host_platform_device_count"

# Read by JAX when it is imported and when its backend starts, and inherited by tests that start another process.
# Eight virtual devices cost nothing measurable; the cache makes a repeated run of the tests about three times faster
# (memory_analysis of a cached program is that of the compiled one). JAX_ENABLE_COMPILATION_CACHE=false turns it off.
# Compiling is most of the time here, so it is done quickly, to slower code; XLA ends a process whose flags it does not
# know, so another one tries them first. The buffers, and so the memory that tests look at, stay the same.
QUICK = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"


def _known(flags: str) -> bool:
    start = [sys.executable, "-c", "import jax; jax.devices()"]
    return subprocess.run(start, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True).returncode == 0


if DEVICES not in os.environ.get("XLA_FLAGS", ""):
    given = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{given} {DEVICES}=8 {QUICK if _known(f'{given} {QUICK}') else ''}".strip()
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / "build" / "jax-cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

import hypothesis  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402
from sybil import Sybil  # noqa: E402
from sybil.parsers.markdown import PythonCodeBlockParser  # noqa: E402

# Tracing makes very many small objects that live long; looking through them for cycles takes a twentieth of the time.
gc.set_threshold(200_000, 50, 100)

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


#: Linux lets a process have 65530 memory maps, and each compiled program takes several.
MANY_MAPS = 25_000


@pytest.fixture(autouse=True, scope="module")
def _few_programs_at_once() -> Iterator[None]:
    """Forgets compiled programs before there are so many that the process would be killed; the disk has them still."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_text().count("\n") > MANY_MAPS:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def _peers_promote_freely(request: pytest.FixtureRequest) -> Iterator[None]:
    """Peers rely on JAX's default promotion; t3k's own tests hold the strict one."""
    if request.node.get_closest_marker("peers") is None:
        yield
    else:
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            yield
