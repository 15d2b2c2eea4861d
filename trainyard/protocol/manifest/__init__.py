"""Manifests: everything that a training run depends on, in one checked document."""

from trainyard.protocol.manifest.data import Source
from trainyard.protocol.manifest.document import Manifest
from trainyard.protocol.manifest.errors import ManifestError
from trainyard.protocol.manifest.model import Model
from trainyard.protocol.manifest.plan import Local, Merge, Plan, PredictPlan, RoundsPlan
from trainyard.protocol.manifest.training import Training

__all__ = [
    "Local",
    "Manifest",
    "ManifestError",
    "Merge",
    "Model",
    "Plan",
    "PredictPlan",
    "RoundsPlan",
    "Source",
    "Training",
]
