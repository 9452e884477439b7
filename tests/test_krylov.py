import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t3k.kernels.krylov import conjugate_gradients, tree_axpy, tree_dot

N = 6


def operator(eigenvalues, seed=0):
    """A symmetric matrix with these eigenvalues, on a pytree of two vectors of N/2."""
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((N, N)))
    matrix = jnp.asarray(basis * np.asarray(eigenvalues) @ basis.T)

    def apply(tree):
        flat = matrix @ jnp.concatenate(tree)
        return flat[: N // 2], flat[N // 2 :]

    return matrix, apply


B = (jnp.arange(1.0, 4.0), jnp.ones(3))


def solve(apply, tolerance=1e-10, max_iterations=50):
    return jax.jit(lambda b: conjugate_gradients(apply, b, tolerance=tolerance, max_iterations=max_iterations))(B)


def test_it_solves_positive_definite_systems_in_as_many_steps_as_there_are_eigenvalues():
    matrix, apply = operator([1, 1, 1, 4, 4, 9])
    result = solve(apply)
    np.testing.assert_allclose(jnp.concatenate(result.x), jnp.linalg.solve(matrix, jnp.concatenate(B)), rtol=1e-8)
    assert int(result.iterations) == 3
    assert float(result.residual_norm) <= 1e-10


def test_it_stops_at_the_tolerance_and_at_the_limit():
    _, apply = operator([1, 2, 3, 4, 5, 6])
    loose = solve(apply, tolerance=1.0)
    assert 0 < float(loose.residual_norm) <= 1.0
    assert int(solve(apply, max_iterations=2).iterations) == 2
    assert int(solve(apply, tolerance=100.0).iterations) == 0


@pytest.mark.parametrize("eigenvalues", [[0] * 6, [-1] * 6])
def test_without_positive_curvature_it_gives_the_right_hand_side(eigenvalues):
    """-gradient is a direction of descent whatever the operator is."""
    result = solve(operator(eigenvalues)[1])
    assert all(bool((x == b).all()) for x, b in zip(result.x, B, strict=True))


def test_tree_arithmetic_is_that_of_vectors():
    assert float(tree_dot(B, B)) == 17.0
    assert tree_axpy(2.0, B, B)[0].tolist() == [3.0, 6.0, 9.0]
