"""The maps of samples against t3toolbox: the same arrays, one process, calls by turns.

Run as ``python -m benchmarks.transpose`` (extra ``bench``). The operations are J^T, summed and kept, J, and
Gauss-Newton products, of probes, applies and entries; and the two assemblies alone. t3toolbox is taken at the better of
its two layouts and, where it has one, at the best of several chunk sizes; t3k at ``chunk_size="auto"``. ``vjp`` is what
a user would write instead of J^T: ``jax.vjp`` of the peer's forward map. ``limit`` is the model's FLOPs as plain matrix
products of the same shapes, timed in the same rounds. Prints Markdown tables; ``--json PATH`` writes the figures too.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax

from benchmarks.problems import GRID, Point, arrays, chunk, layouts, limit
from benchmarks.rounds import Timing, geometric_mean, interleave
from t3k.kernels import assembly
from t3k.kernels.jets import binomial_combine_tensor
from t3k.kernels.probe_maps import Probes, gauss_newton_product, probe_jacobian, probe_transpose
from t3k.kernels.sample_maps import Samples, sample_gauss_newton, sample_jacobian, sample_transpose

PEER_CHUNKS = (None, 32, 100)
#: More than this in one result is not asked of a machine with little memory.
KEPT_BYTES = 2**30
Programs = dict[str, Callable[[], Any]]


def _bound(fun: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    compiled = jax.jit(fun)
    return lambda: compiled(*args)


def _probe_transpose(point: Point, *, kept: bool) -> Programs:
    import t3toolbox.backend.sampling_derivatives as peer

    x, order, size = arrays(point), point.order, chunk(point)
    programs = {
        "t3k": _bound(
            lambda *a: probe_transpose(*a, order, sum_over_probes=not kept, chunk_size=size), x.zz, x.ww, x.pp, x.frame
        )
    }
    for layout, args in layouts(x.zz, x.ww, x.pp, tuple(x.frame)).items():
        for peer_size in PEER_CHUNKS if layout == "padded" and not kept else (None,):
            programs[f"peer {layout} {peer_size}"] = _bound(
                lambda z, w, p, f, s=peer_size: peer.tv_probe_derivatives_transpose(z, w, p, f, order, not kept, s),
                *args,
            )
    if not kept:
        programs["vjp"] = _vjp(peer.tv_probe_derivatives, tuple(x.zz), x, order)
        programs["limit"] = limit(point)
    return programs


def _vjp(forward: Callable[..., Any], residuals: Any, x: Any, order: int) -> Callable[[], Any]:
    """What a user would write without a transpose: reverse mode through the peer's forward map, padded."""
    ((r, w, p, v, f),) = [layouts(residuals, x.ww, x.pp, tuple(x.variations), tuple(x.frame))["padded"]]

    def back(r: Any, w: Any, p: Any, v: Any, f: Any) -> Any:
        z, pull = jax.vjp(lambda v: forward(w, p, v, f, order), v)
        return pull(jax.tree.map(lambda a, b: a.astype(b.dtype).reshape(b.shape), r, z))

    return _bound(back, r, w, p, v, f)


def _probe_jacobian(point: Point) -> Programs:
    import t3toolbox.backend.sampling_derivatives as peer

    x, order, size = arrays(point), point.order, chunk(point, operation="jacobian")
    programs = {"t3k": _bound(lambda *a: probe_jacobian(*a, order, chunk_size=size), x.ww, x.pp, x.variations, x.frame)}
    for layout, args in layouts(x.ww, x.pp, tuple(x.variations), tuple(x.frame)).items():
        programs[f"peer {layout}"] = _bound(lambda *a: peer.tv_probe_derivatives(*a, order), *args)
    return programs


