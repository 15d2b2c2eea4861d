"""How large the files of a run can be, by its manifest: what is larger is not fetched. No I/O."""

from trainyard.protocol.manifest import Manifest, RoundsPlan

# No optimiser of a manifest remembers more values of a weight.
_MOST_MEMORIES = 3
_VALUE_BYTES = 4
# Of the header: a layer has some dozens of tensors with their memories, each a name and a line.
_LAYER_BYTES = 32 << 10
_REST_BYTES = 64 << 10
_HASH_TEXT_BYTES = 80
# The number of a state, its hash, and what is around them.
_SHOWN_BYTES = 160


def most_state_bytes(manifest: Manifest) -> int:
    """Of any state of the run, and of any delta, which has each weight once."""
    model = manifest.model
    values = model.parameters + _MOST_MEMORIES * model.trainable_parameters
    # Of a run that predicts, the first state has weights and all others predictions.
    most = max(values * _VALUE_BYTES, manifest.predicted_bytes)
    return most + len(model.layers) * _LAYER_BYTES + _REST_BYTES


def most_trace_bytes(manifest: Manifest) -> int:
    """Of the list of all states' hashes."""
    return (manifest.plan.segments + 1) * _HASH_TEXT_BYTES + _REST_BYTES


def most_shown(manifest: Manifest) -> int:
    """How many states can say what one segment is computed from.

    A part that goes on from the last round that its worker was in shows that it was away since.
    """
    plan = manifest.plan
    return 1 + max(plan.workers, plan.rounds) if isinstance(plan, RoundsPlan) else 1


def most_inputs_bytes(manifest: Manifest) -> int:
    """Of the list of them, each with its proof."""
    proof = manifest.plan.segments.bit_length() * _HASH_TEXT_BYTES
    return most_shown(manifest) * (_SHOWN_BYTES + proof) + _REST_BYTES
