"""All endpoints."""

from collections.abc import Sequence
from typing import Final

from skyrocket.console.api import history, overview, session
from skyrocket.console.api.endpoint import Endpoint

ENDPOINTS: Final[Sequence[Endpoint]] = tuple(
    endpoint for module in (overview, history, session) for endpoint in module.family.endpoints
)
