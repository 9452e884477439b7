"""Sphinx's configuration; the reference pages are written here, from the docstrings of whatever is public."""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

from sphinx.pycode import ModuleAnalyzer

import t3k
import t3k.api
import t3k.kernels

project = "t3k"
author = "the t3k developers"
copyright = author
version = release = "0.1.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "t3k"
html_static_path = ["_static"]
html_css_files = ["t3k.css"]
html_copy_source = False
html_show_copyright = False

# A name in single backquotes links to its entry wherever there is one.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False
myst_heading_anchors = 3
suppress_warnings = ["myst.strikethrough"]

#: The page that each package's reference goes to, and the names that users reach without a module.
REFERENCES = {"reference/api": t3k.api, "reference/kernels": t3k.kernels}


def modules_of(package: ModuleType) -> list[ModuleType]:
    """The package's modules that export names, by their own names."""
    names = sorted(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    modules = (importlib.import_module(name) for name in names)
    return [module for module in modules if getattr(module, "__all__", ())]


def public_path(module: ModuleType, name: str) -> str:
    """The shortest name under which a user finds a thing: `t3k.x`, `t3k.kernels.x`, or where it is defined."""
    for package in (t3k, t3k.kernels):
        if name in getattr(package, "__all__", ()) and getattr(package, name) is getattr(module, name):
            return f"{package.__name__}.{name}"
    return f"{module.__name__}.{name}"


def entry(module: ModuleType, name: str) -> list[str]:
    """The directive that documents one name; a constant has its ``#:`` comment, where it is defined."""
    value = getattr(module, name)
    if inspect.isclass(value):
        return [f".. autoclass:: {public_path(module, name)}", "   :members:", ""]
    if inspect.isroutine(value) or hasattr(value, "__wrapped__"):
        return [f".. autofunction:: {public_path(module, name)}", ""]
    comment = ModuleAnalyzer.for_module(module.__name__).find_attr_docs().get(("", name), [])
    return [f".. py:data:: {module.__name__}.{name}", "", *(f"   {line}" for line in comment), ""]


def summary(module: ModuleType) -> str:
    """The first line of a module's docstring."""
    return inspect.getdoc(module).partition("\n")[0]


def section(module: ModuleType) -> list[str]:
    """The reference of one module: its docstring, then its exports in order."""
    title = module.__name__
    lines = [title, "-" * len(title), "", f".. automodule:: {module.__name__}", "   :no-members:"]
    if module.__name__ in {public_path(module, name) for name in module.__all__}:
        lines += ["   :no-index:"]  # the function of this name has the entry
    lines += [""]
    for name in module.__all__:
        lines += entry(module, name)
    return lines


def write_reference(_app: Any, docname: str, source: list[str]) -> None:
    """Adds a package's sections to its page as Sphinx reads it."""
    if docname in REFERENCES:
        modules = modules_of(REFERENCES[docname])
        lines = ["", *(f"- `{module.__name__}`: {summary(module)}" for module in modules), ""]
        lines += [line for module in modules for line in section(module)]
        source[0] += "\n".join(lines)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", write_reference)
