"""Tucker tensor trains and memory-bounded derivatives in JAX."""
