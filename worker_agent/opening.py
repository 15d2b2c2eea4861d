"""What settings lead to: the content plane and the sandbox of an agent."""

from trainyard.content.content import Content
from trainyard.content.settings import ContentSettings, open_content
from worker_agent.finding import look
from worker_agent.limits import Limits
from worker_agent.sandbox import Sandbox
from worker_agent.settings import Home, Settings


def open_agent_content(home: Home, settings: Settings) -> Content:
    places = settings.content
    return open_content(
        ContentSettings(
            store=places.store or home.content_store,
            kubo=places.kubo,
            gateways=",".join(places.gateways),
        )
    )


def open_sandbox(settings: Settings, *, is_tried: bool = True) -> Sandbox:
    """Where the code of strangers runs, with the limits that the operator set.

    One is tried before, so that it can be said what is missing; without, what is run in it fails.
    """
    wanted = settings.sandbox
    return Sandbox(
        Limits(
            memory_bytes=wanted.memory_bytes,
            disk_bytes=wanted.disk_bytes,
            processes=wanted.processes,
        ),
        None if is_tried else look(),
    )
