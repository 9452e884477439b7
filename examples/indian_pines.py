"""The hyperspectral cube of the demo, and an instrument that only ever contracts it with vectors.

Indian Pines is an image of 145 x 145 pixels in 200 spectral bands, taken by the AVIRIS sensor over farmland in
Indiana (M. F. Baumgardner et al., Purdue University, 1992). The package tensorly carries it, so nothing is downloaded.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def load_cube() -> jax.Array:
    """The cube ``(145, 145, 200)`` in float32, scaled to a largest value of 1."""
    try:
        import tensorly
    except ImportError:
        raise ImportError('The cube comes with the package tensorly: pip install "t3k[demo]"') from None
    path = Path(tensorly.__file__).parent / "datasets" / "data" / "Indian_pines_corrected.npy"
    cube = np.load(path).astype(np.float32)
    return jnp.asarray(cube / cube.max())


def random_probes(key: Any, shape: tuple[int, ...], n_probes: int) -> tuple[jax.Array, ...]:
    """Random unit vectors ``(n_probes, N_i)``, one array per mode."""
    keys = jax.random.split(key, len(shape))
    draws = [jax.random.normal(k, (n_probes, size)) for k, size in zip(keys, shape, strict=True)]
    return tuple(x / jnp.linalg.norm(x, axis=1, keepdims=True) for x in draws)


def _probe(cube: jax.Array, vectors: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
    """One probe: the cube contracted with a vector in every mode but one, for each mode in turn."""
    row, column, band = vectors
    image = cube @ band
    return image @ column, row @ image, jnp.einsum("i,ijk,j->k", row, cube, column)


@jax.jit
def measure(cube: jax.Array, ww: tuple[jax.Array, ...], pp: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """Probes of the cube and their first derivatives along ``pp``: one array ``(2, n_probes, N_i)`` per mode."""

    def one(probe: Any) -> tuple[jax.Array, ...]:
        vectors, directions = probe
        values, slopes = jax.jvp(lambda v: _probe(cube, v), (vectors,), (directions,))
        return jax.tree.map(lambda z, dz: jnp.stack([z, dz]), values, slopes)

    return jax.tree.map(lambda z: z.swapaxes(0, 1), jax.lax.map(one, (ww, pp), batch_size=16))