def _probe_gauss_newton(point: Point) -> Programs:
    import t3toolbox.backend.sampling_derivatives as peer

    x, order, size = arrays(point), point.order, chunk(point, operation="gauss_newton")

    def product(w: Any, p: Any, v: Any, f: Any) -> Any:
        return gauss_newton_product(Probes(w, p), v, f, order, chunk_size=size)

    def theirs(w: Any, p: Any, v: Any, f: Any) -> Any:
        z = peer.tv_probe_derivatives(w, p, v, f, order)
        return peer.tv_probe_derivatives_transpose(z, w, p, f, order, True, None)

    programs = {"t3k": _bound(product, x.ww, x.pp, x.variations, x.frame)}
    for layout, args in layouts(x.ww, x.pp, tuple(x.variations), tuple(x.frame)).items():
        programs[f"peer {layout}"] = _bound(theirs, *args)
    return programs


def _samples(point: Point, kind: str, operation: str) -> Programs:
    import t3toolbox.backend.sampling_derivatives as peer

    x, order, size = arrays(point), point.order, chunk(point, kind, operation)
    at = x.ww if kind == "apply" else x.index
    forward, back = (getattr(peer, f"tv_{kind}_derivatives{suffix}") for suffix in ("", "_transpose"))
    ours: dict[str, Callable[..., Any]] = {
        "transpose": lambda r, w, p, v, f: sample_transpose(r, w, p, f, order, sum_over_probes=True, chunk_size=size),
        "jacobian": lambda r, w, p, v, f: sample_jacobian(w, p, v, f, order, chunk_size=size),
        "gauss_newton": lambda r, w, p, v, f: sample_gauss_newton(Samples(w, p), v, f, order, chunk_size=size),
    }
    theirs: dict[str, Callable[..., Any]] = {
        "transpose": lambda r, w, p, v, f: back(r, w, p, f, order, True),
        "jacobian": lambda r, w, p, v, f: forward(w, p, v, f, order),
        "gauss_newton": lambda r, w, p, v, f: back(forward(w, p, v, f, order), w, p, f, order, True),
    }
    given = tuple(at) if kind == "entries" else at
    programs = {"t3k": _bound(ours[operation], x.residual, given, x.pp, x.variations, x.frame)}
    for layout, (p, v, f) in layouts(x.pp, tuple(x.variations), tuple(x.frame)).items():
        w = at if kind == "entries" else layouts(at)[layout][0]
        programs[f"peer {layout}"] = _bound(theirs[operation], x.residual, w, p, v, f)
    return programs


def _assemblies(point: Point) -> Programs:
    """Both assemblies from jets that are there already, of the public layout."""
    import t3toolbox.backend.sampling_derivatives as peer

    x, order = arrays(point), point.order
    trs = binomial_combine_tensor(order)
    U, O, L, R = tuple(x.frame)

    def jets(w: Any, p: Any, z: Any) -> Any:
        xi = peer.build_input_jets(*(tuple(v @ u.T for u, v in zip(U, vs, strict=True)) for vs in (w, p)))
        mu, nu = peer.compute_mu_jets(L, xi, trs), peer.compute_nu_jets(R, xi, trs)
        eta, deta = peer.compute_eta_jets(O, mu, nu, trs), peer.compute_deta_tilde_jets(U, z)
        tau = peer.compute_tau_tilde_jets(L, xi, deta, mu, trs)
        sigma = peer.compute_sigma_tilde_jets(R, xi, deta, nu, trs)
        return (sigma, tau, deta, xi, mu, nu), eta, peer.compute_dxi_tilde_jets(O, mu, nu, sigma, tau, trs)

    known, eta, dxi = jax.block_until_ready(jax.jit(jets)(x.ww, x.pp, x.zz))

    def run(library: Any) -> Callable[..., Any]:
        def both(known: Any, z: Any, dxi: Any, w: Any, p: Any, eta: Any) -> Any:
            tt = library.assemble_tt_variation_jets(*known, trs, 1, True)
            return tt, library.assemble_tucker_variation_jets(z, dxi, w, p, eta, 1, True)

        return both

    args = known, x.zz, dxi, x.ww, x.pp, eta
    return {"t3k": _bound(run(assembly), *args), "peer ragged": _bound(run(peer), *args)}


