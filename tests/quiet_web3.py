"""Loads web3 before anything else does: to be imported first where warnings are errors."""

import warnings

with warnings.catch_warnings():
    # It loads a part of its own that is deprecated, which is nothing that we could change.
    warnings.simplefilter("ignore", DeprecationWarning)
    import web3  # noqa: F401
