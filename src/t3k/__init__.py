"""Tucker tensor trains and memory-bounded derivatives in JAX."""

from t3k.api.adam import adam
from t3k.api.ambient import ambient_transpose
from t3k.api.black_box import from_function
from t3k.api.chunk_size import estimate_chunk_size, max_chunk_size_within, memory_report
from t3k.api.diagnosis import diagnose
from t3k.api.error_table import relative_errors
from t3k.api.fit_plots import plot_errors, plot_history
from t3k.api.frame import T3Frame, T3Variations
from t3k.api.geometry import COREWISE, MANIFOLD
from t3k.api.gradient_descent import gradient_descent
from t3k.api.joining import concatenate, round_sum
from t3k.api.kind import Kind
from t3k.api.many_fits import fit_many
from t3k.api.mc_sgd import mc_sgd
from t3k.api.newton import newton_cg
from t3k.api.probe_kinds import probe_derivatives_kind, probe_kind
from t3k.api.probing import tv_probe_derivatives, tv_probe_derivatives_transpose
from t3k.api.pymanopt_problem import pymanopt_problem
from t3k.api.rank_continuation import fit
from t3k.api.sample_kinds import (
    apply_derivatives_kind,
    apply_kind,
    entries_derivatives_kind,
    entries_kind,
)
from t3k.api.sampling import (
    tv_apply_derivatives,
    tv_apply_derivatives_transpose,
    tv_entries_derivatives,
    tv_entries_derivatives_transpose,
)
from t3k.api.sharding import shard_probes
from t3k.api.shared_geometry import SharedManifold
from t3k.api.t3 import TuckerTensorTrain
from t3k.api.tangent import T3Tangent
from t3k.api.uncertainty import ErrorBars, error_bars
from t3k.kernels.auto_chunk import auto_chunk_size
from t3k.kernels.chunk_map import chunk_map
from t3k.kernels.jacobian import chunked_jacfwd, chunked_jacobian, chunked_jacrev, chunked_value_and_jacobian
from t3k.kernels.jacobian_consumers import (
    chunked_column_norms,
    chunked_diagonal,
    chunked_jtj,
    chunked_jtr,
    chunked_row_norms,
)
from t3k.kernels.jacobian_report import ChunkReport, chunk_report
from t3k.kernels.regularizers import Regularizer, Tikhonov

__all__ = [
    "COREWISE",
    "ChunkReport",
    "ErrorBars",
    "Kind",
    "MANIFOLD",
    "Regularizer",
    "SharedManifold",
    "T3Frame",
    "T3Tangent",
    "T3Variations",
    "Tikhonov",
    "TuckerTensorTrain",
    "adam",
    "ambient_transpose",
    "apply_derivatives_kind",
    "apply_kind",
    "auto_chunk_size",
    "chunk_map",
    "chunk_report",
    "chunked_column_norms",
    "chunked_diagonal",
    "chunked_jacfwd",
    "chunked_jacobian",
    "chunked_jacrev",
    "chunked_jtj",
    "chunked_jtr",
    "chunked_row_norms",
    "chunked_value_and_jacobian",
    "entries_derivatives_kind",
    "entries_kind",
    "diagnose",
    "error_bars",
    "estimate_chunk_size",
    "fit",
    "fit_many",
    "gradient_descent",
    "concatenate",
    "from_function",
    "max_chunk_size_within",
    "mc_sgd",
    "memory_report",
    "newton_cg",
    "plot_errors",
    "plot_history",
    "probe_derivatives_kind",
    "probe_kind",
    "pymanopt_problem",
    "relative_errors",
    "shard_probes",
    "tv_apply_derivatives",
    "tv_apply_derivatives_transpose",
    "tv_entries_derivatives",
    "tv_entries_derivatives_transpose",
    "round_sum",
    "tv_probe_derivatives",
    "tv_probe_derivatives_transpose",
]
