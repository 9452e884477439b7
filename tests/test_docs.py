"""The documentation: it builds without a warning, and its reference has every public name."""

import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import t3k
import t3k.kernels

DOCS = Path(__file__).parent.parent / "docs"


def documented_names(inventory: Path) -> set[str]:
    """The Python names that have an entry, from Sphinx's inventory: four header lines, then compressed records."""
    records = zlib.decompress(inventory.read_bytes().split(b"\n", 4)[4]).decode()
    return {record.split(" ")[0] for record in records.splitlines() if " py:" in record}


def final_names(names: set[str]) -> set[str]:
    return {name.rpartition(".")[2] for name in names}


@pytest.mark.slow
def test_docs_build_without_warnings_and_the_reference_has_every_public_name(tmp_path):
    pytest.importorskip("sphinx")
    site = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    done = subprocess.run(
        [*command, "-d", tmp_path / "doctrees", DOCS, site], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    documented = documented_names(site / "objects.inv")
    # A constant is listed where it is defined, a function or class under the shortest name that it is imported by.
    assert set(getattr(t3k, "__all__", ())) - final_names(documented) == set()
    assert set(getattr(t3k.kernels, "__all__", ())) - final_names(documented) == set()
