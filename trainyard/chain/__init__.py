"""Talks to the market's contracts."""

from trainyard.chain.artifacts import Artifact, ArtifactNotFoundError, load_artifact

__all__ = ["Artifact", "ArtifactNotFoundError", "load_artifact"]
