"""Talks to the market's contracts: endpoints, a cursor over events, an outbox, and reads."""

from trainyard.chain.artifacts import Artifact, ArtifactNotFoundError, load_artifact

__all__ = ["Artifact", "ArtifactNotFoundError", "load_artifact"]
