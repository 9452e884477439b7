"""Tucker tensor trains and memory-bounded derivatives in JAX."""

from t3k.api.black_box import from_function
from t3k.api.chunk_size import estimate_chunk_size, max_chunk_size_within, memory_report
from t3k.api.frame import T3Frame, T3Variations
from t3k.api.geometry import COREWISE, MANIFOLD
from t3k.api.joining import concatenate, round_sum
from t3k.api.kinds import probe_derivatives_kind, probe_kind
from t3k.api.newton import newton_cg
from t3k.api.probing import tv_probe_derivatives, tv_probe_derivatives_transpose
from t3k.api.shared_geometry import SharedManifold
from t3k.api.t3 import TuckerTensorTrain
from t3k.api.tangent import T3Tangent
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

__all__ = [
    "COREWISE",
    "ChunkReport",
    "MANIFOLD",
    "SharedManifold",
    "T3Frame",
    "T3Tangent",
    "T3Variations",
    "TuckerTensorTrain",
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
    "concatenate",
    "estimate_chunk_size",
    "from_function",
    "max_chunk_size_within",
    "memory_report",
    "newton_cg",
    "probe_derivatives_kind",
    "probe_kind",
    "round_sum",
    "tv_probe_derivatives",
    "tv_probe_derivatives_transpose",
]
