"""Pure functions on pytrees and static integers, for use in your own `jit`, `grad`, `vmap` and `shard_map`.

Every kernel sees one tensor train, one tangent and one probe axis; the letters of the shapes are those of
`t3k.kernels.types`.
"""

from t3k.kernels import adam, gradient_descent, mc_sgd, newton
from t3k.kernels.assembly import assemble_tt_variation_jets, assemble_tucker_variation_jets
from t3k.kernels.chunk_map import chunk_map
from t3k.kernels.chunking import chunk_reduce
from t3k.kernels.core_derivatives import t3_probes, t3_samples
from t3k.kernels.edge_adjoints import (
    compute_deta_tilde_jets,
    compute_dxi_tilde_jets,
    compute_sigma_tilde_jets,
    compute_tau_tilde_jets,
)
from t3k.kernels.edge_jets import (
    assemble_tangent_z_jets,
    assemble_z_jets,
    build_input_jets,
    compute_deta_jets,
    compute_eta_jets,
    compute_mu_jets,
    compute_nu_jets,
    compute_sigma_jets,
    compute_tau_jets,
)
from t3k.kernels.frames import corewise_frame, orthogonal_frame
from t3k.kernels.gauge import oblique_gauge, orthogonal_gauge
from t3k.kernels.jets import binomial_combine_tensor
from t3k.kernels.linear_map import linear_map
from t3k.kernels.modes import contract_modes, select_modes
from t3k.kernels.objective import Objective
from t3k.kernels.permutation import permute
from t3k.kernels.probe_maps import (
    Probes,
    gauss_newton_product,
    misfit,
    point_probes,
    probe_jacobian,
    probe_transpose,
)
from t3k.kernels.products import distance, hadamard, inner, norm
from t3k.kernels.random_points import random_point
from t3k.kernels.reducers import add, compensated_add, concat
from t3k.kernels.retraction import retract, retract_corewise
from t3k.kernels.sample_maps import (
    Samples,
    point_samples,
    sample_gauss_newton,
    sample_jacobian,
    sample_misfit,
    sample_transpose,
)
from t3k.kernels.sharded import over_shards
from t3k.kernels.shared_modes import round_shared, shared_frame
from t3k.kernels.sketched_rounding import hadamard_rounded, round_products
from t3k.kernels.spectra import singular_values
from t3k.kernels.stored_arrays import StoredArray, reading
from t3k.kernels.tangents import project_dense, project_t3, transport
from t3k.kernels.truncation import truncate
from t3k.kernels.types import Frame, T3Cores, Variations

__all__ = [
    "Frame",
    "Objective",
    "Probes",
    "Samples",
    "StoredArray",
    "T3Cores",
    "Variations",
    "adam",
    "add",
    "assemble_tangent_z_jets",
    "assemble_tt_variation_jets",
    "assemble_tucker_variation_jets",
    "assemble_z_jets",
    "binomial_combine_tensor",
    "build_input_jets",
    "chunk_map",
    "chunk_reduce",
    "compensated_add",
    "compute_deta_jets",
    "compute_deta_tilde_jets",
    "compute_dxi_tilde_jets",
    "compute_eta_jets",
    "compute_mu_jets",
    "compute_nu_jets",
    "compute_sigma_jets",
    "compute_sigma_tilde_jets",
    "compute_tau_jets",
    "compute_tau_tilde_jets",
    "concat",
    "contract_modes",
    "corewise_frame",
    "gauss_newton_product",
    "gradient_descent",
    "mc_sgd",
    "linear_map",
    "misfit",
    "newton",
    "oblique_gauge",
    "orthogonal_frame",
    "orthogonal_gauge",
    "over_shards",
    "distance",
    "gauss_newton_product",
    "hadamard",
    "hadamard_rounded",
    "inner",
    "linear_map",
    "misfit",
    "norm",
    "oblique_gauge",
    "orthogonal_frame",
    "orthogonal_gauge",
    "permute",
    "point_probes",
    "point_samples",
    "probe_jacobian",
    "probe_transpose",
    "reading",
    "retract",
    "retract_corewise",
    "sample_gauss_newton",
    "sample_jacobian",
    "sample_misfit",
    "sample_transpose",
    "project_dense",
    "project_t3",
    "random_point",
    "retract",
    "retract_corewise",
    "round_products",
    "round_shared",
    "select_modes",
    "shared_frame",
    "singular_values",
    "transport",
    "t3_probes",
    "t3_samples",
    "truncate",
]