OPERATIONS: dict[str, Callable[[Point], Programs]] = {
    "transpose": lambda point: _probe_transpose(point, kept=False),
    "transpose_kept": lambda point: _probe_transpose(point, kept=True),
    "jacobian": _probe_jacobian,
    "gauss_newton": _probe_gauss_newton,
    "assemblies": _assemblies,
    **{
        f"{kind}_{operation}": partial(_samples, kind=kind, operation=operation)
        for kind in ("apply", "entries")
        for operation in ("transpose", "jacobian", "gauss_newton")
    },
}


def _fits(point: Point, operation: str) -> bool:
    """Whether the result of an operation is of a size that a small machine has memory for, several times."""
    tt = sum(point.bonds[i] * point.n * point.bonds[i + 1] for i in range(point.d))
    return operation != "transpose_kept" or 4 * point.n_probes * (tt + point.d * point.n * point.size) <= KEPT_BYTES


def _row(point: Point, operation: str, rounds: int) -> dict[str, Any]:
    timings = interleave(OPERATIONS[operation](point), rounds)
    peers = [timing for name, timing in timings.items() if name.startswith("peer")]
    best = Timing(min(t.fastest for t in peers), min(t.median for t in peers))
    ours, bound, vjp = timings["t3k"], timings.get("limit"), timings.get("vjp")
    return {
        "point": tuple(point),
        "operation": operation,
        "t3k_ms": 1e3 * ours.fastest,
        "peer_ms": 1e3 * best.fastest,
        "ratio_fastest": best.fastest / ours.fastest,
        "ratio_median": best.median / ours.median,
        "ratio_vjp": None if vjp is None else vjp.fastest / ours.fastest,
        "of_limit": None if bound is None else bound.fastest / ours.fastest,
        "all_ms": {name: 1e3 * timing.fastest for name, timing in timings.items()},
    }


def run(operations: list[str], points: list[int], rounds: int, json_path: Path | None = None) -> list[dict[str, Any]]:
    """Times the operations over points of the grid and prints a table as it goes."""
    rows: list[dict[str, Any]] = []
    for operation in operations:
        print(f"\n{operation}: (modes, order, probes, r, n, N), float32, {rounds} rounds\n")
        print("| problem | t3k, ms | t3toolbox, ms | ratio of fastest | ratio of medians | vjp | share of the limit |")
        print("|---|---|---|---|---|---|---|")
        for index in points:
            if not _fits(GRID[index], operation):
                continue
            row = _row(GRID[index], operation, rounds)
            share = "" if row["of_limit"] is None else f"{row['of_limit']:.0%}"
            vjp = "" if row["ratio_vjp"] is None else f"{row['ratio_vjp']:.1f}"
            print(
                f"| {row['point']} | {row['t3k_ms']:.1f} | {row['peer_ms']:.1f} | {row['ratio_fastest']:.1f} "
                f"| {row['ratio_median']:.1f} | {vjp} | {share} |",
                flush=True,
            )
            rows.append(row)
            if json_path:
                json_path.write_text(json.dumps(rows, indent=1) + "\n")
            jax.clear_caches()
        mean = geometric_mean([row["ratio_fastest"] for row in rows if row["operation"] == operation])
        print(f"\nGeometric mean of the ratios of the fastest: {mean:.2f}")
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--operations", nargs="+", default=list(OPERATIONS), choices=list(OPERATIONS))
    parser.add_argument("--points", type=int, nargs="+", default=list(range(len(GRID))), help="rows of the grid")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="where to write the figures, as they come")
    args = parser.parse_args()
    run(args.operations, args.points, args.rounds, args.json)


if __name__ == "__main__":
    main()
