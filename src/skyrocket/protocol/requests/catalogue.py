"""Every request by its code. Importing this module imports every family: all the other files of this folder."""

from importlib import import_module
from pkgutil import iter_modules

from skyrocket.protocol import requests
from skyrocket.protocol.requests.header import REQUESTS

for family in iter_modules(requests.__path__, "skyrocket.protocol.requests."):
    if family.name != __name__:
        import_module(family.name)

__all__ = ["REQUESTS"]
