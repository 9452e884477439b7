"""The documentation's reference has every public name. `make docs` builds it, and takes a warning for an error."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import t3k
import t3k.kernels

CONFIGURATION = Path(__file__).parent.parent / "docs" / "conf.py"


def configuration() -> ModuleType:
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("docs_conf", CONFIGURATION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documented() -> list[str]:
    """The names that have an entry in the pages, which are written as Sphinx reads them."""
    module, lines = configuration(), [""]
    for page in module.REFERENCES:
        module.write_reference(None, page, lines)
    return re.findall(r"^\.\. (?:autofunction|autoclass|automodule|py:data):: ([\w.]+)$", lines[0], re.MULTILINE)


@pytest.mark.parametrize("package", [t3k, t3k.kernels], ids=["t3k", "t3k.kernels"])
def test_the_reference_has_every_public_name(package):
    # A constant is listed where it is defined, a function or class under the shortest name that it is imported by.
    assert set(package.__all__) - {name.rpartition(".")[2] for name in documented()} == set()
