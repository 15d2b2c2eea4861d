"""Manifests: everything that a training run depends on, in one checked document."""

from trainyard.protocol.manifest.data import Source
from trainyard.protocol.manifest.document import Manifest, Plan
from trainyard.protocol.manifest.errors import ManifestError
from trainyard.protocol.manifest.model import Model
from trainyard.protocol.manifest.training import Training

__all__ = ["Manifest", "ManifestError", "Model", "Plan", "Source", "Training"]
