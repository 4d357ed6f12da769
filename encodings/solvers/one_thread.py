"""How numerical libraries are held to one thread: the environment that they read when they are loaded."""

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""The same sums in the same order on every machine; and processes beside each other do not fight for its cores."""
