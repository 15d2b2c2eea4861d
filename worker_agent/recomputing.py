"""The port by which work has segments computed: afresh, or by what stands by."""

from collections.abc import Callable, Mapping

from trainyard.engine.auditing import Recomputed
from trainyard.engine.auditor import Inputs
from trainyard.engine.material import Files
from trainyard.protocol.manifest import Manifest

# Computes segments of a task in the sandbox, each from its inputs.
Recompute = Callable[[Manifest, Files, Mapping[int, Inputs]], Recomputed]
