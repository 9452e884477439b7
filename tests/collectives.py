"""What a compiled program says of the traffic between devices."""

import re
from typing import Any

GATHERING = ("all-gather", "all-to-all", "collective-permute", "reduce-scatter")


def count(text: str, operation: str) -> int:
    """How often an operation stands in the text of a program, begun asynchronously or not."""
    return len(re.findall(rf" {operation}(?:-start)?\(", text))


def bodies_of_loops(text: str) -> str:
    """The text of all that runs inside while loops."""
    computations = {part.split(" ", 1)[0].strip("%"): part for part in re.split(r"\n(?=%)", text)}
    waiting = re.findall(r"body=%([\w.\-]+)", text)
    seen: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in computations and name not in seen:
            seen[name] = computations[name]
            waiting += re.findall(r"(?:body|condition|to_apply|calls)=%([\w.\-]+)", seen[name])
    return "\n".join(seen.values())


def scratch(compiled: Any) -> int:
    """Bytes that one device needs besides inputs and outputs."""
    return compiled.memory_analysis().temp_size_in_bytes
