"""Where the processes of an async run reach each other."""

from pydantic import BaseModel, ConfigDict


class Addresses(BaseModel):
    """The cluster spec: who leads the run, who keeps its weights, and the workers by slot."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chief: str
    weights: str
    workers: tuple[str, ...]

    @property
    def jobs(self) -> dict[str, list[str]]:
        """Under the names that TensorFlow has for them."""
        return {"chief": [self.chief], "ps": [self.weights], "worker": list(self.workers)}
