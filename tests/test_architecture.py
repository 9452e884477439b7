"""The architecture, as laws about the text of the source. Each test lists the places that break its law."""

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import t3k

PACKAGE = Path(t3k.__file__).parent
KERNELS = PACKAGE / "kernels"
SOURCES = sorted(PACKAGE.rglob("*.py"))
KERNEL_SOURCES = sorted(KERNELS.rglob("*.py"))
MAX_LINES = 350


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(PACKAGE.parent)}:{getattr(node, 'lineno', 1)}"


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yields where each import of a file is, at any depth, and the full name of what it imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((place(path, node), alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import at {place(path, node)}"
            yield from ((place(path, node), f"{node.module}.{alias.name}") for alias in node.names)


def is_within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def exports(tree: ast.Module) -> list[str] | None:
    """The names in the `__all__` of a module, or None if it has none."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    return None


def undocumented(path: Path) -> Iterator[str]:
    """Yields the exported functions and classes of a file that have no docstring; the linter asks it of methods."""
    tree = ast.parse(path.read_text())
    public = exports(tree) or []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in public and not ast.get_docstring(node):
            yield f"{place(path, node)} {node.name}"


def test_kernels_import_only_jax_numpy_the_standard_library_and_each_other():
    allowed = {"jax", "numpy", *sys.stdlib_module_names}
    assert [
        f"{where} imports {name}"
        for path in KERNEL_SOURCES
        for where, name in imports(path)
        if name.split(".")[0] not in allowed
        and not is_within(name, "t3k.kernels")
        and not (path == KERNELS / "checks.py" and is_within(name, "chex"))
    ] == []


def test_kernels_never_import_api():
    assert [where for path in KERNEL_SOURCES for where, name in imports(path) if is_within(name, "t3k.api")] == []


def test_chex_is_imported_in_checks_only():
    files = {path.relative_to(PACKAGE) for path in SOURCES for _, name in imports(path) if is_within(name, "chex")}
    assert files == {Path("kernels/checks.py")}


def test_no_star_imports():
    assert [where for path in SOURCES for where, name in imports(path) if name.endswith(".*")] == []


def test_no_file_is_too_long_to_read():
    lengths = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_every_kernels_module_says_what_it_exports():
    trees = {path: ast.parse(path.read_text()) for path in KERNEL_SOURCES}
    assert [str(path.relative_to(PACKAGE)) for path, tree in trees.items() if tree.body and exports(tree) is None] == []


def test_every_exported_name_exists():
    missing = []
    for path in SOURCES:
        module = importlib.import_module(name_of(path))
        missing += [f"{module.__name__}.{name}" for name in getattr(module, "__all__", []) if not hasattr(module, name)]
    assert missing == []


def test_every_exported_name_has_a_docstring():
    assert [name for path in SOURCES for name in undocumented(path)] == []


IMPORT_QUIETLY = """
import warnings
import jax
from jax._src import xla_bridge
before = dict(jax.config.values)
warnings.simplefilter("error")
import t3k, t3k.api, t3k.kernels
after = dict(jax.config.values)
assert after == before, {name: (before.get(name), after[name]) for name in after if after[name] != before.get(name)}
assert not xla_bridge.backends_are_initialized(), "importing t3k started JAX's backend"
"""


def test_importing_t3k_changes_no_configuration_prints_nothing_and_starts_no_backend():
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_QUIETLY], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
