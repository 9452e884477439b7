"""Thin objects over the kernels: they check arguments, choose defaults and delegate."""
